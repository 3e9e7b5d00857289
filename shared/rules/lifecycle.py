"""The states of a run and what moves it between them: the only authority. It never writes (store.runs does).

`enqueued` stands for a claimed occurrence without a run item, and for a run that is stored and waits.
"""

from enum import StrEnum
from typing import Final

from shared.model.run import RunStatus

ENQUEUED, RUNNING, FAILED = RunStatus.ENQUEUED, RunStatus.RUNNING, RunStatus.FAILED
SUCCEEDED, DEAD_LETTERED = RunStatus.SUCCEEDED, RunStatus.DEAD_LETTERED
CANCELLED, SKIPPED = RunStatus.CANCELLED, RunStatus.SKIPPED


class Event(StrEnum):
    """What can happen to a run."""

    START = "start"  # an executor begins its first attempt, or the next one after a wait
    TAKE_OVER = "take_over"  # the lease of a running attempt has run out: the next one begins
    SUCCEED = "succeed"
    FAIL = "fail"  # the attempt failed and the policy allows another
    EXHAUST = "exhaust"  # the last attempt failed
    CANCEL = "cancel"  # by a user, while it waits for a retry or in place of the next attempt
    WITHDRAW = "withdraw"  # a start that turned out void, or that has to wait, is taken back
    SKIP = "skip"  # recorded with a reason and never run
    REDRIVE = "redrive"  # by a user: a dead-lettered run again


TRANSITIONS: Final[dict[tuple[RunStatus, Event], RunStatus]] = {
    (ENQUEUED, Event.START): RUNNING,
    (ENQUEUED, Event.SKIP): SKIPPED,
    (ENQUEUED, Event.CANCEL): CANCELLED,
    (RUNNING, Event.TAKE_OVER): RUNNING,
    (RUNNING, Event.SUCCEED): SUCCEEDED,
    (RUNNING, Event.FAIL): FAILED,
    (RUNNING, Event.EXHAUST): DEAD_LETTERED,
    (RUNNING, Event.CANCEL): CANCELLED,
    (RUNNING, Event.WITHDRAW): ENQUEUED,
    (RUNNING, Event.SKIP): SKIPPED,
    (FAILED, Event.START): RUNNING,
    (FAILED, Event.CANCEL): CANCELLED,
    (DEAD_LETTERED, Event.REDRIVE): ENQUEUED,
}

TERMINAL: Final = frozenset({SUCCEEDED, DEAD_LETTERED, CANCELLED, SKIPPED})


def after(status: RunStatus, event: Event) -> RunStatus:
    """The state that `event` leads to from `status`; KeyError where the table has no such line."""
    return TRANSITIONS[status, event]


def is_over(status: RunStatus) -> bool:
    """Whether the run has come to its end."""
    return status in TERMINAL


def diagram() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2", f"    [*] --> {ENQUEUED}: claim"]
    lines += [f"    {source} --> {target}: {event}" for (source, event), target in TRANSITIONS.items()]
    lines += [f"    {status} --> [*]" for status in RunStatus if status in TERMINAL]
    return "\n".join(lines)
