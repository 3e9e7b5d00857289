"""Which shard a job belongs to: the one place that says so. It never depends on the process, as `hash()` does."""

from hashlib import blake2b


def stable_hash(text: str) -> int:
    """A 64-bit number that is the same in every process, for ever."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def shard_of(job_id: str, shards: int) -> int:
    """The shard of `job_id` among `shards`, 0 to shards - 1."""
    return stable_hash(job_id) % shards
