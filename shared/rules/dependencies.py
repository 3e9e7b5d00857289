"""What a job's parents mean for it: whether it may run, must wait or never runs, and what is no DAG. It never reads.

A parent counts by its shown status alone, at the moment of the look: nothing is kept of it that could be wrong later.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from shared.model.job import OnParentFailure
from shared.model.run import Outcome, Run

MAX_PARENTS: Final = 20
MAX_ANCESTORS: Final = 200  # of one job, those that are over not counted
LONGEST_WAIT_S: Final = 300
PARENT_FAILED: Final = "parent_failed"
WAITS: Final = "depends_on"

_DONE = frozenset({"succeeded", "completed"})  # completed: made recurring since, and come to its own end
_FAILED = frozenset({"dead_lettered", "cancelled", "skipped"})


class Standing(Enum):
    """How a parent stands."""

    OPEN = "open"  # it may still succeed
    DONE = "done"
    FAILED = "failed"  # over without success, or gone


class Word(Enum):
    """What the parents' standings say to the child."""

    GO = "go"
    WAIT = "wait"
    SKIP = "skip"


def standing_of(shown_status: str | None) -> Standing:
    """Of a job of this shown status; None: it is gone."""
    if shown_status in _DONE:
        return Standing.DONE
    return Standing.FAILED if shown_status is None or shown_status in _FAILED else Standing.OPEN


def word_of(standings: Iterable[Standing], on_parent_failure: OnParentFailure) -> Word:
    """One failed parent is enough to skip, the others may still be open; with `run` it counts as done."""
    found = set(standings)
    if on_parent_failure == "skip" and Standing.FAILED in found:
        return Word.SKIP
    return Word.WAIT if Standing.OPEN in found else Word.GO


def is_past(run: Run) -> bool:
    """Whether an attempt of `run` was let pass before.

    It was if its handler was called. A lost attempt may have died before it came to that:

        start (1) ── dies      the lease runs out      start (2) ── must look at the parents
    """
    return any(attempt.outcome not in (None, Outcome.LOST) for attempt in run.attempts[:-1])


def ancestors_of(job_id: str, parents_of: Mapping[str, Sequence[str]], most: int) -> set[str] | None:
    """All that stands above a job, itself too if it is in a cycle; None if that is more than `most`.

    What `parents_of` does not have has no parents that matter.
    """
    found: set[str] = set()
    todo = list(parents_of.get(job_id, ()))
    while todo:
        parent = todo.pop()
        if parent not in found:
            found.add(parent)
            if len(found) > most:
                return None
            todo += parents_of.get(parent, ())
    return found


def back_to(job_id: str, depends_on: Sequence[str], parents_of: Mapping[str, Sequence[str]]) -> int | None:
    """The place in `depends_on` of the first parent that waits, it or one above it, for the job; None if none does."""
    for place, parent in enumerate(depends_on):
        if parent == job_id or job_id in (ancestors_of(parent, parents_of, 10**9) or ()):
            return place
    return None


def in_generations(parents_of: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The jobs of `parents_of`, each after all its parents, as early as that allows; those in or behind a cycle last
    out: they are in none.

    The order within a generation is that of the mapping. Parents that are not in it do not count.
    """
    waits_for = {job: {parent for parent in parents if parent in parents_of} for job, parents in parents_of.items()}
    generations: list[list[str]] = []
    while ready := [job for job, parents in waits_for.items() if not parents]:
        generations.append(ready)
        for job in ready:
            del waits_for[job]
        for parents in waits_for.values():
            parents.difference_update(ready)
    return generations
