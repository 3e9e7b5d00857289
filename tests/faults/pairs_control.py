"""Pairs of actors around what users say: pause, resume, another schedule, trigger, redrive; see pairs."""

from tests.faults.interleaving import Actor
from tests.faults.pairs import LEASE_LOST_S, pair
from tests.faults.system import System
from tests.support.world import SUCCEED, failure

Two = tuple[Actor, Actor]


def _claimable(system: System) -> None:
    """A job that the next tick claims."""
    system.submit_job("a", every_s=310, runs=2, catch_up="all")
    system.pass_s(59)
    system.clock.advance(2)


@pair("tick/pause, then resume")
def tick_pause(system: System) -> Two:
    _claimable(system)

    def pause() -> None:
        system.pause_job("a")
        system.resume_job("a")

    return system.tick_now, pause


@pair("tick/another schedule")
def tick_update(system: System) -> Two:
    _claimable(system)
    return system.tick_now, lambda: system.patch_job("a", every="100s")


@pair("tick/another policy")
def tick_policy(system: System) -> Two:
    _claimable(system)
    return system.tick_now, lambda: system.patch_job("a", payload="x" * 600, retry={"max_attempts": 2})


@pair("zombie tick/pause, then resume", asleep_s=LEASE_LOST_S)
def tick_zombie_pause(system: System) -> Two:
    return tick_pause(system)


@pair("late tick/pause of what is due", late_s=800)
def late_tick_pause(system: System) -> Two:
    """It is due and not claimed: by the tick before the pause, or by the resume."""
    system.submit_job("a", every_s=310, runs=3, catch_up="all")
    system.pass_s(640, ticks=False)

    def pause() -> None:
        system.pause_job("a")
        system.clock.advance(1)
        system.resume_job("a")

    return system.tick_now, pause


@pair("late tick/pause of what was missed", late_s=900)
def late_tick_pause_latest(system: System) -> Two:
    """What the tick leaves out and what the resume leaves out are two records, none of them lost in the other."""
    system.submit_job("a", every_s=100, runs=11, catch_up="latest")
    system.pass_s(310)
    system.pause_job("a")
    system.resume_job("a")
    system.pass_s(600, ticks=False)

    def pause() -> None:
        system.pause_job("a")
        system.clock.advance(210)
        system.resume_job("a")

    return system.tick_now, pause


@pair("late tick/another schedule for what is due", late_s=800)
def late_tick_update(system: System) -> Two:
    system.submit_job("a", every_s=310, runs=3)
    system.pass_s(640, ticks=False)
    return system.tick_now, lambda: system.patch_job("a", every="70s", max_runs=2)


def _paused(system: System) -> None:
    system.submit_job("a", every_s=100, runs=4, catch_up="all")
    system.pass_s(30)
    system.pause_job("a")
    system.pass_s(160)
    system.clock.advance(2)


@pair("resume/tick")
def resume_tick(system: System) -> Two:
    _paused(system)
    return lambda: system.resume_job("a"), system.tick_now


@pair("resume/resume")
def resume_resume(system: System) -> Two:
    _paused(system)
    return lambda: system.resume_job("a"), lambda: system.resume_job("a")


@pair("resume/pause")
def resume_pause(system: System) -> Two:
    _paused(system)
    return lambda: system.resume_job("a"), lambda: system.pause_job("a")


@pair("resume/another schedule")
def resume_update(system: System) -> Two:
    _paused(system)
    return lambda: system.resume_job("a"), lambda: system.patch_job("a", every="60s", max_runs=2)


@pair("resume/cancel")
def resume_cancel(system: System) -> Two:
    _paused(system)
    return lambda: system.resume_job("a"), lambda: system.cancel_job("a")


@pair("pause/cancel")
def pause_cancel(system: System) -> Two:
    system.submit_job("a", every_s=50, runs=3)
    system.pass_s(51, deliveries=False)
    return lambda: system.pause_job("a"), lambda: system.cancel_job("a")


def _due(system: System, **schedule: float) -> Actor:
    """Job a, of which an occurrence is in an executor's hands; more of it is claimed."""
    system.submit_job("a", **schedule)
    system.pass_s(6, deliveries=False)
    batch = system.receive()
    return lambda: system.execute_batch(batch)


@pair("execute/pause", late_s=800)
def execute_pause(system: System) -> Two:
    return _due(system, every_s=5, runs=1), lambda: system.pause_job("a")


@pair("execute/pause, then resume", late_s=800)
def execute_pause_resume(system: System) -> Two:
    execute = _due(system, every_s=5, runs=3)

    def pause() -> None:
        system.pause_job("a")
        system.resume_job("a")

    return execute, pause


@pair("execute of a one-off/pause, then resume", late_s=800)
def execute_one_off_pause(system: System) -> Two:
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    execute = _due(system, in_s=5)

    def pause() -> None:
        system.pause_job("a")
        system.resume_job("a")

    return execute, pause


@pair("execute of a void message/execute of what a resume sent", late_s=800)
def execute_void_resume(system: System) -> Two:
    """One occurrence under two revisions; the older start is void, whichever comes first."""
    system.submit_job("a", every_s=20, runs=1)
    system.pause_job("a")
    system.resume_job("a")
    system.pass_s(21, deliveries=False)
    one, other = ([message] for message in system.receive())
    return lambda: system.execute_batch(one), lambda: system.execute_batch(other)


@pair("execute of a void message/zombie execute of what a resume sent", late_s=800, asleep_s=LEASE_LOST_S)
def execute_void_resume_zombie(system: System) -> Two:
    return execute_void_resume(system)


@pair("execute of a void message/execute of the skip that a resume sent", late_s=800)
def execute_void_skip(system: System) -> Two:
    """What the resume has left out begins with the occurrence of an older message."""
    system.submit_job("a", every_s=40, runs=3, catch_up="skip")
    system.pause_job("a")
    system.pass_s(180, deliveries=False)
    system.resume_job("a")
    one, *others = ([message] for message in system.receive())
    return lambda: system.execute_batch(one), lambda: [system.execute_batch(other) for other in others]


@pair("execute/another schedule", late_s=800)
def execute_update(system: System) -> Two:
    return _due(system, every_s=5, runs=3), lambda: system.patch_job("a", every="40s", max_runs=2)


@pair("execute of a one-off/another time", late_s=800)
def execute_update_one_off(system: System) -> Two:
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    return _due(system, in_s=5), lambda: system.patch_job("a", run_at=system.after(30))


@pair("update/update of the schedule")
def update_update(system: System) -> Two:
    system.submit_job("a", every_s=50, runs=4)
    system.pass_s(51)
    return (
        lambda: system.patch_job("a", every="40s", max_runs=2),
        lambda: system.patch_job("a", every="60s", max_runs=2),
    )


@pair("update of the schedule/update of the policy, each of version 1 only")
def update_update_versions(system: System) -> Two:
    system.submit_job("a", every_s=50, runs=3)
    system.pass_s(51)
    return (
        lambda: system.patch_job("a", every="40s", max_runs=2, if_version=1),
        lambda: system.patch_job("a", retry={"max_attempts": 5}, if_version=1),
    )


def _triggerable(system: System) -> None:
    system.submit_job("a", in_s=600)
    system.clock.advance(0.5)


def _ends(system: System, then: Actor) -> Actor:
    """`then`; the job, which is not what matters, is cancelled in the end."""

    def work() -> None:
        then()
        system.execute_batch(system.receive())

    return work


@pair("trigger/trigger")
def trigger_trigger(system: System) -> Two:
    _triggerable(system)
    return lambda: system.trigger_job("a"), lambda: system.trigger_job("a")


@pair("trigger/cancel")
def trigger_cancel(system: System) -> Two:
    _triggerable(system)
    return _ends(system, lambda: system.trigger_job("a")), lambda: system.cancel_job("a")


@pair("trigger/pause and another schedule")
def trigger_pause(system: System) -> Two:
    _triggerable(system)

    def change() -> None:
        system.pause_job("a")
        system.patch_job("a", run_at=system.after(300))
        system.resume_job("a")

    return _ends(system, lambda: system.trigger_job("a")), change


@pair("trigger/cancel and the id again")
def trigger_submit(system: System) -> Two:
    _triggerable(system)

    def again() -> None:
        system.cancel_job("a")
        system.clock.advance(1)
        system.submit_job("a", in_s=100)

    return _ends(system, lambda: system.trigger_job("a")), again


@pair("recovery/trigger")
def recovery_trigger(system: System) -> Two:
    """The page of a trigger that died before its send, an old one by now."""
    _triggerable(system)
    system.crash_before("trigger: SendMessageBatch")
    system.trigger_job("a")
    system.clock.advance(95)
    return system.tick_now, lambda: system.trigger_job("a")


def _dead(system: System) -> Actor:
    """Job a, whose run is dead-lettered; an actor that redrives it."""
    first = system.after(5)
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    system.submit_job("a", in_s=5, max_attempts=1)
    system.pass_s(10)
    return lambda: system.redrive_job("a", type(system.clock.now()).fromisoformat(first))


@pair("redrive/redrive")
def redrive_redrive(system: System) -> Two:
    redrive = _dead(system)
    return redrive, lambda: system.redrive_job("a")


@pair("redrive/redrive and its next dead letter")
def redrive_twice(system: System) -> Two:
    """A slow redrive must not begin a third round of what has been through its second meanwhile."""
    redrive = _dead(system)
    system.handler = lambda call: failure()

    def again() -> None:
        system.redrive_job("a")
        system.execute_batch(system.receive())

    return redrive, again


@pair("redrive/cancel")
def redrive_cancel(system: System) -> Two:
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    system.submit_job("a", every_s=5, runs=2, max_attempts=1)
    system.pass_s(6)
    return _ends(system, lambda: system.redrive_job("a")), lambda: system.cancel_job("a")


@pair("redrive/submit of the id again")
def redrive_submit(system: System) -> Two:
    redrive = _dead(system)
    return _ends(system, redrive), lambda: system.submit_job("a", in_s=30)


@pair("execute of a redriven run/redrive", late_s=800)
def execute_redriven(system: System) -> Two:
    redrive = _dead(system)
    system.handler = lambda call: failure() if call.attempt == 2 else SUCCEED
    redrive()
    batch = system.receive()
    return lambda: system.execute_batch(batch), redrive


@pair("execute of a redriven run/execute of the old message", late_s=800)
def execute_redriven_twice(system: System) -> Two:
    """A redrive whose message is received twice."""
    redrive = _dead(system)
    redrive()
    batch = system.receive()
    system.queue.messages[0].visible_at = system.clock.now()
    again = system.receive()
    return lambda: system.execute_batch(batch), lambda: system.execute_batch(again)


@pair("audit/pause, then resume", late_s=6000, settle_s=5000)
def audit_pause(system: System) -> Two:
    system.submit_job("a", every_s=320, runs=3, catch_up="all")
    system.pass_s(700, ticks=False)

    def pause() -> None:
        system.pause_job("a")
        system.resume_job("a")

    return system.audit_now, pause
