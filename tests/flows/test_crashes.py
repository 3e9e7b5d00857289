"""A tick that dies at any call, zombies, recovery: each occurrence runs once and the journal drains (I1, I2, I6)."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.model.call import Call
from shared.model.instants import to_text
from shared.model.run import Result
from shared.store.journal import page_of
from tests.support import faults
from tests.support.aws import Aws, messages_waiting
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

PAGE = faults.writes("claim#")
CLAIM = "dynamodb:BatchExecuteStatement"
SEND = "sqs:SendMessageBatch"
RUN_WRITE = faults.writes("run#")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.mark.parametrize(
    "crash",
    [
        {"after": faults.writes("lease")},
        {"before": PAGE},
        {"after": PAGE},
        {"before": CLAIM},
        {"after": CLAIM},
        {"before": SEND},
        {"after": SEND},
        {"before": PAGE, "nth": 2},
        {"after": PAGE, "nth": 2},
        {"before": faults.writes("lease"), "nth": 2},
    ],
    ids=[
        "after lease",
        "before page",
        "after page",
        "before claim",
        "C32a after claim",
        "before send",
        "C32b after send",
        "before settle",
        "after settle",
        "before release",
    ],
)
def test_c32_a_tick_that_dies_loses_nothing_and_makes_nothing_late(
    aws: Aws, clock: ManualClock, crash: dict[str, Any]
) -> None:
    world = World(aws, clock)
    world.submit(job_id="once", run_at="2026-11-30T12:05:00Z")
    world.submit(job_id="often", cron="5-6 12 * * *")
    clock.set(at("12:01"))
    with faults.crash(**crash):
        world.tick()
    for minute in range(2, 10):
        clock.set(at(f"12:{minute:02}:01"))
        world.tick()
        world.deliver()
    assert world.target.slots("once") == [at("12:05")]
    assert world.target.slots("often") == [at("12:05"), at("12:06")]
    assert all(moment - call.scheduled_for <= timedelta(seconds=1) for call, moment in world.target.calls)
    assert world.items("claim#") == []


def test_c32c_a_send_that_was_reported_as_failed_and_did_arrive(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.answer_lost(aws, SEND):
        world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    assert messages_waiting(aws)["visible"] == 2
    world.deliver()
    assert world.target.counts() == {"a": 1}


def test_i6_every_send_was_journaled_before(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="far", cron="*/3 * * * *")
    with faults.logging() as log:
        world.submit(job_id="near", every="40s")
        for minute in range(4):
            clock.set(at(f"12:{minute:02}"))
            world.tick()
    journaled: set[tuple[str, str]] = set()
    for call in log.seen:
        if PAGE(call) and call.operation == "PutItem":
            page = page_of(call.asked["Item"])
            journaled |= {(one.job_id, to_text(one.scheduled_for)) for one in page.messages}
        for entry in call.asked.get("Entries", []) if call.name == SEND else []:
            body = json.loads(entry["MessageBody"])
            assert (body["job_id"], body["scheduled_for"]) in journaled
    assert journaled


def test_recovery_that_dies_between_send_and_removal_only_sends_again(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.crash(after=SEND):
        world.submit(job_id="a", run_at="2026-11-30T12:02:00Z")
    clock.set(at("12:00"))
    with faults.crash(after=SEND):
        world.tick()
    clock.set(at("12:01"))
    world.tick()
    assert messages_waiting(aws)["delayed"] == 3
    clock.set(at("12:02"))
    world.deliver()
    assert world.target.counts() == {"a": 1}
    assert world.items("claim#") == []


def test_recovery_does_not_touch_the_page_of_a_writer_that_may_live(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.crash(before=SEND):
        world.submit(job_id="a", run_at="2026-11-30T12:02:00Z")
    clock.advance(90)
    assert world.tick()[0].recovered == 0
    clock.advance(60)
    assert world.tick()[0].recovered == 1


def test_a_long_recovery_leaves_time_for_what_is_due(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    for place in range(4):
        with faults.crash(before=SEND):
            world.submit(job_id=f"late{place}", run_at="2026-11-30T11:58:00Z")
    world.submit(job_id="due", run_at="2026-11-30T12:05:00Z")
    clock.set(at("12:01"))

    def takes_10_s(call: faults.Call) -> bool:
        if call.name == SEND:
            clock.advance(10)
        return False

    with faults.refusing(takes_10_s):
        (ticked,) = world.tick(stop_after_s=40)
    assert (ticked.recovered, ticked.claimed.sent) == (2, 1)
    clock.advance(60)
    (ticked,) = world.tick()
    assert ticked.recovered == 2


def crashed_submit(world: World, run_at: str, **spec: Any) -> None:
    """Stored, sent, and its page left behind."""
    with faults.crash(after=SEND):
        world.submit(job_id="a", run_at=run_at, **spec)


def recover(world: World) -> int:
    """Two minutes later, a tick: how many messages it sent again."""
    world.clock.advance(120)
    recovered = world.tick()[0].recovered
    assert world.items("claim#") == []
    return recovered


def test_recovery_that_meets_a_run_that_is_over_sends_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    crashed_submit(world, "2026-11-30T11:58:00Z")
    world.deliver()
    assert recover(world) == 0


def test_recovery_that_meets_a_started_run_sends_again(aws: Aws, clock: ManualClock) -> None:
    """Its start may be about to be withdrawn: the sanity case of the model."""
    world = World(aws, clock)
    crashed_submit(world, "2026-11-30T11:58:00Z")

    def script(call: Call) -> Result:
        assert recover(world) == 1
        return SUCCEED

    world.target.script = script
    world.deliver()
    world.clock.advance(1000)
    world.deliver()
    (run,) = world.runs("a")
    assert run.status == "succeeded"


def test_recovery_that_meets_a_withdrawn_start_brings_the_occurrence(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    crashed_submit(world, "2026-11-30T11:58:00Z")
    with faults.refusing(lambda call: call.name == "dynamodb:GetItem"):
        world.executor.run(world.receive())
    assert world.runs("a") == []
    assert recover(world) == 1
    world.deliver()
    assert world.statuses("a") == ["succeeded"]


def test_recovery_of_a_cancelled_job_sends_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    crashed_submit(world, "2026-11-30T12:02:00Z")
    world.cancel("a")
    assert recover(world) == 0


def test_recovery_of_a_claim_that_was_not_made_sends_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:10:00Z")
    clock.set(at("12:05"))
    with faults.crash(before=CLAIM):
        world.tick()
    clock.advance(100)  # the next tick claims it itself, and finds the old page
    (ticked,) = world.tick()
    assert (ticked.recovered, ticked.claimed.sent) == (0, 1)
    clock.set(at("12:10"))
    world.deliver()
    assert world.target.counts() == {"a": 1}


def test_recovery_brings_a_skipped_span_too(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.tick()
    world.submit(job_id="a", cron="*/10 * * * *", start_at="2026-11-30T12:10:00Z", catch_up="skip")
    clock.set(at("12:45"))
    with faults.crash(before=SEND):
        world.tick()
    clock.advance(120)
    world.tick()
    world.deliver()
    (span,) = [run for run in world.runs("a") if run.status == "skipped"]
    assert (span.scheduled_for, span.missed, span.missed_until) == (at("12:10"), 4, at("12:40"))


def test_a_zombie_tick_with_an_old_fence_claims_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="*/5 * * * *", start_at="2026-11-30T12:05:00Z")
    clock.set(at("12:01"))
    other = World(aws, clock)
    later: list[Any] = []

    def later_ticks(call: faults.Call) -> bool:
        if call.name == CLAIM and not later:
            later.append(None)
            clock.advance(60)
            later[0] = other.tick()[0]
        return False

    with faults.refusing(later_ticks):
        (zombie,) = world.tick()
    assert (zombie.claimed.won, zombie.claimed.lost) == (0, 1)
    assert later[0].claimed.won == 1
    assert world.items("lease")[0]["epoch"]["N"] == "2"
    assert messages_waiting(aws)["delayed"] == 1


def test_c39_a_failed_occurrence_does_not_end_the_series(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.scheduled_for == at("12:00") else SUCCEED
    world.submit(job_id="a", cron="*/5 * * * *", max_attempts=2, base_s=5)
    for moment in ("12:00:00", "12:00:10", "12:01:00"):
        clock.set(at(moment))
        world.tick()
        world.deliver()
    view = world.show("a")
    assert (view.status, view.next_run_at) == ("scheduled", at("12:05"))
    assert [run.status for run in view.runs] == ["dead_lettered"]
    clock.set(at("12:05"))
    world.deliver()
    assert world.statuses("a") == ["dead_lettered", "succeeded"]


def test_c38_allow_lets_a_run_that_takes_longer_than_the_period_overlap(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    inside: list[datetime] = []

    def script(call: Call) -> Result:
        if call.scheduled_for == at("11:59"):  # it takes 150 s: two more come due meanwhile, and run
            for moment in ("12:00", "12:01"):
                clock.set(at(moment))
                for message in world.receive():
                    if message.body.find(f'"2026-11-30T{moment}:00Z"') > 0:
                        world.acknowledge(world.new_executor().run([message]))
                        inside.append(at(moment))
        return SUCCEED

    world.target.script = script
    world.submit(job_id="a", cron="* * * * *", timeout_s=100, max_runs=4)
    clock.set(at("11:59"))
    world.acknowledge(world.executor.run(world.receive()))
    assert inside == [at("12:00"), at("12:01")]
    clock.set(at("12:02"))
    world.deliver()
    assert sorted(world.target.slots("a")) == [at("11:59"), at("12:00"), at("12:01"), at("12:02")]  # and no backlog


@pytest.mark.parametrize("write", [RUN_WRITE, "sqs:ChangeMessageVisibilityBatch"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_executor_that_dies_at_any_write_is_made_good(
    aws: Aws, clock: ManualClock, when: str, nth: int, write: Any
) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", max_attempts=5, base_s=5)
    with faults.crash(**{when: write}, nth=nth):  # type: ignore[arg-type]
        world.deliver()
    for _ in range(4):
        clock.advance(200)
        world.deliver()
    clock.advance(1000)
    world.deliver()
    (run,) = world.runs("a")
    assert run.status == "succeeded"
    assert [attempt.attempt for attempt in run.attempts] == list(range(1, run.attempt + 1))
    assert messages_waiting(aws) == {"visible": 0, "delayed": 0, "flight": 0}
