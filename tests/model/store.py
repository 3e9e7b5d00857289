"""Each AWS call of the protocol, with its condition, as a step from world to world. It knows no flow's order.

A method named as in shared/store or shared/queue makes a `Call`; its body is what AWS does when the call arrives, and
gives the outcomes that are possible: the world after it, and the answer. Conditions that a weakened variant takes away
are methods of their own.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from tests.model.world import (
    CANCELLED,
    DEAD_LETTERED,
    FAILED,
    LOST,
    NOBODY,
    OPEN,
    OVER,
    RUNNING,
    SCHEDULED,
    SKIPPED,
    SUCCEEDED,
    Answer,
    Job,
    Letter,
    Message,
    Page,
    Run,
    World,
    ranked,
    spent,
    with_run,
)

OK, LEASE_LOST, CANCEL_REQUESTED, ERROR = "ok", "lease lost", "cancel requested", "AWS error"
WON, LOST_CLAIM, OVERTAKEN = "won", "lost", "overtaken"

Outcomes = list[tuple[World, Any]]


class ViolationError(Exception):
    """A property does not hold after this step."""


class Work(NamedTuple):
    """Of the job that an attempt read: what it is called with."""

    by: str
    slots: tuple[int, ...]


class Refused(NamedTuple):
    """A start that the run's condition did not allow, and what the run is."""

    there: Run


class Claim(NamedTuple):
    """What a claim is made of: due and revision as they were seen, and what the plan makes of them."""

    due: int | None
    revision: int
    until: int
    then: int | None

    def __str__(self) -> str:
        return f"{self.due}@r{self.revision}, next {self.then}"


class End(NamedTuple):
    """How an attempt is to end. `or_cancel`: only if no cancel was asked for. `revision`: whose the run is then."""

    status: str
    attempts: tuple[str, ...]
    or_cancel: bool = True
    revision: int | None = None


class Call(NamedTuple):
    """One call to be made: `effect(store, world, actor, *args)` gives the worlds and answers that may follow."""

    name: str
    effect: Callable[..., Outcomes]
    store: "Store"
    args: tuple[Any, ...]
    writes: bool  # it may take effect, its answer be lost, and be made again
    at_once: bool  # nothing that others do matters to it, nor it to them: it is made before they go on

    def outcomes(self, world: World, me: int) -> Outcomes:
        return self.effect(self.store, world, me, *self.args)

    def __str__(self) -> str:
        return " ".join([self.name, *map(told, self.args)])


def _call(
    name: str, *, writes: bool = False, at_once: bool = False
) -> Callable[[Callable[..., Outcomes]], Callable[..., Call]]:
    def decorate(effect: Callable[..., Outcomes]) -> Callable[..., Call]:
        @wraps(effect)
        def make(self: "Store", *args: Any) -> Call:
            return Call(name, effect, self, args, writes, at_once)

        return make

    return decorate


class Store:
    """The table, the queue, the targets and the users' answers."""

    def __init__(self, max_attempts: int = 2, failures: bool = False) -> None:
        self.max_attempts = max_attempts
        self.failures = failures

    # --- shared/store/jobs.py

    @_call("jobs.get")
    def get_job(self, world: World, me: int) -> Outcomes:
        return [(world, world.job)]

    @_call("jobs.get")
    def get_job_or_error(self, world: World, me: int) -> Outcomes:
        failed = [(spent(world, "errors"), ERROR)] if world.budget.errors else []
        return [(world, world.job), *failed]

    @_call("jobs.due")
    def due(self, world: World, me: int) -> Outcomes:
        job = world.job
        shown = job if job and job.status == SCHEDULED and job.due is not None else None
        return [(world, shown)]

    @_call("jobs.claim", writes=True)
    def claim(self, world: World, me: int, claim: Claim, as_tick: bool) -> Outcomes:
        job = world.job
        epochs = dict(world.epochs)
        fence = epochs[me] if as_tick else max(epochs.values(), default=job.fence if job else 0)
        left = fence if as_tick else 0
        if job and self.may_be_claimed(job, claim, fence):
            made = job._replace(due=claim.then, claimed=claim.until, fence=left)
            return [(ranked(world._replace(job=made)), WON)]
        if job and self.is_made(job, claim, left):
            return [(world, WON)]
        return [(world, OVERTAKEN if job and self.is_overtaken(job, claim, left) else LOST_CLAIM)]

    def may_be_claimed(self, job: Job, claim: Claim, fence: int) -> bool:
        same = job.status == SCHEDULED and job.due == claim.due and job.revision == claim.revision
        return same and job.fence <= fence

    def is_made(self, job: Job, claim: Claim, fence: int) -> bool:
        """A first try took effect, and its answer was lost."""
        same = job.status == SCHEDULED and job.fence == fence and job.revision == claim.revision
        return same and job.claimed == claim.until and job.due == claim.then

    def is_overtaken(self, job: Job, claim: Claim, fence: int) -> bool:
        """Whether a first try took effect cannot be told: a newer tick has claimed further."""
        same = job.status == SCHEDULED and job.revision == claim.revision
        return same and job.fence > fence and job.claimed is not None and job.claimed >= claim.until

    @_call("jobs.create", writes=True)
    def create(self, world: World, me: int, job: Job) -> Outcomes:
        return self._put(world, job, world.job is None)

    @_call("jobs.replace_finished", writes=True)
    def replace_finished(self, world: World, me: int, job: Job, seen: Job) -> Outcomes:
        return self._put(world, job, world.job is not None and world.job.revision == seen.revision)

    def _put(self, world: World, job: Job, free: bool) -> Outcomes:
        return [(ranked(world._replace(job=job)), True)] if free else [(world, False)]

    def is_same(self, job: Job, there: Job) -> bool:
        return there.by == job.by and there.revision >= job.revision

    @_call("jobs.cancel", writes=True)
    def cancel_job(self, world: World, me: int, seen: Job) -> Outcomes:
        job = world.job
        if job and job.revision == seen.revision and job.status == SCHEDULED:
            job = job._replace(status=CANCELLED, due=None, revision=job.revision + 1, changed=world.now)
            return [(world._replace(job=job), job)]
        return [(world, None)]

    # --- shared/store/journal.py

    @_call("journal.write", writes=True, at_once=True)
    def write_page(self, world: World, me: int, messages: tuple[Message, ...]) -> Outcomes:
        for page in world.journal:
            if page.writer == me:  # the same put again
                return [(world, page.name)]
        used = {page.name for page in world.journal} | {name for _, name in world.known}
        page = Page(min(set(range(len(used) + 1)) - used), me, messages)
        return [(world._replace(journal=tuple(sorted((*world.journal, page)))), page.name)]

    @_call("journal.settle")
    def settle(self, world: World, me: int, name: int) -> Outcomes:
        """Made twice it does the same, for no page gets the name of another."""
        journal = tuple(page for page in world.journal if page.name != name)
        return [(world._replace(journal=journal, known=tuple(k for k in world.known if k != (me, name))), None)]

    @_call("journal.old_pages")
    def old_page(self, world: World, me: int) -> Outcomes:
        for page in world.journal:
            if page.writer == NOBODY and (me, page.name) not in world.known:
                known = tuple(sorted((*world.known, (me, page.name))))
                return [(world._replace(known=known), page)]
        return [(world, None)]

    # --- shared/store/runs.py

    @_call("runs.start", writes=True)
    def start(self, world: World, me: int, message: Message) -> Outcomes:
        there = world.runs[message.slot]
        if self.may_start(there, message):
            number, attempts = (there.number, there.attempts) if there else (0, ())
            marked = there.cancelled_at if there else 0
            run = Run(RUNNING, message.revision, number + 1, (*attempts, OPEN), me, True, marked)
            return [(self._run_written(world, message.slot, run), as_read(run))]
        assert there is not None
        if there.status == RUNNING and there.worker == me:  # the same start again: its answer was lost
            return [(world, as_read(there))]
        return [(world, Refused(as_read(there)))]

    def may_start(self, there: Run | None, message: Message) -> bool:
        if there is None:
            return True
        waited = there.status == FAILED
        lease_over = there.status == RUNNING and not there.lease
        return there.revision <= message.revision and (waited or lease_over)

    @_call("runs.succeed", writes=True)
    def succeed(self, world: World, me: int, slot: int, run: Run) -> Outcomes:
        return self._finish(world, me, slot, run, End(SUCCEEDED, closed(run, SUCCEEDED), or_cancel=False))

    @_call("runs.fail", writes=True)
    def fail(self, world: World, me: int, slot: int, run: Run, attempts: tuple[str, ...]) -> Outcomes:
        return self._finish(world, me, slot, run, End(FAILED, attempts))

    @_call("runs.hand_over", writes=True)
    def hand_over(self, world: World, me: int, slot: int, run: Run, revision: int) -> Outcomes:
        end = End(FAILED, earlier_closed(run), or_cancel=False, revision=revision)
        return self._finish(world, me, slot, run, end)

    @_call("runs.exhaust", writes=True)
    def exhaust(self, world: World, me: int, slot: int, run: Run, attempts: tuple[str, ...]) -> Outcomes:
        return self._finish(world, me, slot, run, End(DEAD_LETTERED, attempts))

    @_call("runs.cancel", writes=True)
    def cancel_run(self, world: World, me: int, slot: int, run: Run, attempts: tuple[str, ...]) -> Outcomes:
        return self._finish(world, me, slot, run, End(CANCELLED, attempts, or_cancel=False))

    @_call("runs.skip_started", writes=True)
    def skip_started(self, world: World, me: int, slot: int, run: Run) -> Outcomes:
        return self._finish(world, me, slot, run, End(SKIPPED, ()))

    @_call("runs.forget_start", writes=True)
    def forget_start(self, world: World, me: int, slot: int, run: Run, anyway: bool = False) -> Outcomes:
        there = world.runs[slot]
        if there and self.is_mine(there, run, me) and (anyway or not there.cancel_requested):
            return [(self._run_written(world, slot, None), OK)]
        return [(world, self._not_mine(there, run, me))]

    def _finish(self, world: World, me: int, slot: int, run: Run, end: End) -> Outcomes:
        world = _outside(world, me)
        there = world.runs[slot]
        if there and self.is_mine(there, run, me) and not (end.or_cancel and there.cancel_requested):
            number = run.number - (len(run.attempts) - len(end.attempts))
            revision = end.revision or there.revision
            done = Run(end.status, revision, number, end.attempts, cancelled_at=there.cancelled_at)
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
        if {*world.called[slot], *lost} < set(range(1, self.max_attempts + 1)):
            raise ViolationError(f"I7: run {slot} is dead-lettered after calls {world.called[slot]}")

    @_call("runs.get")
    def get_run(self, world: World, me: int, slot: int) -> Outcomes:
        there = world.runs[slot]
        return [(world, there and as_read(there))]

    @_call("runs.get")
    def get_own_run(self, world: World, me: int, slot: int, run: Run) -> Outcomes:
        """None if the run is not that of the attempt any more."""
        there = world.runs[slot]
        return [(_outside(world, me), as_read(there) if there and self.is_mine(there, run, me) else None)]

    @_call("runs.newest")
    def newest(self, world: World, me: int) -> Outcomes:
        return [(world, tuple(run and as_read(run) for run in world.runs))]

    @_call("runs.get_many")
    def over_among(self, world: World, me: int, messages: tuple[Message, ...]) -> Outcomes:
        runs = [(message.slot, world.runs[message.slot]) for message in messages]
        return [(world, frozenset(slot for slot, run in runs if run and self.is_done(run)))]

    def is_done(self, run: Run) -> bool:
        """Whether recovery need not send the run's message: started is not enough, the start may be withdrawn."""
        return run.status in OVER

    @_call("runs.spans")
    def recorded(self, world: World, me: int) -> Outcomes:
        return [(world, frozenset(slot for slot, run in enumerate(world.runs) if run))]

    @_call("runs.open")
    def open_runs(self, world: World, me: int) -> Outcomes:
        found = tuple((slot, as_read(run)) for slot, run in enumerate(world.runs) if run and run.status not in OVER)
        return [(world, found)]

    @_call("runs.request_cancel waiting", writes=True)
    def cancel_waiting(self, world: World, me: int, slot: int, revision: int) -> Outcomes:
        run = world.runs[slot]
        if run and run.status == FAILED and self.is_of(run, revision):
            return [(self._run_written(world, slot, run._replace(status=CANCELLED)), CANCELLED)]
        return [(world, run.status if run and self.is_of(run, revision) else None)]

    @_call("runs.request_cancel running", writes=True)
    def mark_running(self, world: World, me: int, slot: int, revision: int) -> Outcomes:
        run = world.runs[slot]
        if run and run.status == RUNNING and self.is_of(run, revision):
            return [(with_run(world, slot, run._replace(cancelled_at=revision)), RUNNING)]
        return [(world, run.status if run and self.is_of(run, revision) else None)]

    def is_of(self, run: Run, revision: int) -> bool:
        """Whether the run was started for the job that was cancelled, and not for one that took its place since."""
        return run.revision < revision

    # --- shared/queue.py

    @_call("queue.send", writes=True)
    def send(self, world: World, me: int, messages: tuple[Message, ...]) -> Outcomes:
        sent = [Letter(message) for message in messages]
        return [(world._replace(queue=tuple(sorted((*world.queue, *sent)))), None)]

    @_call("acknowledge", at_once=True)
    def acknowledge(self, world: World, me: int) -> Outcomes:
        """By Lambda's poller. A receipt that has grown old may delete nothing."""
        return [(world._replace(queue=tuple(letter for letter in world.queue if letter.holder != me)), None)]

    @_call("dead_letters.send", writes=True)
    def send_dead_letter(self, world: World, me: int, slot: int) -> Outcomes:
        return [(world._replace(dead_letters=world.dead_letters | {slot}), None)]

    # --- the target and the user

    @_call("target.call")
    def call_target(self, world: World, me: int, slot: int, run: Run, work: Work) -> Outcomes:
        """AttemptFlow._hold, and the handler begins; it ends with the next call of the attempt.

        A lease that the reads before it used up is renewed, if the run is still this attempt's.
        """
        there = world.runs[slot]
        if not self.holds(there, run, me):
            return [(world, LEASE_LOST)]
        if there and self.is_mine(there, run, me):
            world = with_run(world, slot, there._replace(lease=True))
        if slot not in work.slots:
            raise ViolationError(f"the handler of {work.by} is called for {slot}, which is no occurrence of it")
        self._check_call(world, me, slot, run, work.by)
        called = (*world.called[:slot], (*world.called[slot], run.number), *world.called[slot + 1 :])
        begun = world._replace(called=called, inside=tuple(sorted((*world.inside, (me, slot)))))
        return [(begun, SUCCEEDED), *([(begun, FAILED)] if self.failures else [])]

    def holds(self, there: Run | None, run: Run, me: int) -> bool:
        return there is not None and self.is_mine(there, run, me)

    def _check_call(self, world: World, me: int, slot: int, run: Run, by: str) -> None:
        there, calls = world.runs[slot], world.called[slot]
        if slot >= world.now:
            raise ViolationError(f"I3: the handler is called for {slot} before it is due")
        if there and there.status == SUCCEEDED:
            raise ViolationError(f"I2: the handler is called for {slot} after it succeeded")
        if any(other == slot for _, other in world.inside):
            raise ViolationError(f"I2: two attempts of {slot} call its handler at one time")
        if there is None or there.worker != me or not there.lease:
            raise ViolationError(f"I2: the handler is called for {slot} by an attempt that does not have the run")
        if calls and run.number <= calls[-1]:
            raise ViolationError(f"I7: the handler is called for {slot} as attempt {run.number}, after {calls}")
        if run.number > self.max_attempts:
            raise ViolationError(f"I7: the handler is called for {slot} as attempt {run.number}")
        told = world.cancelled
        if told and told.by == by and (slot, run.number) not in told.running:
            raise ViolationError(f"I5: the handler is called for {slot} after cancel was answered")

    @_call("answer cancelled")
    def answer_cancelled(self, world: World, me: int, by: str, running: tuple[int, ...]) -> Outcomes:
        going_on = tuple((slot, run.number) for slot in running if (run := world.runs[slot]))
        return [(world._replace(cancelled=Answer(by, going_on)), None)]

    @_call("answer 201", at_once=True)
    def answer_accepted(self, world: World, me: int, by: str) -> Outcomes:
        return [(world._replace(accepted=world.accepted | {by}), None)]


def _outside(world: World, me: int) -> World:
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


def told(value: object) -> str:
    """A value as a trace shows it: `0@r1` is occurrence 0 under revision 1."""
    match value:
        case Call() | Claim():
            return str(value)
        case Work(by, _):
            return f"of {by}"
        case Message(slot, revision):
            return f"{slot}@r{revision}"
        case Run():
            return f"{value.status} (attempt {value.number})"
        case Refused(there):
            return f"refused: {told(there)}"
        case Job():
            return f"{value.by} r{value.revision} {value.status} due {value.due}"
        case Page():
            return f"page {value.name} {told(value.messages)}"
        case tuple() | frozenset():
            return "[" + " ".join(map(told, value)) + "]"
        case None:
            return "–"
    return str(value)
