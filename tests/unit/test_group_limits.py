"""Who still needs its place of a group, and how long one waits for a place."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given

from shared.model.run import Attempt, Run, RunStatus
from shared.rules.group_limits import Holder, Standing, standing
from shared.rules.waits import look_again_s
from shared.store import keys

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ATTEMPT = Attempt(attempt=1, worker_id="w#1", started_at=NOW, lease_expires_at=NOW)
RUN = Run(
    job_id="a",
    scheduled_for=NOW,
    status=RunStatus.RUNNING,
    revision=1,
    attempt=1,
    attempts=(ATTEMPT,),
    lease_expires_at=NOW,
)
HOLDER = Holder("a", NOW, "w#1", NOW)


def test_an_attempt_is_live_up_to_the_very_end_of_its_lease() -> None:
    assert standing(HOLDER, RUN, NOW) is Standing.LIVE
    assert standing(HOLDER, RUN, NOW + timedelta(microseconds=1)) is Standing.EXPIRED


def test_a_renewed_lease_counts_and_not_the_first() -> None:
    renewed = replace(RUN, lease_expires_at=NOW + timedelta(seconds=65))
    assert standing(HOLDER, renewed, NOW + timedelta(seconds=60)) is Standing.LIVE


@pytest.mark.parametrize("status", [status for status in RunStatus if status is not RunStatus.RUNNING])
def test_a_run_that_is_not_running_needs_no_place(status: RunStatus) -> None:
    assert standing(HOLDER, replace(RUN, status=status), NOW) is Standing.STALE


def test_a_place_is_its_attempts_and_not_the_next_ones() -> None:
    next_one = replace(ATTEMPT, attempt=2, worker_id="w#2")
    assert standing(HOLDER, replace(RUN, attempt=2, attempts=(ATTEMPT, next_one)), NOW) is Standing.STALE
    assert standing(HOLDER, None, NOW) is Standing.STALE  # its start was taken back


@given(st.integers(1, 2000), st.sampled_from((15.0, 30.0)), st.text(max_size=5))
def test_waits_grow_to_their_longest_and_are_spread(receives: int, longest_s: float, name: str) -> None:
    wait_s = look_again_s(receives, longest_s, name)
    most = min(longest_s, 2.0 ** min(receives - 1, 10))
    assert 1 <= wait_s <= max(1, most)
    assert wait_s >= most / 2
    assert look_again_s(receives, longest_s, name) == wait_s


def test_those_that_wait_for_one_thing_do_not_come_back_together() -> None:
    waits = {look_again_s(10, 30, f"job{number}") for number in range(50)}
    assert len(waits) == 50
    assert max(waits) - min(waits) > 12


@pytest.mark.parametrize("moment", [NOW, NOW + timedelta(microseconds=250_000)])
@pytest.mark.parametrize("job_id", ["a", "A.b:c_d-e", "x" * 128])
def test_names_of_holders_are_read_back(job_id: str, moment: datetime) -> None:
    assert keys.holder_of(keys.holder_name(job_id, moment)) == (job_id, moment)
