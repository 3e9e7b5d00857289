"""shared/flows/execute.py and attempt.py, call by call."""

from typing import Any

from tests.model.calls import CANCEL_REQUESTED, ERROR, LEASE_LOST, OK, Refused, Work
from tests.model.flows_claims import Flow
from tests.model.flows_gates import PASSED, GateFlows, Word
from tests.model.store_runs import closed, earlier_closed
from tests.model.world import (
    CANCELLED,
    DEAD_LETTERED,
    FAILED,
    NOBODY,
    OVER,
    PAUSED,
    RUNNING,
    SCHEDULED,
    SUCCEEDED,
    Job,
    Letter,
    Message,
    Run,
    World,
)


class AttemptFlows(GateFlows):
    """One attempt of one run."""

    def execute(self, message: Message) -> Flow:
        """AttemptFlow.make: runs.start → jobs.get → target → its end. Not acknowledged: the message comes back."""
        done = yield from self.attempt(message)
        if done and self.wakes:
            yield from self.wake(message.job)
        if done:
            yield self.store.acknowledge()

    def attempt(self, message: Message) -> Flow:
        """Whether the message has served its purpose."""
        if message.until >= 0:
            return (yield from self.skip(message))
        run = yield self.store.start(message)
        if isinstance(run, Refused):
            return self.has_served(message, run.there)
        job = yield self.store.get_job_or_error(message.job)
        return (yield from self.with_job(message, run, job))

    def skip(self, message: Message) -> Flow:
        """AttemptFlow._skip: what is there may be a start that is about to be taken back."""
        done = yield self.store.record_skip(message)
        return done == OK or done.there.status in OVER or self.has_served(message, done.there)

    def has_served(self, message: Message, there: Run) -> bool:
        """AttemptFlow._refused: else it is put back, until the lease or the wait is over."""
        if message.woken and there.status != RUNNING:
            return True
        return there.revision > message.revision or there.status in OVER

    def without_void_messages(self, world: World) -> World:
        """`world` without the messages that nobody holds and whose run is over: they would only be acknowledged."""

        def is_void(letter: Letter) -> bool:
            there = world.runs[letter.message.slot]
            if there is None or letter.holder != NOBODY or self.store.may_start(there, letter.message):
                return False
            may_be_redriven = self.asks and there.status == DEAD_LETTERED
            return there.status in OVER and not may_be_redriven

        left = tuple(letter for letter in world.queue if not is_void(letter))
        return world if left == world.queue else world._replace(queue=left)

    def with_job(self, message: Message, run: Run, job: Any) -> Flow:
        """AttemptFlow._effect, and what follows from it."""
        slot = message.slot
        if job == ERROR:
            return (yield from self.give_back(slot, run))
        if self.is_void(job, run, message.revision):
            return (yield from self.withdraw(slot, run, job))
        if self.is_one_too_many(run):
            return (yield from self.exhaust(slot, run, earlier_closed(run)))
        word = yield from self.enter(job, slot, run)
        if word == ERROR:
            return (yield from self.give_back(slot, run))
        if word == LEASE_LOST:
            return False
        if word != PASSED:
            return (yield from self.hold_back(message, run, word))
        spec = job.spec
        work = Work(job.by, spec.slots, spec.overlap, spec.limited, spec.parents, spec.on_parent_failure)
        del job, spec, message, word
        outcome = yield self.store.call_target(slot, run, work)
        limited = work.limited
        del work
        yield from self.leave(limited, slot, run)
        del limited
        if outcome == LEASE_LOST:
            return False
        if outcome == SUCCEEDED:
            return (yield self.store.succeed(slot, run)) == OK
        return (yield from self.fail(slot, run))

    def is_void(self, job: Job | None, run: Run, revision: int) -> bool:
        """void_starts.void_reason. A run that was asked for stands beside the schedule and its pauses."""
        if job is None or job.status == CANCELLED:
            return True
        if run.asked is not None:
            return job.by not in run.asked.after
        return job.status == PAUSED or job.revision != revision

    def is_one_too_many(self, run: Run) -> bool:
        """The last attempt that was allowed has died."""
        return run.of_round > self.store.max_attempts

    def withdraw(self, slot: int, run: Run, job: Job | None) -> Flow:
        """AttemptFlow._withdraw: forget the start if the occurrence may come again, else record why it never ran."""
        may_come, comes = self.may_come_again(job, slot), self.comes_again(job, slot)
        revision = job.revision if job else 0
        is_on = job is not None and job.status == SCHEDULED
        reason = PAUSED if job is not None and job.status == PAUSED else ""
        del job
        if run.asked is not None:
            end = yield self.store.cancel_run(slot, run, earlier_closed(run))
        elif run.number > 1 and comes:
            end = yield self.store.hand_over(slot, run, revision)
        elif run.number > 1:
            end = yield self.store.cancel_start(slot, run, reason)
        elif may_come:
            end = yield self.store.forget_start(slot, run, comes and is_on)
        else:
            end = yield self.store.skip_started(slot, run)
        if end == CANCEL_REQUESTED:
            end = yield self.store.cancel_run(slot, run, earlier_closed(run))
        return end == OK

    def may_come_again(self, job: Job | None, slot: int) -> bool:
        """void_starts.may_come_again: the present schedule counts from the last change of when."""
        if job is None or slot >= job.changed:
            return True
        return job.status != CANCELLED and job.spec.run_at == slot

    def comes_again(self, job: Job | None, slot: int) -> bool:
        """void_starts.comes_again."""
        if job is None or job.status == CANCELLED:
            return False
        if job.status == PAUSED:
            return job.spec.run_at == slot
        return self.may_come_again(job, slot) and slot in job.slots

    def give_back(self, slot: int, run: Run) -> Flow:
        """AttemptFlow._give_back: this was no attempt."""
        if run.asked is not None and run.of_round == 1:
            end = yield self.store.park(slot, run)
        elif run.number == 1:
            end = yield self.store.forget_start(slot, run)
        else:
            end = yield self.store.fail(slot, run, earlier_closed(run))
        if end == CANCEL_REQUESTED:
            yield self.store.cancel_run(slot, run, earlier_closed(run))
        return False

    def hold_back(self, message: Message, run: Run, word: Word) -> Flow:
        """AttemptFlow._hold_back: a gate did not let the run begin."""
        slot, before, is_skip = message.slot, earlier_closed(run), word.is_skip
        is_spare = self.is_spare(message, word)
        if not is_skip:
            end = yield self.store.park(slot, run)
        elif before:
            end = yield self.store.cancel_start(slot, run, word.reason)
        else:
            end = yield self.store.skip_started(slot, run, word.reason)
        if end == CANCEL_REQUESTED:
            end = yield self.store.cancel_run(slot, run, before)
        return end == OK and (is_skip or is_spare)

    def fail(self, slot: int, run: Run) -> Flow:
        """AttemptFlow._fail."""
        attempts = closed(run, FAILED)
        if run.of_round >= self.store.max_attempts:
            return (yield from self.exhaust(slot, run, attempts))
        end = yield self.store.fail(slot, run, attempts)
        if end == CANCEL_REQUESTED:
            return (yield self.store.cancel_run(slot, run, attempts)) == OK
        return False  # it comes back after its backoff

    def exhaust(self, slot: int, run: Run, attempts: tuple[str, ...]) -> Flow:
        """AttemptFlow._exhaust: the dead-letter queue first, then the mark."""
        there = yield self.store.get_own_run(slot, run)
        if there is None:
            return False
        cancel_requested = there.cancel_requested
        del there
        end = CANCEL_REQUESTED
        if not cancel_requested:
            yield self.store.send_dead_letter(slot)
            end = yield self.store.exhaust(slot, run, attempts)
        if end == CANCEL_REQUESTED:
            end = yield self.store.cancel_run(slot, run, attempts)
        return end == OK
