"""Attempts side by side, the ends of those that succeed together written together. It knows no run and no queue."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

T = TypeVar("T")
E = TypeVar("E")
WINDOW = timedelta(milliseconds=10)


@dataclass(frozen=True, slots=True)
class Finishes(Generic[T, E]):
    """Makes attempts in `pool`, and coalesces their successes.

    The rule: a success is written when all attempts that are still going on have ended, too, or `WINDOW` after the
    first that waits; one that waits with no other is written alone, and the last one never waits.
    The price: its effect is done and its end not written for that much longer, and a crash within makes an attempt
    once more (at least once). No attempt is called later for it, and none waits for one that is slow.

    `attempt` makes one: its end, or None, if its success is handed in. `write` writes several of those: which are
    written. `finish` ends one that is, or writes it alone.
    """

    pool: Executor
    now: Callable[[], datetime]
    attempt: Callable[[T], E | None]
    write: Callable[[Sequence[T]], Sequence[bool]]
    finish: Callable[[T, bool], E]

    def run(self, ones: Sequence[T]) -> "list[Future[E | None]]":
        """All of them to their ends, in the order of `ones`."""
        ends: list[Future[E | None]] = []
        going_on: dict[Future[E | None], int] = {}
        groups: list[Future[None]] = []
        since = self.now()

        def take(wait_s: float) -> None:
            ended, _ = wait(going_on, timeout=wait_s)
            places = sorted(going_on.pop(future) for future in ended)
            if handed_in := [place for place in places if _is_handed_in(ends[place])]:
                groups.append(self.pool.submit(self._end, ones, handed_in, ends))

        for place, one in enumerate(ones):
            ends.append(self.pool.submit(self.attempt, one))
            going_on[ends[place]] = place
            if self.now() - since >= WINDOW:  # a pool that makes one after the other: the first has waited
                take(0)
                since = self.now()
        while going_on:
            wait(going_on, return_when=FIRST_COMPLETED)
            take(WINDOW.total_seconds())
        for group in groups:
            group.result()
        return ends

    def _end(self, ones: Sequence[T], places: Sequence[int], ends: "list[Future[E | None]]") -> None:
        """In the pool, where at least as many threads are free as attempts have handed in."""
        written = self.write([ones[place] for place in places]) if len(places) > 1 else [False]
        for place, is_written in zip(places, written, strict=True):
            ends[place] = self.pool.submit(self.finish, ones[place], is_written)


def _is_handed_in(future: "Future[E | None]") -> bool:
    return future.exception() is None and future.result() is None
