"""The jobs: create, claim, change, read; each write states the state it expects. It never decides what is due."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from shared.model.errors import DuetimeError
from shared.model.instants import epoch_s, sort_text
from shared.model.job import Due, Job, JobStatus
from shared.rules.plan import Plan
from shared.rules.sharding import shard_of
from shared.store import keys
from shared.store.codec import due_of, job_item, job_of, payload_item, read_all
from shared.store.table import ConditionFailedError, Item, NotWrittenError, Table, number, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef, BatchStatementResponseTypeDef

STATEMENTS = 25  # of one BatchExecuteStatement request: AWS's limit

_FREE = "attribute_not_exists(#pk)"
_UNCHANGED = "#version = :version AND #revision = :revision"
_NOT_CLAIMED = "#due_at = :due_at"
_ALL_CLAIMED = "attribute_not_exists(#due_at)"
_OF_CLAIMS = frozenset({keys.DUE_AT, keys.DUE_KEY, keys.TTL_ATTRIBUTE, "runs_claimed", "claimed_until"})  # both write


class JobExistsError(NotWrittenError):
    """A job of this id is there; `job` is what it is."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"job {job.job_id} exists")
        self.job = job


class JobChangedError(NotWrittenError):
    """The job was changed by somebody else, or claimed, since it was read."""

    def __init__(self, job_id: str, *, sure: bool = True) -> None:
        super().__init__(job_id)
        self.sure = sure


class ClaimOutcome(Enum):
    """What became of one claim of a batch."""

    WON = "won"
    LOST = "lost"  # the job is no longer as it was seen: claimed by another tick, or changed by its user
    OVERTAKEN = "overtaken"  # lost, by a claim or a change on top: whether this one was made first is not to see
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

    def change(self, seen: Job, job: Job, now: datetime, *, when: bool, ttl: datetime | None = None) -> None:
        """Write `job` in the place of `seen`, of which it is the next version. Raises JobChangedError.

        `when`: it is a change of when, so that what claims write is written too, and `ttl`. Else all that stays.
        """
        #   user:  read ─────────── change (policies)     a claim in between keeps version and revision, and what it
        #   tick:        claim                            writes is not touched
        #
        #   user:  read ─────────── change (of when): _NOT_CLAIMED fails, so that it is made of what the claim left
        #   tick:        claim
        if job.payload_id is not None and job.payload_id != seen.payload_id:
            self.table.put(payload_item(job.job_id, job.payload_id, job.spec.payload, now))
        shard = shard_of(job.job_id, self.shards)
        before, after = job_item(seen, shard), job_item(job, shard, ttl)
        differ = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        touched = differ | _OF_CLAIMS if when else differ - _OF_CLAIMS
        sets = ", ".join(f"#{name} = :new_{name}" for name in sorted(touched & set(after)))
        removes = ", ".join(f"#{name}" for name in sorted(touched - set(after)))
        values = {f":new_{name}": after[name] for name in touched & set(after)}
        condition = _UNCHANGED
        values |= {":version": number(seen.version), ":revision": number(seen.revision)}
        if when:
            condition += f" AND {_NOT_CLAIMED if seen.due_at else _ALL_CLAIMED}"
            values |= {":due_at": text(sort_text(seen.due_at))} if seen.due_at else {}
        try:
            self.table.update(
                keys.job_key(job.job_id), f"SET {sets}" + (f" REMOVE {removes}" if removes else ""), condition, values
            )
        except ConditionFailedError as failed:
            there = job_of(failed.item) if failed.item else None
            if there is None or not _is_change(there, job):
                sure = there is None or there.version < job.version
                raise JobChangedError(job.job_id, sure=sure) from None

    def keep(self, job_id: str, ttl: datetime) -> None:
        """Have a job that is over stay at least until `ttl`, for a run of it that is wanted again."""
        until = {":ttl": number(epoch_s(ttl))}
        with suppress(ConditionFailedError):  # it is not over, or stays longer, or is gone
            self.table.update(keys.job_key(job_id), "SET #ttl = :ttl", "#ttl < :ttl", until)

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

    def get_some(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Those jobs, with their payloads, that one request gives (and one more, where payloads stand apart).

        Who is left out may be there: `get` tells.
        """
        items = self.table.get_some([keys.job_key(job_id) for job_id in dict.fromkeys(job_ids)])
        apart = {keys.job_id_of(item[keys.PK]["S"]): item["payload_id"]["S"] for item in items if "payload_id" in item}
        wanted = [keys.payload_key(job_id, payload_id) for job_id, payload_id in apart.items()]
        payloads = self.table.get_some(wanted) if wanted else []
        texts = {keys.job_id_of(item[keys.PK]["S"]): item["payload"]["S"] for item in payloads}
        whole = [
            item for item in items if (job_id := keys.job_id_of(item[keys.PK]["S"])) in texts or job_id not in apart
        ]
        found, _ = read_all(whole, lambda item: job_of(item, texts.get(keys.job_id_of(item[keys.PK]["S"]))))
        return {job.job_id: job for job in found}

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Jobs by id, without payloads that stand apart. Those that cannot be read are left out (see flows.audit)."""
        return self.read_many(job_ids)[0]

    def read_many(self, job_ids: Sequence[str]) -> tuple[dict[str, Job], set[str]]:
        """As `get_many`, and the ids of those that are there and cannot be read."""
        items = self.table.get_many([keys.job_key(job_id) for job_id in dict.fromkeys(job_ids)])
        found, unreadable = read_all(items, job_of)
        return {job.job_id: job for job in found}, {keys.job_id_of(item[keys.PK]["S"]) for item in unreadable}

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
        homes = [shard_of(claim.due.job_id, self.shards) for claim in claims]
        # The fence that a claim leaves: epochs of two shards do not compare, so a job that moves begins at 0.
        left = [fence if home == shard else 0 for home in homes]
        statements = [self._claim_statement(*one, fence, now) for one in zip(claims, homes, left, strict=True)]
        answer = self.table.client.batch_execute_statement(Statements=statements)
        return [_outcome(*one) for one in zip(claims, left, answer["Responses"], strict=True)]

    def _claim_statement(
        self, claim: Claim, home: int, fence_left: int, fence: int, now: datetime
    ) -> "BatchStatementRequestTypeDef":
        #   tick 7:  query ──────────── claim (fence 7) → sends
        #   tick 8:       query → claim (fence 8)      → due_at differs for tick 7: lost
        #   cancel:       revision + 1                 → revision differs: lost
        due, plan = claim.due, claim.plan
        sets: Item = {
            "fence": number(fence_left),
            "runs_claimed": number(plan.runs_claimed),
            "claimed_until": text(sort_text(plan.claimed_until)),
        }
        removes: tuple[str, ...] = ()
        if plan.next_due_at is None:
            removes = (keys.DUE_KEY, keys.DUE_AT)
            sets[keys.TTL_ATTRIBUTE] = number(epoch_s(max(now, plan.claimed_until) + self.retention))
        else:
            sets[keys.DUE_AT] = text(sort_text(plan.next_due_at))
            sets[keys.DUE_KEY] = text(keys.due_key(plan.next_due_at, home))
        where: Item = {
            keys.PK: text(keys.job_pk(due.job_id)),
            keys.SK: text(keys.JOB),
            "status": text(JobStatus.SCHEDULED),
            keys.DUE_AT: text(sort_text(due.due_at)),
            "revision": number(due.revision),
        }
        return {
            "Statement": _claim_text(self.table.name, tuple(sets), removes, tuple(where)),
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
            if not is_same(job, there):
                raise JobExistsError(there) from None


def is_same(job: Job, there: Job) -> bool:
    """Whether `there` is `job` as it was written: then a first try took effect and only its answer was lost.

    It may have been changed or cancelled since: that must hold, and a cancelled one not be taken for one to replace.
    """
    #   submit:  put (version 1), its answer is lost ────────────────────────── made again: _FREE fails
    #   user:                                         PATCH (version 2)
    if there.created_at != job.created_at or there.revision < job.revision:
        return False
    return there.spec == job.spec or there.version > job.version


def _is_change(there: Job, job: Job) -> bool:
    """Whether `there` is the change to `job` as it was written: then a first try took effect, its answer was lost.

    A claim may have followed, but no other change.
    """
    same = replace(job, due_at=there.due_at, runs_claimed=there.runs_claimed, claimed_until=there.claimed_until)
    same = replace(same, fence=there.fence, has_children=there.has_children)
    if job.payload_id is not None:
        same = replace(same, spec=replace(job.spec, payload=there.spec.payload))  # which stands apart
    return there == same


@cache
def _claim_text(table: str, sets: tuple[str, ...], removes: tuple[str, ...], where: tuple[str, ...]) -> str:
    """A claim's statement. There are two: a job's last claim, and one of a job that stays in the index."""
    return (
        f'UPDATE "{table}"'
        + "".join(f' SET "{name}"=?' for name in sets)
        + "".join(f' REMOVE "{name}"' for name in removes)
        + " WHERE "
        + " AND ".join(f'"{name}"=?' for name in where)
        + ' AND "fence"<=?'
    )


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
    """Whether a newer tick has claimed what this claim wanted or what comes after it, or a user has changed the job."""
    #   tick 7:  claim, its answer is lost ─────────────────────── made again: the condition fails
    #   tick 8:                             claim of what follows
    #   user:                               pause                  what was claimed and is due by then leaves a record
    if "revision" in there and int(there["revision"]["N"]) > claim.due.revision:
        return True
    return (
        there.get("status") == text(JobStatus.SCHEDULED)
        and there.get("revision") == number(claim.due.revision)
        and int(there["fence"]["N"]) > fence_left
        and there.get("claimed_until", text(""))["S"] >= sort_text(claim.plan.claimed_until)
    )
