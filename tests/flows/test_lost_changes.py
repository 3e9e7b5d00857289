"""What a user's call writes takes effect, its answer is lost, and it is made again; meanwhile somebody else goes on."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.model.message import Message
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import START, ManualClock
from tests.support.world import World, failure

JOB_WRITE, RUN_WRITE = faults.writes("job"), faults.writes("run#")
SAYS: dict[str, Callable[[World], object]] = {
    "pause": lambda world: world.pause("a"),
    "resume": lambda world: world.resume("a"),
    "new schedule": lambda world: world.patch("a", every="40s"),
    "policy": lambda world: world.patch("a", payload=[1], if_version=1),
    "cancel": lambda world: world.cancel("a"),
}


def before(world: World, say: str) -> None:
    """A recurring job of which some is claimed; paused, where a resume follows."""
    world.submit(job_id="a", every="60s")
    if say == "resume":
        world.pause("a")


@pytest.mark.parametrize("say", SAYS)
def test_a_change_whose_answer_is_lost_is_made_once(aws: Aws, clock: ManualClock, say: str) -> None:
    world, same = World(aws, clock), World(aws, clock)
    before(world, say)
    version = world.show("a").job.version
    with faults.answer_lost(aws, JOB_WRITE):
        SAYS[say](world)
    there = same.show("a").job
    assert there.version == version + 1
    assert world.items("claim#") == []
    world.pass_time(200, step_s=5)
    slots = world.target.slots("a")
    assert len(slots) == len(set(slots)) == {"pause": 0, "cancel": 0, "new schedule": 5}.get(say, 3)
    assert world.statuses("a") == ["succeeded"] * len(slots)


@pytest.mark.parametrize("say", SAYS)
def test_i1_a_claim_on_top_of_a_change_whose_answer_is_lost_is_no_loss(aws: Aws, clock: ManualClock, say: str) -> None:
    world, ticking = World(aws, clock), World(aws, clock)
    before(world, say)
    clock.set(START + timedelta(seconds=5))

    def tick() -> None:
        clock.advance(50)
        ticking.tick()

    with faults.lost_and_meanwhile(aws, JOB_WRITE, tick):
        SAYS[say](world)
    world.pass_time(400, step_s=5)
    period = 40 if say == "new schedule" else 60
    first = START + timedelta(seconds=5 + period if say == "new schedule" else period)
    wanted = [first + timedelta(seconds=period * place) for place in range(20)]
    runs = [] if say in ("pause", "cancel") else [slot for slot in wanted if slot <= clock.now()]
    assert world.target.slots("a") == runs
    assert world.items("claim#") == []


@pytest.mark.parametrize("say", ["resume", "new schedule"])
def test_i1_i6_another_change_on_top_before_the_repeat_leaves_the_page_to_recovery(
    aws: Aws, clock: ManualClock, say: str
) -> None:
    """Whether the first try was written is not to be seen any more: recovery judges by what the job then is."""
    world, other = World(aws, clock), World(aws, clock)
    before(world, say)

    def change() -> None:
        other.patch("a", name="on top")

    with faults.lost_and_meanwhile(aws, JOB_WRITE, change):
        SAYS[say](world)
    assert len(world.items("claim#")) == 1
    job = world.show("a").job
    assert (job.spec.name, job.status, job.revision) == ("on top", "scheduled", {"resume": 3}.get(say, 2))
    clock.advance(95)
    world.tick()
    world.pass_time(100, step_s=5)
    assert world.items("claim#") == []
    slots = world.target.slots("a")
    assert len(slots) == len(set(slots)) == {"resume": 3}.get(say, 4)
    assert world.statuses("a") == ["succeeded"] * len(slots)


def test_if_match_after_a_lost_answer_is_not_refused_for_the_own_change(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", every="60s")
    with faults.answer_lost(aws, JOB_WRITE):
        assert world.patch("a", name="mine", if_version=1).job.version == 2


def test_i1_a_submit_whose_answer_is_lost_and_a_change_on_top(aws: Aws, clock: ManualClock) -> None:
    world, other = World(aws, clock), World(aws, clock)
    with faults.lost_and_meanwhile(aws, JOB_WRITE, lambda: other.patch("a", payload="changed")):
        assert world.submit(job_id="a", run_at="2026-11-30T11:58:00Z").status == "enqueued"
    world.deliver()
    assert [call.payload for call, _ in world.target.calls] == ['"changed"']
    assert world.items("claim#") == []


ONCE_DEAD = {"run_at": "2026-11-30T11:58:01Z", "max_attempts": 1}


@pytest.mark.parametrize("on_top", ["nothing", "its start", "cancel"])
def test_a_trigger_whose_answer_is_lost_is_one_run(aws: Aws, clock: ManualClock, on_top: str) -> None:
    world, other = World(aws, clock), World(aws, clock)
    world.submit(job_id="a", cron="0 20 * * *")
    clock.advance(0.5)

    def meanwhile() -> None:
        if on_top == "its start":
            other.executor.workshop.runs.start(
                Message(job_id="a", scheduled_for=clock.now(), revision=1, fence=0, lease_s=65), "other", clock.now()
            )
        if on_top == "cancel":
            other.cancel("a")

    with faults.lost_and_meanwhile(aws, RUN_WRITE, meanwhile):
        assert world.trigger("a").requested_at == clock.now()
    world.pass_time(200)
    (run,) = world.runs("a")
    assert run.status == ("cancelled" if on_top == "cancel" else "succeeded")
    assert run.attempt == {"nothing": 1, "its start": 2, "cancel": 0}[on_top]  # what came on top is not undone
    assert len(world.target.calls) == (0 if on_top == "cancel" else 1)
    assert world.items("claim#") == []


@pytest.mark.parametrize("on_top", ["nothing", "its start", "cancel"])
def test_a_redrive_whose_answer_is_lost_is_one_round(aws: Aws, clock: ManualClock, on_top: str) -> None:
    world, other = World(aws, clock), World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", **ONCE_DEAD)  # type: ignore[arg-type]
    clock.advance(1)
    world.deliver()
    due = clock.now()
    clock.advance(1)

    def meanwhile() -> None:
        if on_top == "its start":
            other.executor.workshop.runs.start(
                Message(job_id="a", scheduled_for=due, revision=1, fence=0, lease_s=65), "other", clock.now()
            )
        if on_top == "cancel":
            other.cancel("a")

    with faults.lost_and_meanwhile(aws, RUN_WRITE, meanwhile):
        run = world.redrive("a", due)
    assert (run.earlier_attempts, run.requested_at) == (1, clock.now())
    assert run.status == {"nothing": "enqueued", "its start": "running", "cancel": "cancelled"}[on_top]
    world.pass_time(200)
    (run,) = world.runs("a")
    assert run.status == ("cancelled" if on_top == "cancel" else "dead_lettered")
    assert run.attempt == (1 if on_top == "cancel" else 2)
    assert len(world.target.calls) == (2 if on_top == "nothing" else 1)
    assert world.items("claim#") == []


def test_a_start_that_is_parked_with_its_answer_lost_is_parked_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="0 20 * * *")
    run = world.trigger("a")
    clock.advance(1)
    reads_job = faults.refusing(lambda call: call.name == "dynamodb:GetItem")
    parks = faults.answer_lost(aws, lambda call: RUN_WRITE(call) and ":waited" in str(call.params))
    with reads_job, parks:
        world.executor.run(world.receive())
    there = world.api.inspect.run("a", run.scheduled_for)
    assert (there.status, there.attempt) == ("enqueued", 0)
    world.pass_time(80)
    assert world.statuses("a") == ["succeeded"]
