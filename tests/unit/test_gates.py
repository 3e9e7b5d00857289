"""The gates of a start: built for the first run that needs one, the same for all, and passed all or none."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.flows.gates import Gate, Gates, MustWaitError
from shared.model.job import Job, Schedule
from shared.model.run import Run, RunStatus
from shared.wiring import base
from tests.support.jobs import a_job

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUN = Run(
    job_id="a", scheduled_for=NOW, status=RunStatus.RUNNING, revision=1, attempt=1, attempts=(), lease_expires_at=NOW
)


class Noted:
    """A gate that notes what it is asked, and lets in unless it is shut."""

    def __init__(self, name: str, notes: list[str], *, shut: bool = False) -> None:
        self.name, self.notes, self.shut = name, notes, shut

    def enter(self, job: Job, run: Run, receives: int, now: datetime) -> None:
        self.notes.append(f"enter {self.name}")
        if self.shut:
            raise MustWaitError(self.name, 1)

    def leave(self, job: Job, run: Run) -> None:
        self.notes.append(f"leave {self.name}")


def job_of(**wants: object) -> Job:
    job = a_job(Schedule(run_at=NOW), NOW)
    return replace(job, spec=replace(job.spec, **wants))  # type: ignore[arg-type]


def never() -> list[Gate]:
    raise AssertionError("a plain job needs no gate")


def test_a_plain_job_has_no_gate_built() -> None:
    gates = Gates(never)
    gates.enter(job_of(), RUN, 1, NOW)
    gates.leave(job_of(), RUN)


@pytest.mark.parametrize(
    ("wants", "run"),
    [
        ({"depends_on": ("b",)}, RUN),
        ({"overlap": "skip"}, RUN),
        ({"group": "g"}, RUN),
        ({}, replace(RUN, cancel_requested=True)),
    ],
    ids=["parents", "overlap", "group", "replaced"],
)
def test_who_needs_one_is_asked_by_all_in_order(wants: dict[str, object], run: Run) -> None:
    notes: list[str] = []
    gates = Gates(lambda: [Noted("first", notes), Noted("second", notes)])
    gates.enter(job_of(**wants), run, 1, NOW)
    gates.leave(job_of(**wants), run)
    assert notes == ["enter first", "enter second", "leave second", "leave first"]


def test_one_that_is_shut_leaves_those_before_it() -> None:
    notes: list[str] = []
    gates = Gates(lambda: [Noted("first", notes), Noted("second", notes, shut=True), Noted("third", notes)])
    with pytest.raises(MustWaitError, match="second"):
        gates.enter(job_of(group="g"), RUN, 1, NOW)
    assert notes == ["enter first", "enter second", "leave first"]


def test_what_is_made_once_is_the_same_to_all_threads() -> None:
    """A group's gate knows who is inside: two of them would each know half."""

    def slowly() -> object:
        time.sleep(0.05)
        return object()

    get = base.once(slowly)
    with ThreadPoolExecutor(8) as pool:
        assert len({id(made) for made in pool.map(lambda _: get(), range(8))}) == 1
