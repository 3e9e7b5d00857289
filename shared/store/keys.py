"""Every key and attribute name of the table. It never reads or writes an item (codec and the stores do)."""

from datetime import UTC, datetime, timedelta

from shared.model.instants import from_sort_text, sort_text

PK = "pk"
SK = "sk"
TTL_ATTRIBUTE = "ttl"

# The time-bucket index. Sparse: only a job that waits for a tick has these two attributes.
DUE_INDEX = "due"
DUE_KEY = "due_key"  # `<bucket>#<shard>`
DUE_AT = "due_at"
DUE_PROJECTION = ("schedule", "revision", "timeout_s", "runs_claimed")  # with the keys, all that a claim needs

JOB = "job"
PAYLOAD_PREFIX = "payload#"
LEASE = "lease"
RUN_PREFIX = "run#"
RUNS_END = "run$"  # sorts after every run
CLAIM_PREFIX = "claim#"
BUCKET = timedelta(minutes=1)

Key = dict[str, dict[str, str]]


def _key(pk: str, sk: str) -> Key:
    return {PK: {"S": pk}, SK: {"S": sk}}


def job_pk(job_id: str) -> str:
    return f"job#{job_id}"


def job_key(job_id: str) -> Key:
    return _key(job_pk(job_id), JOB)


def payload_key(job_id: str, payload_id: str) -> Key:
    return _key(job_pk(job_id), PAYLOAD_PREFIX + payload_id)


def run_key(job_id: str, scheduled_for: datetime) -> Key:
    return _key(job_pk(job_id), run_sk(scheduled_for))


def run_sk(scheduled_for: datetime) -> str:
    return RUN_PREFIX + sort_text(scheduled_for)


def scheduled_for_of(sk: str) -> datetime:
    """The occurrence that a run's sort key names."""
    return from_sort_text(sk.removeprefix(RUN_PREFIX))


def job_id_of(pk: str) -> str:
    return pk.removeprefix("job#")


def shard_pk(shard: int) -> str:
    return f"shard#{shard}"


def lease_key(shard: int) -> Key:
    return _key(shard_pk(shard), LEASE)


def page_key(shard: int, page: str) -> Key:
    return _key(shard_pk(shard), CLAIM_PREFIX + page)


def idempotency_key(name: str) -> Key:
    """`name` is `idem#<hash of caller and key>`: Powertools makes it."""
    return _key(name, "idem")


def bucket_of(moment: datetime) -> datetime:
    """The start of the UTC minute that `moment` lies in."""
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def due_key(moment: datetime, shard: int) -> str:
    """Partition of the index for jobs of `shard` that are due in the minute of `moment`: `2026-11-29T12:00#3`."""
    return f"{sort_text(bucket_of(moment))[:16]}#{shard}"
