"""The pairs of actors that are interleaved. A new one is a function with `@pair`: it prepares a System, returns two.

Each actor is one process: `system.tick_now`, `lambda: system.cancel_job("a")` and so on.
"""

from collections.abc import Callable
from typing import Any

from shared.flows.execute import Received
from shared.model.call import Call
from shared.model.run import Result
from tests.faults.checker import Promise
from tests.faults.history import CancelAsked, Returned
from tests.faults.interleaving import Actor, Pair, Setting
from tests.faults.system import System
from tests.support.world import SUCCEED, failure

PAIRS: dict[str, Pair] = {}
LEASE_LOST_S = 66  # longer than an attempt's lease, and than a shard's


def pair(
    name: str, *, late_s: float = 150, asleep_s: float = 0, settle_s: float = 1200, findings: int = 0
) -> Callable[[Setting], Setting]:
    def register(setting: Setting) -> Setting:
        # An attempt whose lease ran out while its process was asleep has called nothing.
        promise = Promise(late_s=late_s, findings=findings, lost_attempts=1 if asleep_s else 0)
        PAIRS[name] = Pair(name, setting, promise, asleep_s, settle_s)
        return setting

    return register


def _claimable(system: System) -> None:
    """A one-off and a recurring job that the next tick claims."""
    system.submit_job("once", in_s=320)
    system.submit_job("often", every_s=310, runs=2)
    system.pass_s(59)
    system.clock.advance(2)


@pair("tick/tick")
def tick_tick(system: System) -> tuple[Actor, Actor]:
    _claimable(system)
    return system.tick_now, system.tick_now


@pair("tick/tick that sleeps past its lease", asleep_s=51)
def tick_zombie_soon(system: System) -> tuple[Actor, Actor]:
    _claimable(system)
    return system.tick_now, system.tick_now


@pair("tick/zombie tick", asleep_s=LEASE_LOST_S)
def tick_zombie(system: System) -> tuple[Actor, Actor]:
    _claimable(system)
    return system.tick_now, system.tick_now


@pair("tick/submit")
def tick_submit(system: System) -> tuple[Actor, Actor]:
    _claimable(system)
    return system.tick_now, lambda: system.submit_job("near", in_s=250)


@pair("tick/submit of a far job")
def tick_submit_far(system: System) -> tuple[Actor, Actor]:
    _claimable(system)
    return system.tick_now, lambda: system.submit_job("far", in_s=310)


@pair("submit/submit of one id")
def submit_submit(system: System) -> tuple[Actor, Actor]:
    return lambda: system.submit_job("same", in_s=100), lambda: system.submit_job("same", in_s=100)


@pair("tick/cancel")
def tick_cancel(system: System) -> tuple[Actor, Actor]:
    _claimable(system)
    return system.tick_now, lambda: system.cancel_job("often")


@pair("cancel/cancel")
def cancel_cancel(system: System) -> tuple[Actor, Actor]:
    system.submit_job("a", in_s=20)
    return lambda: system.cancel_job("a"), lambda: system.cancel_job("a")


def _received_twice(system: System) -> tuple[Actor, Actor]:
    """One message in the hands of two executors."""
    system.submit_job("a", in_s=5)
    system.pass_s(6, deliveries=False)
    batch = system.receive()
    system.queue.messages[0].visible_at = system.clock.now()
    again = system.receive()
    return lambda: system.execute_batch(batch), lambda: system.execute_batch(again)


@pair("execute/execute on one message", late_s=800)
def execute_execute(system: System) -> tuple[Actor, Actor]:
    return _received_twice(system)


@pair("execute/execute of a failure", late_s=800)
def execute_execute_failing(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    return _received_twice(system)


@pair("execute/execute of the last failure", late_s=800)
def execute_execute_last(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure()
    return _received_twice(system)


@pair("execute/zombie execute", late_s=800, asleep_s=LEASE_LOST_S)
def execute_zombie(system: System) -> tuple[Actor, Actor]:
    return _received_twice(system)


@pair("execute/zombie execute of a failure", late_s=800, asleep_s=LEASE_LOST_S)
def execute_zombie_failing(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure() if call.attempt <= 2 else SUCCEED
    return _received_twice(system)


@pair("execute/cancel", late_s=800)
def execute_cancel(system: System) -> tuple[Actor, Actor]:
    system.submit_job("a", in_s=5)
    system.pass_s(6, deliveries=False)
    batch = system.receive()
    return lambda: system.execute_batch(batch), lambda: system.cancel_job("a")


@pair("execute of a failure/cancel", late_s=800)
def execute_failing_cancel(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure()
    return execute_cancel(system)


@pair("execute of a retry/cancel", late_s=800)
def execute_retry_cancel(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure()
    system.submit_job("a", in_s=5)
    system.pass_s(6)
    system.pass_s(12, deliveries=False)
    batch = system.receive()
    return lambda: system.execute_batch(batch), lambda: system.cancel_job("a")


# Batches, whose starts, reads and successes are one request each


def _batch_twice(system: System) -> tuple[Actor, Actor]:
    """The same two messages in the hands of two executors."""
    for job_id in "ab":
        system.submit_job(job_id, in_s=5)
    system.pass_s(6, deliveries=False)
    batch = system.receive()
    for message in system.queue.messages:
        message.visible_at = system.clock.now()
    again = system.receive()
    return lambda: system.execute_batch(batch), lambda: system.execute_batch(again)


@pair("execute/execute of one batch", late_s=800)
def batch_batch(system: System) -> tuple[Actor, Actor]:
    return _batch_twice(system)


@pair("execute/zombie execute of one batch", late_s=800, asleep_s=LEASE_LOST_S)
def batch_zombie(system: System) -> tuple[Actor, Actor]:
    return _batch_twice(system)


def _batch(system: System) -> list[Received]:
    for job_id in "ab":
        system.submit_job(job_id, in_s=5)
    system.pass_s(6, deliveries=False)
    return system.receive()


@pair("execute of a batch/cancel of one of it", late_s=800)
def batch_cancel(system: System) -> tuple[Actor, Actor]:
    batch = _batch(system)
    return lambda: system.execute_batch(batch), lambda: system.cancel_job("a")


@pair("execute of a batch/submit of a child of one of it", late_s=800)
def batch_child(system: System) -> tuple[Actor, Actor]:
    batch = _batch(system)
    return lambda: system.execute_batch(batch), lambda: system.submit_job("child", depends_on=("a",))


def _unsent(system: System) -> None:
    """A claim whose tick died before its send, an old page by now."""
    system.submit_job("once", in_s=320)
    system.pass_s(59)
    system.crash_before("tick: SendMessageBatch")
    system.pass_s(30)
    system.clock.advance(93)


@pair("recovery/late tick", late_s=250)
def recovery_late_tick(system: System) -> tuple[Actor, Actor]:
    _unsent(system)
    return system.tick_now, system.tick_now


@pair("recovery/recovery that sleeps past its lease", late_s=250, asleep_s=51)
def recovery_zombie(system: System) -> tuple[Actor, Actor]:
    _unsent(system)
    return system.tick_now, system.tick_now


@pair("recovery/cancel", late_s=250)
def recovery_cancel(system: System) -> tuple[Actor, Actor]:
    _unsent(system)
    return system.tick_now, lambda: system.cancel_job("once")


@pair("recovery/execute", late_s=800)
def recovery_execute(system: System) -> tuple[Actor, Actor]:
    system.crash_before("submit: DeleteItem claim")
    system.submit_job("a", in_s=100)
    system.pass_s(101, deliveries=False, ticks=False)
    batch = system.receive()
    return system.tick_now, lambda: system.execute_batch(batch)


@pair("audit/execute", late_s=6000, settle_s=5000)
def audit_execute(system: System) -> tuple[Actor, Actor]:
    """The message is still there, only very late: the audit sends a second one."""
    system.submit_job("a", in_s=5)
    system.pass_s(1000, deliveries=False)
    batch = system.receive()
    return system.audit_now, lambda: system.execute_batch(batch)


@pair("audit/tick", late_s=6000, settle_s=5000)
def audit_tick(system: System) -> tuple[Actor, Actor]:
    system.submit_job("once", in_s=320)
    system.submit_job("often", every_s=310, runs=3)
    system.pass_s(600, ticks=False)
    return system.audit_now, system.tick_now


@pair("audit/cancel", late_s=6000, settle_s=5000)
def audit_cancel(system: System) -> tuple[Actor, Actor]:
    system.submit_job("a", in_s=320)
    system.pass_s(600, ticks=False)
    return system.audit_now, lambda: system.cancel_job("a")


@pair("execute/submit of the id again", late_s=800)
def execute_submit(system: System) -> tuple[Actor, Actor]:
    system.submit_job("a", in_s=5)
    system.pass_s(6, deliveries=False)
    batch = system.receive()
    system.cancel_job("a")
    return lambda: system.execute_batch(batch), lambda: system.submit_job("a", in_s=60)


@pair("cancel/submit of the id again and its run", late_s=800)
def cancel_submit(system: System) -> tuple[Actor, Actor]:
    """A slow cancel must not end a run of the job that takes the id next."""
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    system.submit_job("a", in_s=100)
    system.clock.advance(1)

    def again() -> None:
        system.submit_job("a", in_s=0)
        system.execute_batch(system.receive())

    return lambda: system.cancel_job("a"), again


@pair("execute of a void message/execute of the new job's", late_s=800)
def execute_void(system: System) -> tuple[Actor, Actor]:
    """The same occurrence under two revisions."""
    system.submit_job("a", in_s=40)
    system.clock.advance(1)
    system.cancel_job("a")
    system.submit_job("a", in_s=39)
    system.pass_s(40, deliveries=False)
    one, other = ([message] for message in system.receive())
    return lambda: system.execute_batch(one), lambda: system.execute_batch(other)


@pair("execute of a void message/zombie execute of the new job's", late_s=800, asleep_s=LEASE_LOST_S)
def execute_void_zombie(system: System) -> tuple[Actor, Actor]:
    return execute_void(system)


def _family(system: System, **child: Any) -> tuple[list[Received], list[Received]]:
    """A parent and its child, both due now: their messages, each in a batch of its own."""
    system.submit_job("a", in_s=10)
    system.submit_job("b", in_s=10, depends_on=("a",), **child)
    system.clock.advance(10)
    batch = system.receive()
    return [one for one in batch if '"a"' in one.body], [one for one in batch if '"b"' in one.body]


@pair("end of a parent/look of its child", late_s=450)
def parent_child(system: System) -> tuple[Actor, Actor]:
    parent, child = _family(system)
    return lambda: system.execute_batch(parent), lambda: system.execute_batch(child)


@pair("failing end of a parent/look of its child", late_s=450)
def failing_parent_child(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure() if call.job_id == "a" else SUCCEED
    parent, child = _family(system)
    return lambda: system.execute_batch(parent), lambda: system.execute_batch(child)


@pair("run of a parent/submit of its child", late_s=450)
def parent_submit(system: System) -> tuple[Actor, Actor]:
    system.submit_job("a", in_s=5)
    system.clock.advance(5)
    batch = system.receive()
    return lambda: system.execute_batch(batch), lambda: system.submit_job("b", depends_on=("a",))


@pair("cancel of a parent/look of its child", late_s=450)
def cancel_child(system: System) -> tuple[Actor, Actor]:
    _, child = _family(system, on_parent_failure="run")
    return lambda: system.cancel_job("a"), lambda: system.execute_batch(child)


@pair("cancel of a parent/submit of its child", late_s=450)
def cancel_parent(system: System) -> tuple[Actor, Actor]:
    system.submit_job("a", in_s=400)
    return lambda: system.cancel_job("a"), lambda: system.submit_job("b", depends_on=("a",))


@pair("two old ids, each submitted anew on the other", late_s=450)
def two_old_ids(system: System) -> tuple[Actor, Actor]:
    for job_id in "ab":
        system.submit_job(job_id, in_s=1)
    system.pass_s(5)

    def anew(job_id: str, parent: str) -> None:
        if system.submit_job(job_id, in_s=1, depends_on=(parent,)) is None:
            system.note(CancelAsked, job_id=job_id)  # it takes itself back, and has said so

    return lambda: anew("a", "b"), lambda: anew("b", "a")


# Two runs that may not be beside each other, each in the hands of an executor of its own


def _two_runs(system: System, *, before: int = 0, **policies: str) -> tuple[Actor, Actor]:
    """Two runs of job `a`, whose messages are there; `before` them others have been, and are over."""
    system.submit_job("a", every_s=20, runs=before + 2, **policies)
    system.pass_s(20 * before + 1)
    system.pass_s(40, deliveries=False)
    one, other = ([message] for message in system.receive())
    return lambda: system.execute_batch(one), lambda: system.execute_batch(other)


@pair("execute/execute of the first two runs, overlap skip", late_s=800)
def overlap_skip_first(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, overlap="skip")


@pair("execute/execute of two runs, overlap skip", late_s=800)
def overlap_skip(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, before=1, overlap="skip")


@pair("execute/execute of the first two runs, overlap queue", late_s=800)
def overlap_queue_first(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, overlap="queue")


@pair("execute/execute of two runs, overlap queue", late_s=800)
def overlap_queue(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, before=1, overlap="queue")


@pair("execute/execute of the first two runs, overlap replace", late_s=800)
def overlap_replace_first(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, overlap="replace")


@pair("execute/execute of two runs, overlap replace", late_s=800)
def overlap_replace(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, before=1, overlap="replace")


@pair("execute/execute of two runs, the first failing, overlap replace", late_s=800)
def overlap_replace_failing(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure() if call.attempt == 1 and system.history.of(Returned) else SUCCEED
    return _two_runs(system, before=1, overlap="replace")


@pair("execute/zombie execute of two runs, overlap queue", late_s=1600, asleep_s=LEASE_LOST_S)
def overlap_zombie(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, before=1, overlap="queue")


@pair("execute/zombie execute of two runs, overlap replace", late_s=1600, asleep_s=LEASE_LOST_S)
def overlap_replace_zombie(system: System) -> tuple[Actor, Actor]:
    return _two_runs(system, before=1, overlap="replace")


@pair("execute of a retry/execute of the next run, overlap skip", late_s=800)
def overlap_retry(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    system.submit_job("a", every_s=20, runs=2, overlap="skip", base_s=10)
    system.pass_s(21)
    system.pass_s(20, deliveries=False)
    one, other = ([message] for message in system.receive())
    return lambda: system.execute_batch(one), lambda: system.execute_batch(other)


@pair("execute/overlap set to skip and the next run", late_s=800)
def overlap_set(system: System) -> tuple[Actor, Actor]:
    system.submit_job("a", every_s=20, runs=2)
    system.pass_s(41, deliveries=False)
    one, other = ([message] for message in system.receive())

    def patch_and_execute() -> None:
        system.patch_job("a", overlap="skip")
        system.execute_batch(other)

    return lambda: system.execute_batch(one), patch_and_execute


@pair("execute of a run that waited/execute of the next, overlap queue", late_s=800)
def overlap_queue_next(system: System) -> tuple[Actor, Actor]:
    """The first is over by now; the second waits for it, and the third comes."""
    system.submit_job("a", every_s=10, runs=3, overlap="queue")

    def handler(call: Call) -> Result:
        if not system.history.of(Returned):
            system.pass_s(12)
        return SUCCEED

    system.handler = handler
    system.pass_s(11)
    system.pass_s(9, deliveries=False)
    one, other = ([message] for message in system.receive())
    return lambda: system.execute_batch(one), lambda: system.execute_batch(other)


def _two_of_a_group(system: System, limit: int = 1) -> tuple[Actor, Actor]:
    """A run each of jobs `a` and `b`, whose messages are there."""
    system.limit_group("g", limit)
    for job_id in "ab":
        system.submit_job(job_id, in_s=5, group="g", timeout_s=100)
    system.pass_s(6, deliveries=False)
    one, other = ([message] for message in system.receive())
    return lambda: system.execute_batch(one), lambda: system.execute_batch(other)


@pair("execute/execute of two of a group", late_s=800)
def max_running(system: System) -> tuple[Actor, Actor]:
    return _two_of_a_group(system)


@pair("execute/execute of two of a group that fail", late_s=800)
def max_running_failing(system: System) -> tuple[Actor, Actor]:
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    return _two_of_a_group(system)


@pair("execute/zombie execute of two of a group", late_s=1600, asleep_s=LEASE_LOST_S)
def max_running_zombie(system: System) -> tuple[Actor, Actor]:
    """The zombie renews its lease when it wakes, if it still can."""

    def handler(call: Call) -> Result:
        if call.job_id == "a":
            system.renew_lease()
        return SUCCEED

    system.handler = handler
    return _two_of_a_group(system)


@pair("execute/zombie execute of one of a group, received twice", late_s=1600, asleep_s=LEASE_LOST_S)
def max_running_twice(system: System) -> tuple[Actor, Actor]:
    """While its second attempt is going on, another of the group comes."""
    system.limit_group("g", 1)
    system.submit_job("a", in_s=5, group="g")
    system.pass_s(6, deliveries=False)
    batch = system.receive()
    system.queue.messages[0].visible_at = system.clock.now()
    again = system.receive()
    system.submit_job("b", in_s=1, group="g")

    def handler(call: Call) -> Result:
        if (call.job_id, call.attempt) == ("a", 2):
            system.deliver_now()
        return SUCCEED

    system.handler = handler
    return lambda: system.execute_batch(batch), lambda: system.execute_batch(again)


@pair("execute of two of a group, one in the other/the limit lowered", late_s=800)
def max_running_lowered(system: System) -> tuple[Actor, Actor]:
    outer, inner = _two_of_a_group(system, 2)

    def handler(call: Call) -> Result:
        if call.job_id == "a":
            inner()
        return SUCCEED

    system.handler = handler
    return outer, lambda: system.limit_group("g", 1)


from tests.faults import pairs_control  # noqa: E402, F401  its pairs register themselves
