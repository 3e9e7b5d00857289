"""Judges a history by what users asked for: pauses hold back, runs that were asked for come, and no others do."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.faults.history import (
    Called,
    Event,
    History,
    JobRuled,
    Occurrence,
    RedriveAsked,
    Redriven,
    RunSeen,
    Stored,
    TriggerAsked,
    Triggered,
)

TERMINAL = ("succeeded", "dead_lettered", "cancelled", "skipped")


@dataclass
class Rounds:
    """Which runs were redriven, and after which attempt each time."""

    states: dict[Occurrence, RunSeen] = field(default_factory=dict)
    asked: Counter[Occurrence | str] = field(default_factory=Counter)  # by run, or by job for all of its runs
    begun_after: dict[Occurrence, list[int]] = field(default_factory=dict)

    def take(self, event: Event) -> bool:
        """Go on by one event; whether it is the beginning of another round, which somebody has asked for."""
        if isinstance(event, RedriveAsked):
            self.asked[(event.job_id, event.scheduled_for) if event.scheduled_for else event.job_id] += 1
        if not isinstance(event, RunSeen):
            return False
        before, self.states[event.occurrence] = self.states.get(event.occurrence), event
        if before is None or (before.status, event.status) != ("dead_lettered", "enqueued"):
            return False
        rounds = self.begun_after.setdefault(event.occurrence, [])
        rounds.append(event.attempt)
        return len(rounds) <= self.asked[event.occurrence] + self.asked[event.job_id]

    def of(self, occurrence: Occurrence, attempt: int) -> int:
        """The round that an attempt is of, from 0 on."""
        return sum(attempt > last for last in self.begun_after.get(occurrence, []))


def requested(history: History) -> set[Occurrence]:
    """The runs beside the schedule."""
    first: dict[Occurrence, RunSeen] = {}
    for event in history.of(RunSeen):
        first.setdefault(event.occurrence, event)
    return {occurrence for occurrence, event in first.items() if event.requested}


def violations(history: History) -> Iterator[tuple[str, str]]:
    """All that is wrong about it."""
    yield from _paused(history)
    yield from _came(history)


def _paused(history: History) -> Iterator[tuple[str, str]]:
    """While the table shows a job as paused, no attempt of its schedule begins that is then called."""
    paused: set[str] = set()
    running: dict[Occurrence, RunSeen] = {}
    void: set[tuple[Occurrence, int]] = set()  # began while the job was paused
    for event in history.events:
        if isinstance(event, JobRuled):
            (paused.add if event.status == "paused" else paused.discard)(event.job_id)
        elif isinstance(event, Stored):
            paused.discard(event.job_id)
        elif isinstance(event, RunSeen):
            before = running.pop(event.occurrence, None)
            if event.status == "running":
                running[event.occurrence] = event
                if before is None or before.attempt != event.attempt:
                    began = (event.occurrence, event.attempt)
                    (void.add if event.job_id in paused and not event.requested else void.discard)(began)
        elif isinstance(event, Called) and (event.occurrence, event.attempt) in void:
            yield "pause", f"{_name(event.occurrence)} attempt {event.attempt} began while the job was paused"


def _came(history: History) -> Iterator[tuple[str, str]]:
    """I1: each run that was answered to come did, and came to its end; and no more came than were asked for."""
    last = {event.occurrence: event for event in history.of(RunSeen)}
    called = {event.occurrence for event in history.of(Called)}
    beside = requested(history)
    for event in (*history.of(Triggered), *history.of(Redriven)):
        if (event.job_id, event.scheduled_for) not in last:
            yield "I1", f"{_name((event.job_id, event.scheduled_for))} was asked for and never came"
    for occurrence, state in last.items():
        if state.requested and state.status not in TERMINAL:
            yield "I1", f"{_name(occurrence)} was asked for and never came to its end: {state.status}"
        if occurrence in beside and occurrence not in called and not state.reason and state.status != "dead_lettered":
            yield "I1", f"{_name(occurrence)} was asked for and is {state.status} without a call and without a reason"
    asked = Counter(event.job_id for event in history.of(TriggerAsked))
    for job_id, count in Counter(job_id for job_id, _ in beside).items():
        if count > asked[job_id]:
            yield "I1", f"{count} runs of {job_id} came beside its schedule, and {asked[job_id]} were asked for"


def _name(occurrence: Occurrence) -> str:
    return f"{occurrence[0]}/{occurrence[1]:%H:%M:%S.%f}"
