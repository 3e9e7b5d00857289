"""What is searched of submit, tick, execute, cancel and audit, on one job id. Each is searched to the end."""

from typing import Any

from tests.model.configuration import EXECUTE, TICK, Configuration
from tests.model.world import SCHEDULED, Budget, Job, Letter, Message, Spec, Submission

WAITING = Job("A", Spec((0, 1)), status=SCHEDULED, due=0, claimed=None, revision=1, changed=0)
ONCE = Job("A", Spec((0,), one_off=True), status=SCHEDULED, due=None, claimed=0, revision=1, changed=0)
SENT = (Letter(Message(0, 1)),)


def _ticks(name: str, **more: Any) -> Configuration:
    """Two ticks beside each other, one perhaps of an earlier minute and late."""
    return Configuration(name=f"two ticks: {name}", jobs=(WAITING,), ticks=2, quick=EXECUTE, **more)


def _executors(name: str, **more: Any) -> Configuration:
    """Two executors, with two attempts for each occurrence."""
    return Configuration(name=f"two executors: {name}", jobs=(WAITING,), executors=2, failures=True, quick=TICK, **more)


def _cancel(name: str, **more: Any) -> Configuration:
    """A cancel at any moment, beside two executors if nothing else is said."""
    given: dict[str, Any] = {"executors": 2, "quick": TICK}
    return Configuration(name=f"cancel: {name}", jobs=(WAITING,), users=("cancel",), **({"due": 1} | given | more))


def _audit(name: str, **more: Any) -> Configuration:
    """What the protocol alone does not bring back, the audit does."""
    return Configuration(name=f"audit: {name}", jobs=(WAITING,), audit=True, **more)


def _again(name: str, **more: Any) -> Configuration:
    """The same id is submitted again, by B, while A's cancel goes on or after it, with A's message on its way."""
    given: dict[str, Any] = {"specs": (LATER,), "occurrences": 1, "jobs": (ONCE,), "queue": SENT}
    given |= {"executors": 2, "quick": TICK}
    return Configuration(name=f"submitted again: {name}", due=0, users=("cancel",), **(given | more))


def _submit(name: str, **more: Any) -> Configuration:
    return Configuration(name=f"submit: {name}", due=0, quick=EXECUTE, **more)


RECURRING, FAR = Submission("A", Spec((0, 1))), Submission("A", Spec((0, 1)), near=False)
ONE_OFF, LATER_ONE_OFF = Submission("A", Spec((0,), one_off=True)), Submission("B", Spec((1,), one_off=True))
LATER = Submission("B", Spec((0,), one_off=True))

PROTOCOL = (
    _ticks("a crash", budget=Budget(crashes=1)),
    _ticks("two crashes", budget=Budget(crashes=2), large=True),
    _ticks("a claim for each occurrence, a crash", per_claim=1, budget=Budget(crashes=1)),
    _ticks("a claim for each occurrence, a lost answer", per_claim=1, budget=Budget(lost_answers=1)),
    _ticks("a lost answer and a crash", budget=Budget(lost_answers=1, crashes=1), large=True),
    _executors("two crashes", budget=Budget(crashes=2)),
    _executors("a crash, a lost answer, a message twice", budget=Budget(crashes=1, lost_answers=1, duplicates=1)),
    _executors("a refused read, a lost answer, a message twice", budget=Budget(errors=1, lost_answers=1, duplicates=1)),
    _executors("two stalls, a message twice", budget=Budget(stalls=2, duplicates=1)),
    _cancel("failures and a crash", failures=True, budget=Budget(crashes=1)),
    _cancel("failures and a lost answer", failures=True, budget=Budget(lost_answers=1)),
    _cancel("a refused read, a stall", budget=Budget(errors=1, stalls=1)),
    _cancel("beside two ticks", ticks=2, executors=1, quick=EXECUTE),
    _submit("far, two crashes", specs=(FAR,), budget=Budget(crashes=2)),
    _submit("near, two crashes and a lost answer", specs=(RECURRING,), budget=Budget(crashes=2, lost_answers=1)),
    _submit("two of one id, a crash", specs=(ONE_OFF, LATER_ONE_OFF), budget=Budget(crashes=1)),
    _submit("two of one id, two crashes", specs=(ONE_OFF, LATER_ONE_OFF), budget=Budget(crashes=2), large=True),
    _submit("two of one id, a lost answer", specs=(RECURRING, LATER_ONE_OFF), budget=Budget(lost_answers=1)),
    _submit(
        "two of one id, a lost answer and a crash",
        specs=(RECURRING, LATER_ONE_OFF),
        budget=Budget(lost_answers=1, crashes=1),
        large=True,
    ),
    _submit(
        "beside a cancel, a lost answer and a crash",
        specs=(RECURRING,),
        users=("cancel",),
        budget=Budget(lost_answers=1, crashes=1),
    ),
    _again("failures and a crash", failures=True, budget=Budget(crashes=1)),
    _again("failures and a lost answer", failures=True, budget=Budget(lost_answers=1)),
    _again("a message twice and a lost answer", budget=Budget(duplicates=1, lost_answers=1)),
    _again("for another time, a crash", specs=(LATER_ONE_OFF,), occurrences=2, executors=1, budget=Budget(crashes=1)),
    _again(
        "beyond the horizon, beside a tick, a lost answer",
        specs=(LATER._replace(near=False),),
        jobs=(ONCE._replace(due=0, claimed=None),),
        queue=(),
        executors=1,
        quick=EXECUTE,
        budget=Budget(lost_answers=1),
    ),
    _audit("a purged queue", quick=TICK, failures=True, budget=Budget(purges=1, early_audits=1)),
    _audit(
        "a purged queue and a crash",
        quick=TICK,
        failures=True,
        budget=Budget(purges=1, early_audits=1, crashes=1),
        large=True,
    ),
    _audit("a tick later than 90 s", quick=EXECUTE, ticks=2, budget=Budget(late_ticks=1)),
    _audit(
        "a tick later than 90 s and a crash", quick=EXECUTE, ticks=2, budget=Budget(late_ticks=1, crashes=1), large=True
    ),
)
