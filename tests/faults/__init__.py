"""The proof: every crash point, interleaving, fault and outage is tried on the real flows, and the history is checked."""
