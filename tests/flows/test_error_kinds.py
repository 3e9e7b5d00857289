"""retry_on and give_up_on: what an attempt failed of decides whether there is another."""

import pytest

from shared.model.run import Outcome, Result
from tests.support import faults
from tests.support.aws import Aws, dead_letters, messages_waiting
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World

pytestmark = pytest.mark.backends("moto", "emulator")

DUE = "2026-11-30T11:58:00Z"
DECLINED = Result(
    outcome=Outcome.FAILED,
    error="Declined: 4711",
    error_kinds=("billing.Declined", "Declined", "billing.CardError", "CardError", "Exception"),
)
MISSING = Result(outcome=Outcome.FAILED, error="KeyError: 'a'", error_kinds=("KeyError", "LookupError", "Exception"))
UNNAMED = Result(outcome=Outcome.FAILED, error="handler 'x' is not known")
TIMED_OUT = Result(outcome=Outcome.TIMED_OUT, error="did not finish within 60 s")
DIED = Result(outcome=Outcome.LOST, error="the process exited with code 1 before the handler returned")


def outcome_of(world: World, result: Result, **policy: tuple[str, ...]) -> tuple[str, int]:
    """The run's state once it is over, and how often its target was called."""
    world.target.script = lambda call: result
    world.submit(job_id="a", run_at=DUE, base_s=1, **policy)
    world.pass_time(60)
    (run,) = world.runs("a")
    assert messages_waiting(world.aws) == {"visible": 0, "delayed": 0, "flight": 0}
    return str(run.status), world.target.counts()["a"]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (DECLINED, "billing.Declined"),
        (DECLINED, "Declined"),
        (DECLINED, "billing.CardError"),
        (DECLINED, "CardError"),
        (DECLINED, "Exception"),
        (DECLINED, "failed"),
        (MISSING, "LookupError"),
        (UNNAMED, "failed"),
        (TIMED_OUT, "timed_out"),
        (DIED, "lost"),
    ],
)
def test_a_kind_that_is_given_up_is_a_dead_letter_at_once(
    aws: Aws, clock: ManualClock, result: Result, kind: str
) -> None:
    world = World(aws, clock)
    assert outcome_of(world, result, give_up_on=("Other", kind)) == ("dead_lettered", 1)
    (letter,) = dead_letters(aws)
    assert (letter["job"]["job_id"], letter["last_error"], len(letter["attempts"])) == ("a", result.error, 1)
    assert letter["attempts"][0]["error_kind"] == (result.error_kinds or (str(result.outcome),))[0]


@pytest.mark.parametrize(
    ("result", "kinds"),
    [
        (DECLINED, ("Card", "declined", "billing", "Error")),
        (TIMED_OUT, ("failed", "lost", "Exception")),
        (DIED, ("failed", "timed_out", "Exception")),
    ],
)
def test_other_kinds_are_tried_again(aws: Aws, clock: ManualClock, result: Result, kinds: tuple[str, ...]) -> None:
    assert outcome_of(World(aws, clock), result, give_up_on=kinds) == ("dead_lettered", 3)


@pytest.mark.parametrize(
    ("result", "kinds", "times"),
    [
        (DECLINED, ("CardError",), 3),
        (DECLINED, ("timed_out", "failed"), 3),
        (DECLINED, ("timed_out", "lost"), 1),
        (TIMED_OUT, ("timed_out",), 3),
        (TIMED_OUT, ("failed",), 1),
        (DIED, ("lost",), 3),
        (DIED, ("Exception",), 1),
    ],
)
def test_retry_on_names_all_that_is_tried_again(
    aws: Aws, clock: ManualClock, result: Result, kinds: tuple[str, ...], times: int
) -> None:
    assert outcome_of(World(aws, clock), result, retry_on=kinds) == ("dead_lettered", times)


def test_giving_up_is_narrower_than_trying_again(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    assert outcome_of(world, DECLINED, retry_on=("Exception",), give_up_on=("CardError",)) == ("dead_lettered", 1)


def test_each_attempt_keeps_its_narrowest_kind(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    results = [DECLINED, TIMED_OUT, DIED, UNNAMED, SUCCEED]
    world.target.script = lambda call: results[call.attempt - 1]
    world.submit(job_id="a", run_at=DUE, base_s=0, max_attempts=5)
    world.pass_time(60)
    (run,) = world.runs("a")
    kinds = [attempt.error_kind for attempt in run.attempts]
    assert kinds == ["billing.Declined", "timed_out", "lost", "failed", None]


def test_an_attempt_whose_executor_died_is_always_tried_again(aws: Aws, clock: ManualClock) -> None:
    """Nobody knows what it would have ended with."""
    world = World(aws, clock)
    world.submit(job_id="a", run_at=DUE, retry_on=("KeyError",), give_up_on=("lost", "failed"))
    with faults.crash(before=faults.writes("run#"), nth=2):
        world.deliver()
    clock.advance(66)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, [attempt.outcome for attempt in run.attempts]) == ("succeeded", ["lost", "succeeded"])


@pytest.mark.parametrize(
    "crash", [{"before": "sqs:SendMessage"}, {"after": "sqs:SendMessage"}], ids=["before", "after"]
)
def test_a_crash_while_it_gives_up_loses_neither_letter_nor_mark(
    aws: Aws, clock: ManualClock, crash: dict[str, str]
) -> None:
    """The end was not written, so the attempt counts as lost and is made again."""
    world = World(aws, clock)
    world.target.script = lambda call: DECLINED
    world.submit(job_id="a", run_at=DUE, give_up_on=("CardError",))
    with faults.crash(**crash):
        world.deliver()
    clock.advance(66)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.attempt) == ("dead_lettered", 2)
    assert len(dead_letters(aws)) == (1 if "before" in crash else 2)


def test_the_policy_that_holds_when_the_attempt_starts_decides(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: DECLINED
    world.submit(job_id="a", run_at=DUE, give_up_on=("CardError",), max_attempts=100)
    world.deliver()
    assert world.show("a").job.spec.retry.give_up_on == ("CardError",)
    assert world.statuses("a") == ["dead_lettered"]
