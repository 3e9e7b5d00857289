"""The journal's pages as bytes: each message comes back as it was, few bytes, and never more than an item holds."""

import uuid
import zlib
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.flows import claims, enqueue
from shared.model.message import Message
from shared.rules.plan import MAX_OCCURRENCES
from shared.store.journal import MOST_BYTES, Page, page_item, page_name, page_of
from tests.support.aws_rules_items import MAX_ITEM_BYTES, item_bytes, item_problems

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))
messages = st.builds(
    Message,
    job_id=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}", fullmatch=True),
    scheduled_for=moments,
    revision=st.integers(1, 3),
    fence=st.integers(0, 10**9),
    lease_s=st.integers(6, 65),
) | st.builds(
    Message,
    job_id=st.sampled_from(["a", "b"]),
    scheduled_for=moments,
    revision=st.just(1),
    fence=st.just(0),
    lease_s=st.just(65),
    skip=st.just("catch_up"),
    missed=st.integers(1, 10**5),
    missed_until=moments,
)


def page(*messages: Message) -> Page:
    return Page(shard=3, name=page_name(1234, "2026-11-30T12:05#3#0"), written_at=NOON, messages=messages, number=7)


def message(job_id: str, at: datetime = NOON) -> Message:
    return Message(job_id=job_id, scheduled_for=at, revision=1, fence=1234, lease_s=65)


def units(jobs: int) -> int:
    """Write units of a page of `jobs` of random ids that are due within a minute."""
    random = Random(jobs)
    ids = [uuid.UUID(int=random.getrandbits(128)).hex for _ in range(jobs)]
    dues = [NOON + timedelta(seconds=random.randrange(60)) for _ in range(jobs)]
    return -(-item_bytes(page_item(page(*map(message, ids, dues)))) // 1024)


@given(st.lists(messages, max_size=60, unique_by=lambda one: (one.job_id, one.scheduled_for)))
def test_every_message_comes_back_as_it_was(some: list[Message]) -> None:
    written = page(*some)
    item = page_item(written)
    assert list(item_problems(item)) == []
    read = page_of(item)
    assert set(read.messages) == set(some)
    assert (read.shard, read.name, read.written_at, read.number) == (3, written.name, NOON, 7)


def test_i6_what_a_page_costs() -> None:
    assert {jobs: units(jobs) for jobs in (1, 5, 10, 11, 30, claims.PAGE_CLAIMS)} == {
        1: 1, 5: 1, 10: 1, 11: 1, 30: 1, 100: 3
    }  # fmt: skip


def test_a_small_page_is_text_that_one_can_read() -> None:
    entries = page_item(page(message("a")))["entries"]
    assert entries == {"S": '[["a",1,1234,65,["2026-11-30T12:00:00"]]]'}


def test_the_largest_pages_hold_less_than_an_item_may() -> None:
    """Of as many jobs and occurrences as claims and calls put into one, and ids that nothing makes shorter."""
    random = Random(7)
    jobs, occurrences = claims.PAGE_CLAIMS, max(claims.PAGE_OCCURRENCES, enqueue.PAGE_MESSAGES) + MAX_OCCURRENCES
    ids = ["".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", k=128)) for _ in range(jobs)]
    times = [NOON + timedelta(microseconds=random.randrange(10**10)) for _ in range(occurrences)]
    largest = page(*(message(ids[n % jobs], moment) for n, moment in enumerate(times)))
    item = page_item(largest)
    plain = len(zlib.decompress(item["entries"]["B"]))
    assert item_bytes(item) < MAX_ITEM_BYTES / 2
    assert plain < MOST_BYTES / 4
    assert len(page_of(item).messages) == occurrences


@pytest.mark.parametrize(
    "entries",
    [
        zlib.compress(b"[[" + b" " * 10_000_000 + b"]]"),  # 10 KB that would be 10 MB
        zlib.compress(b'[["a",1,0,65,["2026-11-30T12:00:00"]]]')[:-1],  # cut off
        b"",
    ],
)
def test_bytes_that_are_no_page_are_refused(entries: bytes) -> None:
    with pytest.raises(ValueError, match="cut off"):
        page_of(page_item(page()) | {"entries": {"B": entries}})
