"""Attempts side by side: whose ends are written together, who waits for whom and how long, whose errors are whose."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from shared.flows import finishes
from shared.flows.finishes import WINDOW, Finishes
from tests.faults.system import Inline
from tests.support.clocks import START, ManualClock

WAIT_S = 20  # in real time: more is a fault of the test


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(10) as made:
        yield made


class Batch:
    """Attempts by name, and what became of them. `attempts` gives None where a success is handed in."""

    def __init__(self, attempts: dict[str, Callable[[], str | None]]) -> None:
        self.attempts = attempts
        self.groups: list[list[str]] = []
        self.alone: list[str] = []
        self.refused: set[str] = set()
        self.clock = ManualClock(START)
        self._lock = threading.Lock()

    def run(self, pool: object) -> dict[str, str | Exception | None]:
        made = Finishes(pool, self.clock.now, self._attempt, self._write, self._finish)  # type: ignore[arg-type]
        names = list(self.attempts)
        return {
            name: future.exception() or future.result()  # type: ignore[misc]
            for name, future in zip(names, made.run(names), strict=True)
        }

    def _attempt(self, name: str) -> str | None:
        return self.attempts[name]()

    def _write(self, names: Sequence[str]) -> list[bool]:
        with self._lock:
            self.groups.append(list(names))
        return [name not in self.refused for name in names]

    def _finish(self, name: str, is_written: bool) -> str:
        with self._lock:
            self.alone += [] if is_written else [name]
        return "written" if is_written else "alone"


def handed_in() -> None:
    return None


def test_one_attempt_is_written_alone(pool: ThreadPoolExecutor) -> None:
    batch = Batch({"a": handed_in})
    assert (batch.run(pool), batch.groups) == ({"a": "alone"}, [])


def test_those_that_end_together_are_written_together_in_their_order() -> None:
    batch = Batch(dict.fromkeys("cab", handed_in))
    assert batch.run(Inline()) == dict.fromkeys("cab", "written")
    assert batch.groups == [["c", "a", "b"]]


def test_who_is_not_written_with_the_others_is_written_alone() -> None:
    batch = Batch(dict.fromkeys("abc", handed_in))
    batch.refused = {"b"}
    assert batch.run(Inline()) == {"a": "written", "b": "alone", "c": "written"}
    assert batch.alone == ["b"]


def test_an_attempt_that_ended_otherwise_is_in_no_group_and_an_error_is_its_own_alone() -> None:
    def fails() -> str:
        raise ValueError("no")

    batch = Batch({"a": handed_in, "failed": lambda: "failed", "error": fails, "b": handed_in})
    found = batch.run(Inline())
    assert isinstance(found.pop("error"), ValueError)
    assert found == {"a": "written", "failed": "failed", "b": "written"}
    assert batch.groups == [["a", "b"]]


def test_a_slow_attempt_holds_up_no_end(pool: ThreadPoolExecutor) -> None:
    """It ends only when it has seen the others' ends written."""
    seen = threading.Event()

    def slow() -> None:
        assert seen.wait(WAIT_S)

    batch = Batch({"slow": slow, "a": handed_in, "b": handed_in})
    finish = batch._finish

    def told(name: str, is_written: bool) -> str:
        ended = finish(name, is_written)
        names = {one for group in batch.groups for one in group} | set(batch.alone)
        if {"a", "b"} <= names:
            seen.set()
        return ended

    batch._finish = told  # type: ignore[method-assign]
    found = batch.run(pool)
    assert found["slow"] == "alone"
    assert set(found) == {"slow", "a", "b"}


def test_a_pool_that_makes_one_after_the_other_holds_up_no_end_longer_than_the_window() -> None:
    def long() -> None:
        batch.clock.advance((WINDOW + timedelta(milliseconds=1)).total_seconds())

    batch = Batch({"a": handed_in, "b": handed_in, "long": long, "c": handed_in, "d": handed_in})
    batch.run(Inline())
    assert batch.groups == [["a", "b", "long"], ["c", "d"]]


def test_ten_that_end_at_once_are_written_in_one_request(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finishes, "WINDOW", timedelta(seconds=WAIT_S))  # a busy machine must not tear them apart
    names = "abcdefghij"
    batch = Batch(dict.fromkeys(names, handed_in))
    assert batch.run(pool) == dict.fromkeys(names, "written")
    assert batch.groups == [list(names)]
