"""The minute tick of a shard: lease → recover the journal → claim ahead by bucket → watermark. It never runs a job."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.clock import Clock
from shared.flows.claims import Claimed, Claimer, pages
from shared.flows.recover import Recovery
from shared.rules.plan import plan
from shared.rules.whole_seconds import wait_s
from shared.store import keys
from shared.store.jobs import Claim, Jobs
from shared.store.journal import Journal, Slate
from shared.store.shards import ShardLease, Shards

LEASE_S = 50  # under a minute: a tick that died keeps the next one out at most once
LOOK_BACK = timedelta(minutes=10)  # the index lags; what appeared behind the watermark is still found
NOTHING = Claimed()
CALM_JOBS = 3_000  # in one answer of the index: behind more of them there is no time to wait for whole seconds
WAITS_S = 20  # of a tick in all: with the claims of CALM_JOBS it has time left
FIRST_LOOK_BACK = timedelta(hours=2)  # of a shard that was never ticked; the audit runs hourly and finds what is older


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """What a tick did. `held`: another one was at it. `complete`: every bucket up to the horizon was drained.

    `unplannable`: jobs whose next time cannot be worked out (they stay in the index, and the audit reports them).
    """

    shard: int
    held: bool = False
    epoch: int = 0
    recovered: int = 0
    claimed: Claimed = NOTHING
    unplannable: tuple[str, ...] = ()
    complete: bool = False

    @property
    def idle(self) -> bool:
        """Nothing was found, and nothing is left."""
        return self.complete and self.claimed == NOTHING and not self.recovered and not self.unplannable


@dataclass(frozen=True, slots=True)
class TickFlow:
    """Moves the due jobs of a shard from scheduled to enqueued. `pause(seconds)` is called to send in time."""

    jobs: Jobs
    shards: Shards
    journal: Journal
    claimer: Claimer
    recovery: Recovery
    clock: Clock
    owner: str
    horizon_s: int
    pause: Callable[[float], None]

    def run(self, shard: int, now: datetime, stop_at: datetime) -> Ticked:
        """One tick at `now`; begins no further batch after `stop_at` and leaves the rest to the next tick."""
        lease = self.shards.take(shard, self.owner, now, LEASE_S)
        if lease is None:
            return Ticked(shard=shard, held=True)
        recovered = self.recovery.run(shard, now, now + (stop_at - now) / 2)  # what is due needs its time, too
        work = _Work(self, lease, self.journal.slate(shard, lease.epoch, "tick#"), now, stop_at)
        drained_up_to: datetime | None = None
        complete = True
        for bucket in self._buckets(lease, now):
            if self.clock.now() >= stop_at:
                complete = False
                break
            drained = work.drain(bucket)  # what is left of one bucket must not keep the others waiting
            complete = complete and drained
            if complete:
                drained_up_to = bucket
        work.slate.close()
        drained_up_to = work.kept_back(drained_up_to)
        self.shards.release(lease, drained_up_to, self.clock.now())
        return Ticked(
            shard=shard,
            epoch=lease.epoch,
            recovered=recovered,
            claimed=work.claimed,
            unplannable=tuple(work.unplannable),
            complete=complete,
        )

    def _buckets(self, lease: ShardLease, now: datetime) -> Iterator[datetime]:
        first = now - FIRST_LOOK_BACK if lease.watermark is None else min(lease.watermark, now) - LOOK_BACK
        bucket = keys.bucket_of(first)
        while bucket <= now + timedelta(seconds=self.horizon_s):
            if _is_looked_at(bucket, lease, now):
                yield bucket
            bucket += keys.BUCKET


def _is_looked_at(bucket: datetime, lease: ShardLease, now: datetime) -> bool:
    """Whether this tick looks at `bucket`: at one drained before only every other tick does, as that is enough for I8.

    They hold what the index showed late. The watermark's own may get more, and what is due now does not wait.
    """
    if lease.watermark is None or bucket >= lease.watermark or now - 2 * keys.BUCKET < bucket <= now:
        return True
    return (bucket.minute + lease.epoch) % 2 == 0


@dataclass(slots=True)
class _Work:
    """The claiming of one tick, with its running totals."""

    flow: TickFlow
    lease: ShardLease
    slate: Slate
    now: datetime
    stop_at: datetime
    claimed: Claimed = NOTHING
    unplannable: list[str] = field(default_factory=list)
    busy: bool = False  # the index shows more than a few pages at once
    waited_s: float = 0
    behind: dict[str, datetime] = field(default_factory=dict)  # due again before the horizon: job id → when

    def drain(self, bucket: datetime) -> bool:
        """Claim all that the index shows in `bucket`; whether nothing of it is left."""
        left = 0
        for batch in pages(self._claims(bucket)):
            if self.flow.clock.now() >= self.stop_at:
                return False
            self._wait_for_a_whole_second(batch)
            done = self.flow.claimer.run(self.slate, batch)
            self.claimed += done
            left += done.left
            self._note_behind(batch)
        return left == 0

    def _wait_for_a_whole_second(self, batch: list[Claim]) -> None:
        """Let the sends of `batch` come just after a whole second before its due times, unless there is much to do.

        The wait is before the journal's page: nothing of the batch is claimed meanwhile, so no crash finds more undone.
        """
        if self.busy or self.waited_s > WAITS_S:
            return
        now = self.flow.clock.now()
        wait = wait_s((one.scheduled_for for claim in batch for one in claim.plan.occurrences), now)
        if wait and now + timedelta(seconds=wait) < self.stop_at:
            self.waited_s += wait
            self.flow.pause(wait)

    def kept_back(self, watermark: datetime | None) -> datetime | None:
        """`watermark`, but before every job that one claim could not bring up to the horizon: the index lags, so this
        tick may not have met it again.
        """
        if watermark is None or not self.behind:
            return watermark
        return min(watermark, keys.bucket_of(min(self.behind.values())) - keys.BUCKET)

    def _note_behind(self, batch: list[Claim]) -> None:
        for claim in batch:
            next_due_at = claim.plan.next_due_at
            if next_due_at is not None and next_due_at <= self._until:
                self.behind[claim.due.job_id] = next_due_at
            else:
                self.behind.pop(claim.due.job_id, None)

    def _claims(self, bucket: datetime) -> Iterator[Claim]:
        for page, unreadable in self.flow.jobs.due(bucket, self.lease.shard, self._until):
            self.unplannable += unreadable
            self.busy = len(page) > CALM_JOBS
            for due in page:
                try:
                    claim = Claim(due, plan(due, self.now, self.flow.horizon_s))
                except Exception:  # noqa: BLE001 - a job that cannot be planned must not keep the others from running
                    self.unplannable.append(due.job_id)
                else:
                    yield claim

    @property
    def _until(self) -> datetime:
        return self.now + timedelta(seconds=self.flow.horizon_s)
