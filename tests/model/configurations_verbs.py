"""What is searched of pause, resume, update, trigger and redrive, on one job id. Each is searched to the end."""

from typing import Any

from tests.model.configuration import EXECUTE, TICK, Configuration
from tests.model.world import (
    ALL,
    DEAD_LETTERED,
    FAILED,
    LATEST,
    SCHEDULED,
    SKIP,
    Budget,
    Job,
    Letter,
    Message,
    Run,
    Spec,
    Submission,
)

WAITING = Job("A", Spec((0, 1)), status=SCHEDULED, due=0, claimed=None, revision=1, changed=0)
THREE = WAITING._replace(spec=Spec((0, 1, 2)))
TWO_OF_THREE = WAITING._replace(spec=Spec((0, 1, 2), max_runs=2))
ONCE = Job("A", Spec((0,), one_off=True), status=SCHEDULED, due=None, claimed=0, revision=1, changed=0)
CLAIMED = ONCE._replace(spec=Spec((0,)))
IDLE = Job("A", Spec(()), status=SCHEDULED, due=None, claimed=None, revision=1, changed=0)
SENT = (Letter(Message(0, 1)),)
DEAD = Run(DEAD_LETTERED, 1, 2, (FAILED, FAILED), begun=frozenset({"A"}))
BOTH = ("pause", "resume")


def _pause(name: str, **more: Any) -> Configuration:
    """A pause and a resume, each at any moment."""
    given: dict[str, Any] = {"jobs": (WAITING,), "users": BOTH, "quick": TICK}
    return Configuration(name=f"pause: {name}", due=0, **given | more)


def _missed(name: str, catch_up: str, *, executors: int = 1, **more: Any) -> Configuration:
    """What a pause leaves behind is made up for. All that is due counts as missed here, so no call takes any time."""
    job = THREE._replace(spec=Spec((0, 1, 2), catch_up=catch_up, **more))
    return _pause(name, jobs=(job,), occurrences=3, per_claim=3, executors=executors, instant=True)


def _update(name: str, **more: Any) -> Configuration:
    given: dict[str, Any] = {"jobs": (WAITING,), "occurrences": 3, "updates": (Spec((1, 2)),), "quick": TICK}
    return Configuration(name=f"update: {name}", **{"due": 0} | given | more)


def _trigger(name: str, **more: Any) -> Configuration:
    given: dict[str, Any] = {"jobs": (CLAIMED,), "occurrences": 1, "due": 0, "queue": SENT, "users": ("trigger",)}
    return Configuration(name=f"trigger: {name}", **given | more)


def _redrive(name: str, **more: Any) -> Configuration:
    given: dict[str, Any] = {"jobs": (CLAIMED,), "occurrences": 1, "due": 1, "runs": (DEAD,), "redrives": 1}
    return Configuration(name=f"redrive: {name}", failures=True, **given | more)


AGAIN: dict[str, Any] = {
    "jobs": (IDLE,),
    "due": 1,
    "queue": (),
    "users": ("trigger", "cancel"),
    "specs": (Submission("B", Spec((0,), one_off=True)),),
}

TO_LATER, POLICY = Spec((1,), one_off=True), Spec((), policy="new")

VERBS = (
    _pause("a crash", budget=Budget(crashes=1)),
    _pause("a lost answer", budget=Budget(lost_answers=1)),
    _pause("two executors, failures", executors=2, failures=True),
    _pause("beside a tick, a crash", quick=EXECUTE, far=True, budget=Budget(crashes=1), large=True),
    _pause("beside a tick", quick=EXECUTE, far=True),
    _pause("twice", users=BOTH + BOTH, quick=TICK | EXECUTE, large=True),
    _pause("and cancel", users=("cancel", *BOTH), quick=TICK | EXECUTE),
    _pause(
        "a one-off, failures and a crash",
        jobs=(ONCE,),
        occurrences=1,
        queue=SENT,
        failures=True,
        budget=Budget(crashes=1),
    ),
    _missed("max_runs", ALL, max_runs=2),
    _pause("max_runs, beside a tick", jobs=(TWO_OF_THREE,), occurrences=3, per_claim=3, quick=EXECUTE),
    _missed("max_runs, the latest is run", LATEST, max_runs=2),
    _missed("the latest is run", LATEST),
    _missed("all are skipped", SKIP, executors=2),
    _update("a crash", budget=Budget(crashes=1), large=True),
    _update("a crash, one of its times is due", due=1, budget=Budget(crashes=1)),
    _update("a lost answer", due=1, budget=Budget(lost_answers=1)),
    _update(
        "a one-off to a later time, failures and a crash",
        jobs=(ONCE,),
        occurrences=2,
        queue=SENT,
        updates=(TO_LATER,),
        failures=True,
        executors=2,
        budget=Budget(crashes=1),
    ),
    _update(
        "of when and of policies, a lost answer",
        jobs=(ONCE,),
        occurrences=2,
        queue=SENT,
        updates=(TO_LATER, POLICY),
        budget=Budget(lost_answers=1),
    ),
    _update(
        "of policies, beside a tick", occurrences=2, updates=(POLICY,), quick=EXECUTE, budget=Budget(lost_answers=1)
    ),
    _update("and pause", jobs=(ONCE,), occurrences=2, queue=SENT, updates=(TO_LATER,), users=BOTH, large=True),
    _update("and cancel", jobs=(ONCE,), occurrences=2, queue=SENT, updates=(TO_LATER,), users=("cancel",)),
    _trigger("failures and a crash", failures=True, budget=Budget(crashes=1)),
    _trigger(
        "a refused read, a lost answer, a message twice",
        executors=2,
        budget=Budget(errors=1, lost_answers=1, duplicates=1),
    ),
    _trigger("and cancel, a crash", users=("trigger", "cancel"), executors=2, budget=Budget(crashes=1)),
    _trigger("and pause, a crash", users=("trigger", "pause"), budget=Budget(crashes=1)),
    _trigger("a purged queue", audit=True, budget=Budget(purges=1, crashes=1)),
    _trigger("and the same id again", **AGAIN),
    _trigger("and the same id again, a lost answer", **AGAIN, budget=Budget(lost_answers=1), large=True),
    _redrive("two, a crash", redrives=2, budget=Budget(crashes=1)),
    _redrive("two, a lost answer", redrives=2, budget=Budget(lost_answers=1)),
    _redrive(
        "a refused read, a lost answer, a message twice",
        queue=SENT,
        executors=2,
        budget=Budget(errors=1, duplicates=1, lost_answers=1),
    ),
    _redrive("two stalls", executors=2, budget=Budget(stalls=2)),
    _redrive("and cancel, a crash", users=("cancel",), executors=2, budget=Budget(crashes=1)),
    _redrive("and pause, a crash", users=BOTH, budget=Budget(crashes=1)),
    _redrive(
        "and an update, a crash",
        jobs=(ONCE,),
        occurrences=2,
        runs=(DEAD, None),
        updates=(TO_LATER,),
        budget=Budget(crashes=1),
        large=True,
    ),
    _redrive("and an update", jobs=(ONCE,), occurrences=2, runs=(DEAD, None), updates=(TO_LATER,)),
    _redrive("a purged queue", audit=True, budget=Budget(purges=1, crashes=1)),
    _redrive(
        "and the same id again",
        jobs=(ONCE,),
        occurrences=2,
        due=2,
        runs=(DEAD, None),
        specs=(Submission("B", TO_LATER),),
    ),
)
