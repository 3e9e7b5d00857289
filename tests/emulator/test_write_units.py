"""What a run costs in write units, from the emulator's ConsumedCapacity, all of it counted: submit to success.

For PartiQL statements the emulator counts 1 each; what DynamoDB charges for the index besides is added here: 1 to put
a job into it or take it out, 2 to move it (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html).
"""

import threading
from datetime import datetime
from typing import Any

import pytest

from shared.flows import claims
from shared.flows.batch import Wish
from shared.model.job import JobSpec, Schedule, Target
from shared.store import keys
from tests.support import calls, partiql
from tests.support.aws import Aws
from tests.support.calls import Call, Observer
from tests.support.clocks import ManualClock
from tests.support.world import World

JOBS = 100
PAYLOAD = '{"order":"%s"}' % ("x" * 300)
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchExecuteStatement"}


class WriteUnits(Observer):
    """Asks for the capacity of every write and adds it up, by operation and kind of item."""

    order = calls.LOG

    def __init__(self) -> None:
        self.by_kind: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def total(self) -> float:
        return sum(self.by_kind.values())

    def on_request(self, call: Call) -> None:
        if call.operation in WRITES:
            call.params["ReturnConsumedCapacity"] = "TOTAL"

    def on_answer(self, call: Call) -> None:
        if call.operation not in WRITES or call.answer is None:
            return
        consumed: Any = call.answer["ConsumedCapacity"]
        if call.operation == "BatchExecuteStatement":
            units = sum(one["CapacityUnits"] for one in consumed)
            units += sum(self._index_units(statement["Statement"]) for statement in call.params["Statements"])
            kind = self._kind(call.params["Statements"][0])
        else:
            units = consumed["CapacityUnits"]
            kind = (call.params.get("Item") or call.params["Key"])[keys.SK]["S"].partition("#")[0]
        with self._lock:
            name = f"{call.operation} {kind}"
            self.by_kind[name] = self.by_kind.get(name, 0) + units

    @staticmethod
    def _kind(statement: dict[str, Any]) -> str:
        is_of_run = any(value.get("S", "").startswith(keys.RUN_PREFIX) for value in statement["Parameters"])
        if partiql.is_insert(statement["Statement"]):
            return "start" if is_of_run else "job"
        return "end" if is_of_run else "claim"

    @staticmethod
    def _index_units(statement: str) -> int:
        if partiql.is_insert(statement):
            return 1 if f"'{keys.DUE_KEY}'" in statement else 0
        return 2 if f'SET "{keys.DUE_KEY}"' in statement else 1 if f'REMOVE "{keys.DUE_KEY}"' in statement else 0


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.mark.parametrize(("page", "most"), [(25, 6.07), (100, 6.08)])
def test_what_a_one_off_costs(
    aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, page: int, most: float
) -> None:
    monkeypatch.setattr(claims, "PAGE_CLAIMS", page)
    world = World(aws, clock)
    units = WriteUnits()
    with calls.observing(units):
        for _ in range(JOBS):
            world.submit(run_at="2026-11-30T12:05:00Z", payload=PAYLOAD, name="an ordinary job")
        clock.set(at("12:01"))
        assert world.tick()[0].claimed.won == JOBS
        clock.set(at("12:05:00"))
        world.deliver()
    assert set(world.target.counts().values()) == {1}
    assert sum(world.target.counts().values()) == JOBS
    assert units.total / JOBS <= most, units.by_kind
    alone = units.by_kind.get("UpdateItem run", 0)  # an end that came more than 10 ms after others of its batch
    ends = units.by_kind["BatchExecuteStatement end"] + alone
    assert (units.by_kind["BatchExecuteStatement start"], ends) == (JOBS, JOBS)  # 1 unit each


@pytest.mark.parametrize(("page", "most"), [(25, 5.07), (100, 5.08)])
def test_what_a_recurring_run_costs(
    aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, page: int, most: float
) -> None:
    monkeypatch.setattr(claims, "PAGE_CLAIMS", page)
    world = World(aws, clock)
    for _ in range(JOBS):
        world.submit(cron="*/10 * * * *", start_at="2026-11-30T12:05:00Z", payload=PAYLOAD, name="an ordinary job")
    units = WriteUnits()
    runs = 0
    with calls.observing(units):
        for tick, due in (("12:06", "12:10"), ("12:16", "12:20")):
            clock.set(at(tick))
            runs += world.tick()[0].claimed.sent
            clock.set(at(due))
            world.deliver()
    assert runs == 2 * JOBS
    assert sum(world.target.counts().values()) == runs
    assert units.total / runs <= most, units.by_kind


class Requests(Observer):
    """How many requests were made."""

    order = calls.LOG

    def __init__(self) -> None:
        self.count = 0

    def on_answer(self, call: Call) -> None:
        self.count += 1


NEAR = ("12:00:05", (3.0, 4.0), (1.06, 0.16))  # due at once: journaled and sent
FAR = ("14:00:00", (2.0, 1.0), (2.0, 0.04))  # into the index


@pytest.mark.parametrize(("due", "one_by_one", "together"), [NEAR, FAR])
def test_what_a_hundred_jobs_in_one_call_save(
    aws: Aws, clock: ManualClock, due: str, one_by_one: tuple[float, float], together: tuple[float, float]
) -> None:
    """Write units and requests a job."""
    clock.set(at("12:00"))
    world, target = World(aws, clock), Target(kind="python", params={"handler": "demo.echo"})

    def spec() -> JobSpec:
        return JobSpec(
            job_id=world.api.new_job_id(),
            name="an ordinary job",
            target=target,
            payload=PAYLOAD,
            schedule=Schedule(run_at=at(due)),
        )

    for most, submit in (
        (one_by_one, lambda specs: [world.api.submit.submit(one, clock.now()) for one in specs]),
        (together, lambda specs: world.api.batch.submit([Wish(one.job_id, one) for one in specs], clock.now())),
    ):
        units, requests = WriteUnits(), Requests()
        with calls.observing(units), calls.observing(requests):
            submit([spec() for _ in range(JOBS)])
        assert (units.total / JOBS, requests.count / JOBS) == most, units.by_kind
