"""The calls of shared/store/overlaps.py and groups.py, with their conditions. It knows no flow's order."""

from tests.model.calls import Outcomes, call
from tests.model.store_runs import is_of, outside
from tests.model.world import RUNNING, Holder, Place, Run, World

LIVE, EXPIRED, STALE = "live", "expired", "stale"


class GateCalls:
    """The place of a job, the places of a group."""

    @call("overlaps.get", may_fail=True)
    def get_place(self, world: World, me: int) -> Outcomes:
        return [(world._replace(fresh=world.fresh | {me}), world.place)]

    @call("overlaps.write", writes=True)
    def write_place(self, world: World, me: int, place: Place) -> Outcomes:
        """Whether nobody has written since the place was read."""
        if self.is_fresh(world, me):
            return [(world._replace(place=place, fresh=frozenset()), True)]
        return [(world._replace(fresh=world.fresh - {me}), False)]

    def is_fresh(self, world: World, me: int) -> bool:
        return me in world.fresh

    @call("leave it", at_once=True)
    def leave_place(self, world: World, me: int) -> Outcomes:
        """Nothing is written: what was read of the place matters no more."""
        return [(world._replace(fresh=world.fresh - {me}), None)]

    # --- shared/store/groups.py

    @call("groups.get", may_fail=True)
    def get_group(self, world: World, me: int) -> Outcomes:
        return [(world, (world.limit, tuple(sorted(world.holders))))]

    @call("groups.take", writes=True)
    def take(self, world: World, me: int, limit: int, wanted: Holder, before: Holder | None) -> Outcomes:
        """Whether the attempt has a place."""
        mine = wanted._replace(worker=me)
        others = frozenset(holder for holder in world.holders if holder.slot != mine.slot)
        if limit == world.limit and self.may_take(world, limit, mine.slot, before):
            return [(world._replace(holders=others | {mine}), True)]
        return [(world, mine in world.holders)]

    def may_take(self, world: World, limit: int, slot: int, before: Holder | None) -> bool:
        there = next((holder for holder in world.holders if holder.slot == slot), None)
        return there == before and len(world.holders) <= limit - (before is None)

    @call("groups.drop", writes=True, may_fail=True)
    def drop(self, world: World, me: int, holder: Holder) -> Outcomes:
        return self._dropped(world, holder)

    @call("groups.drop", writes=True, may_fail=True)
    def drop_own(self, world: World, me: int, slot: int, run: Run) -> Outcomes:
        """The handler that the attempt called has returned."""
        return self._dropped(outside(world, me), Holder(slot, run.number, me))

    def _dropped(self, world: World, holder: Holder) -> Outcomes:
        left = frozenset(one for one in world.holders if not self.is_held_by(one, holder))
        return [(world._replace(holders=left), None)]

    def is_held_by(self, there: Holder, holder: Holder) -> bool:
        return there == holder

    @call("runs.get_many of the holders")
    def standings(self, world: World, me: int, holders: tuple[Holder, ...]) -> Outcomes:
        """group_limits.standing of each."""
        return [(world, tuple((holder, self.standing(holder, world.runs[holder.slot])) for holder in holders))]

    def standing(self, holder: Holder, run: Run | None) -> str:
        if run is None or run.status != RUNNING or not is_of(holder, run):
            return STALE
        return LIVE if run.lease else EXPIRED
