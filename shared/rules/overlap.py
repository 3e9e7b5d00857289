"""Which run of a job may go on while another is not over yet: one pure decision. It never reads or writes.

The place of a job is that of its one run that goes on: from its first attempt until it is over, through the waits
before its retries. A run that has begun is never skipped: it waits for the place.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from shared.model.job import Overlap


class Step(Enum):
    """What becomes of the run that asks."""

    GO = "go"
    WAIT = "wait"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Place:
    """Who has the place of a job and who is next; runs by their scheduled times.

    `earlier`: those that may go on without ever having asked, since they began under another policy. `displaced`:
    those that waited and gave way to a newer one, which may be over by the time they ask again.
    """

    holder: datetime | None = None
    waiting: datetime | None = None
    earlier: frozenset[datetime] = frozenset()
    displaced: frozenset[datetime] = frozenset()


@dataclass(frozen=True, slots=True)
class Decision:
    """`place` as it is from now on; `replaced`: the runs that are to be cancelled."""

    step: Step
    place: Place
    replaced: frozenset[datetime] = frozenset()


def decide(policy: Overlap, me: datetime, *, has_begun: bool, place: Place) -> Decision:
    """What becomes of run `me`. In `place` are only runs that are not over.

    `has_begun`: it had an attempt before this one. The policies are those of Temporal's schedules (skip, buffer one,
    cancel other; service/worker/scheduler/buffer.go), but that a run that waits asks again by itself.
    """
    earlier = place.earlier - {me}
    seen = Place(
        holder=max(earlier) if place.holder in (None, me) and earlier else place.holder,
        waiting=None if place.waiting == me else place.waiting,
        earlier=earlier,
        displaced=place.displaced - {me},
    )
    left_out = Decision(Step.WAIT if has_begun else Step.SKIP, seen)
    if seen.holder == me:
        return Decision(Step.GO, seen)
    if me in place.displaced and not has_begun:
        return left_out
    if seen.holder is None and seen.waiting is None:
        return Decision(Step.GO, replace(seen, holder=me))
    if policy == "replace":
        return _newest(me, seen, left_out)
    if policy == "skip" and not has_begun:
        return left_out
    if seen.holder is None:  # who waits was first: the place is its own, as it finds out when it asks again
        return Decision(Step.WAIT, replace(seen, holder=seen.waiting, waiting=me))
    return left_out if seen.waiting else Decision(Step.WAIT, replace(seen, waiting=me))


def _newest(me: datetime, seen: Place, left_out: Decision) -> Decision:
    """`replace`: the run with the latest scheduled time goes on, in whichever order they come."""
    others = {moment for moment in (seen.holder, seen.waiting) if moment} | seen.earlier
    if others and max(others) > me:
        return left_out
    displaced = seen.displaced | {seen.waiting} if seen.waiting else seen.displaced
    if seen.holder is None:
        return Decision(Step.GO, replace(seen, holder=me, waiting=None, displaced=displaced))
    wanted = replace(seen, waiting=me, displaced=displaced)
    return Decision(Step.WAIT, wanted, seen.earlier | {seen.holder})
