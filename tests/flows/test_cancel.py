"""Cancel (I5), and what becomes of an id, its messages and its runs when it is submitted again."""

from datetime import datetime
from typing import Any

import pytest

from shared.model.call import Call
from shared.model.errors import ConflictError, JobNotFoundError
from shared.model.run import Result
from tests.support import calls, faults
from tests.support.aws import Aws, all_items, dead_letters
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

RUN_WRITE = faults.writes("run#")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def go(world: World, *moments: str) -> None:
    """Tick and deliver at each moment."""
    for moment in moments:
        world.clock.set(at(moment))
        world.tick()
        world.deliver()


# C44, I5: before the start


def test_c44_i5_cancel_between_claim_and_start(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:40Z")
    clock.advance(10)
    view = world.cancel("a")
    assert (view.status, view.running, view.next_run_at) == ("cancelled", (), None)
    clock.advance(30)
    (handled,) = world.deliver()
    assert (handled.ended.done, handled.ended.outcome) == (True, "cancelled")
    assert world.target.calls == []
    assert world.show("a").status == "cancelled"
    assert world.items("run#") == []


def test_i5_cancel_before_the_claim_takes_the_job_out_of_the_index(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:30:00Z")
    assert world.cancel("a").status == "cancelled"
    (item,) = world.items("job")
    assert "due_key" not in item
    assert "due_at" not in item
    assert "ttl" in item
    clock.set(at("12:29"))
    assert world.tick()[0].claimed.won == 0


def test_i5_a_start_that_came_before_the_cancel_and_reads_the_job_after_it_calls_no_handler(
    aws: Aws, clock: ManualClock
) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    answers: list[Any] = []

    class CancelAfterStart(calls.Observer):
        order = calls.LOG

        def on_answer(self, call: calls.Call) -> None:
            if RUN_WRITE(call) and not answers:
                answers.append(None)
                answers.append(world.cancel("a"))

    with calls.observing(CancelAfterStart()):
        world.deliver()
    assert world.target.calls == []
    # The run had begun as far as the cancel could see: its answer says so.
    assert [run.scheduled_for for run in answers[1].running] == [at("11:58")]
    (run,) = world.runs("a")
    assert (run.status, run.reason, run.attempts) == ("cancelled", "cancelled", ())
    assert world.show("a").status == "cancelled"


def test_i5_an_occurrence_that_was_due_before_the_cancel_and_had_not_started_is_recorded(
    aws: Aws, clock: ManualClock
) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="* * * * *")
    clock.set(at("11:59:30"))
    world.cancel("a")
    world.deliver()
    (run,) = world.runs("a")
    assert (run.scheduled_for, run.status, run.reason) == (at("11:59"), "skipped", "cancelled")


# C42: while it runs, and while it waits


def test_i1_a_one_off_that_was_due_before_its_cancel_and_had_not_started_is_recorded(
    aws: Aws, clock: ManualClock
) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:10Z")
    clock.advance(12)
    world.cancel("a")
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.reason, run.attempts) == ("skipped", "cancelled", ())
    assert (world.show("a").status, world.target.calls) == ("cancelled", [])


def test_c42_cancel_while_it_runs_then_it_fails(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    answers: list[Any] = []

    def script(call: Call) -> Result:
        answers.append(world.cancel("a"))
        return failure()

    world.target.script = script
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    assert [run.status for run in answers[0].running] == ["running"]
    assert answers[0].status == "running"
    clock.advance(3600)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, len(run.attempts), world.target.counts()["a"]) == ("cancelled", 1, 1)
    assert run.attempts[0].outcome == "failed"
    assert world.show("a").status == "cancelled"
    assert dead_letters(aws) == []


def test_c42_cancel_during_the_last_attempt_which_fails(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: (world.cancel("a"), failure())[1]
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", max_attempts=1)
    world.deliver()
    assert world.statuses("a") == ["cancelled"]
    assert dead_letters(aws) == []


def test_cancel_while_it_runs_then_it_succeeds(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: (world.cancel("a"), SUCCEED)[1]
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    assert world.statuses("a") == ["succeeded"]
    assert world.show("a").status == "succeeded"


def test_cancel_while_it_waits_for_a_retry(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    view = world.cancel("a")
    assert (view.status, view.running) == ("cancelled", ())
    clock.advance(3600)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.reason, len(run.attempts)) == ("cancelled", "cancelled", 1)
    assert world.target.counts()["a"] == 1


def test_cancel_of_a_run_whose_executor_died(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    with faults.crash(before=RUN_WRITE, nth=2):
        world.deliver()
    assert world.cancel("a").status == "running"
    clock.advance(1000)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, [attempt.outcome for attempt in run.attempts]) == ("cancelled", ["lost"])
    assert world.target.counts()["a"] == 1
    assert world.show("a").status == "cancelled"


def test_cancel_that_crashed_before_it_marked_the_runs_still_holds(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    with faults.crash(after=faults.writes("job")):
        world.cancel("a")
    clock.advance(3600)
    world.deliver()
    assert world.statuses("a") == ["cancelled"]
    assert world.target.counts()["a"] == 1


def test_a_cancel_whose_answer_was_lost_says_cancelled(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:30:00Z")
    with faults.answer_lost(aws, faults.writes("job")):
        assert world.cancel("a").status == "cancelled"
    assert world.show("a").job.revision == 2


def test_cancel_beside_a_claim(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="5 * * * *")
    clock.set(at("12:01"))
    done: list[Any] = []

    def claim_first(call: faults.Call) -> bool:
        if faults.writes("job")(call) and not done:
            done.append(world.tick())
        return False

    with faults.refusing(claim_first):
        assert world.cancel("a").status == "cancelled"
    assert done[0][0].claimed.won == 1
    clock.set(at("12:05"))
    world.deliver()
    assert world.target.calls == []
    assert "due_key" not in world.items("job")[0]


# C45: a recurring job


def test_c45_cancel_of_a_recurring_job_with_one_in_the_queue_and_one_waiting(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", cron="*/5 * * * *", base_s=600)
    go(world, "12:00:00", "12:01:00")
    assert world.target.counts()["a"] == 1
    clock.set(at("12:02"))
    assert world.cancel("a").status == "cancelled"
    go(world, "12:05:00", "12:10:00", "12:11:00", "12:30:00")
    assert world.target.counts()["a"] == 1
    assert world.statuses("a") == ["cancelled"]
    world.target.script = lambda call: SUCCEED
    view = world.submit(job_id="a", cron="*/5 * * * *")
    assert (view.status, view.next_run_at) == ("scheduled", at("12:35"))
    go(world, "12:31:00", "12:35:00")
    assert world.target.slots("a")[1:] == [at("12:35")]


# C46


def test_c46_cancel_of_an_unknown_id_makes_no_item(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with pytest.raises(JobNotFoundError):
        world.cancel("nobody")
    assert all_items(aws) == []


def test_c46_cancel_twice_gives_the_same_answer(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:30:00Z")
    first = world.cancel("a")
    before = all_items(aws)
    clock.advance(5)
    assert world.cancel("a") == first
    assert all_items(aws) == before


@pytest.mark.parametrize("outcome", [SUCCEED, failure()], ids=["succeeded", "dead_lettered"])
def test_c46_cancel_of_what_is_over_is_a_conflict(aws: Aws, clock: ManualClock, outcome: Result) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: outcome
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", max_attempts=1)
    world.deliver()
    before = all_items(aws)
    with pytest.raises(ConflictError, match="'a' is over"):
        world.cancel("a")
    assert all_items(aws) == before


def test_cancel_of_a_recurring_job_that_is_completed_is_a_conflict(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="* * * * *", max_runs=1)
    clock.set(at("11:59"))
    world.deliver()
    assert world.show("a").status == "completed"
    with pytest.raises(ConflictError):
        world.cancel("a")


def test_a_recurring_job_is_not_over_while_one_of_its_last_occurrences_has_not_started(
    aws: Aws, clock: ManualClock
) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="* * * * *", max_runs=3)
    clock.set(at("11:59"))
    world.deliver()
    clock.set(at("12:00"))
    (late,) = world.receive()
    clock.set(at("12:01"))
    world.deliver()  # the third comes before the second
    assert world.show("a").status == "scheduled"
    assert world.cancel("a").status == "cancelled"
    world.executor.run([late])
    assert world.target.slots("a") == [at("11:59"), at("12:01")]
    assert world.runs("a")[1].reason == "cancelled"


# The same id again


def test_a_message_older_than_the_jobs_revision_is_void(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    world.cancel("a")
    clock.advance(1)
    view = world.submit(job_id="a", run_at="2026-11-30T12:02:00Z")
    assert (view.status, view.job.revision, view.next_run_at) == ("enqueued", 3, at("12:02"))
    clock.set(at("11:59"))
    (handled,) = world.deliver()
    assert handled.ended.outcome == "rescheduled"
    assert world.target.calls == []
    assert world.show("a").status == "enqueued"
    assert world.show("a").next_run_at == at("12:02")
    clock.set(at("12:02"))
    world.deliver()
    assert world.target.slots("a") == [at("12:02")]


@pytest.mark.parametrize("void_first", [True, False])
def test_the_same_second_under_two_revisions_runs_once_and_in_time(
    aws: Aws, clock: ManualClock, void_first: bool
) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    world.cancel("a")
    clock.advance(1)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    clock.set(at("11:59"))
    batch = sorted(world.receive(), key=lambda one: ('"revision":1,' in one.body) == void_first, reverse=True)
    for message in batch:
        world.acknowledge(world.executor.run([message]))
    world.deliver()
    assert world.statuses("a") == ["succeeded"]
    assert world.target.counts()["a"] == 1


def test_a_void_start_going_on_delays_the_valid_message_by_seconds_only(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    world.cancel("a")
    clock.advance(1)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    clock.set(at("11:59"))
    void, valid = sorted(world.receive(), key=lambda one: '"revision":1,' not in one.body)
    met: list[Any] = []

    def valid_comes_in_between(call: faults.Call) -> bool:
        if call.operation == "DeleteItem" and RUN_WRITE(call) and not met:
            met.extend(world.new_executor().run([valid]))
        return False

    with faults.refusing(valid_comes_in_between):
        world.executor.run([void])
    assert (met[0].ended.outcome, met[0].ended.back_s) == ("put_back", 3)
    clock.advance(4)
    world.deliver()
    assert world.statuses("a") == ["succeeded"]


def test_a_void_message_does_not_end_the_run_that_the_valid_one_started(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    world.cancel("a")
    clock.advance(1)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    clock.set(at("11:59"))
    void, valid = sorted(world.receive(), key=lambda one: '"revision":1,' not in one.body)
    world.executor.run([valid])
    clock.advance(11)  # its retry is due
    (handled,) = world.executor.run([void])
    assert (handled.ended.done, handled.ended.outcome) == (True, "rescheduled")
    world.executor.run([valid])
    (run,) = world.runs("a")
    assert (run.status, run.attempt, world.target.counts()["a"]) == ("succeeded", 2, 2)


def test_a_void_start_whose_executor_died_does_not_end_the_run(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    world.cancel("a")
    clock.advance(1)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    clock.set(at("11:59"))
    void, valid = sorted(world.receive(), key=lambda one: '"revision":1,' not in one.body)
    with faults.crash(after=RUN_WRITE):
        world.executor.run([void])
    clock.advance(66)
    world.executor.run([void])  # attempt 2 is void as well, and is taken back
    world.executor.run([valid])
    assert world.statuses("a") == ["succeeded"]
    assert world.target.counts()["a"] == 1


def test_the_same_id_again_after_success(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    clock.advance(5)
    with pytest.raises(ConflictError, match="has run for 2026-11-30T11:58:00Z already"):
        world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    view = world.submit(job_id="a", run_at="2026-11-30T12:00:00Z", payload='"second"')
    assert (view.status, view.next_run_at, view.job.revision) == ("enqueued", at("12:00"), 2)
    assert world.show("a").status == "enqueued"
    clock.set(at("12:00"))
    world.deliver()
    assert [call.payload for call, _ in world.target.calls] == ["null", '"second"']
    assert world.statuses("a") == ["succeeded", "succeeded"]


def test_the_same_id_again_after_more_runs_than_are_shown(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:00:00Z")
    world.deliver()
    (run,) = world.items("run#")
    with calls.unseen():
        for minute in range(25):  # later runs, which an earlier job of this id has left
            item = run | {"sk": {"S": f"run#2026-11-30T11:{minute + 10}:00"}}
            aws.dynamodb.put_item(TableName=aws.table, Item=item)
    assert world.show("a").status == "succeeded"
    clock.advance(5)
    world.submit(job_id="a", run_at="2026-11-30T12:00:00Z")
    clock.set(at("12:00"))
    world.deliver()
    assert world.show("a").status == "succeeded"


def test_the_same_id_while_it_is_live_is_a_conflict_and_changes_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:30:00Z", payload='"' + "x" * 1000 + '"')
    clock.advance(1)
    with pytest.raises(ConflictError, match="'a' exists"):
        world.submit(job_id="a", run_at="2026-11-30T12:30:00Z", payload='"' + "y" * 1000 + '"')
    go(world, "12:29:00", "12:30:00")
    assert [call.payload for call, _ in world.target.calls] == ['"' + "x" * 1000 + '"']
