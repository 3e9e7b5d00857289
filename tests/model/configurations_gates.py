"""What is searched of overlap, a group's limit and depends_on. Each is searched to the end."""

from typing import Any

from tests.model.configuration import TICK, Configuration
from tests.model.world import (
    DEAD_LETTERED,
    FAILED,
    SCHEDULED,
    Budget,
    Job,
    Letter,
    Message,
    Place,
    Run,
    Spec,
    Submission,
)

DEAD = Run(DEAD_LETTERED, 1, 2, (FAILED, FAILED), begun=frozenset({"A"}))
PARENT = Job("A", Spec((0,), one_off=True), status=SCHEDULED, due=None, claimed=0, revision=1, changed=0)
CHILD = PARENT._replace(by="C", spec=Spec((1,), one_off=True, parents=(0,)), claimed=1, id=1)
TO_PARENT, TO_CHILD = Letter(Message(0, 1)), Letter(Message(1, 1, job=1))


def _job(count: int, **spec: Any) -> Job:
    """Claimed, with all its messages sent."""
    spec = Spec(tuple(range(count)), **spec)  # type: ignore[assignment]
    return Job("A", spec, status=SCHEDULED, due=None, claimed=count - 1, revision=1, changed=0)  # type: ignore[arg-type]


def _sent(count: int) -> tuple[Letter, ...]:
    return tuple(Letter(Message(slot, 1)) for slot in range(count))


def _overlap(policy: str, name: str, count: int = 2, **more: Any) -> Configuration:
    given: dict[str, Any] = {"jobs": (_job(count, overlap=policy),), "queue": _sent(count), "ticks": 0, "executors": 2}
    return Configuration(name=f"overlap {policy}: {name}", occurrences=count, due=count, **given | more)


def _overlaps(policy: str) -> tuple[Configuration, ...]:
    redriven: dict[str, Any] = {
        "queue": _sent(2)[1:],
        "runs": (DEAD, None),
        "place": Place(0, version=1),
        "redrives": 1,
    }
    by_user: dict[str, Any] = {"ticks": 1, "quick": TICK, "budget": Budget(crashes=1)}
    return (
        _overlap(policy, "failures and a crash", failures=True, budget=Budget(crashes=1)),
        _overlap(policy, "a stall, a message twice", budget=Budget(stalls=1, duplicates=1)),
        _overlap(policy, "a refused read, a lost answer", budget=Budget(errors=1, lost_answers=1)),
        _overlap(policy, "three runs", 3),
        _overlap(policy, "and cancel", users=("cancel",)),
        _overlap(policy, "and pause, a crash", users=("pause", "resume"), **by_user),
        _overlap(policy, "and redrive, a crash", **redriven, **by_user),
        _overlap(policy, "and trigger, a crash", 1, users=("trigger",), **by_user),
        _overlap(policy, "which was allow", jobs=(_job(2),), updates=(Spec((), overlap=policy),)),
    )


def _group(name: str, count: int = 2, limit: int = 1, **more: Any) -> Configuration:
    given: dict[str, Any] = {"jobs": (_job(count, limited=True),), "queue": _sent(count), "ticks": 0, "executors": 2}
    return Configuration(name=f"max_running: {name}", occurrences=count, due=count, limit=limit, **given | more)


def _depends(name: str, **more: Any) -> Configuration:
    given: dict[str, Any] = {"jobs": (PARENT, CHILD), "owner": (0, 1), "queue": (TO_PARENT, TO_CHILD), "ticks": 0}
    return Configuration(name=f"depends_on: {name}", **{"executors": 2} | given | more)


RUNS_ANYWAY = CHILD._replace(spec=CHILD.spec._replace(on_parent_failure="run"))
OF_TWO = CHILD._replace(spec=CHILD.spec._replace(parents=(0, 2)))
OTHER_PARENT = PARENT._replace(by="P", spec=Spec((2,), one_off=True), claimed=2, id=2)
TO_OTHER = Letter(Message(2, 1, job=2))

GATES = (
    *_overlaps("skip"),
    *_overlaps("queue"),
    *_overlaps("replace"),
    _group("failures and a crash", failures=True, budget=Budget(crashes=1)),
    _group("two crashes", budget=Budget(crashes=2)),
    _group("a stall, a message twice", budget=Budget(stalls=1, duplicates=1)),
    _group("two stalls", budget=Budget(stalls=2)),
    _group("a crash and a stall", budget=Budget(crashes=1, stalls=1), large=True),
    _group("refused calls, a lost answer", budget=Budget(errors=2, lost_answers=1)),
    _group("three runs at two places", 3, limit=2, executors=3),
    _group("three runs at two places, a crash", 3, limit=2, budget=Budget(crashes=1)),
    _group("three runs at two places, a stall", 3, limit=2, executors=3, budget=Budget(stalls=1), large=True),
    _group("and cancel", users=("cancel",)),
    _group("and overlap, a crash", jobs=(_job(2, limited=True, overlap="queue"),), budget=Budget(crashes=1)),
    _group(
        "and redrive, a crash", queue=_sent(2)[1:], runs=(DEAD, None), redrives=1, ticks=1, budget=Budget(crashes=1)
    ),
    _depends("failures and a crash", failures=True, budget=Budget(crashes=1)),
    _depends("a stall, a message twice", budget=Budget(stalls=1, duplicates=1)),
    _depends("a refused read, a lost answer", budget=Budget(errors=1, lost_answers=1)),
    _depends("and cancel of the parent, a crash", users=("cancel",), budget=Budget(crashes=1)),
    _depends("runs whatever became of its parent", jobs=(PARENT, RUNS_ANYWAY), failures=True, budget=Budget(crashes=1)),
    _depends(
        "two parents, failures",
        jobs=(PARENT, OF_TWO, OTHER_PARENT),
        owner=(0, 1, 2),
        occurrences=3,
        due=3,
        queue=(TO_PARENT, TO_CHILD, TO_OTHER),
        failures=True,
        max_attempts=1,
    ),
    _depends(
        "and redrive of the parent, a crash",
        queue=(TO_CHILD,),
        runs=(DEAD, None),
        redrives=1,
        ticks=1,
        quick=TICK,
        budget=Budget(crashes=1),
    ),
    _depends(
        "and an update of the parent",
        owner=(0, 1, 0),
        occurrences=3,
        due=3,
        updates=(Spec((2,), one_off=True),),
    ),
    _depends(
        "submitted beside its parent, a crash",
        jobs=(PARENT, None),
        queue=(TO_PARENT,),
        specs=(Submission("C", CHILD.spec, job=1),),
        ticks=1,
        quick=TICK,
        budget=Budget(crashes=1),
    ),
)
