"""The limit of a group and the attempts that have its places, in one item a group. It never decides who is stale."""

from contextlib import suppress
from dataclasses import dataclass

from shared.model.instants import from_sort_text, sort_text
from shared.rules.group_limits import Holder
from shared.store import keys
from shared.store.table import ConditionFailedError, Item, Table, number, text

# Named clauses of the conditions below. The limit is the one that was read: one that is lowered meanwhile holds.
#
#   PUT:     5 ─────────────────── 1
#   12:00:      reads 5 ────────────── take: _LIMIT fails → reads 1
#
#   two at the last place:  both read that one is free; the second to take finds _ROOM false
_LIMIT = "#max_running = :max"
_ROOM = "size(#holders) < :max"
_WITHIN = "size(#holders) <= :max"
_NOT_THERE = "attribute_not_exists(#holders.#me)"
_HELD_BY = "#holders.#me.#worker = :worker"


class PlacesChangedError(Exception):
    """The group's limit or its holders are no longer as they were read."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group: `max_running` None, without a limit. Holders may be stale."""

    max_running: int | None = None
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of `table`."""

    table: Table

    def get(self, group: str) -> Group:
        """The group as it is now; one that nobody has set a limit for is like any without one."""
        item = self.table.get(keys.group_key(group))
        return _group_of(item) if item else Group()

    def set_limit(self, group: str, max_running: int | None) -> Group:
        """Set the limit, or take it away (None). Who has a place keeps it."""
        key = keys.group_key(group)
        if max_running is not None:
            sets = "SET #max_running = :max, #holders = if_not_exists(#holders, :none)"
            values = {":max": number(max_running), ":none": {"M": {}}}
            return _group_of(self.table.update(key, sets, None, values, returned="ALL_NEW"))
        try:
            there = self.table.update(key, "REMOVE #max_running", "attribute_exists(#pk)", {}, returned="ALL_NEW")
        except ConditionFailedError:
            return Group()
        return _group_of(there)

    def take(self, group: str, max_running: int, me: Holder, before: Holder | None) -> None:
        """Give `me` a place of the `max_running`; `before`: the earlier attempt of its run that has one.

        Raises PlacesChangedError.
        """
        if before is None:
            condition, values = f"{_LIMIT} AND {_ROOM} AND {_NOT_THERE}", {}
        else:
            #   attempt 2 (its executor sleeps) ── takes the place ──    attempt 3 has it by now: _HELD_BY fails
            condition, values = f"{_LIMIT} AND {_WITHIN} AND {_HELD_BY}", {":worker": text(before.worker_id)}
        mine = {"M": {"worker": text(me.worker_id), "until": text(sort_text(me.until))}}
        try:
            self.table.update(
                keys.group_key(group),
                "SET #holders.#me = :mine",
                condition,
                {**values, ":mine": mine, ":max": number(max_running)},
                names=_me(me),
            )
        except ConditionFailedError as failed:
            there = _group_of(failed.item) if failed.item else Group()
            if me not in there.holders:  # else a first try took effect, and only its answer was lost
                raise PlacesChangedError(group) from None

    def drop(self, group: str, holder: Holder) -> None:
        """Take the place away from this attempt, if it still has it."""
        #   who needs a place:  reads attempt 1, lost ───────────────── drop: _HELD_BY fails, attempt 2 has it now
        #   the run itself:                     attempt 2 takes its place
        with suppress(ConditionFailedError):
            self.table.update(
                keys.group_key(group),
                "REMOVE #holders.#me",
                _HELD_BY,
                {":worker": text(holder.worker_id)},
                names=_me(holder),
            )


def _me(holder: Holder) -> dict[str, str]:
    return {"#me": keys.holder_name(holder.job_id, holder.scheduled_for)}


def _group_of(item: Item) -> Group:
    holders = []
    for name, entry in item.get("holders", {"M": {}})["M"].items():
        worker, until = entry["M"]["worker"]["S"], from_sort_text(entry["M"]["until"]["S"])
        holders.append(Holder(*keys.holder_of(name), worker, until))
    return Group(int(item["max_running"]["N"]) if "max_running" in item else None, tuple(holders))
