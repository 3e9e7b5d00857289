"""The gates of a start: built for the first run that needs one, the same for all, and passed all or none."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.flows.gates import Gate, Gates, MustWaitError
from shared.model.job import Job, JobSpec, JobStatus, Schedule, Target
from shared.model.run import Run, RunStatus
from shared.wiring import base

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PLAIN = JobSpec(job_id="a", target=Target(kind="python"), schedule=Schedule(run_at=NOW))
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


def job_of(spec: JobSpec) -> Job:
    return Job(
        job_id="a",
        spec=spec,
        status=JobStatus.SCHEDULED,
        due_at=None,
        revision=1,
        version=1,
        fence=0,
        created_at=NOW,
        changed_at=NOW,
    )


def never() -> list[Gate]:
    raise AssertionError("a plain job needs no gate")


def test_a_plain_job_has_no_gate_built() -> None:
    gates = Gates(never)
    gates.enter(job_of(PLAIN), RUN, 1, NOW)
    gates.leave(job_of(PLAIN), RUN)


@pytest.mark.parametrize(
    ("spec", "run"),
    [
        (replace(PLAIN, depends_on=("b",)), RUN),
        (replace(PLAIN, overlap="skip"), RUN),
        (replace(PLAIN, group="g"), RUN),
        (PLAIN, replace(RUN, cancel_requested=True)),
    ],
    ids=["parents", "overlap", "group", "replaced"],
)
def test_who_needs_one_is_asked_by_all_in_order(spec: JobSpec, run: Run) -> None:
    notes: list[str] = []
    gates = Gates(lambda: [Noted("first", notes), Noted("second", notes)])
    gates.enter(job_of(spec), run, 1, NOW)
    gates.leave(job_of(spec), run)
    assert notes == ["enter first", "enter second", "leave second", "leave first"]


def test_one_that_is_shut_leaves_those_before_it() -> None:
    notes: list[str] = []
    gates = Gates(lambda: [Noted("first", notes), Noted("second", notes, shut=True), Noted("third", notes)])
    with pytest.raises(MustWaitError, match="second"):
        gates.enter(job_of(replace(PLAIN, group="g")), RUN, 1, NOW)
    assert notes == ["enter first", "enter second", "leave first"]


def test_what_is_made_once_is_the_same_to_all_threads() -> None:
    """A group's gate knows who is inside: two of them would each know half."""

    def slowly() -> object:
        time.sleep(0.05)
        return object()

    get = base.once(slowly)
    with ThreadPoolExecutor(8) as pool:
        assert len({id(made) for made in pool.map(lambda _: get(), range(8))}) == 1
