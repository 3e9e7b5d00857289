"""Lists of jobs: how a query is answered, and which jobs it wants. It never reads one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shared.model.instants import to_text
from shared.model.job import JobSpec, JobStatus
from shared.model.run import RunStatus

MAX_DUE_WINDOW = timedelta(hours=6)  # 360 minutes, each of its own partition in every shard


class ListKind(StrEnum):
    """Where a list comes from."""

    GROUP = "group"  # the index of lists: the jobs of a group, newest first
    DEAD = "dead"  # the index of lists: dead-lettered runs
    DUE = "due"  # the index of due times, minute by minute
    SCAN = "scan"  # the whole table, in the order of its hash


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """What a list is to hold: jobs that fit all that is said. `due_from` ≤ next_run_at < `due_to`, aware moments."""

    status: str | None = None  # as jobs are shown; dead_lettered: jobs with such a run
    group: str | None = None
    tags: tuple[str, ...] = ()  # each `name` or `name:value`
    due_from: datetime | None = None
    due_to: datetime | None = None

    @property
    def canonical(self) -> tuple[str | list[str] | None, ...]:
        """The same for queries that mean the same, and for no others."""
        moments = (to_text(moment) if moment else None for moment in (self.due_from, self.due_to))
        return (self.status, self.group, sorted(set(self.tags)), *moments)


@dataclass(frozen=True, slots=True)
class ListPlan:
    """How a query is answered, and why so."""

    kind: ListKind
    reason: str


def plan_list(query: ListQuery) -> ListPlan:
    """The cheapest place that has every job of the query."""
    if query.status == RunStatus.DEAD_LETTERED:
        return ListPlan(ListKind.DEAD, "only the index of lists tells dead-lettered runs without reading every run")
    if query.group is not None:
        return ListPlan(ListKind.GROUP, "the index of lists has the jobs of a group")
    if query.due_from is None or query.due_to is None:
        return ListPlan(ListKind.SCAN, "no group, and no window with both its ends: no index has these jobs")
    if query.status not in (None, JobStatus.SCHEDULED):
        return ListPlan(
            ListKind.SCAN, f"the index of due times has only jobs that wait, and none that is {query.status}"
        )
    if query.due_to - query.due_from > MAX_DUE_WINDOW:
        return ListPlan(ListKind.SCAN, f"a window over {MAX_DUE_WINDOW} has too many minutes to look into")
    return ListPlan(ListKind.DUE, "the index of due times has the jobs that wait for a minute")


def is_of_group_and_tags(query: ListQuery, spec: JobSpec) -> bool:
    """Whether the job is of the query's group and has all of its tags."""
    if query.group is not None and spec.group != query.group:
        return False
    return all(_has(spec.tags, tag) for tag in query.tags)


def is_in_window(query: ListQuery, next_run_at: datetime | None) -> bool:
    """Whether a job with this next time is within the query's window; one that has no next time is in none."""
    if query.due_from is None and query.due_to is None:
        return True
    if next_run_at is None or (query.due_from is not None and next_run_at < query.due_from):
        return False
    return query.due_to is None or next_run_at < query.due_to


def _has(tags: Mapping[str, str], wanted: str) -> bool:
    """A name may have a colon in it: `a:b` is the tag `a:b` with any value, and the tag `a` with the value `b`."""
    return any(wanted in (name, f"{name}:{value}") for name, value in tags.items())
