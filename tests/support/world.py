"""The whole system on a stand-in for AWS, driven by hand: submit, tick, deliver, with a scripted target and a clock.

The words are those of the behaviour cases. It never decides anything for the product: it only calls the flows.
"""

import contextlib
import threading
import unittest.mock
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from functions.submit.models import Limits
from functions.submit.patch import patched, read_patch
from shared.flows.audit import Audited
from shared.flows.execute import ExecuteFlow, Handled, Received
from shared.flows.inspect import JobView
from shared.flows.tick import Ticked, TickFlow
from shared.flows.workshop import Ended
from shared.model.call import Call
from shared.model.job import PRIORITIES, JobSpec, Priority, Retry, Target
from shared.model.run import Outcome, Result, Run
from shared.rules.schedules import read_schedule
from shared.settings import AuditSettings, ExecuteSettings, SubmitSettings, TickSettings
from shared.targets.target import Signals
from shared.wiring import base
from shared.wiring.api import Api, build_api
from shared.wiring.audit import build_audit
from shared.wiring.execute import build_execute
from shared.wiring.tick import build_tick
from tests.support import calls
from tests.support.aws import Aws, all_items
from tests.support.clocks import ManualClock

SUCCEED = Result(outcome=Outcome.SUCCEEDED, result="null")


def failure(text: str = "no luck") -> Result:
    return Result(outcome=Outcome.FAILED, error=text)


def _received(message: Any, priority: Priority) -> Received:
    attributes = message.get("Attributes", {})
    return Received.of(message["MessageId"], message["ReceiptHandle"], message["Body"], attributes, priority)


@dataclass
class ScriptedTarget:
    """A target that does what its script says and keeps every call. The default script succeeds.

    A script finds the signals of its attempt in `signals`, by job id.
    """

    clock: ManualClock
    script: Callable[[Call], Result] = lambda call: SUCCEED
    calls: list[tuple[Call, datetime]] = field(default_factory=list)
    signals: dict[str, Signals] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, call: Call, signals: Signals) -> Result:
        with self._lock:
            self.calls.append((call, self.clock.now()))
            self.signals[call.job_id] = signals
        return self.script(call)

    def counts(self) -> Counter[str]:
        """Calls by job id."""
        return Counter(call.job_id for call, _ in self.calls)

    def slots(self, job_id: str) -> list[datetime]:
        """The occurrences that were called for, in their own order: the runs of one batch start in any."""
        return sorted(call.scheduled_for for call, _ in self.calls if call.job_id == job_id)


@dataclass
class World:
    """One deployment in this process. Times are moved by `clock` only."""

    aws: Aws
    clock: ManualClock
    horizon_s: int = 300
    shards: int = 1  # that jobs are spread over
    ticked_shards: int = 0  # if more than these
    retention_days: int = 30

    def __post_init__(self) -> None:
        self.target = ScriptedTarget(self.clock)
        self.fraction = 1.0  # of the longest backoff
        self.pauses: list[float] = []  # what the product would have slept between two tries, in seconds
        with unittest.mock.patch.object(base, "SEND_PAUSE", self.pauses.append):
            self._build()

    def _build(self) -> None:
        self.api: Api = build_api(self._settings(SubmitSettings), self._clients(), self.clock, frozenset({"demo.echo"}))
        self.ticker: TickFlow = build_tick(self._settings(TickSettings), self._clients(), self.clock)
        self.executor: ExecuteFlow = self.new_executor()
        self.auditor = build_audit(self._settings(AuditSettings), self._clients(), self.clock)

    def new_executor(self, target: Any = None, renew_every_s: float = 20) -> ExecuteFlow:
        """One more executor, as a second execution environment would be. Its backoffs are `fraction` of the longest."""
        settings = self._settings(ExecuteSettings)
        built = build_execute(settings, self._clients(), self.clock, target or self.target)
        workshop = replace(built.workshop, fraction=lambda: self.fraction)
        return replace(built, workshop=workshop, renew_every_s=renew_every_s)

    def _clients(self) -> base.Clients:
        return base.Clients(self.aws.dynamodb, self.aws.sqs)

    def _settings(self, kind: Any) -> Any:
        values = {
            "table": self.aws.table,
            "queue_url": self.aws.queue_url,
            "high_queue_url": self.aws.queue_urls["high"],
            "low_queue_url": self.aws.queue_urls["low"],
            "dead_letter_queue_url": self.aws.dead_letter_queue_url,
            "shards": self.shards,
            "ticked_shards": self._ticked,
            "horizon_s": self.horizon_s,
            "retention_days": self.retention_days,
            "max_timeout_s": 105,
            "segments": 1,
        }
        return kind(**{name: values[name] for name in kind.variables()})

    def submit(
        self,
        *,
        job_id: str | None = None,
        payload: str = "null",
        max_attempts: int = 3,
        base_s: float = 10,
        max_s: float = 3600,
        factor: float = 2,
        retry_on: tuple[str, ...] = (),
        give_up_on: tuple[str, ...] = (),
        **spec: Any,
    ) -> JobView:
        """Submit a job for the scripted target; schedule fields as on the wire (`run_at`, `cron`, `every`, …)."""
        names = (
            "run_at",
            "cron",
            "every",
            "timezone",
            "start_at",
            "end_at",
            "max_runs",
            "jitter_s",
            "dst_gap",
            "catch_up",
        )
        given = {name: spec.pop(name) for name in names if name in spec}
        job_id = job_id or self.api.new_job_id()
        now = self.clock.now()
        if "depends_on" in spec and not given:
            given["run_at"] = now.isoformat()
        return self.api.submit.submit(
            JobSpec(
                job_id=job_id,
                target=Target(kind="python", params={"handler": "demo.echo"}),
                payload=payload,
                schedule=read_schedule(now=now, job_id=job_id, **given),
                retry=Retry(
                    max_attempts=max_attempts,
                    base_s=base_s,
                    factor=factor,
                    max_s=max_s,
                    retry_on=retry_on,
                    give_up_on=give_up_on,
                ),
                **spec,
            ),
            now,
        )

    def cancel(self, job_id: str) -> JobView:
        return self.api.control.cancel(job_id, self.clock.now())

    def pause(self, job_id: str) -> JobView:
        return self.api.control.pause(job_id, self.clock.now())

    def resume(self, job_id: str) -> JobView:
        return self.api.control.resume(job_id, self.clock.now())

    def trigger(self, job_id: str) -> Run:
        return self.api.again.trigger(job_id, self.clock.now())

    def redrive(self, job_id: str, scheduled_for: datetime) -> Run:
        return self.api.again.redrive(job_id, scheduled_for, self.clock.now())

    def patch(self, job_id: str, /, **changes: Any) -> JobView:
        """Change a job; fields as on the wire. `if_version`: the version that it must have."""
        now = self.clock.now()
        version = changes.pop("if_version", None)
        limits = Limits(self.api.handler_names, self.api.settings.max_timeout_s)
        return self.api.control.update(
            job_id,
            lambda spec: patched(spec, read_patch(changes), limits, now),
            None if version is None else frozenset({version}),
            now,
        )

    def show(self, job_id: str) -> JobView:
        return self.api.inspect.job(job_id, self.clock.now())

    def runs(self, job_id: str) -> list[Run]:
        """All runs, oldest first."""
        found: list[Run] = []
        before = None
        while True:
            page = self.api.inspect.runs(job_id, before, 100)
            found += page.runs
            before = page.before
            if before is None:
                return found[::-1]

    def tick(self, stop_after_s: float = 45) -> list[Ticked]:
        """The minute tick of every shard, now."""
        now = self.clock.now()
        return [self.ticker.run(shard, now, now + timedelta(seconds=stop_after_s)) for shard in range(self._ticked)]

    @property
    def _ticked(self) -> int:
        return max(self.shards, self.ticked_shards)

    def receive(self, *priorities: Priority) -> list[Received]:
        """Up to 10 messages that are visible now, as Lambda's poller would take them: all of one queue.

        The first of `priorities` that has any; unless told, of all three, the most urgent first.
        """
        for priority in priorities or PRIORITIES:
            with calls.unseen():
                answer = self.aws.sqs.receive_message(
                    QueueUrl=self.aws.queue_urls[priority],
                    MaxNumberOfMessages=10,
                    MessageSystemAttributeNames=["All"],
                )
            if found := answer.get("Messages", []):
                return [_received(message, priority) for message in found]
        return []

    def acknowledge(self, handled: list[Handled]) -> None:
        """Delete what is done, as Lambda's poller would after the answer."""
        for one in handled:
            if one.ended.done:
                # A receipt may be too old by now; the message then comes again, as on AWS.
                with calls.unseen(), contextlib.suppress(self.aws.sqs.exceptions.ReceiptHandleIsInvalid):
                    url = self.aws.queue_urls[one.received.priority]
                    self.aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=one.received.receipt)

    def acknowledge_unseen(self) -> None:
        """Take every visible message off the queues: it is lost."""
        while batch := self.receive():
            self.acknowledge([Handled(received, None, Ended(done=True)) for received in batch])

    def deliver(self) -> list[Handled]:
        """Hand every visible message to the executor, until none is visible."""
        handled: list[Handled] = []
        while batch := self.receive():
            done = self.executor.run(batch)
            self.acknowledge(done)
            handled += done
        return handled

    def pass_time(self, seconds: float, step_s: float = 10) -> None:
        """Let time pass: a delivery every `step_s`, a tick every minute."""
        until = self.clock.now() + timedelta(seconds=seconds)
        next_tick = self.clock.now() + timedelta(seconds=60)
        while self.clock.now() < until:
            self.clock.advance(min(step_s, (until - self.clock.now()).total_seconds()))
            if self.clock.now() >= next_tick:
                self.tick()
                next_tick += timedelta(seconds=60)
            self.deliver()

    def items(self, sk: str = "") -> list[dict[str, Any]]:
        """The table's items whose sort key begins with `sk`."""
        return [item for item in all_items(self.aws) if item["sk"]["S"].startswith(sk)]

    def audit(self) -> Audited:
        """The hourly audit, now."""
        now = self.clock.now()
        return self.auditor.run(now, now + timedelta(seconds=60))

    def statuses(self, job_id: str) -> list[str]:
        """The runs' states, oldest first."""
        return [str(run.status) for run in self.runs(job_id)]
