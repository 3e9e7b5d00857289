"""The audit: an hourly scan that must find nothing, and repairs and counts what it finds. It never calls a target.

Sending again is harmless: a start condition stops what is not needed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.clock import Clock
from shared.flows.claims import Claimer, pages
from shared.flows.recover import Recovery
from shared.model.errors import DuetimeError
from shared.model.job import Job
from shared.model.message import Message
from shared.model.run import Run
from shared.queue import JobQueue
from shared.rules.lease import first_lease_s
from shared.rules.plan import plan
from shared.rules.sharding import shard_of
from shared.rules.staleness import STALE_AFTER, claimed_long_ago, is_abandoned, is_overdue
from shared.store import keys
from shared.store.codec import due_of, job_of, run_of
from shared.store.jobs import Claim, Jobs
from shared.store.journal import Journal, page_name, page_of
from shared.store.runs import Runs
from shared.store.shards import Shards
from shared.store.table import Item, Table

PAYLOAD_KEPT = timedelta(days=1)  # a payload is written just before its job: a younger one may be about to be named


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """What was found (and repaired). `complete`: the scan came to its end. `unplannable`: job ids nobody can claim."""

    overdue: int = 0  # due, and not claimed
    unstarted: int = 0  # claimed, and never started
    abandoned: int = 0  # begun, and nobody at it
    pages: int = 0  # journal pages left behind
    unplannable: tuple[str, ...] = ()
    swept: int = 0  # payloads that no job names any more; removed, and no finding
    complete: bool = True

    @property
    def findings(self) -> int:
        return self.overdue + self.unstarted + self.abandoned + self.pages + len(self.unplannable)

    def __add__(self, other: "Audited") -> "Audited":
        return Audited(
            overdue=self.overdue + other.overdue,
            unstarted=self.unstarted + other.unstarted,
            abandoned=self.abandoned + other.abandoned,
            pages=self.pages + other.pages,
            unplannable=self.unplannable + other.unplannable,
            swept=self.swept + other.swept,
            complete=self.complete and other.complete,
        )


@dataclass(frozen=True, slots=True)
class AuditFlow:
    """Scans in `segments` parts, side by side on `pool`."""

    table: Table
    jobs: Jobs
    runs: Runs
    shards: Shards
    claimer: Claimer
    recovery: Recovery
    journal: Journal
    queue: JobQueue
    clock: Clock
    token: Callable[[], str]
    pool: Executor
    segments: int
    horizon_s: int

    def run(self, now: datetime, stop_at: datetime) -> Audited:
        """One audit at `now`; after `stop_at` it begins no further page and reports that it is not complete."""
        epochs = {lease.shard: lease.epoch for lease in self.shards.get_many(self.jobs.shards)}
        parts = self.pool.map(lambda segment: self._segment(segment, epochs, now, stop_at), range(self.segments))
        return sum(parts, Audited())

    def _segment(self, segment: int, epochs: dict[int, int], now: datetime, stop_at: datetime) -> Audited:
        found = Audited()
        for items in self.table.scan(segment, self.segments):
            if self.clock.now() >= stop_at:
                return found + Audited(complete=False)
            found += self._page(items, epochs, now)
        return found

    def _page(self, items: Sequence[Item], epochs: dict[int, int], now: datetime) -> Audited:
        jobs = [item for item in items if item[keys.SK]["S"] == keys.JOB]
        runs = [run_of(item) for item in items if item[keys.SK]["S"].startswith(keys.RUN_PREFIX)]
        claims = [item for item in items if item[keys.SK]["S"].startswith(keys.CLAIM_PREFIX)]
        payloads = [item for item in items if item[keys.SK]["S"].startswith(keys.PAYLOAD_PREFIX)]
        return (
            self._claim_overdue(jobs, epochs, now)
            + self._send_unstarted([job_of(item) for item in jobs], now)
            + self._send_abandoned([run for run in runs if is_abandoned(run, now)])
            + self._settle_pages(claims, now)
            + Audited(swept=self.jobs.sweep_payloads(payloads, now - PAYLOAD_KEPT))
        )

    def _claim_overdue(self, items: Sequence[Item], epochs: dict[int, int], now: datetime) -> Audited:
        """Claim as a tick would, under the fence of the shard's latest tick."""
        unplannable: list[str] = []
        shards: dict[int, list[Claim]] = {}
        for item in items:
            if not is_overdue(job_of(item), now):
                continue
            due = due_of(item)
            try:
                claim = Claim(due, plan(due, now, self.horizon_s))
            except DuetimeError:
                unplannable.append(due.job_id)
                continue
            shards.setdefault(shard_of(due.job_id, self.jobs.shards), []).append(claim)
        for shard, claims in shards.items():
            # An overdue job may carry the fence of a tick of the shard it was in before the shards grew.
            fence = max(epochs.values(), default=0)
            for batch in pages(claims):
                self.claimer.run(shard, fence, page_name(fence, f"audit#{self.token()}"), batch)
        return Audited(overdue=sum(map(len, shards.values())), unplannable=tuple(unplannable))

    def _send_unstarted(self, jobs: Sequence[Job], now: datetime) -> Audited:
        messages = [message for job in jobs for message in self._unstarted(job, now)]
        self.queue.send(messages)
        return Audited(unstarted=len(messages))

    def _unstarted(self, job: Job, now: datetime) -> Iterator[Message]:
        claimed = claimed_long_ago(job, now)
        if not claimed:
            return
        there = self.runs.between(job.job_id, claimed[0], claimed[-1])
        recorded = {run.scheduled_for for run in there}
        spans = [(run.scheduled_for, run.missed_until) for run in there if run.missed_until is not None]
        for moment in claimed:
            if moment not in recorded and not any(first <= moment <= last for first, last in spans):
                yield _message(job.job_id, moment, job.revision, job.spec.timeout_s)

    def _send_abandoned(self, runs: Sequence[Run]) -> Audited:
        jobs = self.jobs.get_many([run.job_id for run in runs])
        messages = [
            _message(run.job_id, run.scheduled_for, run.revision, jobs[run.job_id].spec.timeout_s)
            for run in runs
            if run.job_id in jobs
        ]
        self.queue.send(messages)
        return Audited(abandoned=len(messages))

    def _settle_pages(self, items: Sequence[Item], now: datetime) -> Audited:
        left = [page for page in map(page_of, items) if page.written_at < now - STALE_AFTER]
        for page in left:
            self.queue.send(self.recovery.unsent(page.messages))
            self.journal.settle(page)
        return Audited(pages=len(left))


def _message(job_id: str, scheduled_for: datetime, revision: int, timeout_s: int) -> Message:
    return Message(
        job_id=job_id, scheduled_for=scheduled_for, revision=revision, fence=0, lease_s=first_lease_s(timeout_s)
    )
