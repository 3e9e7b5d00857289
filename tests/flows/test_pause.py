"""Pause and resume: what was claimed is void, `catch_up` makes up for what was missed, `max_runs` stays exact."""

from datetime import datetime

import pytest

from shared.flows.execute import Handled
from shared.model.errors import ConflictError, JobNotFoundError
from shared.queue import message_of
from tests.flows.test_lost_answers import CLAIM, lost_and_meanwhile
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.world import World, failure

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

    with lost_and_meanwhile(world.aws, CLAIM, pauses):
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
