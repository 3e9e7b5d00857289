"""Pause and resume: what was claimed is void, `catch_up` makes up for what was missed, `max_runs` stays exact."""

from dataclasses import replace
from datetime import datetime

import pytest

from shared.flows.execute import Handled
from shared.model.call import Call
from shared.model.errors import ConflictError, JobNotFoundError
from shared.model.message import Message
from shared.model.run import Result
from shared.queue import message_of
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    clock.set(at("12:00:30"))
    return World(aws, clock)


def hours(world: World, job_id: str = "a") -> list[str]:
    return [moment.strftime("%H:%M") for moment in world.target.slots(job_id)]


def test_nothing_runs_while_a_job_is_paused_and_twice_is_the_same(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    view = world.pause("a")
    assert (view.status, view.next_run_at, view.job.revision, view.job.version) == ("paused", None, 2, 2)
    again = world.pause("a")
    assert (again.status, again.job) == (view.status, view.job)
    (item,) = world.items("job")
    assert "due_key" not in item
    world.pass_time(600)
    assert world.target.calls == []
    assert world.runs("a") == []  # its times were ahead of the pause: a resume decides what becomes of them
    assert world.audit().findings == 0


@pytest.mark.parametrize(
    ("catch_up", "called"),
    [
        ("latest", ["12:09", "12:10", "12:11"]),
        ("all", [f"12:{minute:02d}" for minute in range(1, 12)]),
        ("skip", ["12:10", "12:11"]),
    ],
)
def test_resume_makes_up_for_the_pause_by_catch_up(world: World, catch_up: str, called: list[str]) -> None:
    world.submit(job_id="a", cron="* * * * *", catch_up=catch_up)
    world.pause("a")
    world.clock.set(at("12:10:10"))
    world.deliver()
    view = world.resume("a")
    assert (view.status, view.job.revision, view.job.version) == ("scheduled", 3, 3)
    world.clock.set(at("12:11:30"))
    world.deliver()
    assert hours(world) == called
    skipped = [run for run in world.runs("a") if run.status == "skipped"]
    assert [(run.reason, run.scheduled_for) for run in skipped] == (
        [] if catch_up == "all" else [("catch_up", at("12:01"))]
    )


def test_a_void_start_leaves_its_occurrence_to_the_skip_that_came_meanwhile(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.pause("a")
    world.clock.set(at("12:10:10"))
    world.resume("a")
    received = world.receive()
    (skip,) = [one for one in received if message_of(one.body).skip]
    (void,) = [one for one in received if message_of(one.body).revision == 1 and '"2026-11-30T12:01' in one.body]
    done: list[Handled] = []

    def judge(call: faults.Call) -> bool:
        if not done and call.name == "dynamodb:GetItem" and call.params["Key"]["sk"]["S"] == "job":
            done.extend(world.new_executor().run([skip]))
        return False

    with faults.refusing(judge):
        world.acknowledge(world.executor.run([void]))
    world.acknowledge(done)
    world.pass_time(60)
    (skipped,) = [run for run in world.runs("a") if run.status == "skipped"]
    assert (skipped.reason, skipped.scheduled_for, skipped.missed) == ("catch_up", at("12:01"), 8)


def test_a_quick_resume_loses_nothing_and_runs_nothing_twice(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.clock.set(at("12:02:10"))
    world.deliver()
    world.pause("a")
    world.clock.set(at("12:02:20"))
    world.resume("a")
    world.pass_time(150)
    assert hours(world) == ["12:01", "12:02", "12:03", "12:04"]
    assert world.audit().findings == 0


@pytest.mark.parametrize(("catch_up", "called"), [("latest", ["13:00"]), ("all", ["12:40", "13:00"]), ("skip", [])])
def test_what_no_tick_had_claimed_before_the_pause_is_made_up_for(
    world: World, catch_up: str, called: list[str]
) -> None:
    world.submit(job_id="a", cron="*/20 * * * *", catch_up=catch_up, start_at="2026-11-30T12:30:00Z", max_runs=5)
    world.clock.set(at("13:10:00"))  # no tick came
    world.pause("a")
    world.clock.set(at("13:12:00"))
    world.resume("a")
    world.clock.set(at("13:13:00"))
    world.tick()
    world.deliver()
    assert hours(world) == called
    assert {run.status for run in world.runs("a")} <= {"succeeded", "skipped"}
    assert world.runs("a")[0].scheduled_for == at("12:40")  # I1: run, or recorded as missed
    assert world.show("a").next_run_at == at("13:20")


@pytest.mark.parametrize("change", ["paused", "rescheduled"])
def test_i1_what_was_claimed_and_never_sent_before_a_change_is_recorded(world: World, change: str) -> None:
    world.submit(job_id="a", cron="*/20 * * * *")
    world.clock.set(at("12:19:00"))
    with faults.crash(before="sqs:SendMessageBatch"):
        world.tick()
    world.clock.set(at("12:20:30"))
    if change == "paused":
        world.pause("a")
    else:
        world.patch("a", cron="30 * * * *")
    world.pass_time(180)
    assert [(run.scheduled_for, run.status, run.reason) for run in world.runs("a")] == [
        (at("12:20"), "skipped", change)
    ]


def test_i1_a_claim_made_twice_with_a_pause_in_between_leaves_a_record(world: World) -> None:
    world.submit(job_id="a", cron="*/20 * * * *")
    other = World(world.aws, world.clock)
    world.clock.set(at("12:19:59"))

    def pauses() -> None:
        world.clock.set(at("12:20:01"))
        other.pause("a")

    with faults.lost_and_meanwhile(world.aws, "dynamodb:BatchExecuteStatement", pauses):
        (ticked,) = world.tick()
    assert ticked.claimed.lost == 1
    world.pass_time(180)
    assert [(run.scheduled_for, run.status, run.reason) for run in world.runs("a")] == [
        (at("12:20"), "skipped", "paused")
    ]
    world.resume("a")
    world.clock.set(at("12:39:00"))
    world.pass_time(120)
    assert hours(world) == ["12:40"]


def test_i1_a_slow_pause_does_not_move_the_last_change_back(world: World) -> None:
    world.submit(job_id="a", run_at="2026-11-30T12:01:00Z")
    world.clock.set(at("12:01:01"))
    world.patch("a", run_at="2026-11-30T12:05:00Z")
    world.api.control.pause("a", at("12:00:59"))
    world.resume("a")
    world.pass_time(300)
    assert [(run.scheduled_for, run.status, run.reason) for run in world.runs("a")] == [
        (at("12:01"), "skipped", "rescheduled"),
        (at("12:05"), "succeeded", None),
    ]


def test_i1_a_late_claim_beside_a_pause_is_seen_by_it(world: World) -> None:
    """A tick claims, with a record of what it leaves out, between the read and the write of the pause."""
    world.submit(job_id="a", cron="*/10 * * * *")
    world.clock.set(at("12:55:30"))
    ticked: list[int] = []

    def tick(call: faults.Call) -> bool:
        if faults.writes("job")(call) and not ticked:
            ticked.append(1)
            world.tick()
        return False

    with faults.refusing(tick):
        world.pause("a")
    world.clock.set(at("13:25:30"))
    world.resume("a")
    world.pass_time(60)
    assert [(f"{run.scheduled_for:%H:%M}", run.reason, run.missed) for run in world.runs("a")] == [
        ("12:10", "catch_up", 4),
        ("12:50", "rescheduled", None),
        ("13:00", "catch_up", 2),
        ("13:20", None, None),
    ]


def test_max_runs_is_exact_over_pauses(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", max_runs=4)  # all four are claimed at once
    world.clock.set(at("12:02:10"))
    world.deliver()
    world.pause("a")
    world.clock.set(at("12:20:10"))
    world.resume("a")
    world.pass_time(600)
    assert hours(world) == ["12:01", "12:02", "12:19", "12:20"]
    assert world.show("a").status == "completed"


def test_a_paused_one_off_keeps_its_run_for_the_resume(world: World) -> None:
    world.submit(job_id="a", run_at="2026-11-30T12:01:00Z")
    world.pause("a")
    world.pass_time(300)
    assert world.target.calls == []
    assert world.show("a").status == "paused"
    world.resume("a")
    world.deliver()
    assert (hours(world), world.show("a").status) == (["12:01"], "succeeded")
    with pytest.raises(ConflictError, match="is over"):
        world.pause("a")


def test_a_one_off_that_waits_for_its_retry_goes_on_after_a_resume(world: World) -> None:
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z", max_attempts=2, base_s=60)
    world.clock.set(at("12:00:41"))
    world.deliver()
    world.pause("a")
    world.pass_time(1800)
    assert len(world.target.calls) == 1
    assert world.audit().findings == 0
    world.resume("a")
    world.deliver()
    assert [call.attempt for call, _ in world.target.calls] == [1, 2]
    assert world.statuses("a") == ["dead_lettered"]


def test_unknown_and_cancelled_jobs_cannot_be_paused_or_resumed(world: World) -> None:
    for say in (world.pause, world.resume):
        with pytest.raises(JobNotFoundError):
            say("nobody")
    world.submit(job_id="a", cron="* * * * *")
    assert world.resume("a").job.version == 1  # it was not paused
    world.cancel("a")
    for say in (world.pause, world.resume):
        with pytest.raises(ConflictError, match="is cancelled"):
            say("a")
    assert world.items("run#") == []


def test_i1_what_was_due_before_the_pause_and_not_started_is_recorded(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.clock.set(at("12:02:10"))  # no executor came
    world.pause("a")
    world.deliver()
    assert world.target.calls == []
    assert [(run.scheduled_for, run.status, run.reason) for run in world.runs("a")] == [
        (at("12:01:00"), "skipped", "paused"),
        (at("12:02:00"), "skipped", "paused"),
    ]
    world.clock.set(at("12:03:10"))
    world.resume("a")
    world.pass_time(60)
    assert hours(world) == ["12:03", "12:04"]


def test_i1_what_was_journaled_and_not_claimed_before_the_pause_comes_with_the_resume(world: World) -> None:
    world.submit(job_id="a", cron="*/10 * * * *", catch_up="all")
    world.clock.set(at("12:11:00"))
    with faults.crash(before="dynamodb:BatchExecuteStatement"):
        world.tick()
    world.clock.set(at("12:11:20"))
    world.pause("a")
    world.pass_time(300)
    assert (world.runs("a"), world.items("claim#")) == ([], [])
    world.resume("a")
    world.deliver()
    assert hours(world) == ["12:10"]


def test_a_running_attempt_goes_on_and_its_retry_ends_with_the_pause(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", base_s=20)

    def script(call: Call) -> Result:
        if call.scheduled_for == at("12:01:00"):
            world.pause("a")
            return failure()
        return SUCCEED

    world.target.script = script
    world.clock.set(at("12:01:01"))
    world.deliver()
    assert world.statuses("a") == ["failed"]
    world.pass_time(60)
    (run,) = world.runs("a")
    assert (run.status, run.reason, run.attempt) == ("cancelled", "paused", 1)
    world.resume("a")
    world.pass_time(70)
    assert hours(world) == ["12:01", "12:02", "12:03"]
    assert world.audit().findings == 0


def test_a_one_off_that_succeeds_while_it_is_paused_is_over(world: World) -> None:
    def script(call: Call) -> Result:
        world.pause("a")
        return SUCCEED

    world.target.script = script
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z")
    world.clock.set(at("12:00:41"))
    world.deliver()
    assert world.show("a").status == "succeeded"
    assert world.pause("a").status == "succeeded"  # the same call again
    for say in (world.resume, world.cancel):
        with pytest.raises(ConflictError, match="is over"):
            say("a")
    world.submit(job_id="a", run_at="2026-11-30T12:20:00Z")  # the id is free again


def test_a_paused_one_off_is_kept_longer_than_the_retention(world: World) -> None:
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z")
    (item,) = world.items("job")
    assert "ttl" in item
    world.pause("a")
    (item,) = world.items("job")
    assert "ttl" not in item
    world.resume("a")
    (item,) = world.items("job")
    assert "ttl" in item


def test_a_resume_within_the_backoff_does_not_cost_an_attempt(world: World) -> None:
    world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z", max_attempts=2, base_s=60)
    world.clock.set(at("12:00:41"))
    world.deliver()
    world.pause("a")
    world.clock.advance(5)
    world.resume("a")
    world.pass_time(200)
    assert [call.attempt for call, _ in world.target.calls] == [1, 2]
    assert world.show("a").status == "succeeded"


def test_deadline_and_end_at_hold_over_a_pause(world: World) -> None:
    world.submit(job_id="once", run_at="2026-11-30T12:01:00Z", deadline_s=120)
    world.submit(job_id="a", cron="* * * * *", end_at="2026-11-30T12:03:00Z", catch_up="all", deadline_s=400)
    for job_id in ("once", "a"):
        world.pause(job_id)
    world.clock.set(at("12:08:30"))
    world.deliver()
    for job_id in ("once", "a"):
        world.resume(job_id)
    world.deliver()
    (run,) = world.runs("once")
    assert (run.status, run.reason) == ("skipped", "expired")
    assert [(run.status, run.reason) for run in world.runs("a")] == [
        ("skipped", "expired"),
        ("succeeded", None),
        ("succeeded", None),
    ]
    assert (world.show("a").status, world.show("once").status) == ("completed", "skipped")


def test_jitter_and_dst_gaps_are_the_same_after_a_pause(world: World) -> None:
    gap = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "start_at": "2027-03-27T12:00:00Z"}
    world.submit(job_id="skips", dst_gap="skip", **gap)
    world.submit(job_id="runs", **gap)
    world.submit(job_id="j", cron="* * * * *", jitter_s=50)
    due = [world.show(job_id).next_run_at for job_id in ("skips", "runs", "j")]
    for job_id in ("skips", "runs", "j"):
        world.pause(job_id)
        world.resume(job_id)
    assert [world.show(job_id).next_run_at for job_id in ("skips", "runs", "j")] == due
    assert due[:2] == [datetime.fromisoformat(f"2027-03-{day}+00:00") for day in ("29T00:30", "28T01:00")]


def test_a_message_of_before_the_pause_does_not_hold_up_the_resumed_run(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.pause("a")
    world.resume("a")
    world.clock.set(at("12:01:00"))
    handled = world.deliver()  # two messages of 12:01: which is received first is not known
    world.clock.advance(4)
    handled += world.deliver()
    assert hours(world) == ["12:01"]
    assert all(one.ended.done for one in world.deliver())
    (run,) = world.runs("a")
    assert (run.status, run.revision, run.attempt) == ("succeeded", 3, 1)
    assert run.attempts[0].started_at <= at("12:01:04")


@pytest.mark.parametrize(("catch_up", "called"), [("latest", ["12:09", "12:10"]), ("skip", ["12:10"])])
def test_i1_a_void_start_whose_executor_died_leaves_its_time_to_the_resume(
    world: World, catch_up: str, called: list[str]
) -> None:
    """A message of before the pause begins what the resume leaves out; the next attempt of it is void again."""
    world.submit(job_id="a", cron="* * * * *", catch_up=catch_up)
    world.pause("a")
    world.clock.set(at("12:02:05"))
    with faults.crash(after="dynamodb:BatchExecuteStatement"):  # the starts of all
        world.executor.run(world.receive())
    assert "running" in world.statuses("a")
    world.clock.set(at("12:10:10"))
    world.resume("a")
    world.pass_time(40)
    assert hours(world) == called
    assert {run.status for run in world.runs("a")} == {"succeeded", "skipped"}
    (skipped,) = [run for run in world.runs("a") if run.status == "skipped"]
    assert (skipped.scheduled_for, skipped.reason) == (at("12:01:00"), "catch_up")
    assert world.audit().findings == 0


def test_a_span_takes_the_place_of_a_single_record(world: World) -> None:
    """A void start has recorded the first of several occurrences that a late message stands for."""
    runs = world.executor.workshop.runs
    one = Message(job_id="a", scheduled_for=at("12:01:00"), revision=1, fence=0, lease_s=60)
    span = replace(one, skip="rescheduled", missed=3, missed_until=at("12:03:00"))
    assert runs.record_skip(one, "rescheduled", at("12:05:00")) is None
    assert runs.record_skip(span, "rescheduled", at("12:05:00")) is None
    again = runs.record_skip(replace(span, missed=2, missed_until=at("12:02:00")), "catch_up", at("12:05:00"))
    assert again is not None
    assert (again.missed, again.reason) == (3, "rescheduled")
    runs.start(replace(one, job_id="b"), "w", at("12:05:00"))
    there = runs.record_skip(replace(span, job_id="b"), "rescheduled", at("12:05:00"))
    assert there is not None
    assert there.status == "running"
