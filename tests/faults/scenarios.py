"""The stories that are tried at every crash point. A new one is a function with `@scenario` that drives a System."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

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


@scenario("a tick of several pages", late_s=150, pairs=True)
def several_pages(system: System) -> None:
    """Of three buckets, and so of three pages of the journal, each written over the one before."""
    for number in range(3):
        system.submit_job(f"page-{number}", in_s=400 + 60 * number)
    system.pass_s(280, ticks=False)
    system.pass_s(260)


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


@scenario("a batch that starts and ends together", late_s=150)
def together(system: System) -> None:
    system.handler = lambda call: failure() if call.job_id == "f" and call.attempt == 1 else SUCCEED
    for job_id in ("a", "b", "f", "gone"):
        system.submit_job(job_id, in_s=5)
    system.submit_job("long-payload", in_s=5, payload='"' + "x" * 600 + '"')
    system.cancel_job("gone")
    system.pass_s(30)


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


# A child whose executor, or whose waker, died finds out at its next look: a lease, or 300 s, later than else.
CHILD_LATE_S = 450


@scenario("a chain", late_s=CHILD_LATE_S)
def chain(system: System) -> None:
    system.submit_job("a", in_s=10)
    system.submit_job("b", depends_on=("a",))
    system.submit_job("c", in_s=20, depends_on=("b",))
    system.pass_s(60)


@scenario("a child that is linked while its parent runs", late_s=CHILD_LATE_S, pairs=True)
def late_child(system: System) -> None:
    def handler(call: Call) -> Result:
        if call.job_id == "a" and call.attempt == 1:
            system.submit_job("b", depends_on=("a",))
            system.clock.advance(1)
        return SUCCEED

    system.handler = handler
    system.submit_job("a", in_s=1)
    system.pass_s(30)


@scenario("a diamond", late_s=CHILD_LATE_S)
def diamond(system: System) -> None:
    system.handler = lambda call: failure() if call.job_id == "left" and call.attempt == 1 else SUCCEED
    system.submit_job("top", in_s=5)
    system.submit_job("left", depends_on=("top",))
    system.submit_job("right", depends_on=("top",))
    system.submit_job("bottom", depends_on=("left", "right"))
    system.pass_s(90)


@scenario("a parent that is dead-lettered", late_s=CHILD_LATE_S)
def failed_parent(system: System) -> None:
    system.handler = lambda call: failure() if call.job_id == "bad" else SUCCEED
    system.submit_job("bad", in_s=5, max_attempts=2)
    system.submit_job("skipped", depends_on=("bad",))
    system.submit_job("anyway", depends_on=("bad",), on_parent_failure="run")
    system.submit_job("below", depends_on=("skipped", "anyway"))
    system.pass_s(90)


@scenario("a parent that is cancelled", late_s=CHILD_LATE_S)
def cancelled_parent(system: System) -> None:
    def handler(call: Call) -> Result:
        if call.job_id == "runs" and call.attempt == 1:
            system.cancel_job("runs")
            return failure()
        return SUCCEED

    system.handler = handler
    system.submit_job("gone", in_s=200)
    system.submit_job("runs", in_s=10)
    system.submit_job("skipped", depends_on=("gone",))
    system.submit_job("anyway", depends_on=("gone", "runs"), on_parent_failure="run")
    system.pass_s(5)
    system.cancel_job("gone")
    system.pass_s(60)


@scenario("a batch in any order", late_s=CHILD_LATE_S)
def batch_of_a_dag(system: System) -> None:
    system.submit_batch(bottom=("left", "right"), left=("top",), right=("top",), top=(), alone=())
    system.pass_s(60)


@scenario("an old id in a batch", late_s=CHILD_LATE_S)
def old_id_in_a_batch(system: System) -> None:
    system.submit_job("top", in_s=1)
    system.pass_s(5)
    system.submit_batch(bottom=("top",), top=())
    system.pass_s(30)


# Runs beside each other. The first run is long: others come, and are delivered, while its handler is at work.


def _long_first(system: System, seconds: float) -> None:
    begun: list[Call] = []

    def handler(call: Call) -> Result:
        begun.append(call)
        if len(begun) == 1:
            system.pass_s(seconds)
        return SUCCEED

    system.handler = handler


@scenario("overlap: skip", late_s=150)
def overlap_skip(system: System) -> None:
    _long_first(system, 50)
    system.submit_job("often", every_s=20, runs=4, overlap="skip")
    system.pass_s(120)


@scenario("overlap: queue", late_s=200, pairs=True)
def overlap_queue(system: System) -> None:
    _long_first(system, 50)
    system.submit_job("often", every_s=20, runs=3, overlap="queue")
    system.pass_s(120)


@scenario("overlap: replace, of a run that heeds it", late_s=200)
def overlap_replace(system: System) -> None:
    begun: list[Call] = []

    def handler(call: Call) -> Result:
        begun.append(call)
        signals = system.inline.working_on.flow.signals
        for _ in range(3 if len(begun) == 1 else 0):
            system.pass_s(15)
            system.renew_lease()
            if signals.cancelled.is_set():
                signals.told = True
                break
        return SUCCEED

    system.handler = handler
    system.submit_job("often", every_s=20, runs=4, overlap="replace")
    system.pass_s(120)


@scenario("overlap: a run that waits for its retry", late_s=200)
def overlap_retry(system: System) -> None:
    for overlap in ("skip", "queue", "replace"):
        system.submit_job(overlap, every_s=20, runs=3, overlap=overlap, base_s=25)
    first = system.clock.now() + timedelta(seconds=20)
    system.handler = lambda call: failure() if call.scheduled_for == first and call.attempt == 1 else SUCCEED
    system.pass_s(150)


@scenario("overlap: set while runs go on", late_s=200)
def overlap_set(system: System) -> None:
    begun: list[Call] = []

    def handler(call: Call) -> Result:
        begun.append(call)
        if len(begun) == 1:
            system.pass_s(42)
        elif len(begun) == 2:
            system.patch_job("often", overlap="queue")
            system.pass_s(21)
        return SUCCEED

    system.handler = handler
    system.submit_job("often", every_s=20, runs=4, timeout_s=100)
    system.pass_s(150)


@scenario("max_running", late_s=250, pairs=True)
def max_running(system: System) -> None:
    _long_first(system, 20)
    system.limit_group("g", 1)
    for job_id in "ab":
        system.submit_job(job_id, in_s=5, group="g")
    system.pass_s(90)


@scenario("max_running, a run that renews its lease", late_s=300)
def max_running_long(system: System) -> None:
    def handler(call: Call) -> Result:
        for _ in range(6 if call.job_id == "long" else 0):
            system.pass_s(15)
            system.renew_lease()
        return SUCCEED

    system.handler = handler
    system.limit_group("g", 1)
    system.submit_job("long", in_s=5, group="g", timeout_s=100)
    system.submit_job("b", in_s=6, group="g")
    system.pass_s(150)


@scenario("max_running, lowered, and retries", late_s=300)
def max_running_lowered(system: System) -> None:
    begun: list[Call] = []

    def handler(call: Call) -> Result:
        begun.append(call)
        if len(begun) <= 2:
            system.pass_s(5)
        if len(begun) == 2:
            system.limit_group("g", 1)
            system.pass_s(10)
        return failure() if call.attempt == 1 else SUCCEED

    system.handler = handler
    system.limit_group("g", 2)
    for job_id in "abc":
        system.submit_job(job_id, in_s=5, group="g", base_s=5)
    system.pass_s(120)


@scenario("max_running and overlap", late_s=300)
def max_running_and_overlap(system: System) -> None:
    _long_first(system, 30)
    system.limit_group("g", 1)
    system.submit_job("a", every_s=15, runs=3, group="g", overlap="queue")
    system.submit_job("b", in_s=16, group="g")
    system.pass_s(150)


from tests.faults import scenarios_control  # noqa: E402, F401  its stories register themselves
