"""Trigger: a run now, beside the schedule; neither pauses nor `max_runs` nor a new schedule touch it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from shared.model.errors import ConflictError, JobNotFoundError
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

RUN_WRITE = faults.writes("run#")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


NOW = at("12:00:30") + timedelta(milliseconds=250)


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    clock.set(NOW)
    return World(aws, clock)


def test_it_runs_at_once_and_leaves_the_schedule_alone(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", max_runs=2)
    before = world.items("job")
    run = world.trigger("a")
    assert (run.status, run.scheduled_for, run.requested_at, run.attempts) == ("enqueued", NOW, NOW, ())
    assert world.api.inspect.run("a", NOW) == replace(run, retry_at=NOW)
    assert world.items("job") == before
    assert world.items("claim#") == []
    world.deliver()
    assert world.target.slots("a") == [NOW]
    shown = world.api.inspect.run("a", NOW)
    assert (shown.status, shown.requested_at, shown.attempt) == ("succeeded", NOW, 1)
    world.pass_time(300)
    assert world.target.slots("a") == [NOW, at("12:01:00"), at("12:02:00")]  # max_runs counts the schedule's own
    assert world.show("a").status == "completed"
    assert world.audit().findings == 0


def test_at_a_whole_second_it_is_no_time_of_the_schedule(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.clock.set(at("12:01:00"))
    assert world.trigger("a").scheduled_for == at("12:01:00") + timedelta(microseconds=1)
    world.clock.advance(1)
    world.deliver()
    assert world.statuses("a") == ["succeeded", "succeeded"]


def test_also_of_a_job_that_is_paused_or_waits_for_a_far_time(world: World) -> None:
    world.submit(job_id="p", cron="* * * * *")
    world.pause("p")
    world.submit(job_id="far", run_at="2026-12-24T12:00:00Z")
    for job_id in ("p", "far"):
        world.trigger(job_id)
    world.deliver()
    assert (world.statuses("p"), world.statuses("far")) == (["succeeded"], ["succeeded"])
    assert (world.show("p").status, world.show("far").status) == ("paused", "scheduled")
    assert world.show("far").next_run_at == datetime.fromisoformat("2026-12-24T12:00:00+00:00")


@pytest.mark.parametrize("say", ["pause", "patch"])
def test_neither_a_pause_nor_a_new_schedule_stops_it_or_its_retries(world: World, say: str) -> None:
    world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    world.submit(job_id="a", cron="0 20 * * *", base_s=20)
    world.trigger("a")
    world.pause("a") if say == "pause" else world.patch("a", cron="0 21 * * *")
    world.deliver()
    assert world.statuses("a") == ["failed"]
    world.pause("a") if say == "pause" else world.patch("a", cron="0 22 * * *")
    world.pass_time(30)
    assert world.statuses("a") == ["succeeded"]
    assert [call.attempt for call, _ in world.target.calls] == [1, 2]


def test_i5_a_cancel_ends_it(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *")
    world.trigger("a")
    assert world.cancel("a").running == ()
    (run,) = world.runs("a")
    assert (run.status, run.reason) == ("cancelled", "cancelled")
    world.deliver()
    assert world.target.calls == []


def test_i5_a_cancel_between_its_look_at_the_job_and_its_write(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *")
    cancelled = []

    def cancel(call: faults.Call) -> bool:
        if RUN_WRITE(call) and not cancelled:
            cancelled.append(world.cancel("a"))
        return False

    with faults.refusing(cancel):
        world.trigger("a")
    world.deliver()
    assert world.target.calls == []
    (run,) = world.runs("a")
    assert (run.status, run.reason) == ("cancelled", "cancelled")


def test_one_that_was_asked_of_an_earlier_job_of_the_id_does_not_run(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *")
    cancelled = []

    def cancel(call: faults.Call) -> bool:
        if RUN_WRITE(call) and not cancelled:
            cancelled.append(world.cancel("a"))
            world.clock.advance(1)
            world.submit(job_id="a", cron="0 21 * * *", payload='"new"')
        return False

    with faults.refusing(cancel):
        world.trigger("a")
    world.deliver()
    assert world.target.calls == []
    assert world.statuses("a") == ["cancelled"]


def test_which_jobs_cannot_be_triggered(world: World) -> None:
    with pytest.raises(JobNotFoundError):
        world.trigger("nobody")
    world.submit(job_id="gone", cron="* * * * *")
    world.cancel("gone")
    with pytest.raises(ConflictError, match="is cancelled"):
        world.trigger("gone")
    world.submit(job_id="over", run_at="2026-11-30T12:00:30Z")
    world.deliver()
    with pytest.raises(ConflictError, match="is over"):
        world.trigger("over")
    assert [item["sk"]["S"] for item in world.items("run#")] == ["run#2026-11-30T12:00:30"]


def test_a_one_off_is_not_over_while_a_run_beside_it_goes_on(world: World) -> None:
    world.target.script = lambda call: failure() if call.scheduled_for == NOW else SUCCEED
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z", base_s=300, max_attempts=2)
    world.trigger("a")
    world.deliver()
    world.clock.set(at("12:00:41"))
    world.deliver()
    assert (world.show("a").status, world.statuses("a")) == ("succeeded", ["failed", "succeeded"])
    assert world.cancel("a").status == "succeeded"
    assert world.statuses("a") == ["cancelled", "succeeded"]


def test_a_job_of_which_all_is_claimed_is_over_however_often_it_was_triggered_since(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", max_runs=2)
    world.target.script = lambda call: SUCCEED if call.attempt == 2 else failure()
    world.clock.set(at("12:02:01"))
    world.deliver()
    for _ in range(25):
        world.clock.advance(0.1)
        world.trigger("a")
    world.pass_time(60)
    shown = world.show("a")
    assert (shown.status, len(shown.runs)) == ("completed", 20)
    with pytest.raises(ConflictError, match="is over"):
        world.trigger("a")


def test_a_run_that_starts_too_late_is_recorded_as_expired(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *", deadline_s=30)
    world.trigger("a")
    world.clock.advance(31)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.reason, run.attempts) == ("skipped", "expired", ())


def test_i7_an_aws_error_before_its_call_is_no_attempt(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *", max_attempts=1)
    world.trigger("a")
    with faults.refusing(lambda call: call.name == "dynamodb:GetItem"):
        (handled,) = world.executor.run(world.receive())
    assert not handled.ended.done
    (run,) = world.runs("a")
    assert (run.status, run.attempt, run.requested_at) == ("enqueued", 0, NOW)
    world.clock.advance(66)
    world.deliver()
    assert world.statuses("a") == ["succeeded"]
    assert [call.attempt for call, _ in world.target.calls] == [1]


@pytest.mark.parametrize("at_which", ["before", "after"])
def test_i1_i6_a_crash_at_the_send_is_recovered(world: World, at_which: str) -> None:
    world.submit(job_id="a", cron="0 20 * * *")
    with faults.crash(**{at_which: "sqs:SendMessageBatch"}):
        world.trigger("a")
    assert world.statuses("a") == ["enqueued"]
    world.pass_time(180)
    assert world.statuses("a") == ["succeeded"]
    assert len(world.target.calls) == 1
    assert world.items("claim#") == []


def test_i1_a_message_that_was_lost_is_found_by_the_audit(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *")
    world.trigger("a")
    world.acknowledge_unseen()
    world.clock.advance(1000)
    assert world.audit().abandoned == 1
    world.deliver()
    assert world.statuses("a") == ["succeeded"]


def test_a_page_whose_trigger_was_never_written_runs_nothing(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *")
    with faults.crash(before=RUN_WRITE):
        world.trigger("a")
    assert len(world.items("claim#")) == 1
    world.pass_time(180)
    assert (world.runs("a"), world.target.calls, world.items("claim#")) == ([], [], [])
