"""The table and queues in memory against moto: one story, the same calls, the same answers, the same items after it.

The whole of tests/flows runs on them too: `pytest tests/flows --backend memory`.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.flows import finishes
from tests.support import faults, memory_backend
from tests.support.aws import Aws, all_items, dead_letters
from tests.support.clocks import START, ManualClock
from tests.support.world import SUCCEED, World, failure

RANDOM = re.compile(r"[0-9a-f]{32}(#\d+)?")


def story(world: World) -> None:
    """Retries, a dead letter, a crash and its recovery, a cancel in the middle, long payloads, an audit."""
    world.target.script = lambda call: failure() if call.job_id == "bad" or call.attempt == 1 else SUCCEED
    world.tick()
    world.submit(job_id="bad", run_at="2026-11-30T11:58:05Z", max_attempts=2, base_s=5)
    world.submit(job_id="often", every="40s", max_runs=3, payload='"' + "x" * 600 + '"')
    for place in range(12):
        world.submit(job_id=f"far{place}", run_at=f"2026-11-30T12:06:{place:02}Z")
    with faults.crash(after="dynamodb:BatchExecuteStatement"):
        world.clock.advance(240)
        world.tick()
    world.cancel("far3")
    world.pass_time(400, step_s=20)
    world.submit(job_id="far3", run_at="2026-11-30T12:10:00Z")
    world.pass_time(300, step_s=20)
    world.audit()


def told(on: Aws, clock: ManualClock) -> tuple[list[str], list[str], list[str]]:
    """The calls with their errors, the items and the dead letters that the story leaves."""
    clock.set(START)
    with faults.logging() as log:
        story(World(on, clock))
    made = [f"{call.name} {(call.answer or {}).get('Error', {}).get('Code', '')}" for call in log.seen]
    return sorted(made), _plain(all_items(on)), _plain(dead_letters(on))


def _plain(found: list[dict[str, Any]]) -> list[str]:
    """Without the names that are drawn at random."""
    return sorted(RANDOM.sub("r", json.dumps(one, sort_keys=True)) for one in found)


def test_a_story_is_told_alike_in_memory_and_on_moto(
    aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        finishes, "WINDOW", timedelta(seconds=20)
    )  # which ends come together is not left to the machine
    on_moto = told(aws, clock)
    in_memory = told(memory_backend.create(lambda: datetime.now(UTC)), clock)
    assert on_moto == in_memory
    assert len(on_moto[1]) > 20
