"""The length of an attempt's first lease."""

import pytest

from shared.rules.lease import LEASE_MARGIN_S, LEASE_MAX_S, RENEW_EVERY_S, first_lease_s


@pytest.mark.parametrize(("timeout_s", "lease_s"), [(1, 6), (30, 35), (60, 65), (61, 65), (885, 65)])
def test_a_lease_is_the_timeout_at_most_60_s_and_a_margin(timeout_s: int, lease_s: int) -> None:
    assert first_lease_s(timeout_s) == lease_s


def test_a_lease_outlives_two_missed_renewals() -> None:
    assert LEASE_MAX_S + LEASE_MARGIN_S > 3 * RENEW_EVERY_S
