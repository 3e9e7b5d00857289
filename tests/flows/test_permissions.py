"""The rights that each function has, held against the AWS calls that its flow makes: none missing, none spare."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from infra.permissions import PERMISSIONS, FunctionName
from shared.flows.batch import Wish
from shared.model.errors import ConflictError
from shared.rules.listing import ListQuery, plan_list
from shared.store import keys
from tests.support import calls, faults
from tests.support.aws import Aws
from tests.support.calls import Call, Observer
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

# Lambda's poller calls these in the executor's name.
BY_LAMBDA = {("sqs:ReceiveMessage", "jobs"), ("sqs:DeleteMessage", "jobs"), ("sqs:GetQueueAttributes", "jobs")}


class Used(Observer):
    """The IAM actions of the calls made while `function` is at work, with what they were made on."""

    order = calls.LOG

    def __init__(self, aws: Aws) -> None:
        self.aws = aws
        self.function: FunctionName | None = None
        self.found: dict[str, set[tuple[str, str]]] = {name: set() for name in PERMISSIONS}

    def on_answer(self, call: Call) -> None:
        if self.function:
            self.found[self.function].add(self.action(call))

    def action(self, call: Call) -> tuple[str, str]:
        if call.service == "sqs":
            queues = dict.fromkeys(self.aws.queue_urls.values(), "jobs")
            queues[self.aws.dead_letter_queue_url] = "dead_letters"
            return f"sqs:{call.operation.removesuffix('Batch')}", queues[call.asked["QueueUrl"]]
        if call.operation == "BatchExecuteStatement":
            (verb,) = {statement["Statement"].split()[0].title() for statement in call.asked["Statements"]}
            return f"dynamodb:PartiQL{verb}", "table"
        indexes = {None: "table", keys.DUE_INDEX: "index", keys.LIST_INDEX: "lists"}
        return f"dynamodb:{call.operation}", indexes[call.asked.get("IndexName")]

    @contextlib.contextmanager
    def by(self, function: FunctionName) -> Iterator[None]:
        self.function = function
        try:
            yield
        finally:
            self.function = None


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.fixture
def used(aws: Aws) -> Iterator[Used]:
    collector = Used(aws)
    with calls.observing(collector):
        yield collector


def submit_uses(world: World, used: Used) -> None:
    def once(key: str, call: Any) -> None:
        world.api.idempotency.once(
            caller="me", key=key, body="{}", job_id="x", token=key, now=world.clock.now(), call=call
        )

    def refuse(_: Any) -> str:
        raise ConflictError("no")

    with used.by("submit"):
        world.submit(job_id="near", run_at="2026-11-30T11:58:00Z")
        world.submit(job_id="far", run_at="2026-11-30T12:30:00Z", payload='"' + "x" * 600 + '"')
        world.submit(job_id="child", depends_on=("near",))
        world.api.batch.submit([Wish("one", replace(world.show("far").job.spec, job_id="one"))], world.clock.now())
        world.show("far")
        world.runs("near")
        world.api.inspect.health(world.clock.now())
        in_two_hours = {"due_from": at("12:00"), "due_to": at("14:00")}
        for query in (ListQuery(), ListQuery(group="g"), ListQuery(**in_two_hours)):
            world.api.search.page(query, plan_list(query), None, 20, world.clock.now())
        assert len(world.api.cursor_secret.get()) >= 32
        once("fine", lambda _: "{}")
        with contextlib.suppress(ConflictError):
            once("refused", refuse)


def execute_uses(world: World, used: Used) -> None:
    world.submit(job_id="long", run_at="2026-11-30T11:58:00Z", payload='"' + "x" * 600 + '"')
    world.submit(job_id="void", run_at="2026-11-30T11:58:05Z")
    world.submit(job_id="waits", run_at="2026-11-30T11:58:00Z")
    for job_id in ("fails", "stays"):
        world.submit(job_id=job_id, run_at="2026-11-30T11:58:00Z", max_attempts=1)
    world.submit(job_id="alone", run_at="2026-11-30T11:58:00Z", overlap="skip", group="g")
    with used.by("submit"):
        world.cancel("void")
        world.api.groups.limit("g", 1, world.clock.now())
    world.target.script = lambda call: failure() if call.job_id in ("waits", "fails", "stays") else SUCCEED
    world.clock.advance(5)
    with used.by("execute"):
        world.deliver()
    world.clock.advance(20)
    with used.by("execute"):  # that one's next attempt fails, too, and its message is received for the 500th time
        (waits,) = (one for one in world.receive() if '"waits"' in one.body)
        world.acknowledge(world.executor.run([replace(waits, receive_count=500)]))
    with used.by("submit"):
        world.cancel("waits")
    assert world.statuses("fails") == ["dead_lettered"]


def tick_and_audit_use(world: World, used: Used) -> None:
    world.submit(job_id="missed", cron="*/10 * * * *", start_at="2026-11-30T12:10:00Z", catch_up="skip")
    world.submit(job_id="early", run_at="2026-11-30T12:10:00Z")
    with faults.crash(before="sqs:SendMessageBatch"):
        world.submit(job_id="lost", run_at="2026-11-30T11:59:00Z")
    world.clock.set(at("12:06"))
    with used.by("tick"):
        (ticked,) = world.tick()
    assert (ticked.recovered, ticked.claimed.won) == (1, 2)
    world.clock.set(at("12:11"))
    world.deliver()
    world.submit(job_id="overdue", cron="*/10 * * * *", start_at="2026-11-30T12:20:00Z", catch_up="skip")
    world.clock.set(at("13:00"))
    with used.by("audit"):
        assert world.audit().overdue >= 2
    with used.by("execute"):  # among them, occurrences that are recorded as skipped
        world.deliver()
    world.clock.advance(timedelta(days=2).total_seconds())
    fails = next(run for run in world.runs("fails") if run.status == "dead_lettered")
    world.redrive("fails", fails.scheduled_for)
    with used.by("audit"):
        world.audit()


def test_the_rights_are_the_calls(aws: Aws, clock: ManualClock, used: Used) -> None:
    world = World(aws, clock)
    submit_uses(world, used)
    execute_uses(world, used)
    tick_and_audit_use(world, used)
    granted = {name: {(grant.action, grant.resource) for grant in grants} for name, grants in PERMISSIONS.items()}
    granted["execute"] -= BY_LAMBDA
    assert used.found == granted
