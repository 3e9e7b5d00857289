"""Each write path: no bare word in its expressions (C59), and none makes an item that was not there (C46)."""

import contextlib
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from shared.model.call import Call
from shared.model.errors import JobNotFoundError
from shared.model.run import Result
from tests.support import calls, faults
from tests.support.aws import Aws, all_items
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

RUN_WRITE = faults.writes("run#")
JOB_WRITE = faults.writes("job")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def submit(world: World, **spec: Any) -> None:
    world.submit(job_id="a", **({"run_at": "2026-11-30T11:58:00Z"} | spec))


def ran(world: World, script: Callable[[Call], Result], **spec: Any) -> None:
    world.target.script = script
    submit(world, **spec)
    world.deliver()


def cancelled_while(world: World, then: Result) -> None:
    ran(world, lambda call: (world.cancel("a"), then)[1])


def cancelled_waiting(world: World) -> None:
    ran(world, lambda call: failure())
    world.cancel("a")


def cancelled_before(world: World) -> None:
    submit(world)
    world.cancel("a")
    world.deliver()


def cancelled_after_due(world: World) -> None:
    submit(world, cron="* * * * *", run_at=None)
    world.clock.set(at("11:59:30"))
    world.cancel("a")
    world.deliver()


def submitted_again(world: World) -> None:
    submit(world, run_at="2026-11-30T12:30:00Z")
    world.cancel("a")
    world.clock.advance(1)
    submit(world, run_at="2026-11-30T12:31:00Z")


def ticked(world: World, **spec: Any) -> None:
    submit(world, **spec)
    world.clock.set(at("12:29"))
    world.tick()
    world.deliver()


PATHS: dict[str, Callable[[World], None]] = {
    "create": lambda world: submit(world, run_at="2026-11-30T12:30:00Z"),
    "create, payload apart": lambda world: submit(world, payload='"' + "x" * 600 + '"'),
    "replace": submitted_again,
    "claim, the last": lambda world: ticked(world, run_at="2026-11-30T12:30:00Z"),
    "claim, more to come": lambda world: ticked(world, run_at=None, cron="30 * * * *"),
    "record a skip": lambda world: ticked(
        world, run_at=None, cron="*/5 * * * *", start_at="2026-11-30T12:05:00Z", catch_up="skip"
    ),
    "succeed": lambda world: ran(world, lambda call: SUCCEED),
    "fail": lambda world: ran(world, lambda call: failure()),
    "exhaust": lambda world: ran(world, lambda call: failure(), max_attempts=1),
    "request cancel, succeed": lambda world: cancelled_while(world, SUCCEED),
    "request cancel, fail": lambda world: cancelled_while(world, failure()),
    "cancel a waiting run": cancelled_waiting,
    "forget a start": cancelled_before,
    "skip a start": cancelled_after_due,
}
_WORDS = re.compile(r"(?<![#:\w])([A-Za-z_]\w*)\b(?!\s*\()")
_ALLOWED = {"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "IN", "BETWEEN"}


@pytest.mark.parametrize("path", PATHS)
def test_c59_every_name_is_a_placeholder(aws: Aws, clock: ManualClock, path: str) -> None:
    world = World(aws, clock)
    if path == "record a skip":
        world.tick()
    with faults.logging() as log:
        PATHS[path](world)
    expressions = [
        text
        for call in log.seen
        for name, text in call.asked.items()
        if name.endswith("Expression") and call.service == "dynamodb"
    ]
    assert expressions
    for text in expressions:
        assert set(_WORDS.findall(text)) <= _ALLOWED, text


# C46: an item that vanishes just before a write of it does not come back as a fragment.

SPEC = {"run_at": "2026-11-30T12:30:00Z"}
VANISHING: dict[str, tuple[Callable[[World], None], Callable[[Any], bool], int]] = {
    "cancel": (lambda world: (submit(world, **SPEC), world.cancel("a"))[0], JOB_WRITE, 2),
    "claim": (
        lambda world: ticked(world, **SPEC),
        lambda call: call.operation == "BatchExecuteStatement",
        1,
    ),
    "succeed": (PATHS["succeed"], RUN_WRITE, 2),
    "fail": (PATHS["fail"], RUN_WRITE, 2),
    "exhaust": (PATHS["exhaust"], RUN_WRITE, 2),
    "request cancel": (PATHS["request cancel, succeed"], RUN_WRITE, 2),
    "cancel a waiting run": (PATHS["cancel a waiting run"], RUN_WRITE, 3),
    "forget a start": (PATHS["forget a start"], RUN_WRITE, 2),
    "skip a start": (PATHS["skip a start"], RUN_WRITE, 2),
    "release": (lambda world: world.tick() and None, faults.writes("lease"), 2),
}


@pytest.mark.parametrize("path", VANISHING)
def test_c46_no_write_makes_a_ghost_of_an_item_that_is_gone(aws: Aws, clock: ManualClock, path: str) -> None:
    world = World(aws, clock)
    do, match, nth = VANISHING[path]
    kinds = {"claim": "job", "cancel": "job", "release": "lease"}
    sk = kinds.get(path, "run#")
    seen: list[None] = []

    def vanish(call: faults.Call) -> bool:
        if match(call):
            seen.append(None)
            if len(seen) == nth:
                for item in world.items(sk):
                    with calls.unseen():
                        aws.dynamodb.delete_item(TableName=aws.table, Key={"pk": item["pk"], "sk": item["sk"]})
        return False

    with faults.refusing(vanish), contextlib.suppress(JobNotFoundError):
        do(world)
    assert len(seen) >= nth
    assert [item["sk"]["S"] for item in all_items(aws) if item["sk"]["S"].startswith(sk)] == []
