"""The account of runs beside each other: small histories that are right, and what it says of those that are not."""

from datetime import datetime, timedelta

import pytest

from tests.faults.history import Called, Event, History, LimitSeen, PolicySeen, Returned, RunSeen
from tests.faults.side_by_side import violations
from tests.support.clocks import START


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def started(job_id: str, due: float, now: float, *, attempt: int = 1, lease_s: float = 65) -> RunSeen:
    return RunSeen(
        at=at(now),
        job_id=job_id,
        scheduled_for=at(due),
        status="running",
        attempt=attempt,
        lease_expires_at=at(now + lease_s),
    )


def called(job_id: str, due: float, now: float, attempt: int = 1) -> Called:
    return Called(at=at(now), job_id=job_id, scheduled_for=at(due), attempt=attempt)


def begun(job_id: str, due: float, now: float, attempt: int = 1) -> list[Event]:
    return [started(job_id, due, now, attempt=attempt), called(job_id, due, now, attempt)]


def ended(job_id: str, due: float, now: float, status: str = "succeeded", attempt: int = 1) -> list[Event]:
    about = {"at": at(now), "job_id": job_id, "scheduled_for": at(due), "attempt": attempt}
    return [Returned(**about), RunSeen(status=status, **about)]


def policy(job_id: str, overlap: str = "allow", group: str | None = None, now: float = 0) -> PolicySeen:
    return PolicySeen(at=at(now), job_id=job_id, overlap=overlap, group=group)


def limit(max_running: int | None, now: float = 0) -> LimitSeen:
    return LimitSeen(at=at(now), group="g", max_running=max_running)


def broken(*events: Event) -> list[str]:
    return [name for name, _ in violations(History(list(events)))]


SKIP = policy("a", "skip")
GROUP = [policy("a", group="g"), policy("b", group="g"), limit(1)]


def test_runs_one_after_the_other_are_right() -> None:
    assert broken(SKIP, *begun("a", 1, 1), *ended("a", 1, 5), *begun("a", 2, 5)) == []
    assert broken(*GROUP, *begun("a", 1, 1), *ended("a", 1, 5), *begun("b", 2, 5)) == []


def test_a_call_beside_another_of_its_job_is_wrong() -> None:
    assert broken(SKIP, *begun("a", 1, 1), *begun("a", 2, 5)) == ["overlap"]
    assert broken(*begun("a", 1, 1), *begun("a", 2, 5)) == []  # allow
    assert broken(SKIP, policy("b", "skip"), *begun("a", 1, 1), *begun("b", 2, 5)) == []


def test_a_call_is_over_at_the_end_of_its_lease_when_its_process_died() -> None:
    assert broken(SKIP, *begun("a", 1, 1), *begun("a", 2, 66)) == ["overlap"]
    assert broken(SKIP, *begun("a", 1, 1), *begun("a", 2, 66.1)) == []


def test_a_call_beside_a_run_that_waits_for_its_next_attempt_is_wrong() -> None:
    assert broken(SKIP, *begun("a", 1, 1), *ended("a", 1, 5, "failed"), *begun("a", 2, 6)) == ["overlap"]
    assert broken(SKIP, *begun("a", 1, 1), *ended("a", 1, 5, "failed"), *begun("a", 1, 6, attempt=2)) == []


def test_two_runs_are_not_skipped_for_each_other() -> None:
    def skipped(due: float, now: float) -> RunSeen:
        return RunSeen(at=at(now), job_id="a", scheduled_for=at(due), status="skipped", reason="overlap")

    assert broken(SKIP, started("a", 1, 1), started("a", 2, 2), skipped(1, 3)) == []
    assert broken(SKIP, started("a", 1, 1), started("a", 2, 2), skipped(1, 3), skipped(2, 3)) == ["overlap"]
    assert broken(SKIP, *begun("a", 1, 1), started("a", 2, 2), *ended("a", 1, 3), skipped(2, 3)) == []


@pytest.mark.parametrize(("now", "found"), [(0.5, ["overlap"]), (2, []), (6, [])])
def test_a_policy_holds_for_what_starts_under_it(now: float, found: list[str]) -> None:
    """The second starts at 1.5 s and is called at 5 s: if it is set in between, either may hold."""
    events = [policy("a"), *begun("a", 1, 1), started("a", 2, 1.5), called("a", 2, 5), policy("a", "skip", now=now)]
    assert broken(*sorted(events, key=lambda event: event.at)) == found


def test_more_calls_of_a_group_than_its_limit_are_wrong() -> None:
    assert broken(*GROUP, *begun("a", 1, 1), *begun("b", 2, 5)) == ["group"]
    assert broken(*GROUP, limit(2), *begun("a", 1, 1), *begun("b", 2, 5)) == []
    assert broken(*GROUP, limit(None), *begun("a", 1, 1), *begun("b", 2, 5)) == []


def test_a_limit_holds_for_what_starts_under_it() -> None:
    lowered = [*GROUP, limit(2), *begun("a", 1, 1), started("b", 2, 2), limit(1, now=3), called("b", 2, 5)]
    assert broken(*lowered) == []
    assert broken(*GROUP, limit(2), *begun("a", 1, 1), limit(1, now=3), *begun("b", 2, 5)) == ["group"]


def test_what_began_without_a_limit_has_no_place() -> None:
    assert broken(*GROUP, limit(None), *begun("a", 1, 1), limit(1, now=2), *begun("b", 2, 5)) == []


def test_an_attempt_that_was_ended_as_lost_has_no_place_and_must_not_come_back() -> None:
    lost = RunSeen(at=at(70), job_id="a", scheduled_for=at(1), status="failed", attempt=1)
    renewed = started("a", 1, 71)
    assert broken(*GROUP, *begun("a", 1, 1), lost, *begun("b", 2, 70)) == []
    assert broken(*GROUP, *begun("a", 1, 1), *begun("b", 2, 70), renewed) == ["group"]
