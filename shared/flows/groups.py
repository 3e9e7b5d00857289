"""The limit of a group: set and shown, and the gate that holds it exactly. It calls no target."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shared.flows.gates import MustWaitError
from shared.model.errors import LeaseLostError
from shared.model.job import Job
from shared.model.run import Run
from shared.rules.group_limits import Holder, Standing, standing
from shared.rules.sharding import stable_hash
from shared.rules.waits import look_again_s
from shared.store.groups import Group, Groups, PlacesChangedError
from shared.store.runs import CancelRequestedError, Runs

GROUP_LIMIT = "group_limit"
LONGEST_WAIT_S = 30.0
TRIES = 4
LOOKED_AT = 10  # holders that one look reads the runs of; another look takes others


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as it is shown: `running` attempts have a place. Without a limit there are no places."""

    group: str
    max_running: int | None
    running: int


@dataclass(frozen=True, slots=True)
class GroupsFlow:
    """What a user says of groups, and sees of them."""

    groups: Groups
    runs: Runs

    def limit(self, group: str, max_running: int | None, now: datetime) -> GroupView:
        """Let at most `max_running` attempts of the group run at a time; None: any number.

        It holds for each that starts from now on; those that are going on go on.
        """
        return self._view(group, self.groups.set_limit(group, max_running), now)

    def show(self, group: str, now: datetime) -> GroupView:
        """The group; one that is not known is one without a limit."""
        return self._view(group, self.groups.get(group), now)

    def _view(self, group: str, there: Group, now: datetime) -> GroupView:
        old = [holder for holder in there.holders if holder.until < now]
        left = len(old) - len(not_live(self.runs, old, now))
        return GroupView(group, there.max_running, len(there.holders) - len(old) + left)


@dataclass(frozen=True, slots=True)
class GroupGate:
    """Gives an attempt a place of its group while it is made. A job without a group costs nothing.

    A job whose group has no limit costs a read; its runs have no place.
    """

    groups: Groups
    runs: Runs
    _inside: set[str] = field(default_factory=set)  # the attempts with a place, by their workers

    def enter(self, job: Job, run: Run, receives: int, now: datetime) -> None:
        """Take a place, or raise MustWaitError; LeaseLostError where a later attempt of the run may have it."""
        #   attempt 1:  start ── sleeps ─────────────────────────────────── looks: the run is not its own, it takes none
        #   attempt 2:              start ── takes the place ── is called
        group = job.spec.group
        if group is None:
            return
        me = _holder(run, now)
        for _ in range(TRIES):
            there = self.groups.get(group)
            if there.max_running is None:
                return
            before = next((one for one in there.holders if _name(one) == _name(me)), None)
            if len(there.holders) >= there.max_running + (before is not None):
                if not self._make_room(group, there, me, receives, now):
                    break
                continue
            if before is not None:
                self.runs.look(run)
            try:
                self.groups.take(group, there.max_running, me, before)
            except PlacesChangedError:
                continue
            self._inside.add(me.worker_id)
            return
        raise MustWaitError(GROUP_LIMIT, look_again_s(receives, LONGEST_WAIT_S, f"{run.job_id}/{run.scheduled_for}"))

    def leave(self, job: Job, run: Run) -> None:
        """Give the place back, if it has one."""
        me = _holder(run, run.attempts[-1].started_at)
        if job.spec.group is not None and me.worker_id in self._inside:
            self._inside.discard(me.worker_id)
            self.groups.drop(job.spec.group, me)

    def _make_room(self, group: str, there: Group, me: Holder, receives: int, now: datetime) -> bool:
        """Take the places of attempts that are over; whether there was one."""
        #   an executor dies:      12:00 in place ──────────────                    (nobody gives the place back)
        #   an executor sleeps:    12:00 in place ──── its lease runs out ───────── renews: it must not be live again
        #   12:05:                                            looks: ends 12:00's attempt as lost, then takes its place
        old = [one for one in there.holders if one.until < now or _name(one) == _name(me)]
        first = stable_hash(f"{_name(me)}/{receives}") % len(old) if old else 0
        looked_at = (old[first:] + old[:first])[:LOOKED_AT]
        freed = not_live(self.runs, looked_at, now)
        for holder, run in freed:
            if run is not None:
                try:
                    self.runs.lose(run, now)
                except (LeaseLostError, CancelRequestedError):  # renewed just now, or ended: the next look tells
                    continue
            self.groups.drop(group, holder)
        return bool(freed)


def not_live(runs: Runs, holders: Sequence[Holder], now: datetime) -> list[tuple[Holder, Run | None]]:
    """Those of `holders` whose attempt is not live; with its run, where that is yet to be ended as lost."""
    read = {(run.job_id, run.scheduled_for): run for run in runs.get_many([_name(holder) for holder in holders])}
    found: list[tuple[Holder, Run | None]] = []
    for holder in holders:
        try:
            run = read.get(_name(holder)) or runs.get(*_name(holder))
        except (KeyError, ValueError):  # what cannot be read may be live; the audit tells of it
            continue
        how = standing(holder, run, now)
        if how is not Standing.LIVE:
            found.append((holder, run if how is Standing.EXPIRED else None))
    return found


def _name(holder: Holder) -> tuple[str, datetime]:
    return holder.job_id, holder.scheduled_for


def _holder(run: Run, now: datetime) -> Holder:
    return Holder(run.job_id, run.scheduled_for, run.attempts[-1].worker_id, run.lease_expires_at or now)
