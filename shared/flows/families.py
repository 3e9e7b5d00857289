"""Who is woken when a job is over: those that depend on it. It never decides whether they may run (they look again).

To be woken saves a child from waiting for its next look, and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from shared.flows.dependencies import Parent
from shared.model.job import Job, JobStatus
from shared.model.message import Message
from shared.queue import JobQueue
from shared.rules.dependencies import Standing
from shared.rules.lease import first_lease_s
from shared.store.children import Children, Link
from shared.store.jobs import Jobs

WOKEN_A_PAGE = 100
WOKEN_PAGES = 10  # by one end of a parent; further children find out at their own next look


@dataclass(frozen=True, slots=True)
class Families:
    """Links children to their parents before they are written."""

    children: Children
    retention: timedelta

    def link(self, children: Sequence[tuple[Job, Mapping[str, Parent]]], now: datetime) -> None:
        """Link each job, which is not written yet, to its parents, unless they are over.

        One that is not among its parents as they were seen is written together with it, and says so itself.
        """
        #   submit:   link ── flag the parent ── mark its run, if it has begun ── write the child … it looks
        #   execute:                  start ── read the parent: flag? … end: mark? … wake
        #
        # As with a cancel, one of the two sees the other: the flag; or, where the parent was read before it, the mark;
        # or, where the end was written before that, the child's own first look.
        links: dict[tuple[str, str], Link] = {}
        unflagged: dict[str, Job] = {}
        for child, parents in children:
            for parent_id in child.spec.depends_on:
                parent = parents.get(parent_id)
                if parent is not None and parent.standing is not Standing.OPEN:
                    continue
                job = parent.job if parent else None
                until = max(now, _run_at(child, now), _run_at(job, now)) + self.retention
                links[parent_id, child.job_id] = Link(parent_id, child.job_id, until)
                if job is not None and not job.has_children:
                    unflagged[parent_id] = job
        self.children.link(list(links.values()))
        self.children.flag(list(unflagged))
        moments = [(job_id, _run_at(job, now)) for job_id, job in unflagged.items()]
        self.children.mark([(job_id, run_at) for job_id, run_at in moments if run_at <= now])


@dataclass(frozen=True, slots=True)
class Waker:
    """Wakes the children of a job that is over."""

    jobs: Jobs
    children: Children
    queue: JobQueue

    def wake(self, job_id: str, now: datetime) -> None:
        """Have those look now that may be waiting for the job; the others look at their own time. Raises SendError."""
        for page in islice(self.children.of(job_id, WOKEN_A_PAGE), WOKEN_PAGES):
            there = self.jobs.get_many(page)
            self.queue.send([_message(child) for child in there.values() if _is_waiting(child, job_id, now)])


def _run_at(job: Job | None, now: datetime) -> datetime:
    return job.spec.schedule.run_at or now if job else now


def _is_waiting(child: Job, parent_id: str, now: datetime) -> bool:
    """Whether the child's own message is there and may have found the parent open."""
    is_claimed = child.status is JobStatus.SCHEDULED and child.due_at is None
    return is_claimed and parent_id in child.spec.depends_on and _run_at(child, now) <= now


def _message(child: Job) -> Message:
    assert child.spec.schedule.run_at is not None
    return Message(
        job_id=child.job_id,
        scheduled_for=child.spec.schedule.run_at,
        revision=child.revision,
        fence=0,
        lease_s=first_lease_s(child.spec.timeout_s),
        woken=True,
        priority=child.spec.priority,
        group=child.spec.group,
    )
