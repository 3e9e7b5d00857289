"""Redrive: a dead-lettered run again, all its attempts anew and its history kept (I4, I7)."""

from datetime import datetime, timedelta

import pytest

from shared.flows import again
from shared.model.errors import ConflictError, JobNotFoundError
from tests.support import faults
from tests.support.aws import Aws, dead_letters
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

DUE = datetime.fromisoformat("2026-11-30T12:00:31+00:00")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    clock.set(at("12:00:30"))
    world = World(aws, clock)
    world.target.script = lambda call: failure(f"no luck {call.attempt}")
    return world


def dead(world: World, within_s: float = 10, **spec: int) -> None:
    """A one-off `a` whose run is dead-lettered."""
    world.submit(job_id="a", run_at=DUE.isoformat(), base_s=1, **spec)
    world.pass_time(within_s, step_s=1)
    assert world.statuses("a") == ["dead_lettered"]


def attempts(world: World, job_id: str = "a") -> list[tuple[int, int]]:
    """The number of each call, and what it is told the last one is."""
    return [(call.attempt, call.max_attempts) for call, _ in world.target.calls if call.job_id == job_id]


def test_all_attempts_come_anew_and_the_history_stays(world: World) -> None:
    dead(world)
    first = world.runs("a")[0]
    world.clock.advance(5)
    run = world.redrive("a", DUE)
    assert (run.status, run.attempt, run.earlier_attempts, run.requested_at) == ("enqueued", 3, 3, world.clock.now())
    assert run.attempts == first.attempts
    assert world.show("a").status == "enqueued"
    world.pass_time(10, step_s=1)
    (run,) = world.runs("a")
    assert (run.status, run.attempt) == ("dead_lettered", 6)
    assert run.attempts[:3] == first.attempts
    assert [attempt.error for attempt in run.attempts] == [f"no luck {number}" for number in range(1, 7)]
    assert attempts(world) == [(1, 3), (2, 3), (3, 3), (4, 6), (5, 6), (6, 6)]
    assert len({call.idempotency_key for call, _ in world.target.calls}) == 1
    assert [len(letter["attempts"]) for letter in dead_letters(world.aws)] == [3, 6]


def test_a_redriven_run_may_succeed_at_any_of_them(world: World) -> None:
    dead(world)
    world.target.script = lambda call: SUCCEED if call.attempt == 5 else failure()
    world.redrive("a", DUE)
    world.pass_time(10, step_s=1)
    (run,) = world.runs("a")
    assert (run.status, run.attempt, world.show("a").status) == ("succeeded", 5, "succeeded")
    assert world.items("claim#") == []
    assert world.audit().findings == 0


@pytest.mark.backends("memory")  # 27 attempts, second by second
def test_again_and_again_keeps_the_last_twenty_attempts(world: World) -> None:
    dead(world, 300, max_attempts=9)
    for _ in range(2):
        world.redrive("a", DUE)
        world.pass_time(300, step_s=1)
    (run,) = world.runs("a")
    assert (run.status, run.attempt, run.earlier_attempts) == ("dead_lettered", 27, 18)
    assert [attempt.attempt for attempt in run.attempts] == list(range(8, 28))
    assert [call.attempt for call, _ in world.target.calls] == list(range(1, 28))


def test_the_policy_of_today_holds_and_the_payload_too(world: World) -> None:
    world.submit(job_id="a", cron="1 12 * * *", base_s=1, payload="1")
    world.pass_time(60, step_s=1)
    assert world.statuses("a") == ["dead_lettered"]
    world.patch("a", payload=2, retry={"max_attempts": 1}, cron="0 20 * * *")
    world.redrive("a", at("12:01:00"))
    world.deliver()
    assert attempts(world)[3:] == [(4, 4)]
    assert [call.payload for call, _ in world.target.calls] == ["1", "1", "1", "2"]
    assert world.statuses("a") == ["dead_lettered"]


def test_which_runs_cannot_be_redriven(world: World) -> None:
    with pytest.raises(JobNotFoundError, match="no job"):
        world.redrive("nobody", DUE)
    dead(world)
    with pytest.raises(JobNotFoundError, match="no run"):
        world.redrive("a", DUE + timedelta(seconds=1))
    world.redrive("a", DUE)
    with pytest.raises(ConflictError, match="is enqueued, not dead_lettered"):
        world.redrive("a", DUE)
    world.target.script = lambda call: SUCCEED
    world.deliver()
    with pytest.raises(ConflictError, match="is succeeded, not dead_lettered"):
        world.redrive("a", DUE)


def test_i7_a_slow_redrive_does_not_begin_a_third_round(world: World) -> None:
    """Another one's round is over before its write."""
    dead(world, max_attempts=1)
    other, again_ = World(world.aws, world.clock), list[int]()
    other.target.script = lambda call: failure()

    def redrive(call: faults.Call) -> bool:
        if faults.writes("run#")(call) and not again_:
            again_.append(1)
            world.clock.advance(0.5)
            other.redrive("a", DUE)
            other.deliver()
        return False

    with faults.refusing(redrive), pytest.raises(ConflictError, match="by somebody else"):
        world.redrive("a", DUE)
    (run,) = world.runs("a")
    assert (run.status, run.attempt, run.earlier_attempts) == ("dead_lettered", 2, 1)
    assert world.items("claim#") == []


def test_i5_a_cancelled_job_has_no_run_again(world: World) -> None:
    world.submit(job_id="a", cron="1 12 * * *", base_s=1, max_attempts=1)
    world.pass_time(60, step_s=1)
    assert world.statuses("a") == ["dead_lettered"]
    world.cancel("a")
    with pytest.raises(ConflictError, match="is cancelled"):
        world.redrive("a", at("12:01:00"))
    with pytest.raises(ConflictError, match="is cancelled"):
        world.api.again.redrive_all("a", world.clock.now())
    assert world.statuses("a") == ["dead_lettered"]


def test_i5_a_cancel_ends_a_redriven_run(world: World) -> None:
    dead(world)
    world.redrive("a", DUE)
    assert world.cancel("a").status == "cancelled"
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.attempt, len(run.attempts)) == ("cancelled", 3, 3)
    assert len(world.target.calls) == 3


def test_i5_a_cancel_between_its_look_at_the_job_and_its_write(world: World) -> None:
    world.submit(job_id="a", cron="1 12 * * *", base_s=1, max_attempts=2)
    world.pass_time(60, step_s=1)
    cancelled = []

    def cancel(call: faults.Call) -> bool:
        if faults.writes("run#")(call) and not cancelled:
            cancelled.append(world.cancel("a"))
        return False

    with faults.refusing(cancel):
        world.redrive("a", at("12:01:00"))
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.reason, run.attempt) == ("cancelled", "cancelled", 2)
    assert len(world.target.calls) == 2


def test_a_run_of_an_earlier_job_of_the_id_is_not_redriven(world: World) -> None:
    dead(world)
    world.submit(job_id="a", cron="0 20 * * *", payload='"new"')
    with pytest.raises(ConflictError, match="earlier job"):
        world.redrive("a", DUE)
    assert world.api.again.redrive_all("a", world.clock.now()).runs == ()
    assert world.statuses("a") == ["dead_lettered"]


def test_a_pause_does_not_hold_back_a_redriven_run(world: World) -> None:
    world.submit(job_id="a", cron="1 12 * * *", base_s=1)
    world.pass_time(60, step_s=1)
    world.pause("a")
    world.redrive("a", at("12:01:00"))
    world.pass_time(10, step_s=1)
    assert attempts(world)[3:] == [(4, 6), (5, 6), (6, 6)]
    assert world.show("a").status == "paused"


def test_all_of_a_job_up_to_a_hundred_a_call_the_newest_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "AT_ONCE", 3)
    world.submit(job_id="a", every="10s", max_runs=5, max_attempts=1)
    world.target.script = lambda call: SUCCEED if call.scheduled_for == at("12:00:50") else failure()
    world.pass_time(60)
    assert world.statuses("a").count("dead_lettered") == 4
    done = world.api.again.redrive_all("a", world.clock.now())
    assert (done.runs, done.more) == ((at("12:01:20"), at("12:01:10"), at("12:01:00")), True)
    world.target.script = lambda call: SUCCEED
    world.deliver()
    done = world.api.again.redrive_all("a", world.clock.now())
    assert (done.runs, done.more) == ((at("12:00:40"),), False)
    world.deliver()
    assert world.statuses("a") == ["succeeded"] * 5
    assert world.api.again.redrive_all("a", world.clock.now()).runs == ()
    with pytest.raises(JobNotFoundError):
        world.api.again.redrive_all("nobody", world.clock.now())
    assert world.items("claim#") == []


def test_all_of_a_job_also_far_back_in_a_long_history(world: World) -> None:
    world.submit(job_id="a", every="10s", max_runs=8, max_attempts=1)
    world.pass_time(90)
    history = world.api.again.history
    moments = [run.scheduled_for for run in reversed(world.runs("a"))]
    with faults.logging() as log:
        found = history.dead_lettered("a", 5, 10)
    assert [run.scheduled_for for run in found] == moments[:5]
    assert len(log.of("dynamodb:Query")) == 1

    def pages_of_two(call: faults.Call) -> bool:  # as if these two were a megabyte
        if call.operation == "Query" and "IndexName" not in call.params:
            call.params["Limit"] = 2
        return False

    with faults.refusing(pages_of_two):
        found = history.dead_lettered("a", 5, 1)
    assert [run.scheduled_for for run in found] == moments[:5]


def test_the_index_forgets_a_redriven_run_and_has_it_again(world: World) -> None:
    dead(world)
    (item,) = world.items("run#")
    assert item["list_at"]["S"] == "a#2026-11-30T12:00:31"
    world.redrive("a", DUE)
    (item,) = world.items("run#")
    assert not {"list_key", "list_at", "reason", "lease_expires_at"} & item.keys()
    world.pass_time(10, step_s=1)
    (item,) = world.items("run#")
    assert item["list_at"]["S"] == "a#2026-11-30T12:00:31"


def test_a_job_that_is_over_stays_as_long_as_its_run(world: World) -> None:
    dead(world)
    world.clock.advance(29 * 86400)
    world.redrive("a", DUE)
    (job,), (run,) = world.items("job"), world.items("run#")
    assert int(job["ttl"]["N"]) == int(run["ttl"]["N"]) == int(world.clock.now().timestamp()) + 30 * 86400
    world.submit(job_id="b", cron="1 * * * *", max_attempts=1)
    world.pass_time(3700, step_s=60)
    world.api.again.redrive_all("b", world.clock.now())
    assert all("ttl" not in item for item in world.items("job") if item["pk"]["S"] == "job#b")


def test_i1_i6_a_crash_in_the_middle_of_many_is_recovered(world: World) -> None:
    world.submit(job_id="a", every="10s", max_runs=4, max_attempts=1)
    world.pass_time(50)
    world.target.script = lambda call: SUCCEED
    with faults.crash(after=faults.writes("run#"), nth=2):
        world.api.again.redrive_all("a", world.clock.now())
    assert world.statuses("a") == ["dead_lettered", "dead_lettered", "enqueued", "enqueued"]
    world.pass_time(180)
    assert world.statuses("a") == ["dead_lettered", "dead_lettered", "succeeded", "succeeded"]
    assert world.items("claim#") == []


@pytest.mark.parametrize("at_which", ["before", "after"])
def test_i1_i6_a_crash_at_the_send_is_recovered(world: World, at_which: str) -> None:
    dead(world)
    world.target.script = lambda call: SUCCEED
    with faults.crash(**{at_which: "sqs:SendMessageBatch"}):
        world.redrive("a", DUE)
    world.pass_time(180)
    assert world.statuses("a") == ["succeeded"]
    assert len(world.target.calls) == 4


def test_i1_a_message_that_was_lost_is_found_by_the_audit(world: World) -> None:
    dead(world)
    world.redrive("a", DUE)
    world.acknowledge_unseen()
    world.clock.advance(1000)
    assert world.audit().abandoned == 1
    world.deliver()
    assert attempts(world)[3:] == [(4, 6)]


def test_i7_an_aws_error_before_its_call_is_no_attempt(world: World) -> None:
    dead(world)
    world.redrive("a", DUE)
    with faults.refusing(lambda call: call.name == "dynamodb:GetItem"):
        world.executor.run(world.receive())
    (run,) = world.runs("a")
    assert (run.status, run.attempt, run.earlier_attempts, len(run.attempts)) == ("enqueued", 3, 3, 3)
    world.pass_time(80, step_s=1)
    assert attempts(world)[3:] == [(4, 6), (5, 6), (6, 6)]


def test_i7_an_attempt_whose_process_died_is_one_of_the_new_ones(world: World) -> None:
    dead(world, max_attempts=2)
    world.redrive("a", DUE)
    with faults.crash(after=faults.writes("run#")):
        world.executor.run(world.receive())
    world.pass_time(200)
    (run,) = world.runs("a")
    assert (run.status, run.attempt) == ("dead_lettered", 4)
    assert attempts(world)[2:] == [(4, 4)]
    assert [attempt.outcome for attempt in run.attempts] == ["failed", "failed", "lost", "failed"]
