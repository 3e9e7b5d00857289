"""The proof: crash points, interleavings, faults and outages tried on the real flows, and their history checked."""
