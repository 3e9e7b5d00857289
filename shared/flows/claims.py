"""One batch of claims: journal page → conditional claims → sends → settle. It never asks what is due (tick does)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.clock import Clock
from shared.model.job import Due, Job, JobStatus
from shared.model.message import Message
from shared.queue import JobQueue
from shared.rules.lease import first_lease_s
from shared.rules.plan import Occurrence, Plan, plan
from shared.store.jobs import STATEMENTS, Claim, ClaimOutcome, Jobs
from shared.store.journal import Slate

PAGE_CLAIMS = 100  # jobs of one journal page
PAGE_OCCURRENCES = 2000  # and occurrences, so that the page stays far below an item's limit
CLAIM_TRIES = 4


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of a batch: jobs won, jobs lost (normal), occurrences sent, and jobs left for later (throttled)."""

    won: int = 0
    lost: int = 0
    sent: int = 0
    left: int = 0

    def __add__(self, other: "Claimed") -> "Claimed":
        return Claimed(self.won + other.won, self.lost + other.lost, self.sent + other.sent, self.left + other.left)


@dataclass(frozen=True, slots=True)
class Claimer:
    """Makes batches of claims true, in the order that lets no crash lose one (invariant I6)."""

    jobs: Jobs
    queue: JobQueue
    clock: Clock

    def run(self, slate: Slate, claims: Sequence[Claim], *, as_tick: bool = True) -> Claimed:
        """Claim and send one page of jobs of the slate's shard; all of `claims` are of different jobs.

        `as_tick`: the slate's epoch, the fence of these claims, is that of a tick of that shard.

        Raises SendError, with the page left in the journal: recovery sends what was claimed. It is left as well where
        a claim cannot be told from one that was made and then overtaken.
        """
        fence = slate.epoch
        messages = {claim.due.job_id: messages_of(claim.due, claim.plan, fence) for claim in claims}
        slate.write(_all(messages[claim.due.job_id] for claim in claims), self.clock.now())
        won, lost, left, sure = self._claim(claims, slate.shard if as_tick else None, fence)
        sends = list(_all(messages[claim.due.job_id] for claim in won))
        self.queue.send(sends)
        if sure:
            slate.settle()
        return Claimed(won=len(won), lost=lost, sent=len(sends), left=left)

    def _claim(self, claims: Sequence[Claim], shard: int | None, fence: int) -> tuple[list[Claim], int, int, bool]:
        """The claims won, how many were lost or are left after several throttled tries, and whether that is sure."""
        won: list[Claim] = []
        lost = 0
        sure = True
        todo = list(claims)
        for attempt in range(CLAIM_TRIES):
            if not todo:
                break
            if attempt:
                self.queue.pause(0.05 * 4**attempt)
            again: list[Claim] = []
            for start in range(0, len(todo), STATEMENTS):
                batch = todo[start : start + STATEMENTS]
                outcomes = self.jobs.claim(batch, shard, fence, self.clock.now())
                for claim, outcome in zip(batch, outcomes, strict=True):
                    if outcome is ClaimOutcome.WON:
                        won.append(claim)
                    elif outcome is ClaimOutcome.THROTTLED:
                        again.append(claim)
                    else:
                        lost += 1
                        sure = sure and outcome is not ClaimOutcome.OVERTAKEN
            todo = again
        return won, lost, len(todo), sure


def messages_of(due: Due, plan: Plan, fence: int) -> tuple[Message, ...]:
    """The messages that a claim sends, one an occurrence."""
    return tuple(_message(due, occurrence, fence) for occurrence in plan.occurrences)


def _message(due: Due, occurrence: Occurrence, fence: int) -> Message:
    return Message(
        job_id=due.job_id,
        scheduled_for=occurrence.scheduled_for,
        revision=due.revision,
        fence=fence,
        lease_s=first_lease_s(due.timeout_s),
        skip=occurrence.skip,
        missed=occurrence.missed,
        missed_until=occurrence.missed_until,
        priority=due.priority,
        group=due.group,
    )


def pages(claims: Iterable[Claim]) -> Iterator[list[Claim]]:
    """Cut claims into journal pages; a job stands in a page once (the index may show it twice while it moves)."""
    page: dict[str, Claim] = {}
    occurrences = 0
    for claim in claims:
        count = len(claim.plan.occurrences)
        full = len(page) >= PAGE_CLAIMS or occurrences + count > PAGE_OCCURRENCES
        if page and (full or claim.due.job_id in page):
            yield list(page.values())
            page, occurrences = {}, 0
        page[claim.due.job_id] = claim
        occurrences += count
    if page:
        yield list(page.values())


def _all(groups: Iterable[tuple[Message, ...]]) -> Iterator[Message]:
    for group in groups:
        yield from group


def claimed_at_once(
    job: Job, now: datetime, horizon_s: int, dropped: Occurrence | None = None
) -> tuple[Job, tuple[Message, ...]]:
    """The job as a submit, a resume or a new schedule leaves it, with what is due within the horizon claimed.

    `dropped`: what the new schedule takes away, to be recorded first.
    """
    if job.status is not JobStatus.SCHEDULED or job.due_at is None:
        return job, ()
    due = Due(
        job_id=job.job_id,
        schedule=job.spec.schedule,
        due_at=job.due_at,
        revision=job.revision,
        timeout_s=job.spec.timeout_s,
        runs_claimed=job.runs_claimed,
        priority=job.spec.priority,
        group=job.spec.group,
    )
    recorded = (_message(due, dropped, fence=0),) if dropped else ()
    if job.due_at > now + timedelta(seconds=horizon_s):
        return job, recorded
    taken = plan(due, now, horizon_s)
    claimed = replace(job, due_at=taken.next_due_at, runs_claimed=taken.runs_claimed, claimed_until=taken.claimed_until)
    return claimed, recorded + messages_of(due, taken, fence=0)


def over_at(job: Job, now: datetime, retention: timedelta) -> datetime | None:
    """When a job of which all is claimed may be removed; None for one that has more to come, or may have."""
    if job.due_at is not None or job.status is JobStatus.PAUSED:
        return None
    return max(now, job.claimed_until or now) + retention
