"""Faults of single answers: at every step of a story an error, a refused part of a batch, an empty page; and trouble
that lasts: duplicates, disorder, a lagging index, skewed clocks.

A fault has a one-line name, `<story> @ throttled 17` or `<story> @ index lags`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.faults.checker import Promise, Violation, check
from tests.faults.history import History
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.system import Hook, Step, System, deployed
from tests.support.fault_injection import cut_off, refused, throttled

BATCHES = ("SendMessageBatch", "BatchExecuteStatement", "BatchGetItem")
STORIES = (
    "one-off, near",
    "one-off, far",
    "one-off, just beyond the horizon",
    "failure, then success",
    "exhaustion",
    "several occurrences in one claim",
    "a batch that starts and ends together",
    "cancel while it runs and while it waits",
    "journal recovery",
    "the audit",
    "pause and resume, near",
    "pause of a one-off while it runs, waits and is yet to come",
    "pause of what no tick has claimed, and resume",
    "another schedule, near",
    "another schedule for what no tick has claimed",
    "another payload and policy",
    "trigger, also of a paused job, and cancel",
    "trigger of a job that is paused",
    "trigger of an id that is then another job's",
    "redrive of one run",
)


@dataclass(frozen=True)
class Kind:
    """One kind of fault of an answer: `applies` to a step, strikes it instead of its effect or after it."""

    name: str
    applies: Callable[[Step], bool]
    instead: Callable[[Step], dict[str, Any] | None] = lambda step: None
    after: Callable[[Step], None] = lambda step: None


def _raising(error: Callable[[], Exception]) -> Callable[[Step], Any]:
    def strike(step: Step) -> None:
        raise error()

    return strike


def _is_call(step: Step) -> bool:
    return step.call is not None


def _is_batch(step: Step) -> bool:
    return step.call is not None and step.call.operation in BATCHES


def _is_query(step: Step) -> bool:
    return step.call is not None and step.call.operation in ("Query", "Scan")


def _nothing_taken(step: Step) -> dict[str, Any]:
    """Every entry is refused inside an answer that is otherwise a success."""
    assert step.call is not None
    params = step.call.params
    if step.call.operation == "SendMessageBatch":
        failed = [{"Id": one["Id"], "SenderFault": False, "Code": "InternalError"} for one in params["Entries"]]
        return {"Successful": [], "Failed": failed}
    if step.call.operation == "BatchGetItem":
        return {"Responses": {}, "UnprocessedKeys": params["RequestItems"]}
    error = {"Error": {"Code": "ThrottlingError", "Message": "injected by the test"}}
    return {"Responses": [error for _ in params["Statements"]]}


def _first_reported_as_refused(step: Step) -> None:
    """All took effect; of the first entry the answer says that it did not."""
    assert step.call is not None
    assert step.call.answer is not None
    answer = step.call.answer
    if step.call.operation == "SendMessageBatch":
        first = answer["Successful"].pop(0)
        answer["Failed"] = [{"Id": first["Id"], "SenderFault": False, "Code": "InternalError"}]
    elif step.call.operation == "BatchExecuteStatement":
        answer["Responses"][0] = {"Error": {"Code": "InternalServerError", "Message": "injected by the test"}}
    else:
        ((table, request),) = step.call.params["RequestItems"].items()
        answer["Responses"][table] = answer["Responses"][table][1:]
        answer["UnprocessedKeys"] = {table: {**request, "Keys": request["Keys"]}}


def _empty_page(step: Step) -> dict[str, Any] | None:
    """No item, and a key to go on from that lies before all others."""
    assert step.call is not None
    params = step.call.params
    if "ExclusiveStartKey" in params:
        return None
    low = {"S": "!"}
    key = {"pk": low, "sk": low} | ({"due_key": low, "due_at": low} if "IndexName" in params else {})
    return {"Items": [], "LastEvaluatedKey": key}


def _forward_query(step: Step) -> bool:
    return _is_query(step) and bool(step.call and step.call.params.get("ScanIndexForward", True))


KINDS = (
    Kind("throttled", _is_call, instead=_raising(throttled)),
    Kind("500", _is_call, instead=_raising(lambda: refused("InternalServerError", status=500))),
    Kind("answer lost", _is_call, after=_raising(cut_off)),
    Kind("all refused", _is_batch, instead=_nothing_taken),
    Kind("done and reported as refused", _is_batch, after=_first_reported_as_refused),
    Kind("empty page", _forward_query, instead=_empty_page),
)


class _Striking(Hook):
    def __init__(self, kind: Kind | None, number: int) -> None:
        self.kind, self.number, self.seen = kind, number, list[Step]()

    def before(self, step: Step) -> None:
        self.seen.append(step)

    def answer(self, step: Step) -> dict[str, Any] | None:
        return self.kind.instead(step) if self.kind and step.number == self.number else None

    def after(self, step: Step) -> None:
        if self.kind and step.number == self.number and step.call is not None:
            self.kind.after(step)


@dataclass(frozen=True)
class Struck:
    """What came of one fault."""

    name: str
    violations: tuple[Violation, ...]


def _told(scenario: Scenario, hook: _Striking) -> tuple[History, list[Step]]:
    with deployed(hook) as system:
        scenario.story(system)
        steps = list(hook.seen)
        system.hook = Hook()
        system.settle(scenario.settle_s)
        return system.end(), steps


def _promised(scenario: Scenario) -> Promise:
    """An answer that is lost may cost what a crash costs, and an attempt that was begun and not made."""
    return replace(scenario.promise, late_s=max(scenario.promise.late_s, 800), lost_attempts=1)


def every_answer(scenario: Scenario, stride: int = 1) -> Iterator[Struck]:
    """Each kind of fault at each step that it applies to."""
    _, steps = _told(scenario, _Striking(None, 0))
    places = [(kind, step) for kind in KINDS for step in steps if kind.applies(step)]
    for kind, step in places[::stride]:
        history, _ = _told(scenario, _Striking(kind, step.number))
        found = tuple(check(history, _promised(scenario)))
        yield Struck(f"{scenario.name} @ {kind.name} {step.number} ({step})", found)


# Trouble that lasts for a whole story

Trouble = Callable[[System], None]


def _duplicates(system: System) -> None:
    system.duplicates = True


def _disorder(system: System) -> None:
    system.newest_first = True


def _index_lag(system: System) -> None:
    system.table.index_lag_s = 500  # an entry then appears behind the watermark


TROUBLES: dict[str, tuple[dict[str, Any], Trouble]] = {
    "every message twice": ({}, _duplicates),
    "newest message first": ({}, _disorder),
    "index lags 500 s": ({}, _index_lag),
    **{
        f"{ahead} +2 s, {behind} -2 s": ({"skews": {ahead: 2, behind: -2}}, lambda system: None)
        for ahead, behind in (("tick", "execute"), ("execute", "tick"), ("submit", "execute"), ("execute", "submit"))
    },
}


def every_trouble(scenario: Scenario) -> Iterator[Struck]:
    """The story under each trouble that lasts."""
    for name, (how, trouble) in TROUBLES.items():
        with deployed(**how) as system:
            trouble(system)
            scenario.story(system)
            system.settle(scenario.settle_s)
            history = system.end()
        late_s = max(scenario.promise.late_s, 600)
        promise = replace(scenario.promise, late_s=late_s, ticks=10 if "index" in name else 2)
        yield Struck(f"{scenario.name} @ {name}", tuple(check(history, promise)))


def stories() -> list[Scenario]:
    return [SCENARIOS[name] for name in STORIES]
