"""One deployment in memory whose every step can be counted, stopped or broken, and which records its history.

A process is one invocation: of the tick, the executor, the audit or the API. A step is an AWS call of a process, the
call of a handler, its end, or the acknowledgement of a batch. Pools run at one worker, so a process is one thread.
"""

import json
import threading
import unittest.mock
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from shared.clock import Clock
from shared.flows.batch import Answer, Wish
from shared.flows.execute import Handled, Received
from shared.flows.inspect import JobView
from shared.model.call import Call as HandlerCall
from shared.model.errors import DuetimeError
from shared.model.instants import from_sort_text, from_text
from shared.model.job import JobSpec, Schedule, Target
from shared.model.run import Result
from shared.rules.lease import LEASE_MARGIN_S, LEASE_MAX_S
from shared.store import keys
from shared.store.journal import page_of
from shared.store.shards import Shards
from shared.store.table import Table
from shared.targets.target import Signals
from shared.wiring import base
from tests.faults.history import (
    Called,
    CancelAsked,
    Cancelled,
    ChangeAsked,
    Crashed,
    Ended,
    Event,
    Failed,
    History,
    JobCancelled,
    JobRuled,
    Journaled,
    LimitSeen,
    PolicySeen,
    RedriveAsked,
    Redriven,
    Returned,
    RunSeen,
    Sent,
    Stored,
    Submitted,
    Ticked,
    Times,
    TriggerAsked,
    Triggered,
)
from tests.support import calls, memory_backend
from tests.support.calls import Call, Observer
from tests.support.clocks import START, ManualClock
from tests.support.memory_dynamodb import Key, MemoryTable
from tests.support.memory_expressions import Item
from tests.support.memory_sqs import MemoryQueue
from tests.support.world import World

READS = ("GetItem", "BatchGetItem", "Query", "Scan")
CALL, HANDLER, ACKNOWLEDGE = "call", "handler", "acknowledge"
DELIVERIES = 50  # of one moment; more would be a message that comes back at once for ever


class CrashError(BaseException):
    """The process dies here; not an Exception, so that nothing in the product goes on after it."""


@dataclass(eq=False)
class Process:
    """One invocation. `kind` is tick, execute, audit, submit or cancel."""

    kind: str
    name: str
    is_dead: bool = False


@dataclass(frozen=True)
class Step:
    """Step `number` of the story, from 1. `call` is None where it is no AWS call."""

    number: int
    process: Process
    name: str
    call: Call | None = None

    @property
    def has_effect(self) -> bool:
        return self.name != CALL and (self.call is None or self.call.operation not in READS)

    def __str__(self) -> str:
        return f"{self.process.kind}: {self.name}"


class Hook:
    """What an engine does at each step. Here: nothing."""

    def before(self, step: Step) -> None:
        """It has not taken effect."""

    def answer(self, step: Step) -> dict[str, Any] | None:
        """An answer in place of the service's."""
        return None

    def after(self, step: Step) -> None:
        """It has taken effect, and its answer may be changed in place or withheld."""


class Inline(Executor):
    """A pool of one worker: the caller itself. `working_on` is what it was given last, in this thread."""

    def __init__(self) -> None:
        self._here = threading.local()

    @property
    def working_on(self) -> Any:
        return getattr(self._here, "given", None)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        before, self._here.given = self.working_on, args[0] if args else None
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - as a pool's worker does
            future.set_exception(error)
        self._here.given = before  # a handler may have delivered others meanwhile
        return future


@dataclass(frozen=True)
class Skewed:
    """A clock that is `seconds` ahead of `clock`."""

    clock: Clock
    seconds: float

    def now(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.seconds)


class _Steps(Observer):
    order = calls.FAULTS

    def __init__(self, system: "System") -> None:
        self._system = system

    def answer(self, call: Call) -> dict[str, Any] | None:
        step = self._system.begins(_name_of(call), call)
        call.notes["step"] = step
        return self._system.hook.answer(step)

    def on_answer(self, call: Call) -> None:
        step: Step = call.notes["step"]
        if call.status == 200:
            self._system.sent(step.process, call)
        self._system.hook.after(step)


@dataclass
class System(World):
    """The deployment. Make it with `deployed`."""

    hook: Hook = field(default_factory=Hook)
    skews: dict[str, float] = field(default_factory=dict)  # process kind → seconds its clock is ahead
    handler: Callable[[HandlerCall], Result] | None = None
    newest_first: bool = False  # deliveries out of order
    duplicates: bool = False  # each message is delivered twice

    def __post_init__(self) -> None:
        self.history = History()
        self.steps = 0
        self.audit_every_s: float | None = None
        self._next_audit: datetime | None = None
        self._crash_at: str | None = None
        self.inline = Inline()
        self._here = threading.local()
        self._next_tick = self.clock.now().replace(second=1) + timedelta(minutes=1)
        super().__post_init__()

    def _build(self) -> None:
        # In the place of random names, so that a run can be repeated.
        token = map("{:08d}".format, count(1)).__next__
        with unittest.mock.patch.object(base, "token", token):
            self._build_parts()

    def _build_parts(self) -> None:
        clock: Any = self.clock
        built: dict[str, Any] = {}
        for kind in ("submit", "tick", "execute", "audit"):
            skew = self.skews.get(kind, 0)
            self.clock = Skewed(clock, skew) if skew else clock  # type: ignore[assignment]
            super()._build()
            built[kind] = {"submit": self.api, "tick": self.ticker, "execute": self.executor, "audit": self.auditor}[
                kind
            ]
            if not self.skews:
                break
        self.clock = clock
        self.api = built.get("submit", self.api)
        self.ticker = built.get("tick", self.ticker)
        executor = replace(built.get("execute", self.executor), pool=self.inline)
        self.executor = replace(executor, workshop=replace(executor.workshop, targets=self, problem=lambda _: None))
        self.auditor = replace(built.get("audit", self.auditor), pool=Inline())

    # what is there

    @property
    def table(self) -> MemoryTable:
        dynamodb: Any = self.aws.dynamodb
        return dynamodb.table  # type: ignore[no-any-return]

    @property
    def queue(self) -> MemoryQueue:
        sqs: Any = self.aws.sqs
        return sqs.queues[memory_backend.JOBS]  # type: ignore[no-any-return]

    def after(self, seconds: float) -> str:
        """The moment so many seconds from now, as the API takes it."""
        return (self.clock.now() + timedelta(seconds=seconds)).isoformat()

    # processes and steps

    def process(self, kind: str, work: Callable[[], Any]) -> Any:
        """One invocation of `kind` in this thread, also from within a handler; None if it died or failed."""
        outer = getattr(self._here, "process", None)
        process = self._here.process = Process(kind, f"{kind} {self.clock.now():%H:%M:%S}")
        try:
            return work()
        except CrashError:
            return None
        except DuetimeError as error:
            self.note(Failed, process=process.name, error=repr(error), expected=True)
        except Exception as error:  # noqa: BLE001 - an AWS error that was injected, or a fault of the product
            self.note(Failed, process=process.name, error=repr(error), expected="injected" in str(error).lower())
        finally:
            self._here.process = outer

    def begins(self, name: str, call: Call | None = None) -> Step:
        """The next step of this thread's process."""
        process: Process | None = getattr(self._here, "process", None)
        if process is None:
            raise AssertionError(f"{name} is made by no process")
        if process.is_dead:
            raise CrashError
        self.steps += 1
        step = Step(self.steps, process, name, call)
        self.hook.before(step)
        if self._crash_at is not None and str(step).startswith(self._crash_at):
            self._crash_at = None
            self.dies(step, "before")
        return step

    def crash_before(self, step: str) -> None:
        """The next process that comes to a step of this name (`tick: SendMessageBatch`) dies before it."""
        self._crash_at = step

    def dies(self, step: Step, when: str) -> None:
        """The process of `step` dies."""
        step.process.is_dead = True
        self.note(Crashed, process=step.process.name, step=f"{when} {step}")
        raise CrashError(str(step))

    def _own_step(self, name: str) -> None:
        self.hook.after(self.begins(name))

    # what the processes do

    def submit_job(
        self,
        job_id: str,
        *,
        in_s: float | None = None,
        every_s: float | None = None,
        runs: int | None = None,
        max_attempts: int = 3,
        **spec: Any,
    ) -> JobView | None:
        """Submit a one-off due in `in_s`, or a job `every_s` (`runs` times, if given)."""
        first = self.clock.now() + timedelta(seconds=every_s if in_s is None and every_s is not None else in_s or 0)
        schedule: dict[str, Any] = {"run_at": first.isoformat()}
        if every_s is not None:
            first = first.replace(microsecond=0)  # whole seconds, counted from the one that it is submitted in
            schedule = {"every": f"{every_s:g}s", **({"max_runs": runs} if runs else {})}
        self.note(
            Submitted,
            job_id=job_id,
            first=first,
            period_s=every_s,
            count=runs,
            max_attempts=max_attempts,
            depends_on=spec.get("depends_on", ()),
            runs_anyway=spec.get("on_parent_failure") == "run",
        )
        return self.process(  # type: ignore[no-any-return]
            "submit", lambda: self.submit(job_id=job_id, max_attempts=max_attempts, **schedule, **spec)
        )

    def submit_batch(self, **parents: tuple[str, ...]) -> list[Answer] | None:
        """Submit jobs in one call, each by its id with its parents; those without any are due in 5 s."""
        now = self.clock.now()
        target = Target(kind="python", params={"handler": "demo.echo"})
        wishes = []
        for job_id, depends_on in parents.items():
            first = now if depends_on else now + timedelta(seconds=5)
            self.note(Submitted, job_id=job_id, first=first, depends_on=depends_on)
            spec = JobSpec(job_id=job_id, target=target, schedule=Schedule(run_at=first), depends_on=depends_on)
            wishes.append(Wish(job_id, spec))
        return self.process("submit", lambda: self.api.batch.submit(wishes, now))  # type: ignore[no-any-return]

    def cancel_job(self, job_id: str) -> None:
        def work() -> None:
            self.note(CancelAsked, job_id=job_id)
            shown = self.cancel(job_id)
            running = tuple((run.scheduled_for, run.attempt) for run in shown.running)
            self.note(Cancelled, job_id=job_id, running=running)

        self.process("cancel", work)

    def limit_group(self, group: str, max_running: int | None) -> None:
        self.process("limit", lambda: self.api.groups.limit(group, max_running, self.clock.now()))

    def patch_job(self, job_id: str, /, **changes: Any) -> None:
        most = changes.get("retry", {}).get("max_attempts")
        if most is not None:
            self.note(ChangeAsked, job_id=job_id, max_attempts=most)
        self.process("patch", lambda: self.patch(job_id, **changes))

    def pause_job(self, job_id: str) -> None:
        self.process("pause", lambda: self.api.control.pause(job_id, self.api.clock.now()))

    def resume_job(self, job_id: str) -> None:
        self.process("resume", lambda: self.api.control.resume(job_id, self.api.clock.now()))

    def trigger_job(self, job_id: str) -> None:
        def work() -> None:
            self.note(TriggerAsked, job_id=job_id)
            run = self.api.again.trigger(job_id, self.api.clock.now())
            self.note(Triggered, job_id=job_id, scheduled_for=run.scheduled_for)

        self.process("trigger", work)

    def redrive_job(self, job_id: str, scheduled_for: datetime | None = None) -> None:
        """Redrive one run of the job, or all that are dead-lettered."""

        def work() -> None:
            self.note(RedriveAsked, job_id=job_id, scheduled_for=scheduled_for)
            again, now = self.api.again, self.api.clock.now()
            if scheduled_for is None:
                done = again.redrive_all(job_id, now).runs
            else:
                done = (again.redrive(job_id, scheduled_for, now).scheduled_for,)
            for moment in done:
                self.note(Redriven, job_id=job_id, scheduled_for=moment)

        self.process("redrive", work)

    def tick_now(self) -> None:
        """The minute tick of every shard."""
        for shard in range(self.shards):
            self.process("tick", lambda shard=shard: self._tick(shard))

    def _tick(self, shard: int) -> None:
        now = self.ticker.clock.now()
        overdue = tuple((job, due) for job, _, due in self.indexed() if due < now)
        done = self.ticker.run(shard, now, now + timedelta(seconds=45))
        if not done.held and done.complete:
            self.note(Ticked, overdue=overdue)

    def audit_now(self) -> int:
        """The hourly audit; how much it found."""

        def work() -> int:
            now = self.auditor.clock.now()
            return self.auditor.run(now, now + timedelta(seconds=60)).findings

        return self.process("audit", work) or 0

    def execute_batch(self, batch: list[Received]) -> None:
        """One batch handed to an executor, then acknowledged as Lambda's poller does."""

        def work() -> list[Handled]:
            handled = self.executor.run(batch)
            self._own_step(ACKNOWLEDGE)
            return handled

        self.acknowledge(self.process("execute", work) or [])

    def deliver_now(self) -> None:
        """All visible messages, until none is left."""
        for _ in range(DELIVERIES):
            batch = self.receive()
            if not batch:
                return
            if self.newest_first:
                batch.reverse()
            if self.duplicates:
                self.execute_batch(list(batch))
            self.execute_batch(batch)
        raise AssertionError(f"messages come back at once for ever: {self.queue.messages}")

    def call(self, call: HandlerCall, signals: Signals) -> Result:  # type: ignore[override]
        """The handler: it is the target of this system's executors."""
        self._own_step(CALL)
        now = self.executor.workshop.clock.now()
        about: dict[str, Any] = {"job_id": call.job_id, "scheduled_for": call.scheduled_for, "attempt": call.attempt}
        self.history.add(Called(at=now, is_current=self._is_current(call, now), **about))
        self._own_step(HANDLER)
        result = self.handler(call) if self.handler else self.target.script(call)
        if not getattr(self._here, "process").is_dead:  # noqa: B009 - set per thread
            self.note(Returned, **about)
        return result

    def renew_lease(self) -> None:
        """What the executor's keeper does every 20 s while a handler runs; called from within the handler."""
        held = self.inline.working_on
        held.flow.renew(LEASE_MAX_S + LEASE_MARGIN_S)
        self.executor.queue.hide([(held.received.receipt, LEASE_MAX_S + LEASE_MARGIN_S)], held.received.priority)

    def _is_current(self, call: HandlerCall, now: datetime) -> bool:
        key = keys.run_key(call.job_id, call.scheduled_for)
        item = self.table.get((key[keys.PK]["S"], key[keys.SK]["S"]))
        return (
            item is not None
            and item["status"]["S"] == "running"
            and int(item["attempt"]["N"]) == call.attempt
            and from_sort_text(item["lease_expires_at"]["S"]) >= now
        )

    # time

    def pass_until(self, moment: datetime, *, ticks: bool = True, deliveries: bool = True) -> None:
        """Go from event to event: the minute's tick, a message that becomes visible."""
        while self.clock.now() < moment:
            comes = self.queue.next_visible_at() if deliveries else None
            now = min(moment, self._next_tick, comes or moment)
            self.clock.set(max(now, self.clock.now()))
            if self.clock.now() >= self._next_tick:
                self._next_tick += timedelta(minutes=1)
                if ticks:
                    self.tick_now()
            if self._is_audit_due():
                self.audit_now()
            if deliveries:
                self.deliver_now()

    def _is_audit_due(self) -> bool:
        if self.audit_every_s is None:
            return False
        if self._next_audit is None or self.clock.now() >= self._next_audit:
            first = self._next_audit is None
            self._next_audit = self.clock.now() + timedelta(seconds=self.audit_every_s)
            return not first
        return False

    def pass_s(self, seconds: float, *, ticks: bool = True, deliveries: bool = True) -> None:
        self.pass_until(self.clock.now() + timedelta(seconds=seconds), ticks=ticks, deliveries=deliveries)

    def settle(self, seconds: float) -> None:
        """Let time pass until nothing is left to do, at most so long; then it is so much later."""
        until = self.clock.now() + timedelta(seconds=seconds)
        # An audit may find more to do than what can be seen.
        while self.clock.now() < until and (self.audit_every_s or not self.is_quiet()):
            self.pass_until(min(until, self.clock.now() + timedelta(minutes=1)))
        self.clock.set(max(until, self.clock.now()))

    def is_quiet(self) -> bool:
        """No message, no page, no job that waits for a tick, no run that goes on: time alone changes nothing."""
        if self.queue.messages:
            return False
        return not any(
            keys.DUE_KEY in item
            or item[keys.SK]["S"].startswith(keys.CLAIM_PREFIX)
            or (item[keys.SK]["S"].startswith(keys.RUN_PREFIX) and item["status"]["S"] in ("running", "failed"))
            for item in self.table.all()
        )

    def end(self) -> History:
        """Look at what is left; the history is over."""
        findings = self.audit_now()
        pages = sum(item[keys.SK]["S"].startswith(keys.CLAIM_PREFIX) for item in self.table.all())
        ended = Ended(
            at=self.clock.now(),
            indexed=tuple(self.indexed()),
            pages=pages,
            messages=sum(message.visible_at <= self.clock.now() for message in self.queue.messages),
            findings=findings,
        )
        self.history.add(ended)
        return self.history

    def indexed(self) -> Iterator[tuple[str, str, datetime]]:
        """Job, status, due time of what the table (not the index, which lags) has for the index."""
        for item in self.table.all():
            if keys.DUE_KEY in item:
                due_at = from_sort_text(item[keys.DUE_AT]["S"])
                yield keys.job_id_of(item[keys.PK]["S"]), item["status"]["S"], due_at

    # recording

    def note(self, kind: type[Event], **about: Any) -> None:
        self.history.add(kind(at=self.clock.now(), **about))

    def written(self, key: Key, old: Item | None, new: Item | None) -> None:
        """The table was written."""
        pk, sk = key
        if sk == keys.JOB and new is not None and _policy(new) != _policy(old or {}):
            overlap, group = _policy(new)
            self.note(PolicySeen, job_id=keys.job_id_of(pk), overlap=overlap, group=group)
        if sk == keys.LIMIT and new is not None and _limit(new) != _limit(old or {}):
            self.note(LimitSeen, group=pk.removeprefix("group#"), max_running=_limit(new))
        if sk == keys.JOB and new is not None and (old is None or old["created_at"] != new["created_at"]):
            self.note(Stored, job_id=keys.job_id_of(pk))
        elif sk == keys.JOB and new is not None and new["revision"] != (old or new)["revision"]:
            job_id, status = keys.job_id_of(pk), new["status"]["S"]
            if status == "cancelled":
                self.note(JobCancelled, job_id=job_id)
            else:
                self.note(JobRuled, job_id=job_id, status=status, times=_times(new))
        elif sk.startswith(keys.RUN_PREFIX):
            self.history.add(_run_seen(self.clock.now(), pk, sk, new))
        elif sk.startswith(keys.CLAIM_PREFIX) and new is not None:
            found = [(one.job_id, one.scheduled_for) for one in page_of(new).messages]
            self.note(Journaled, occurrences=tuple(found))

    def sent(self, process: Process, call: Call) -> None:
        """A call was answered."""
        if call.name == "sqs:SendMessageBatch":
            bodies = [json.loads(entry["MessageBody"]) for entry in call.asked["Entries"]]
            found = tuple((body["job_id"], from_text(body["scheduled_for"])) for body in bodies)
            self.note(Sent, by=process.kind, occurrences=found)


@contextmanager
def deployed(hook: Hook | None = None, **more: Any) -> Iterator[System]:
    """A new deployment whose shards have just been ticked."""
    clock = ManualClock(START)
    system = System(memory_backend.create(clock.now), clock, hook=hook or Hook(), **more)
    shards = Shards(Table(system.aws.dynamodb, system.aws.table))
    with calls.unseen():
        for shard in range(system.shards):
            lease = shards.take(shard, "before", START - timedelta(minutes=1), 50)
            assert lease is not None
            shards.release(lease, START, START)
    system.table.written = system.written
    with calls.observing(_Steps(system)):
        yield system


def _run_seen(now: datetime, pk: str, sk: str, item: Item | None) -> RunSeen:
    about: dict[str, Any] = {"job_id": keys.job_id_of(pk), "scheduled_for": keys.scheduled_for_of(sk)}
    if item is None:
        return RunSeen(at=now, status=None, **about)
    moments = {name: from_sort_text(item[name]["S"]) for name in ("lease_expires_at", "missed_until") if name in item}
    return RunSeen(
        at=now,
        status=item["status"]["S"],
        attempt=int(item["attempt"]["N"]),
        attempts_kept=len(item["attempts"]["L"]),
        reason=item.get("reason", {}).get("S"),
        requested="requested_at" in item,
        **moments,
        **about,
    )


def _times(job: Item) -> Times:
    """When the job is due from its last change on, by what the user has said."""
    said = json.loads(job["schedule"]["S"])
    if "run_at" in said:
        return Times(first=from_sort_text(said["run_at"]))
    since, first = from_sort_text(job["changed_at"]["S"]), from_sort_text(said["anchor"])
    while first <= since or ("start_at" not in said and first == from_sort_text(said["anchor"])):
        first += timedelta(seconds=said["every_s"])
    return Times(first=first, period_s=said["every_s"], count=said.get("max_runs"))


def _policy(job: Item) -> tuple[str, str | None]:
    return job.get("overlap", {"S": "allow"})["S"], job.get("group", {}).get("S")


def _limit(group: Item) -> int | None:
    return int(group["max_running"]["N"]) if "max_running" in group else None


def _name_of(call: Call) -> str:
    """`UpdateItem run`, `Query due`: what is touched, as far as the request says."""
    params = call.params
    if "IndexName" in params:
        return f"{call.operation} {params['IndexName']}"
    key = params.get("Key") or params.get("Item") or {}
    touched = key["sk"]["S"].split("#")[0] if "sk" in key else ""
    if call.operation == "UpdateItem" and touched == "run":
        return f"UpdateItem run ({_status_set(params)})"
    return f"{call.operation} {touched}".strip()


def _status_set(params: dict[str, Any]) -> str:
    """What a write makes of a run: its new status, or `start`, `renew`, `cancel requested`."""
    if "#cancel_requested =" in params["UpdateExpression"]:
        return "cancel requested"
    values = params["ExpressionAttributeValues"]
    if ":enqueued" in values and ":seen" in values:
        return "redrive"
    if ":opened" in values:
        return "start"
    status = values.get(":status", values.get(":over", values.get(":cancelled", {})))
    return str(status.get("S", "renew"))
