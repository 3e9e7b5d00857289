"""Claims: each is sent exactly when it is made, also when answers are lost, statements are refused, or shards grow."""

from datetime import timedelta

import pytest

from shared.flows.claims import pages
from shared.model.job import Due, Schedule
from shared.rules.plan import Occurrence, Plan
from shared.store.jobs import Claim
from tests.support import faults
from tests.support.aws import Aws, messages_waiting
from tests.support.clocks import START, ManualClock
from tests.support.world import World

pytestmark = pytest.mark.backends("moto", "emulator")

CLAIM = "dynamodb:BatchExecuteStatement"


def claim(job_id: str, occurrences: int) -> Claim:
    schedule = Schedule(every="1s", every_s=1, anchor=START)
    due = Due(job_id=job_id, schedule=schedule, due_at=START, revision=1, timeout_s=60)
    taken = tuple(Occurrence(scheduled_for=START + timedelta(seconds=k)) for k in range(occurrences))
    return Claim(due, Plan(occurrences=taken, next_due_at=None, runs_claimed=occurrences))


@pytest.mark.parametrize(
    ("counts", "cut"),
    [
        ([1] * 100, [100]),
        ([1] * 101, [100, 1]),
        ([1000, 1000], [2]),
        ([1000, 1000, 1], [2, 1]),
        ([300] * 7, [6, 1]),
        ([], []),
    ],
)
def test_pages_hold_100_jobs_and_2000_occurrences(counts: list[int], cut: list[int]) -> None:
    claims = [claim(f"j{place}", count) for place, count in enumerate(counts)]
    found = list(pages(claims))
    assert [len(page) for page in found] == cut
    assert [one for page in found for one in page] == claims


def test_a_job_that_the_index_shows_twice_stands_in_a_page_once() -> None:
    twice = [claim("a", 1), claim("b", 1), claim("a", 2)]
    assert [[one.due.job_id for one in page] for page in pages(twice)] == [["a", "b"], ["a"]]


def test_a_claim_whose_answer_was_lost_is_sent_all_the_same(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:10:00Z")
    clock.set(START + timedelta(minutes=8))
    with faults.answer_lost(aws, CLAIM):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.lost) == (1, 0)
    clock.advance(300)
    world.deliver()
    assert world.statuses("a") == ["succeeded"]


def test_a_recurring_claim_whose_answer_was_lost_is_sent_all_the_same(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="*/10 * * * *")
    clock.set(START + timedelta(minutes=8))
    with faults.answer_lost(aws, CLAIM):
        world.tick()
    assert messages_waiting(aws)["delayed"] == 1


def test_jobs_claimed_by_another_tick_are_lost_and_not_sent(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="*/10 * * * *")
    clock.set(START + timedelta(minutes=8))
    late = World(aws, clock)

    def other_tick_comes_first(call: faults.Call) -> bool:
        if call.name == CLAIM and not done:
            done.append(True)
            clock.advance(51)  # the first tick's lease is over: it is a zombie now
            late.tick()
        return False

    done: list[bool] = []
    with faults.refusing(other_tick_comes_first):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.lost) == (0, 1)
    assert messages_waiting(aws)["delayed"] == 1
