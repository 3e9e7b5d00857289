"""The shard of a job: the same in every process, for ever, and spread evenly."""

from collections import Counter

import pytest

from shared.rules.sharding import shard_of, stable_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a", 4_681_665_781_835_383_343), ("", 16_476_032_584_258_269_876), ("é", 14_635_220_546_840_893_743)],
)
def test_the_hash_never_changes(text: str, expected: int) -> None:
    assert stable_hash(text) == expected


@pytest.mark.parametrize("shards", [1, 4, 7])
def test_jobs_spread_evenly(shards: int) -> None:
    counts = Counter(shard_of(f"job-{k}", shards) for k in range(7000))
    assert set(counts) == set(range(shards))
    assert max(counts.values()) < 1.2 * 7000 / shards
