"""The stories that are tried at every crash point. A new one is a function with `@scenario` that drives a System."""

from collections.abc import Callable
from dataclasses import dataclass

from shared.model.call import Call
from shared.model.run import Outcome, Result
from tests.faults.checker import Promise
from tests.faults.system import System
from tests.support.world import SUCCEED, failure

Story = Callable[[System], None]


@dataclass(frozen=True)
class Scenario:
    """A story, what a crash in it may cost at worst, and how long everything then gets to settle."""

    name: str
    story: Story
    promise: Promise
    settle_s: float
    pairs: bool  # worth two crashes


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    name: str, *, late_s: float, findings: int = 0, settle_s: float = 1200, pairs: bool = False
) -> Callable[[Story], Story]:
    def register(story: Story) -> Story:
        promise = Promise(late_s=late_s, findings=findings)
        SCENARIOS[name] = Scenario(name, story, promise, settle_s, pairs)
        return story

    return register


@scenario("one-off, far", late_s=150)
def one_off_far(system: System) -> None:
    system.submit_job("far", in_s=400)
    system.pass_s(420)


@scenario("one-off, near", late_s=150, pairs=True)
def one_off_near(system: System) -> None:
    system.submit_job("near", in_s=5)
    system.pass_s(10)


@scenario("recurring", late_s=150)
def recurring(system: System) -> None:
    system.submit_job("often", every_s=120, runs=4)
    system.pass_s(500)


@scenario("several occurrences in one claim", late_s=150)
def several(system: System) -> None:
    system.submit_job("dense", every_s=20, runs=12)
    system.pass_s(250)


@scenario("failure, then success", late_s=150, pairs=True)
def failure_then_success(system: System) -> None:
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    system.submit_job("retry", in_s=5, max_attempts=4)
    system.pass_s(60)


@scenario("exhaustion", late_s=150)
def exhaustion(system: System) -> None:
    system.handler = lambda call: failure()
    system.submit_job("hopeless", in_s=5, max_attempts=2)
    system.pass_s(60)


@scenario("a long run renews its lease", late_s=150)
def long_run(system: System) -> None:
    def handler(call: Call) -> Result:
        for _ in range(4):
            system.clock.advance(20)
            system.renew_lease()
        return SUCCEED

    system.handler = handler
    system.submit_job("long", in_s=5, timeout_s=100)
    system.pass_s(120)


@scenario("cancel before it is due", late_s=150)
def cancel_before(system: System) -> None:
    system.submit_job("gone", in_s=40)
    system.submit_job("gone-far", in_s=400)
    system.pass_s(10)
    system.cancel_job("gone")
    system.cancel_job("gone-far")
    system.pass_s(60)


@scenario("cancel while it runs and while it waits", late_s=150)
def cancel_during(system: System) -> None:
    def handler(call: Call) -> Result:
        if call.job_id == "runs" and call.attempt == 1:
            system.cancel_job("runs")
        return failure()

    system.handler = handler
    system.submit_job("runs", in_s=5)
    system.submit_job("waits", in_s=6)
    system.pass_s(10)
    system.cancel_job("waits")
    system.pass_s(60)


@scenario("cancel of a run that heeds it, and of one that is stopped", late_s=150)
def cancel_told(system: System) -> None:
    def handler(call: Call) -> Result:
        signals = system.inline.working_on.flow.signals
        for beat in range(4):
            signals.progress = f'{{"beat":{beat}}}'
            if beat == 1:
                system.cancel_job(call.job_id)
            system.clock.advance(20)
            system.renew_lease()
            if signals.stop.is_set():
                return Result(outcome=Outcome.CANCELLED, error="stopped")
            if call.job_id == "heeds" and signals.cancelled.is_set():
                signals.told = True
                return SUCCEED
        return SUCCEED

    system.handler = handler
    system.submit_job("heeds", in_s=5, timeout_s=100)
    system.submit_job("stubborn", in_s=100, timeout_s=60)
    system.pass_s(250)


@scenario("cancel of a recurring job, then the id again", late_s=150)
def cancel_recurring(system: System) -> None:
    system.submit_job("again", every_s=60)
    system.pass_s(70)
    system.cancel_job("again")
    system.pass_s(20)
    system.submit_job("again", in_s=30)
    system.pass_s(60)


@scenario("a batch of mixed jobs", late_s=150)
def batch(system: System) -> None:
    system.handler = lambda call: failure() if call.job_id == "f" and call.attempt == 1 else SUCCEED
    for place in range(12):
        system.submit_job(f"one{place}", in_s=400 + place)
    system.submit_job("f", in_s=401)
    system.submit_job("r", every_s=200, runs=2)
    system.pass_s(90)
    system.cancel_job("one3")
    system.pass_s(350)


@scenario("journal recovery", late_s=300, pairs=True)
def recovery(system: System) -> None:
    system.submit_job("late", in_s=200)
    system.crash_before("tick: SendMessageBatch")
    system.submit_job("kept", in_s=340)
    system.pass_s(300)


@scenario("the audit", late_s=6000, settle_s=5000)
def audit(system: System) -> None:
    system.audit_every_s = 3600
    system.submit_job("lost", in_s=20)
    system.submit_job("begun", in_s=5)
    system.handler = lambda call: failure() if call.job_id == "begun" and call.attempt == 1 else SUCCEED
    system.pass_s(6)
    system.queue.messages.clear()
    system.submit_job("overdue", in_s=400)
    system.pass_s(1100, ticks=False)
    system.audit_now()
    system.pass_s(60)


@scenario("one-off, just beyond the horizon", late_s=150)
def one_off_beyond(system: System) -> None:
    system.submit_job("edge", in_s=305)
    system.pass_s(320)


@scenario("two submits of one id, and the page of the refused one is left", late_s=150)
def refused_submit(system: System) -> None:
    system.submit_job("same", in_s=280)
    system.crash_before("submit: DeleteItem claim")
    system.submit_job("same", in_s=200)
    system.pass_s(300)


@scenario("a cancelled job's message, and the id again", late_s=150)
def void_message(system: System) -> None:
    """The old job's messages are in the queue when the new one is there."""
    system.submit_job("again", every_s=50)
    system.pass_s(10)
    system.cancel_job("again")
    system.submit_job("again", in_s=220)
    system.pass_s(250)
