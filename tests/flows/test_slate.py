"""A writer's journal pages: the next is written over one that is settled, and over nothing else (I6)."""

from datetime import timedelta

import pytest

from shared.model.message import Message
from shared.store import keys
from shared.store.journal import Journal, page_of
from shared.store.table import Table
from tests.support import faults
from tests.support.aws import Aws, all_items
from tests.support.clocks import START, ManualClock
from tests.support.world import World

pytestmark = pytest.mark.backends("moto", "emulator")

EPOCH = 7
PAGE = faults.writes(keys.CLAIM_PREFIX)


def message(job_id: str) -> Message:
    return Message(job_id=job_id, scheduled_for=START, revision=1, fence=EPOCH, lease_s=65)


def journal_of(aws: Aws) -> Journal:
    return Journal(Table(aws.dynamodb, aws.table))


def left(aws: Aws) -> list[str]:
    """The job of each page that is there."""
    pages = [page_of(item) for item in all_items(aws) if item[keys.SK]["S"].startswith(keys.CLAIM_PREFIX)]
    return sorted(one.job_id for page in pages for one in page.messages)


def test_a_settled_page_is_written_over_and_the_last_is_removed(aws: Aws) -> None:
    slate = journal_of(aws).slate(3, EPOCH, "tick#")
    for job_id in "abc":
        slate.write([message(job_id)], START)
        assert left(aws) == [job_id]
        slate.settle()
    slate.close()
    assert left(aws) == []


@pytest.mark.parametrize("settled", ["", "a", "b", "c", "ab", "bc", "ac"])
def test_i6_a_page_that_is_not_settled_stays(aws: Aws, settled: str) -> None:
    slate = journal_of(aws).slate(3, EPOCH, "tick#")
    for job_id in "abc":
        slate.write([message(job_id)], START)
        if job_id in settled:
            slate.settle()
    slate.close()
    assert left(aws) == [job_id for job_id in "abc" if job_id not in settled]


def test_i6_a_put_that_the_network_held_back_does_not_undo_the_next_page(aws: Aws) -> None:
    journal = journal_of(aws)
    slate = journal.slate(3, EPOCH, "tick#")
    with faults.logging() as log:
        slate.write([message("a")], START)
        slate.settle()
        slate.write([message("b")], START)
    held_back, _ = log.of(PAGE)
    with pytest.raises(aws.dynamodb.exceptions.ConditionalCheckFailedException):
        faults.repeat(aws, held_back)
    assert left(aws) == ["b"]


def test_a_page_whose_answer_was_lost_is_written_once_more(aws: Aws) -> None:
    slate = journal_of(aws).slate(3, EPOCH, "tick#")
    for job_id in "ab":
        with faults.answer_lost(aws, PAGE):
            slate.write([message(job_id)], START)
        slate.settle()
    assert left(aws) == ["b"]


@pytest.mark.parametrize("crash", [{"before": PAGE, "nth": 2}, {"after": PAGE, "nth": 2}, {"before": PAGE, "nth": 3}])
def test_i1_i2_i6_a_tick_that_dies_between_its_pages(aws: Aws, clock: ManualClock, crash: dict[str, object]) -> None:
    world = World(aws, clock)
    for job_id, minute in (("a", 5), ("b", 6)):  # of two buckets, and so of two pages
        world.submit(job_id=job_id, run_at=f"2026-11-30T12:{minute:02}:00Z")
    clock.set(START + timedelta(minutes=4))
    with faults.crash(**crash):  # type: ignore[arg-type]
        world.tick()
    for minute in range(5, 10):
        clock.set(START + timedelta(minutes=minute, seconds=1))
        world.tick()
        world.deliver()
    assert world.target.counts() == {"a": 1, "b": 1}
    assert left(aws) == []
