"""Judges a history by the invariants I1–I8, from what was recorded alone. It runs nothing and reads no table.

In the manner of Jepsen's test of Chronos: each occurrence that was due must be matched by a run of its own, within its
window; what is left over on either side is a violation.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.faults import asked, side_by_side
from tests.faults.history import (
    Called,
    CancelAsked,
    Cancelled,
    ChangeAsked,
    Crashed,
    Ended,
    Failed,
    History,
    JobCancelled,
    Journaled,
    Occurrence,
    Returned,
    RunSeen,
    Sent,
    Stored,
    Submitted,
    Ticked,
)
from tests.faults.lives import Expected, Lives, expected

TERMINAL = ("succeeded", "dead_lettered", "cancelled", "skipped")
NEVER = 10**9


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a history may show at worst.

    `late_s`: the latest first start after the scheduled time. `lost_attempts`: attempts of one run, crashes apart, that
    called no handler. `findings`: what the audit at the end may find. `ticks`: how many ticks something overdue may
    stay in the index.
    """

    late_s: float = NEVER
    lost_attempts: int = 0
    findings: int = 0
    ticks: int = 2
    drained: bool = True  # at the end no message and no journal page is left


@dataclass(frozen=True)
class Violation:
    """One broken invariant, with what shows it."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


def check(history: History, promise: Promise) -> list[Violation]:
    """All violations; empty if the history is right."""
    rules = (
        _occurrences,
        _windows,
        _single,
        _never_early,
        _terminal,
        _after_cancel,
        _families,
        _side_by_side,
        _asked,
        _journaled,
        _numbers,
        _index,
        _ends,
    )
    return [Violation(name, text) for rule in rules for name, text in rule(history, promise)]


Found = Iterator[tuple[str, str]]


def wanted(history: History, promise: Promise) -> list[Expected]:
    """The occurrences that must have been brought."""
    missed = [(s.job_id, s.scheduled_for, s.missed_until) for s in _spans(history) if s.missed_until]
    return expected(history, promise.late_s, promise.ticks, missed)


def _last_states(history: History) -> dict[Occurrence, RunSeen]:
    return {event.occurrence: event for event in history.of(RunSeen)}


def _spans(history: History) -> list[RunSeen]:
    return [event for event in _last_states(history).values() if event.status and event.missed_until]


def _occurrences(history: History, promise: Promise) -> Found:
    """I1: each occurrence has an attempt or a reason, and came to its end; and nothing ran that was not due."""
    called = {event.occurrence for event in history.of(Called)}
    states = _last_states(history)
    spans = _spans(history)
    for one in wanted(history, promise):
        job_id, slot = one.job_id, one.slot
        state = states.get((job_id, slot))
        covered = any(s.job_id == job_id and s.scheduled_for <= slot <= (s.missed_until or slot) for s in spans)
        if state is None or state.status is None:
            if not covered:
                yield "I1", f"{_name((job_id, slot))} vanished: no attempt and no reason is on record"
        elif state.status not in TERMINAL:
            yield "I1", f"{_name((job_id, slot))} never came to its end: {state.status}"
        elif (job_id, slot) not in called and not state.reason and promise.lost_attempts < 3 and not _crashes(history):
            yield "I1", f"{_name((job_id, slot))} is {state.status} without a call and without a reason"
    yield from _never_due(history)
    lives = Lives.of(history)
    for life in lives.found:
        for slot in life.slots(history.ended_at):
            state = states.get((life.job.job_id, slot))
            is_cancelled = state is not None and state.status == "cancelled" and state.reason != "replaced"
            if state is not None and state.requested and lives.latest[life.job.job_id] is not life:
                continue  # it was redriven just when the id became another job's
            if is_cancelled and life.cancel_asked_at is None and not life.is_changed:
                yield "I1", f"{_name((life.job.job_id, slot))} is cancelled, and nobody asked for that"


def _never_due(history: History) -> Found:
    """A call of what the job, as it then was, is not due for. A submit that finds one going on is taken back."""
    taken_back = {place for place, life in enumerate(Lives.of(history).found) if life.is_taken_back}
    lives, beside, spans = Lives(), asked.requested(history), _spans(history)
    for event in history.events:
        lives.take(event)
        if isinstance(event, Called) and event.occurrence not in beside:
            own = [span for span in spans if span.job_id == event.job_id]
            of_id = [(place, life) for place, life in enumerate(lives.found) if life.job.job_id == event.job_id]
            latest = next((life for place, life in reversed(of_id) if place not in taken_back), None)
            if latest is None or not latest.was_due(event.scheduled_for, lambda slot, own=own: _is_in(slot, own)):
                yield "I1", f"{_name(event.occurrence)} ran and was never due"


def _windows(history: History, promise: Promise) -> Found:
    """Distinct runs to windows, by time alone: the earliest deadline first, as windows of one length allow."""
    skipped = {event.occurrence for event in _last_states(history).values() if event.status in ("skipped", "cancelled")}
    spans = _spans(history)
    due, beside = wanted(history, promise), asked.requested(history)
    for job_id in dict.fromkeys(life.job.job_id for life in Lives.of(history).found if not life.job.depends_on):
        starts: dict[Occurrence, datetime] = {}
        for call in history.of(Called):
            if call.job_id == job_id and call.occurrence not in beside:
                starts.setdefault(call.occurrence, call.at)
        windows = [
            one
            for one in due
            if one.job_id == job_id
            and (job_id, one.slot) not in skipped
            and not _is_in(one.slot, [span for span in spans if span.job_id == job_id])
        ]
        left = sorted(starts.values())
        for window in windows:
            slot = window.slot
            match = next((at for at in left if slot <= at <= window.latest), None)
            if match is not None:
                left.remove(match)
            elif not (_crashes(history) and _ended_without_call(history, (job_id, slot))):
                yield "I1", f"no run of {job_id} is left for the window {slot:%H:%M:%S} + {promise.late_s:g} s"


def _is_in(slot: datetime, spans: Sequence[RunSeen]) -> bool:
    return any(span.scheduled_for <= slot <= (span.missed_until or slot) for span in spans)


def _ended_without_call(history: History, occurrence: Occurrence) -> bool:
    """All its attempts died before the handler was called: on record, and no fault of the scheduler.

    It may have been redriven since.
    """
    return any(event.occurrence == occurrence and event.status == "dead_lettered" for event in history.of(RunSeen))


def _single(history: History, promise: Promise) -> Found:
    """I2: one live attempt at a time, none after one succeeded, and each called while it was the current one."""
    live: dict[Occurrence, Called] = {}
    leases: dict[tuple[Occurrence, int], datetime] = {}
    dead: set[tuple[Occurrence, int]] = set()
    over: dict[Occurrence, str] = {}
    for event in history.events:
        if isinstance(event, RunSeen):
            if event.status == "running" and event.lease_expires_at is not None:
                leases[event.occurrence, event.attempt] = event.lease_expires_at
            if event.status in TERMINAL:
                over[event.occurrence] = event.status
            else:  # redriven, if that was asked for (I4)
                over.pop(event.occurrence, None)
        elif isinstance(event, Returned):
            dead.add((event.occurrence, event.attempt))
        elif isinstance(event, Called):
            before = live.get(event.occurrence)
            if event.occurrence in over:
                yield "I2", f"{_call(event)} was called although the run was {over[event.occurrence]}"
            if not event.is_current:
                yield "I2", f"{_call(event)} was called when it was no longer the current attempt"
            if before and (before.occurrence, before.attempt) not in dead:
                lease = leases.get((before.occurrence, before.attempt), before.at)
                if event.at <= lease:
                    yield "I2", f"{_call(event)} overlaps attempt {before.attempt}, whose lease ends {lease:%H:%M:%S}"
            live[event.occurrence] = event


def _never_early(history: History, promise: Promise) -> Found:
    for call in history.of(Called):
        if call.at < call.scheduled_for:
            yield "I3", f"{_call(call)} started early, at {call.at:%H:%M:%S.%f}"


def _terminal(history: History, promise: Promise) -> Found:
    states: dict[Occurrence, str] = {}
    rounds = asked.Rounds()
    for event in history.events:
        if rounds.take(event) and isinstance(event, RunSeen):
            states.pop(event.occurrence)
        if not isinstance(event, RunSeen):
            continue
        before = states.get(event.occurrence)
        if before is not None and event.status != before:
            yield "I4", f"{_name(event.occurrence)} was {before} and became {event.status or 'nothing'}"
        if event.status in TERMINAL:
            states[event.occurrence] = event.status


def _after_cancel(history: History, promise: Promise) -> Found:
    """I5: what goes on when cancel answers is named in the answer, and nothing else is called from then on."""
    running: dict[str, tuple[tuple[datetime, int], ...]] = {}
    live: dict[Occurrence, Called] = {}
    lives: Counter[str] = Counter()
    asked: dict[str, int] = {}
    for event in history.events:
        if isinstance(event, CancelAsked):
            asked[event.job_id] = lives[event.job_id]
        elif isinstance(event, Cancelled):
            if asked.get(event.job_id, lives[event.job_id]) != lives[event.job_id]:
                continue  # the id has a new job since
            allowed = running.setdefault(event.job_id, event.running)
            for call in live.values():
                if call.job_id == event.job_id and (call.scheduled_for, call.attempt) not in allowed:
                    yield "I5", f"{_call(call)} was going on when cancel answered, and the answer does not say so"
        elif isinstance(event, Stored):
            lives[event.job_id] += 1
            running.pop(event.job_id, None)
        elif isinstance(event, Returned) or (isinstance(event, RunSeen) and event.status != "running"):
            live.pop(event.occurrence, None)
        elif isinstance(event, Called):
            live[event.occurrence] = event
            named = running.get(event.job_id)
            if named is not None and (event.scheduled_for, event.attempt) not in named:
                yield "I5", f"{_call(event)} was called after cancel had answered"


def _families(history: History, promise: Promise) -> Found:
    """No child is called before its parents let it, none is skipped without cause, and none is forgotten by them."""
    asked: dict[str, Submitted] = {}
    lives: dict[str, Submitted] = {}
    ends: dict[str, tuple[str, datetime]] = {}  # job → how it ended, and when
    latest: dict[str, str | None] = {}  # job → the state of its run
    cancelled: set[str] = set()
    called: set[Occurrence] = set()
    for event in history.events:
        if isinstance(event, Submitted):
            asked[event.job_id] = event
        elif isinstance(event, Stored) and event.job_id in asked:
            lives[event.job_id] = asked[event.job_id]
            cancelled.discard(event.job_id)
            ends.pop(event.job_id, None)
        elif isinstance(event, JobCancelled) and event.job_id in lives:
            cancelled.add(event.job_id)
            if latest.get(event.job_id) not in ("running", "enqueued"):
                ends.setdefault(event.job_id, ("cancelled", event.at))
        elif isinstance(event, RunSeen) and event.job_id in lives:
            if lives[event.job_id].first == event.scheduled_for:
                latest[event.job_id] = event.status
                if event.status in TERMINAL:
                    ends.setdefault(event.job_id, (event.status, event.at))
                elif event.job_id in cancelled and event.status == "failed":  # no attempt of it will follow
                    ends.setdefault(event.job_id, ("cancelled", event.at))
            if event.reason == "parent_failed":
                how = {parent: ends.get(parent, ("open", event.at))[0] for parent in lives[event.job_id].depends_on}
                if set(how.values()) <= {"succeeded", "open"}:
                    yield "DAG", f"{_name(event.occurrence)} was skipped for its parents, which are {how}"
        elif isinstance(event, Called) and event.job_id in lives and event.occurrence not in called:
            called.add(event.occurrence)
            yield from _child_called(lives[event.job_id], event, ends, promise)


def _child_called(job: Submitted, call: Called, ends: dict[str, tuple[str, datetime]], promise: Promise) -> Found:
    how = {parent: ends.get(parent, ("open", call.at))[0] for parent in job.depends_on}
    allowed = {"succeeded"} | ({"dead_lettered", "cancelled", "skipped"} if job.runs_anyway else set())
    if not set(how.values()) <= allowed:
        yield "DAG", f"{_call(call)} was called while its parents were {how}"
    elif how:
        free_at = max(job.first, *(ends[parent][1] for parent in job.depends_on))
        if call.at > free_at + timedelta(seconds=promise.late_s):
            yield "DAG", f"{_call(call)} came {call.at - free_at} after its parents were over"


def _side_by_side(history: History, promise: Promise) -> Found:
    """No run beside one that it may not be beside, by its job's `overlap` and its group's limit."""
    return side_by_side.violations(history)


def _asked(history: History, promise: Promise) -> Found:
    """Pauses hold back; what was asked for comes."""
    return asked.violations(history)


def _journaled(history: History, promise: Promise) -> Found:
    journaled: set[Occurrence] = set()
    for event in history.events:
        if isinstance(event, Journaled):
            journaled.update(event.occurrences)
        elif isinstance(event, Sent) and event.by != "audit":  # the audit sends what nobody's page holds any more
            for occurrence in event.occurrences:
                if occurrence not in journaled:
                    yield "I6", f"{_name(occurrence)} was sent by {event.by} and never journaled"
    for end in history.of(Ended):
        if end.pages and promise.drained:
            yield "I6", f"{end.pages} journal pages are left at the end"


def _numbers(history: History, promise: Promise) -> Found:
    calls: dict[Occurrence, list[int]] = {}
    for call in history.of(Called):
        calls.setdefault(call.occurrence, []).append(call.attempt)
    allowed: dict[str, int] = {}
    for asked_for in (*history.of(Submitted), *history.of(ChangeAsked)):
        allowed[asked_for.job_id] = max(asked_for.max_attempts, allowed.get(asked_for.job_id, 0))
    rounds = asked.Rounds()
    for event in history.events:
        rounds.take(event)
    may_miss = promise.lost_attempts + _crashes(history)
    for occurrence, state in _last_states(history).items():
        numbers = calls.get(occurrence, [])
        if len(set(numbers)) < len(numbers):
            yield "I7", f"{_name(occurrence)} had attempts {numbers}: one of them twice"
        if state.status is None or state.status == "skipped":
            continue
        if numbers and max(numbers) > state.attempt:
            yield "I7", f"{_name(occurrence)}: attempt {max(numbers)} is not on record, the last is {state.attempt}"
        if state.attempts_kept != min(state.attempt, 20):
            yield "I7", f"{_name(occurrence)} has {state.attempts_kept} attempts on record, the last is {state.attempt}"
        missing = sorted(set(range(1, state.attempt + 1)) - set(numbers))
        if len(missing) > may_miss:
            yield "I7", f"{_name(occurrence)}: attempts {missing} called no handler"
        most = max(Counter(rounds.of(occurrence, number) for number in numbers).values(), default=0)
        if most > allowed.get(occurrence[0], 0):
            yield "I7", f"{_name(occurrence)} was called {most} times, {allowed.get(occurrence[0])} are allowed"


def _index(history: History, promise: Promise) -> Found:
    stays: dict[Occurrence, int] = {}
    for tick in history.of(Ticked):
        stays = {occurrence: stays.get(occurrence, 0) + 1 for occurrence in tick.overdue}
        for occurrence, ticks in stays.items():
            if ticks == promise.ticks + 1:
                yield "I8", f"{_name(occurrence)} stays in the index, overdue, beyond {promise.ticks} ticks"
    for end in history.of(Ended):
        for job_id, status, due_at in end.indexed:
            if status != "scheduled":
                yield "I8", f"{job_id} is {status} and in the index"
            elif due_at < end.at - timedelta(seconds=60 * promise.ticks + 60):
                yield "I8", f"{job_id} is in the index at the end, due since {due_at:%H:%M:%S}"


def _ends(history: History, promise: Promise) -> Found:
    for failed in history.of(Failed):
        if not failed.expected:
            yield "error", f"{failed.process} failed: {failed.error}"
    for end in history.of(Ended):
        if end.messages and promise.drained:
            yield "end", f"{end.messages} messages are left at the end"
        if end.findings > promise.findings:
            yield "end", f"the audit finds {end.findings}"


def _crashes(history: History) -> int:
    return len(history.of(Crashed))


def _name(occurrence: Occurrence) -> str:
    return f"{occurrence[0]}/{occurrence[1]:%H:%M:%S}"


def _call(call: Called) -> str:
    return f"{_name(call.occurrence)} attempt {call.attempt}"


def told(violations: Sequence[Violation]) -> str:
    """For an assertion's message."""
    return "\n".join(map(str, violations))
