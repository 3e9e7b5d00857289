"""docs/scale.md on paper: its sums rest on the code's own sizes and calls, and its tables and pictures are of today."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import herd_pictures, scale
from bench.herd import JOURNAL_UNITS, row, run
from bench.scale import Month
from shared.flows.claims import PAGE_CLAIMS
from shared.store import keys
from tests.support import calls, memory_backend
from tests.support.aws_rules_items import item_bytes
from tests.support.calls import Call, Observer
from tests.support.clocks import ManualClock
from tests.support.world import World

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text()


class Seen(Observer):
    """The requests by operation, and the sizes of the journal's pages."""

    order = calls.LOG

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.pages: list[int] = []

    def on_request(self, call: Call) -> None:
        self.requests[call.operation] += 1
        item = call.params.get("Item", {})
        if item.get(keys.SK, {"S": ""})["S"].startswith(keys.CLAIM_PREFIX):
            self.pages.append(item_bytes(item))


@pytest.fixture
def world() -> World:
    clock = ManualClock(datetime(2026, 11, 30, 12, 0, tzinfo=UTC))
    return World(memory_backend.create(clock.now), clock)


def test_items_are_as_large_as_the_sums_have_them(world: World) -> None:
    for _ in range(2 * PAGE_CLAIMS):
        world.submit(run_at="2026-11-30T12:10:00Z", payload='{"order":"%s"}' % ("x" * 300), name="an ordinary job")
    waiting = world.items(keys.JOB)[0]
    index = {name: waiting[name] for name in (keys.PK, keys.SK, keys.DUE_KEY, keys.DUE_AT) if name in waiting}
    index |= {name: waiting[name] for name in keys.DUE_PROJECTION if name in waiting}
    assert item_bytes(waiting) == pytest.approx(scale.JOB_BYTES, rel=0.05)
    assert item_bytes(index) == pytest.approx(scale.INDEX_BYTES, rel=0.05)
    seen = Seen()
    with calls.observing(seen):
        world.clock.set(datetime(2026, 11, 30, 12, 6, tzinfo=UTC))
        world.tick()
    assert seen.pages == [pytest.approx(scale.PAGE_BYTES + PAGE_CLAIMS * scale.PAGE_ENTRY_BYTES, rel=0.01)] * 2
    assert -(-seen.pages[0] // 1024) / PAGE_CLAIMS == JOURNAL_UNITS
    world.clock.set(datetime(2026, 11, 30, 12, 10, 1, tzinfo=UTC))
    world.deliver()
    assert item_bytes(world.items(keys.RUN_PREFIX)[0]) == pytest.approx(scale.RUN_BYTES, rel=0.05)


def test_a_page_and_an_idle_tick_make_the_calls_that_the_sums_have(world: World) -> None:
    for _ in range(PAGE_CLAIMS):
        world.submit(run_at="2026-11-30T12:10:00Z")
    idle, page = Seen(), Seen()
    for _ in range(4):
        world.tick()
        world.clock.advance(60)
    with calls.observing(idle):
        world.tick()
    assert idle.requests == {"Query": scale.LOOKS + 1, "UpdateItem": 2}  # those of the index, and the journal
    world.clock.set(datetime(2026, 11, 30, 12, 5, tzinfo=UTC))
    with calls.observing(page):
        world.tick()
    assert page.requests - idle.requests == {
        "PutItem": 1,
        "BatchExecuteStatement": 4,
        "SendMessageBatch": 10,
        "DeleteItem": 1,
    }


def test_a_batch_makes_the_calls_that_the_sums_have(world: World) -> None:
    for _ in range(20):
        world.submit(run_at="2026-11-30T12:10:00Z")
    world.clock.set(datetime(2026, 11, 30, 12, 6, tzinfo=UTC))
    world.tick()
    world.clock.set(datetime(2026, 11, 30, 12, 10, tzinfo=UTC))
    seen = Seen()
    with calls.observing(seen):
        world.deliver()
    assert seen.requests == {"BatchExecuteStatement": 4, "BatchGetItem": 2, "ChangeMessageVisibilityBatch": 2}


def test_a_month_has_the_units_that_docs_performance_measures() -> None:
    one_off, recurring = Month(100), Month(100, recurring=True)
    assert one_off.writes / one_off.runs == pytest.approx(6.03, abs=0.005)
    assert recurring.writes / recurring.runs == pytest.approx(5.03, abs=0.005)


@pytest.mark.parametrize("name", scale.tables())
def test_the_page_has_todays_sums(name: str) -> None:
    assert scale.tables()[name] in PAGE


@pytest.mark.parametrize("name", herd_pictures.tables())
def test_the_page_has_todays_herds(name: str) -> None:
    """Those of up to 100,000 jobs: the larger ones come from the same command."""
    quick = [herd for herd in herd_pictures.tables()[name] if herd.jobs <= 100_000]
    assert [line for line in (row(run(herd)) for herd in quick) if line not in PAGE] == []


def test_a_picture_is_what_the_command_draws() -> None:
    name, picture = next(herd_pictures.pictures("herd-over-time.svg"))
    assert (ROOT / "docs" / "img" / name).read_text() == picture
