"""The audit: an hourly scan that must find nothing, and repairs and counts what it finds. It never calls a target.

Sending again is harmless: a start condition stops what is not needed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from shared.clock import Clock
from shared.flows.claims import Claimer, pages
from shared.flows.letters import AnsweredLetters, is_redriven
from shared.flows.recover import Recovery
from shared.model.job import Job, JobStatus
from shared.model.message import Message
from shared.model.run import Run, RunStatus
from shared.queue import JobQueue
from shared.rules.lease import first_lease_s
from shared.rules.plan import plan
from shared.rules.sharding import shard_of
from shared.rules.staleness import STALE_AFTER, claimed_long_ago, is_abandoned, is_overdue
from shared.store import keys
from shared.store.codec import due_of, is_expired, job_of, read_all, run_of
from shared.store.jobs import Claim, Jobs
from shared.store.journal import Journal, Page, page_of
from shared.store.run_history import RunHistory
from shared.store.shards import Shards
from shared.store.table import Item, Table

PAYLOAD_KEPT = timedelta(days=1)  # a payload is written just before its job: a younger one may be about to be named


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """What was found (and repaired). `complete`: the scan came to its end.

    `unplannable`: ids of jobs whose next time cannot be worked out; `unreadable`: keys of items that are not as the
    codec writes them. Both need a person.
    """

    overdue: int = 0  # due, and not claimed
    unstarted: int = 0  # claimed, and never started
    abandoned: int = 0  # begun, and nobody at it
    pages: int = 0  # journal pages left behind
    unplannable: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    swept: int = 0  # payloads that no job names any more; removed, and no finding
    redriven: int = 0  # runs that were redriven lately; no finding
    answered: int = 0  # dead letters of such runs; removed, and no finding
    complete: bool = True

    @property
    def findings(self) -> int:
        found = self.overdue + self.unstarted + self.abandoned + self.pages
        return found + len(self.unplannable) + len(self.unreadable)

    def __add__(self, other: "Audited") -> "Audited":
        return Audited(
            overdue=self.overdue + other.overdue,
            unstarted=self.unstarted + other.unstarted,
            abandoned=self.abandoned + other.abandoned,
            pages=self.pages + other.pages,
            unplannable=tuple(dict.fromkeys(self.unplannable + other.unplannable)),
            unreadable=self.unreadable + other.unreadable,
            swept=self.swept + other.swept,
            redriven=self.redriven + other.redriven,
            answered=self.answered + other.answered,
            complete=self.complete and other.complete,
        )


@dataclass(frozen=True, slots=True)
class AuditFlow:
    """Scans in `segments` parts, side by side on `pool`."""

    table: Table
    jobs: Jobs
    history: RunHistory
    shards: Shards
    claimer: Claimer
    recovery: Recovery
    journal: Journal
    queue: JobQueue
    letters: AnsweredLetters
    clock: Clock
    token: Callable[[], str]
    pool: Executor
    segments: int
    horizon_s: int

    def run(self, now: datetime, stop_at: datetime) -> Audited:
        """One audit at `now`; after `stop_at` it begins no further page and reports that it is not complete."""
        epochs = {lease.shard: lease.epoch for lease in self.shards.get_many(self.jobs.shards)}
        parts = self.pool.map(lambda segment: self._segment(segment, epochs, now, stop_at), range(self.segments))
        found = sum(parts, Audited())
        with suppress(ClientError, BotoCoreError):  # then the next audit: it must not keep this one's findings back
            return found + Audited(answered=self.letters.sweep(stop_at)) if found.redriven else found
        return found

    def _segment(self, segment: int, epochs: dict[int, int], now: datetime, stop_at: datetime) -> Audited:
        found = Audited()
        for items in self.table.scan(segment, self.segments):
            if self.clock.now() >= stop_at:
                return found + Audited(complete=False)
            found += self._page(items, epochs, now)
        return found

    def _page(self, items: Sequence[Item], epochs: dict[int, int], now: datetime) -> Audited:
        # What has expired is as good as gone, in whichever order DynamoDB removes it: a job whose run went first
        # would look as if it had never run.
        there = [item for item in items if not is_expired(item, now)]
        jobs, bad_jobs = read_all(_of_kind(there, keys.JOB), lambda item: (item, job_of(item)))
        runs, bad_runs = read_all(_of_kind(there, keys.RUN_PREFIX), run_of)
        claims, bad_claims = read_all(_of_kind(there, keys.CLAIM_PREFIX), page_of)
        bad = tuple(f"{item[keys.PK]['S']} {item[keys.SK]['S']}" for item in bad_jobs + bad_runs + bad_claims)
        return (
            Audited(unreadable=bad)
            + self._claim_overdue([item for item, job in jobs if is_overdue(job, now)], epochs, now)
            + self._send_unstarted([job for _, job in jobs], now)
            + self._send_abandoned([run for run in runs if is_abandoned(run, now)])
            + self._settle_pages([page for page in claims if page.written_at < now - STALE_AFTER])
            + Audited(redriven=sum(is_redriven(run, now) for run in runs))
            + Audited(swept=self.jobs.sweep_payloads(_of_kind(there, keys.PAYLOAD_PREFIX), now - PAYLOAD_KEPT))
        )

    def _claim_overdue(self, items: Sequence[Item], epochs: dict[int, int], now: datetime) -> Audited:
        """Claim as a tick would; no fence of a tick that there was holds it up."""
        unplannable: list[str] = []
        shards: dict[int, list[Claim]] = {}
        for due in map(due_of, items):
            try:
                claim = Claim(due, plan(due, now, self.horizon_s))
            except Exception:  # noqa: BLE001 - one job's trouble must not keep the others from being found
                unplannable.append(due.job_id)
                continue
            shards.setdefault(shard_of(due.job_id, self.jobs.shards), []).append(claim)
        for shard, claims in shards.items():
            # An overdue job may carry the fence of a tick of the shard it was in before the shards grew.
            fence = max(epochs.values(), default=0)
            slate = self.journal.slate(shard, fence, f"audit#{self.token()}#")
            for batch in pages(claims):
                self.claimer.run(slate, batch, as_tick=False)
            slate.close()
        return Audited(overdue=sum(map(len, shards.values())), unplannable=tuple(unplannable))

    def _send_unstarted(self, jobs: Sequence[Job], now: datetime) -> Audited:
        messages: list[Message] = []
        unplannable: list[str] = []
        for job in jobs:
            try:
                claimed = claimed_long_ago(job, now)
            except Exception:  # noqa: BLE001 - as above
                unplannable.append(job.job_id)
                continue
            if claimed:
                messages += self._unstarted(job, claimed)
        self.queue.send(messages)
        return Audited(unstarted=len(messages), unplannable=tuple(unplannable))

    def _unstarted(self, job: Job, claimed: Sequence[datetime]) -> Iterator[Message]:
        there = self.history.spans(job.job_id, claimed[0], claimed[-1])
        recorded = {first for first, _ in there}
        longer = [(first, last) for first, last in there if first != last]
        for moment in claimed:
            if moment not in recorded and not any(first <= moment <= last for first, last in longer):
                yield _message(job, moment, job.revision)

    def _send_abandoned(self, runs: Sequence[Run]) -> Audited:
        jobs = self.jobs.get_many([run.job_id for run in runs])
        messages = [
            _message(jobs[run.job_id], run.scheduled_for, run.revision)
            for run in runs
            if run.job_id in jobs and not _is_paused(jobs[run.job_id], run)
        ]
        self.queue.send(messages)
        return Audited(abandoned=len(messages))

    def _settle_pages(self, left: Sequence[Page]) -> Audited:
        for page in left:
            self.queue.send(self.recovery.unsent(page.messages))
            self.journal.settle(page)
        return Audited(pages=len(left))


def _is_paused(job: Job, run: Run) -> bool:
    """Whether the run waits for its job to be resumed."""
    return job.status is JobStatus.PAUSED and run.requested_at is None and run.status is not RunStatus.RUNNING


def _of_kind(items: Sequence[Item], sk: str) -> list[Item]:
    return [item for item in items if item[keys.SK]["S"].startswith(sk)]


def _message(job: Job, scheduled_for: datetime, revision: int) -> Message:
    return Message(
        job_id=job.job_id,
        scheduled_for=scheduled_for,
        revision=revision,
        fence=0,
        lease_s=first_lease_s(job.spec.timeout_s),
        priority=job.spec.priority,
        group=job.spec.group,
    )
