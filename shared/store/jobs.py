"""The jobs: create, claim, change, read; each write states the state it expects. It never decides what is due."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from shared.model.errors import DuetimeError
from shared.model.instants import epoch_s, sort_text
from shared.model.job import Due, Job, JobStatus
from shared.rules.plan import Plan
from shared.rules.sharding import shard_of
from shared.store import keys
from shared.store.codec import due_of, job_item, job_of, payload_item, read_all
from shared.store.table import ConditionFailedError, Item, Table, number, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef, BatchStatementResponseTypeDef

STATEMENTS = 25  # of one BatchExecuteStatement request: AWS's limit

_FREE = "attribute_not_exists(#pk)"
_UNCHANGED = "#version = :version AND #revision = :revision"


class JobExistsError(Exception):
    """A job of this id is there; `job` is what it is."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"job {job.job_id} exists")
        self.job = job


class JobChangedError(Exception):
    """The job was changed by somebody else since it was read."""


class ClaimOutcome(Enum):
    """What became of one claim of a batch."""

    WON = "won"
    LOST = "lost"  # the job is no longer as it was seen: claimed by another tick, or changed by its user
    OVERTAKEN = "overtaken"  # lost, and a newer tick has claimed further: whether this one was made first is not to see
    THROTTLED = "throttled"


@dataclass(frozen=True, slots=True)
class Claim:
    """One job to claim, and the plan that the claim makes true."""

    due: Due
    plan: Plan


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of `table`, spread over `shards`; one that is over is kept for `retention`."""

    table: Table
    shards: int
    retention: timedelta

    def create(self, job: Job, ttl: datetime | None) -> None:
        """Write a new job (and first its payload, where that is apart). Raises JobExistsError."""
        self._put(job, ttl, _FREE, {})

    def replace_finished(self, job: Job, seen: Job, ttl: datetime | None) -> None:
        """Write a new job in the place of `seen`, which is over. Raises JobExistsError when it changed meanwhile."""
        #   two submits of one id, both having read the old job: the second finds another version and revision
        values = {":version": number(seen.version), ":revision": number(seen.revision)}
        self._put(job, ttl, _UNCHANGED, values)

    def cancel(self, job: Job, now: datetime) -> Job:
        """Make a scheduled or paused job cancelled and take it out of the index. Raises JobChangedError."""
        #   cancel: read ───────────── write (_UNCHANGED)      a claim in between moves due_at only, which cancel
        #   tick:          claim → send                        removes anyhow: the message's revision is then void
        cancelled = replace(
            job,
            status=JobStatus.CANCELLED,
            due_at=None,
            revision=job.revision + 1,
            version=job.version + 1,
            changed_at=now,
        )
        try:
            self.table.update(
                keys.job_key(job.job_id),
                "SET #status = :cancelled, #revision = :next_revision, #version = :next_version, #changed_at = :now,"
                " #ttl = :ttl REMOVE #due_key, #due_at",
                f"{_UNCHANGED} AND #status IN (:scheduled, :paused)",
                {
                    ":cancelled": text(JobStatus.CANCELLED),
                    ":scheduled": text(JobStatus.SCHEDULED),
                    ":paused": text(JobStatus.PAUSED),
                    ":version": number(job.version),
                    ":revision": number(job.revision),
                    ":next_version": number(cancelled.version),
                    ":next_revision": number(cancelled.revision),
                    ":now": text(sort_text(now)),
                    ":ttl": number(epoch_s(now + self.retention)),
                },
            )
        except ConditionFailedError:
            raise JobChangedError(job.job_id) from None
        return cancelled

    def get(self, job_id: str) -> Job | None:
        """The job with its payload, read consistently."""
        item = self.table.get(keys.job_key(job_id))
        if item is None:
            return None
        if "payload_id" not in item:
            return job_of(item)
        payload = self.table.get(keys.payload_key(job_id, item["payload_id"]["S"]))
        if payload is None:  # never run a job with another payload than its own
            raise DuetimeError(f"the payload of job {job_id!r} is not in the table")
        return job_of(item, payload["payload"]["S"])

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Jobs by id, without payloads that stand apart. Those that cannot be read are left out (see flows.audit)."""
        items = self.table.get_many([keys.job_key(job_id) for job_id in dict.fromkeys(job_ids)])
        found, _ = read_all(items, job_of)
        return {job.job_id: job for job in found}

    def sweep_payloads(self, items: Sequence[Item], before: datetime) -> int:
        """Remove those payload items that are older than `before` and that no job names; how many there were."""
        old = [item for item in items if item["written_at"]["S"] < sort_text(before)]
        jobs = self.get_many([keys.job_id_of(item[keys.PK]["S"]) for item in old])
        swept = 0
        for item in old:
            job = jobs.get(keys.job_id_of(item[keys.PK]["S"]))
            if job is None or item[keys.SK]["S"] != keys.PAYLOAD_PREFIX + (job.payload_id or ""):
                self.table.delete({keys.PK: item[keys.PK], keys.SK: item[keys.SK]})
                swept += 1
        return swept

    def due(self, bucket: datetime, shard: int, until: datetime) -> Iterator[tuple[list[Due], list[str]]]:
        """Pages of the jobs of `shard` that the index shows as due in `bucket`, up to `until`; the index lags.

        With each page, the ids of those whose item cannot be read.
        """
        pages = self.table.query(
            "#due_key = :bucket AND #due_at <= :until",
            {":bucket": text(keys.due_key(bucket, shard)), ":until": text(sort_text(until))},
            index=keys.DUE_INDEX,
        )
        for items, _ in pages:
            found, unreadable = read_all(items, due_of)
            yield found, [keys.job_id_of(item[keys.PK]["S"]) for item in unreadable]

    def claim(self, claims: Sequence[Claim], shard: int | None, fence: int, now: datetime) -> list[ClaimOutcome]:
        """Claim up to 25 different jobs in one request, as the tick `fence` of `shard` (None: as the audit).

        Each is judged alone. The AWS pages: "Running batch operations with PartiQL for DynamoDB", "PartiQL update
        statements".
        """
        statements = [self._claim_statement(claim, shard, fence, now) for claim in claims]
        answer = self.table.client.batch_execute_statement(Statements=statements)
        return [
            _outcome(claim, self._fence_left(claim, shard, fence), response)
            for claim, response in zip(claims, answer["Responses"], strict=True)
        ]

    def _fence_left(self, claim: Claim, shard: int | None, fence: int) -> int:
        """The fence that a claim leaves: epochs of two shards do not compare, so a job that moves begins at 0."""
        return fence if shard_of(claim.due.job_id, self.shards) == shard else 0

    def _claim_statement(
        self, claim: Claim, shard: int | None, fence: int, now: datetime
    ) -> "BatchStatementRequestTypeDef":
        #   tick 7:  query ──────────── claim (fence 7) → sends
        #   tick 8:       query → claim (fence 8)      → due_at differs for tick 7: lost
        #   cancel:       revision + 1                 → revision differs: lost
        due, plan = claim.due, claim.plan
        sets: Item = {
            "fence": number(self._fence_left(claim, shard, fence)),
            "runs_claimed": number(plan.runs_claimed),
            "claimed_until": text(sort_text(plan.claimed_until)),
        }
        removed = ""
        if plan.next_due_at is None:
            removed = f' REMOVE "{keys.DUE_KEY}" REMOVE "{keys.DUE_AT}"'
            sets[keys.TTL_ATTRIBUTE] = number(epoch_s(max(now, plan.claimed_until) + self.retention))
        else:
            sets[keys.DUE_AT] = text(sort_text(plan.next_due_at))
            sets[keys.DUE_KEY] = text(keys.due_key(plan.next_due_at, shard_of(due.job_id, self.shards)))
        where: Item = {
            keys.PK: text(keys.job_pk(due.job_id)),
            keys.SK: text(keys.JOB),
            "status": text(JobStatus.SCHEDULED),
            keys.DUE_AT: text(sort_text(due.due_at)),
            "revision": number(due.revision),
        }
        statement = (
            f'UPDATE "{self.table.name}"'
            + "".join(f' SET "{name}"=?' for name in sets)
            + removed
            + " WHERE "
            + " AND ".join(f'"{name}"=?' for name in where)
            + ' AND "fence"<=?'
        )
        return {
            "Statement": statement,
            "Parameters": [*sets.values(), *where.values(), number(fence)],
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _put(self, job: Job, ttl: datetime | None, condition: str, values: Item) -> None:
        if job.payload_id is not None:
            # The payload first, so that a job is never seen without it, and under a name of its own, so that a submit
            # which then finds the id taken has changed nothing. What no job names is swept by the audit.
            self.table.put(payload_item(job.job_id, job.payload_id, job.spec.payload, job.created_at))
        try:
            self.table.put(job_item(job, shard_of(job.job_id, self.shards), ttl), condition, values)
        except ConditionFailedError:
            there = self.get(job.job_id)
            if there is None:
                raise JobChangedError(job.job_id) from None
            if not _is_same(job, there):
                raise JobExistsError(there) from None


def _is_same(job: Job, there: Job) -> bool:
    """Whether `there` is `job` as it was written: then a first try took effect and only its answer was lost.

    It may have been cancelled since: that must hold, and not be taken for a job that is over and can be replaced.
    """
    return (there.created_at, there.spec) == (job.created_at, job.spec) and there.revision >= job.revision


def _outcome(claim: Claim, fence_left: int, response: "BatchStatementResponseTypeDef") -> ClaimOutcome:
    error = response.get("Error")
    if error is None:
        return ClaimOutcome.WON
    if error.get("Code") != "ConditionalCheckFailed":
        return ClaimOutcome.THROTTLED
    there = error.get("Item", {})
    if _is_made(claim, fence_left, there):
        return ClaimOutcome.WON
    return ClaimOutcome.OVERTAKEN if _is_overtaken(claim, fence_left, there) else ClaimOutcome.LOST


def _is_made(claim: Claim, fence_left: int, there: Item) -> bool:
    """Whether the job is as this claim would leave it: then a first try took effect and only its answer was lost."""
    plan = claim.plan
    return (
        there.get("status") == text(JobStatus.SCHEDULED)
        and there.get("fence") == number(fence_left)
        and there.get("revision") == number(claim.due.revision)
        and there.get("claimed_until") == text(sort_text(plan.claimed_until))
        and there.get(keys.DUE_AT) == (text(sort_text(plan.next_due_at)) if plan.next_due_at else None)
    )


def _is_overtaken(claim: Claim, fence_left: int, there: Item) -> bool:
    """Whether a newer tick has claimed what this claim wanted, or what comes after it."""
    #   tick 7:  claim, its answer is lost ─────────────────────── made again: the condition fails
    #   tick 8:                             claim of what follows
    return (
        there.get("status") == text(JobStatus.SCHEDULED)
        and there.get("revision") == number(claim.due.revision)
        and int(there["fence"]["N"]) > fence_left
        and there.get("claimed_until", text(""))["S"] >= sort_text(claim.plan.claimed_until)
    )
