"""The calls of shared/store/runs.py, run_history.py and run_requests.py: their conditions. It knows no flow's order."""

from tests.model.calls import CANCEL_REQUESTED, LEASE_LOST, OK, End, Outcomes, Refused, ViolationError, call
from tests.model.world import (
    CANCELLED,
    CATCH_UP,
    DEAD_LETTERED,
    ENQUEUED,
    FAILED,
    LOST,
    NOBODY,
    OPEN,
    OVER,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    Asked,
    Holder,
    Mark,
    Message,
    Run,
    World,
    with_run,
)


class RunCalls:
    """The runs, and what is asked of them."""

    max_attempts: int

    @call("runs.start", writes=True)
    def start(self, world: World, me: int, message: Message) -> Outcomes:
        there = world.runs[message.slot]
        if self.may_start(there, message):
            before = there or Run(ENQUEUED, 0, 0)
            run = before._replace(status=RUNNING, revision=message.revision, number=before.number + 1, lease=True)
            run = run._replace(attempts=(*before.attempts, OPEN), worker=me, begun=world.begun)
            return [(self._run_written(world, message.slot, run), as_read(run))]
        assert there is not None
        if there.status == RUNNING and there.worker == me:  # the same start again: its answer was lost
            return [(world, as_read(there))]
        return [(world, Refused(as_read(there)))]

    def may_start(self, there: Run | None, message: Message) -> bool:
        if there is None:
            return True
        waits = there.status in (FAILED, ENQUEUED)
        lease_over = there.status == RUNNING and not there.lease
        return there.revision <= message.revision and (waits or lease_over)

    @call("runs.succeed", writes=True)
    def succeed(self, world: World, me: int, slot: int, run: Run) -> Outcomes:
        return self._finish(world, me, slot, run, End(SUCCEEDED, closed(run, SUCCEEDED), or_cancel=False))

    @call("runs.fail", writes=True)
    def fail(self, world: World, me: int, slot: int, run: Run, attempts: tuple[str, ...]) -> Outcomes:
        return self._finish(world, me, slot, run, End(FAILED, attempts))

    @call("runs.hand_over", writes=True)
    def hand_over(self, world: World, me: int, slot: int, run: Run, revision: int) -> Outcomes:
        end = End(FAILED, earlier_closed(run), or_cancel=False, revision=revision)
        return self._finish(world, me, slot, run, end)

    @call("runs.exhaust", writes=True)
    def exhaust(self, world: World, me: int, slot: int, run: Run, attempts: tuple[str, ...]) -> Outcomes:
        return self._finish(world, me, slot, run, End(DEAD_LETTERED, attempts))

    @call("runs.park", writes=True)
    def park(self, world: World, me: int, slot: int, run: Run) -> Outcomes:
        return self._finish(world, me, slot, run, End(ENQUEUED, earlier_closed(run)))

    @call("runs.cancel", writes=True)
    def cancel_run(self, world: World, me: int, slot: int, run: Run, attempts: tuple[str, ...]) -> Outcomes:
        return self._finish(world, me, slot, run, End(CANCELLED, attempts, or_cancel=False))

    @call("runs.cancel", writes=True)
    def cancel_start(self, world: World, me: int, slot: int, run: Run, reason: str) -> Outcomes:
        end = End(CANCELLED, earlier_closed(run), or_cancel=False, reason=reason)
        return self._finish(world, me, slot, run, end)

    @call("runs.skip_started", writes=True)
    def skip_started(self, world: World, me: int, slot: int, run: Run, reason: str = "") -> Outcomes:
        return self._finish(world, me, slot, run, End(SKIPPED, (), reason=reason))

    @call("runs.forget_start", writes=True)
    def forget_start(self, world: World, me: int, slot: int, run: Run, anyway: bool = False) -> Outcomes:
        there = world.runs[slot]
        if there and self.is_mine(there, run, me) and (anyway or not there.cancel_requested):
            return [(self._run_written(world, slot, None), OK)]
        return [(world, self._not_mine(there, run, me))]

    @call("runs.record_skip", writes=True)
    def record_skip(self, world: World, me: int, message: Message) -> Outcomes:
        """A span takes the place of a record of its first occurrence alone."""
        there = world.runs[message.slot]
        if there and not (there.status == SKIPPED and there.until < 0):
            return [(world, Refused(as_read(there)))]
        run = Run(SKIPPED, message.revision, 0, reason=CATCH_UP, until=message.until)
        return [(self._run_written(world, message.slot, run), OK)]

    @call("runs.lose", writes=True)
    def lose(self, world: World, me: int, holder: Holder) -> Outcomes:
        """End an attempt whose lease has run out, before another takes its place of the group."""
        there = world.runs[holder.slot]
        if there and there.status == RUNNING and not there.lease and is_of(holder, there):
            run = there._replace(status=FAILED, attempts=(*there.attempts[:-1], LOST), worker=NOBODY, lease=False)
            return [(self._run_written(world, holder.slot, run), OK)]
        return [(world, LEASE_LOST)]

    def _finish(self, world: World, me: int, slot: int, run: Run, end: End) -> Outcomes:
        world = outside(world, me)
        there = world.runs[slot]
        if there and self.is_mine(there, run, me) and not (end.or_cancel and there.cancel_requested):
            number = run.number - (len(run.attempts) - len(end.attempts))
            done = there._replace(status=end.status, number=number, attempts=end.attempts, worker=NOBODY, lease=False)
            done = done._replace(revision=end.revision or there.revision)
            if end.status in (CANCELLED, SKIPPED):
                marked = there.reason if end.status == CANCELLED else ""
                done = done._replace(reason=marked or end.reason)
            return [(self._run_written(world, slot, done), OK)]
        return [(world, self._not_mine(there, run, me))]

    def is_mine(self, there: Run, run: Run, me: int) -> bool:
        return there.status == RUNNING and there.number == run.number and there.worker == me

    def _not_mine(self, there: Run | None, run: Run, me: int) -> str:
        return CANCEL_REQUESTED if there and self.is_mine(there, run, me) and there.cancel_requested else LEASE_LOST

    def _run_written(self, world: World, slot: int, run: Run | None) -> World:
        before = world.runs[slot]
        if before and before.status in OVER and (run is None or run.status != before.status):
            raise ViolationError(f"I4: run {slot} was {before.status} and is {run.status if run else 'gone'}")
        if run and run.number != len(run.attempts):
            raise ViolationError(f"I7: attempt {run.number} of run {slot} is the {len(run.attempts)}. in its list")
        if run and run.status == DEAD_LETTERED:
            self._check_exhausted(world, slot, run)
        return with_run(world, slot, run)

    def _check_exhausted(self, world: World, slot: int, run: Run) -> None:
        if slot not in world.dead_letters:
            raise ViolationError(f"run {slot} is dead-lettered and the dead-letter queue does not have it")
        lost = {number for number, how in enumerate(run.attempts, 1) if how == LOST}
        if {*world.called[slot], *lost} < set(range(1, run.earlier + self.max_attempts + 1)):
            raise ViolationError(f"I7: run {slot} is dead-lettered after calls {world.called[slot]}")

    # --- reads

    @call("runs.get")
    def get_run(self, world: World, me: int, slot: int) -> Outcomes:
        there = world.runs[slot]
        return [(world, there and as_read(there))]

    @call("runs.get")
    def get_own_run(self, world: World, me: int, slot: int, run: Run) -> Outcomes:
        """None if the run is not that of the attempt any more."""
        there = world.runs[slot]
        return [(outside(world, me), as_read(there) if there and self.is_mine(there, run, me) else None)]

    @call("runs.newest")
    def newest(self, world: World, me: int, job: int = 0) -> Outcomes:
        """The runs of the job, each at its occurrence's place."""
        own = zip(world.owner, world.runs, strict=True)
        return [(world, tuple(as_read(run) if run and owner == job else None for owner, run in own))]

    @call("runs.get_many")
    def some_runs(self, world: World, me: int, slots: tuple[int, ...]) -> Outcomes:
        found = [(slot, world.runs[slot]) for slot in slots]
        return [(world, tuple((slot, as_read(run)) for slot, run in found if run))]

    @call("runs.spans")
    def recorded(self, world: World, me: int, job: int) -> Outcomes:
        own = [(slot, run) for slot, run in enumerate(world.runs) if run and world.owner[slot] == job]
        return [(world, frozenset(at for slot, run in own for at in range(slot, max(slot, run.until) + 1)))]

    @call("runs.open")
    def open_runs(self, world: World, me: int, job: int = 0) -> Outcomes:
        own = [(slot, run) for slot, run in enumerate(world.runs) if run and world.owner[slot] == job]
        return [(world, tuple((slot, as_read(run)) for slot, run in own if run.status not in OVER))]

    # --- shared/store/run_requests.py

    @call("runs.trigger", writes=True)
    def trigger(self, world: World, me: int, message: Message, asked: Asked) -> Outcomes:
        there = world.runs[message.slot]
        if there:
            return [(world, self.is_asked_by(there, asked))]
        run = Run(ENQUEUED, message.revision, 0, asked=asked)
        return [(self._run_written(world, message.slot, run), True)]

    @call("runs.redrive", writes=True)
    def redrive(self, world: World, me: int, message: Message, seen: Run, asked: Asked) -> Outcomes:
        slot, revision = message.slot, message.revision
        there = world.runs[slot]
        if there and self.is_as_seen(there, seen):
            if there.status != DEAD_LETTERED:
                raise ViolationError(f"I4: run {slot} was {there.status} and is redriven")
            if there.asked == asked:
                raise ViolationError(f"I7: one redrive gives run {slot} its attempts twice")
            run = there._replace(status=ENQUEUED, revision=revision, asked=asked, earlier=self.earlier(there))
            again = world._replace(dead_letters=world.dead_letters - {slot})
            return [(with_run(again, slot, run), True)]
        return [(world, there is not None and self.is_asked_by(there, asked))]

    def is_asked_by(self, there: Run, asked: Asked) -> bool:
        """A first try took effect, and its answer was lost."""
        return there.asked == asked

    def is_as_seen(self, there: Run, seen: Run) -> bool:
        return (there.status, there.number) == (seen.status, seen.number)

    def earlier(self, run: Run) -> int:
        """How many of its attempts do not count any more."""
        return run.number

    @call("runs.request_cancel waiting", writes=True)
    def cancel_waiting(self, world: World, me: int, slot: int, mark: Mark, status: str) -> Outcomes:
        run = world.runs[slot]
        if run and run.status == status and self.is_of_older(run, mark.revision):
            return [(self._run_written(world, slot, run._replace(status=CANCELLED, reason=mark.reason)), CANCELLED)]
        return [(world, run.status if run and self.is_of_older(run, mark.revision) else None)]

    @call("runs.request_cancel running", writes=True)
    def mark_running(self, world: World, me: int, slot: int, mark: Mark) -> Outcomes:
        run = world.runs[slot]
        if run and run.status == RUNNING and self.is_of_older(run, mark.revision):
            return [(with_run(world, slot, run._replace(cancelled_at=mark.revision, reason=mark.reason)), RUNNING)]
        return [(world, run.status if run and self.is_of_older(run, mark.revision) else None)]

    def is_of_older(self, run: Run, revision: int) -> bool:
        """Whether the run was started for the job that was cancelled, and not for one that took its place since."""
        return run.revision < revision


def is_of(holder: Holder, run: Run) -> bool:
    """Whether the holder is the attempt that the run has now."""
    return (run.number, run.worker) == (holder.number, holder.worker)


def outside(world: World, me: int) -> World:
    """The handler that `me` called, if it did, has returned."""
    return world._replace(inside=tuple(pair for pair in world.inside if pair[0] != me))


def as_read(run: Run) -> Run:
    """A run as a flow knows it. Whose it is the flow never asks, so that executors stay interchangeable."""
    return run._replace(worker=NOBODY, lease=False)


def closed(run: Run, outcome: str) -> tuple[str, ...]:
    """The attempts with the running one ended, and those before it that never ended lost."""
    return (*earlier_closed(run), outcome)


def earlier_closed(run: Run) -> tuple[str, ...]:
    return tuple(LOST if how == OPEN else how for how in run.attempts[:-1])
