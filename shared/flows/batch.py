"""Many jobs in one call: each judged alone, parents before children, written 25 to a request. It never runs a job.

As for one job: journal pages → writes → sends → settle. A generation of jobs is written only when that of its parents
is there, so that no child is left without them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from shared.clock import Clock
from shared.flows.claims import claimed_at_once, over_at
from shared.flows.dependencies import Above, Parents, refuse_bad_list
from shared.flows.enqueue import Enqueuer, Written
from shared.flows.families import Families
from shared.flows.inspect import JobView, view
from shared.flows.submit import SubmitFlow, new_job
from shared.model.errors import ConflictError, InputError, UnavailableError
from shared.model.job import Job, JobSpec
from shared.model.message import Message
from shared.rules.dependencies import in_generations
from shared.rules.sharding import shard_of
from shared.store.job_batches import InsertOutcome, JobBatches, NewJob
from shared.store.jobs import STATEMENTS, is_same

AHEAD_S = 120  # what is due later is left to the ticks, two of which come by then: a dense schedule has many times
WRITING = timedelta(seconds=18)  # after that no further write is begun,
SENDING = timedelta(seconds=22)  # and after that no further send: the function has 29 s in all
TRIES = 4

Answer = JobView | Exception


@dataclass(frozen=True, slots=True)
class Wish:
    """One job of the call. Without `spec`, `answer` says why not, or that an earlier try of the call has made it."""

    job_id: str | None
    spec: JobSpec | None
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class _Task:
    """A job to be written. `claimed` is as it is stored, and `messages` are what that stands for."""

    job: Job
    claimed: Job
    messages: tuple[Message, ...]
    ttl: datetime | None


@dataclass(slots=True)
class _Call:
    """What is known of one call while it is at work. `specs`: of those that are not answered yet, by id."""

    now: datetime
    came_at: datetime
    answers: list[Answer | None]
    places: dict[str, int]  # of each id that the call has, the first
    specs: dict[str, JobSpec]
    messages: list[Message] = field(default_factory=list)  # of the jobs that are written
    sure: bool = True  # whether nothing else is written

    def answer(self, job_id: str, answer: Answer) -> None:
        self.answers[self.places[job_id]] = answer
        self.specs.pop(job_id, None)

    def judge(self, rule: Callable[[str, JobSpec], object]) -> None:
        """Refuse those that `rule` raises for."""
        for job_id, spec in list(self.specs.items()):
            try:
                rule(job_id, spec)
            except (InputError, UnavailableError) as error:
                self.answer(job_id, error)

    def refuse_orphans(self) -> None:
        """Refuse those of which a parent in this call is refused, and so on down."""
        before = -1
        while before != len(self.specs):
            before = len(self.specs)
            self.judge(lambda _, spec: self.refuse_orphan(spec))

    def refuse_orphan(self, spec: JobSpec) -> None:
        """Raises InputError where a parent in this call is refused."""
        for number, parent_id in enumerate(spec.depends_on):
            place = self.places.get(parent_id)
            answer = self.answers[place] if place is not None else None
            if isinstance(answer, UnavailableError):
                raise UnavailableError(f"{parent_id!r}, jobs[{place}], could not be written")
            if isinstance(answer, Exception):
                raise InputError(f"depends_on[{number}]", f"{parent_id!r}, jobs[{place}], is refused")


@dataclass(frozen=True, slots=True)
class BatchFlow:
    """Takes up to 100 new jobs at once. `pause(seconds)` is called before what was throttled is tried again."""

    one: SubmitFlow
    parents: Parents
    families: Families
    batches: JobBatches
    enqueuer: Enqueuer
    clock: Clock
    pause: Callable[[float], None]

    def submit(self, wishes: Sequence[Wish], now: datetime, came_at: datetime | None = None) -> list[Answer]:
        """What became of each, in their order: the job, or why it was not taken.

        `came_at`: when the request came, if that was before `now`: its time counts from then.
        Raises what AWS raises before the first job is written: then none is.
        """
        call = _call(wishes, now, came_at or now)
        above = self._judge(call)
        generations = in_generations({job_id: spec.depends_on for job_id, spec in call.specs.items()})
        tasks = self._tasks(call)
        if tasks:
            self._store(call, tasks, generations, above)
        return [answer or UnavailableError("not written") for answer in call.answers]

    def _judge(self, call: _Call) -> Above:
        """Refuse the jobs that cannot have their parents; what was read of those that are there."""
        call.judge(refuse_bad_list)
        call.refuse_orphans()
        own = dict(call.specs)
        above = self.parents.above((parent for spec in own.values() for parent in spec.depends_on), own)
        call.judge(lambda job_id, _: self.parents.judge(job_id, own, above, call.now))
        call.refuse_orphans()
        return above

    def _tasks(self, call: _Call) -> dict[str, _Task]:
        """The jobs as they are to be written; one with children in this call says so from the start."""
        parents = {parent_id for spec in call.specs.values() for parent_id in spec.depends_on}
        tasks: dict[str, _Task] = {}

        def add(job_id: str, spec: JobSpec) -> None:
            job = replace(new_job(spec, job_id, call.now, self.one.token()), has_children=job_id in parents)
            claimed, messages = claimed_at_once(job, call.now, min(AHEAD_S, self.one.changer.horizon_s))
            tasks[job_id] = _Task(job, claimed, messages, over_at(claimed, call.now, self.one.jobs.retention))

        call.judge(add)
        return tasks

    def _store(self, call: _Call, tasks: dict[str, _Task], generations: Sequence[Sequence[str]], above: Above) -> None:
        self.batches.put_payloads([task.job for task in tasks.values()])
        self.families.link([(task.job, above.parents) for task in tasks.values()], call.now)
        due: dict[int, list[Message]] = {}
        for job_id, task in tasks.items():
            due.setdefault(shard_of(job_id, self.one.jobs.shards), []).extend(task.messages)

        def write() -> Written:
            for generation in generations:
                call.refuse_orphans()
                left = [tasks[job_id] for job_id in generation if job_id in call.specs]
                for start in range(0, len(left), STATEMENTS):
                    self._insert(call, left[start : start + STATEMENTS])
            return Written(call.messages, call.sure)

        self.enqueuer.run_all({shard: found for shard, found in due.items() if found}, write, call.came_at + SENDING)

    def _insert(self, call: _Call, tasks: Sequence[_Task]) -> None:
        """Write some jobs and answer them."""
        left = list(tasks)
        for attempt in range(TRIES):
            if not left or self.clock.now() >= call.came_at + WRITING:
                break
            if attempt:
                self.pause(0.05 * 4**attempt)
            outcomes = self._outcomes(left)
            again = []
            for task, outcome in zip(left, outcomes, strict=True):
                if outcome in (InsertOutcome.THROTTLED, InsertOutcome.UNSURE):
                    call.sure = call.sure and outcome is InsertOutcome.THROTTLED
                    again.append(task)
                else:
                    self._answer(call, task, outcome)
            left = again
        for task in left:
            call.answer(task.job.job_id, UnavailableError(f"job {task.job.job_id!r} could not be written"))

    def _outcomes(self, tasks: Sequence[_Task]) -> list[InsertOutcome]:
        try:
            return self.batches.insert([NewJob(task.claimed, task.ttl) for task in tasks])
        except (ClientError, BotoCoreError):
            return [InsertOutcome.UNSURE] * len(tasks)

    def _answer(self, call: _Call, task: _Task, outcome: InsertOutcome) -> None:
        job_id = task.job.job_id
        if outcome is InsertOutcome.MADE:
            call.messages += task.messages
            call.answer(job_id, view(task.claimed, (), call.now))
            return
        try:
            there = self.one.jobs.get(job_id)
            if there is not None and is_same(task.job, there):  # a first try took effect, and its answer was lost
                call.messages += task.messages
                call.answer(job_id, view(task.claimed, (), call.now))
            elif there is not None:
                call.answer(job_id, self.one.again(task.job, there, call.now))
            else:
                call.answer(job_id, ConflictError(f"job {job_id!r} was just being removed; try again"))
        except ConflictError as error:
            call.answer(job_id, error)
        except (ClientError, BotoCoreError):
            call.sure = False
            call.answer(job_id, UnavailableError(f"job {job_id!r} could not be written"))


def _call(wishes: Sequence[Wish], now: datetime, came_at: datetime) -> _Call:
    """A call at its beginning: an id that comes a second time is refused there."""
    call = _Call(now, came_at, [wish.answer for wish in wishes], {}, {})
    for place, wish in enumerate(wishes):
        if wish.job_id is None:
            continue
        first = call.places.setdefault(wish.job_id, place)
        if first != place:
            call.answers[place] = ConflictError(f"job {wish.job_id!r} is in this call already, as jobs[{first}]")
        elif wish.spec is not None and wish.answer is None:
            call.specs[wish.job_id] = wish.spec
    return call
