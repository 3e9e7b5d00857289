"""How long an attempt may run before its run may be taken over. It never renews a lease (flows.execute does)."""

LEASE_MAX_S = 60
LEASE_MARGIN_S = 5  # for the end of an attempt to be written
RENEW_EVERY_S = 20


def first_lease_s(timeout_s: int) -> int:
    """Seconds of an attempt's first lease: its timeout, at most 60 s, and a margin; a longer attempt renews it."""
    return min(timeout_s, LEASE_MAX_S) + LEASE_MARGIN_S
