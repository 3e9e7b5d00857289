"""Lists of jobs, page by page: every job that is there throughout, and fits throughout, once. It never writes.

Only a list by due time follows what moves: there a job may be met again at its next time (docs/api.md).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.clock import Clock
from shared.flows.inspect import JobView
from shared.flows.rows import Rows
from shared.flows.walks import DeadWalk, DueWalk, GroupWalk, Position, ScanWalk, Walk
from shared.rules.listing import ListKind, ListPlan, ListQuery
from shared.store.listing import Listing

READ_FOR = timedelta(seconds=4)  # a call begins no further read after this: an HTTP client waits for it


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs (their `runs` are not the latest, but what their status was told by), and where to go on.

    Fewer than asked for, even none, do not mean the end: only a position of None does.
    """

    jobs: tuple[JobView, ...]
    position: Position | None


@dataclass(frozen=True, slots=True)
class SearchFlow:
    """Answers lists. Every job shown was read consistently; `shards` are all that are ticked."""

    listing: Listing
    rows: Rows
    clock: Clock
    shards: int

    def page(self, query: ListQuery, plan: ListPlan, position: Position | None, limit: int, now: datetime) -> JobPage:
        """At most `limit` jobs from `position` on; `plan` is the query's own. Raises PositionError."""
        walk = self._walk(plan.kind)
        shown: list[JobView] = []
        for number in range(walk.reads):
            if number and self.clock.now() >= now + READ_FOR:
                break
            step = walk.step(query, position, number, limit - len(shown), now)
            room = limit - len(shown)
            shown += [job for job, _ in step.found[:room]]
            if len(step.found) > room:
                return JobPage(tuple(shown), step.found[room - 1][1])
            position = step.after
            if position is None or len(shown) == limit:
                break
        return JobPage(tuple(shown), position)

    def _walk(self, kind: ListKind) -> Walk:
        if kind is ListKind.GROUP:
            return GroupWalk(self.listing, self.rows)
        if kind is ListKind.DEAD:
            return DeadWalk(self.listing, self.rows)
        if kind is ListKind.DUE:
            return DueWalk(self.listing, self.rows, self.shards)
        return ScanWalk(self.listing, self.rows)
