"""The queues, the targets and the users' answers; what is checked at each call of a handler is here."""

from collections.abc import Container

from tests.model.calls import LEASE_LOST, Outcomes, ViolationError, Work, call
from tests.model.store_runs import RunCalls
from tests.model.world import (
    FAILED,
    OVER,
    SUCCEEDED,
    Answer,
    Letter,
    Message,
    Run,
    Spec,
    World,
    is_due,
    with_run,
)


class TargetCalls(RunCalls):
    """What AWS and the user's handlers do beside the table."""

    failures: bool

    @call("queue.send", writes=True)
    def send(self, world: World, me: int, messages: tuple[Message, ...]) -> Outcomes:
        sent = [Letter(message) for message in messages]
        return [(world._replace(queue=tuple(sorted((*world.queue, *sent)))), None)]

    @call("acknowledge", at_once=True)
    def acknowledge(self, world: World, me: int) -> Outcomes:
        """By Lambda's poller. A receipt that has grown old may delete nothing."""
        return [(world._replace(queue=tuple(letter for letter in world.queue if letter.holder != me)), None)]

    @call("dead_letters.send", writes=True)
    def send_dead_letter(self, world: World, me: int, slot: int) -> Outcomes:
        return [(world._replace(dead_letters=world.dead_letters | {slot}), None)]

    @call("target.call")
    def call_target(self, world: World, me: int, slot: int, run: Run, work: Work) -> Outcomes:
        """AttemptFlow._hold, and the handler begins; it ends with the next call of the attempt.

        A lease that the reads before it used up is renewed, if the run is still this attempt's.
        """
        there = world.runs[slot]
        if not self.holds(there, run, me):
            return [(world, LEASE_LOST)]
        if there and self.is_mine(there, run, me):
            world = with_run(world, slot, there._replace(lease=True))
        self._check_work(world, slot, run, work)
        self._check_call(world, me, slot, run, work.by)
        called = (*world.called[:slot], (*world.called[slot], run.number), *world.called[slot + 1 :])
        begun = world._replace(called=called, inside=tuple(sorted((*world.inside, (me, slot)))))
        return [(begun, SUCCEEDED), *([(begun, FAILED)] if self.failures else [])]

    def holds(self, there: Run | None, run: Run, me: int) -> bool:
        return there is not None and self.is_mine(there, run, me)

    def _check_work(self, world: World, slot: int, run: Run, work: Work) -> None:
        """Of the job that was read: that the run is its own, and that its policies hold."""
        if run.asked is None and slot not in work.slots:
            raise ViolationError(f"the handler of {work.by} is called for {slot}, which is no occurrence of it")
        if run.asked is not None and work.by not in run.asked.after:
            raise ViolationError(f"the handler of {work.by} is called for {slot}, which was asked of a job before it")
        others = {other for _, other in world.inside if world.owner[other] == world.owner[slot]} - {slot}
        if work.overlap != "allow" and others:
            raise ViolationError(f"overlap: the handler is called for {slot} while {min(others)} is going on")
        begun = {other for other, run in enumerate(world.runs) if run and run.status == FAILED and world.called[other]}
        if work.overlap != "allow" and any(world.owner[other] == world.owner[slot] for other in begun - {slot}):
            raise ViolationError(
                f"overlap: the handler is called for {slot} while {min(begun - {slot})} waits for its retry"
            )
        if work.limited and world.limit is not None and len(world.inside) >= world.limit:
            raise ViolationError(f"max_running: the handler is called for {slot} while {world.limit} are going on")
        enough = {SUCCEEDED} if work.on_parent_failure == "skip" else OVER
        waited_for = [parent for parent in work.parents if not _is_over(world, parent, enough)]
        if waited_for and run.asked is None:
            raise ViolationError(f"depends_on: the handler is called for {slot} before its parent has succeeded")

    def _check_call(self, world: World, me: int, slot: int, run: Run, by: str) -> None:
        there, calls = world.runs[slot], world.called[slot]
        if not is_due(world, slot):
            raise ViolationError(f"I3: the handler is called for {slot} before it is due")
        if there and there.status == SUCCEEDED:
            raise ViolationError(f"I2: the handler is called for {slot} after it succeeded")
        if any(other == slot for _, other in world.inside):
            raise ViolationError(f"I2: two attempts of {slot} call its handler at one time")
        if there is None or there.worker != me or not there.lease:
            raise ViolationError(f"I2: the handler is called for {slot} by an attempt that does not have the run")
        if calls and run.number <= calls[-1]:
            raise ViolationError(f"I7: the handler is called for {slot} as attempt {run.number}, after {calls}")
        if run.of_round > self.max_attempts:
            raise ViolationError(f"I7: the handler is called for {slot} as attempt {run.number}")
        told = world.cancelled
        if told and told.by == by and (slot, run.number) not in told.running:
            raise ViolationError(f"I5: the handler is called for {slot} after cancel was answered")

    # --- the users' answers

    @call("answer cancelled")
    def answer_cancelled(self, world: World, me: int, by: str, running: tuple[int, ...]) -> Outcomes:
        going_on = tuple((slot, run.number) for slot in running if (run := world.runs[slot]))
        return [(world._replace(cancelled=Answer(by, going_on)), None)]

    @call("answer 201", at_once=True)
    def answer_accepted(self, world: World, me: int, job: int, by: str) -> Outcomes:
        return [(world._replace(accepted=world.accepted | {(job, by)}), None)]

    @call("answer 200", at_once=True)
    def answer_changed(self, world: World, me: int, spec: Spec) -> Outcomes:
        return [(world._replace(changes=world.changes | {spec}), None)]

    @call("answer 202", at_once=True)
    def answer_granted(self, world: World, me: int, runs: tuple[tuple[int, int, str], ...]) -> Outcomes:
        """That each of these runs happens, after as many attempts as it had, by the job of that submit."""
        return [(world._replace(promised=world.promised | set(runs)), None)]


def _is_over(world: World, parent: int, enough: Container[str]) -> bool:
    return any(
        run is not None and run.status in enough
        for owner, run in zip(world.owner, world.runs, strict=True)
        if owner == parent
    )
