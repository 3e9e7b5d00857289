"""Every key and attribute name of the table. It never reads or writes an item (codec and the stores do)."""

from datetime import UTC, datetime, timedelta

from shared.model.instants import from_sort_text, sort_text
from shared.rules.sharding import stable_hash

PK = "pk"
SK = "sk"
TTL_ATTRIBUTE = "ttl"

# The time-bucket index. Sparse: only a job that waits for a tick has these two attributes.
DUE_INDEX = "due"
DUE_KEY = "due_key"  # `<bucket>#<shard>`
DUE_AT = "due_at"
DUE_PROJECTION = ("schedule", "revision", "timeout_s", "runs_claimed")  # with the keys, all that a claim needs

# The index of lists. Sparse: only a job with a group and a dead-lettered run have these two attributes.
LIST_INDEX = "lists"
LIST_KEY = "list_key"  # `group#<group>`, or `dead#<part>`
LIST_AT = "list_at"
DEAD_PARTS = 16  # the dead-lettered runs of all jobs, spread: one partition of an index takes 1,000 writes a second

JOB = "job"
PAYLOAD_PREFIX = "payload#"
CHILD_PREFIX = "child#"
LEASE = "lease"
RUN_PREFIX = "run#"
RUNS_END = "run$"  # sorts after every run
CLAIM_PREFIX = "claim#"
OVERLAP = "overlap"
LIMIT = "limit"
BUCKET = timedelta(minutes=1)

CURSOR_SECRET_PK, CURSOR_SECRET_SK = "stack", "cursor_key"

Key = dict[str, dict[str, str]]


def _key(pk: str, sk: str) -> Key:
    return {PK: {"S": pk}, SK: {"S": sk}}


def job_pk(job_id: str) -> str:
    return f"job#{job_id}"


def job_key(job_id: str) -> Key:
    return _key(job_pk(job_id), JOB)


def payload_key(job_id: str, payload_id: str) -> Key:
    return _key(job_pk(job_id), PAYLOAD_PREFIX + payload_id)


def child_key(parent_id: str, child_id: str) -> Key:
    """The link from a job to one that depends on it."""
    return _key(job_pk(parent_id), CHILD_PREFIX + child_id)


def child_of(sk: str) -> str:
    """The job that a link's sort key names."""
    return sk.removeprefix(CHILD_PREFIX)


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


def group_list_key(group: str) -> str:
    """Partition of the index of lists for the jobs of `group`."""
    return f"group#{group}"


def group_list_at(created_at: datetime, job_id: str) -> str:
    """Where a job stands in its group: never elsewhere, so that who goes through the group meets it once."""
    return f"{sort_text(created_at)}#{job_id}"


def dead_list_key(part: int) -> str:
    """Partition of the index of lists for dead-lettered runs; `part` is 0 to DEAD_PARTS - 1."""
    return f"dead#{part}"


def dead_part_of(job_id: str) -> int:
    """The part that all dead-lettered runs of a job are in."""
    return stable_hash(job_id) % DEAD_PARTS


def dead_list_at(job_id: str, scheduled_for: datetime) -> str:
    """Where a dead-lettered run stands in its part: beside the others of its job."""
    return f"{job_id}#{sort_text(scheduled_for)}"


def after_dead_of(job_id: str) -> str:
    """Sorts after all dead-lettered runs of a job, and before those of any other that follows it."""
    return f"{job_id}$"  # no job id has a character below `-`


def overlap_key(job_id: str) -> Key:
    """Who has the place of a job whose runs may not overlap."""
    return _key(job_pk(job_id), OVERLAP)


def group_key(group: str) -> Key:
    """The limit of a group, and who has its places."""
    return _key(f"group#{group}", LIMIT)


def holder_name(job_id: str, scheduled_for: datetime) -> str:
    """The name of a run among those that have a place of its group."""
    return f"{job_id}/{sort_text(scheduled_for)}"


def holder_of(name: str) -> tuple[str, datetime]:
    """The reverse of `holder_name`: a job id holds no `/`."""
    job_id, _, moment = name.rpartition("/")
    return job_id, from_sort_text(moment)


def cursor_secret_key() -> Key:
    """The secret that the cursors of this deployment are signed with."""
    return _key(CURSOR_SECRET_PK, CURSOR_SECRET_SK)
