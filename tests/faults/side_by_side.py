"""Judges a history by what may go on beside what: runs of a job by its `overlap`, runs of a group by its limit.

A policy or a limit holds for the attempts that start under it. An attempt that started under none has no place.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.faults.history import Called, Event, History, LimitSeen, Occurrence, PolicySeen, Returned, RunSeen

NO_LIMIT = 10**9


@dataclass
class Began:
    """The mildest that an attempt may have met between its start and its call."""

    overlap: str
    limit: int


@dataclass
class Account:
    """What is known after so many events."""

    policies: dict[str, PolicySeen] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    states: dict[Occurrence, RunSeen] = field(default_factory=dict)
    began: dict[Occurrence, Began] = field(default_factory=dict)  # by the latest attempt of each
    calls: dict[Occurrence, tuple[Called, Began]] = field(default_factory=dict)  # not returned
    called: set[Occurrence] = field(default_factory=set)

    def take(self, event: Event) -> None:
        if isinstance(event, PolicySeen):
            self.policies[event.job_id] = event
        elif isinstance(event, LimitSeen):
            self.limits[event.group] = NO_LIMIT if event.max_running is None else event.max_running
        elif isinstance(event, RunSeen):
            before = self.states.get(event.occurrence)
            self.states[event.occurrence] = event
            if event.status == "running" and (
                before is None or (before.status, before.attempt) != ("running", event.attempt)
            ):
                self.began[event.occurrence] = Began("", 0)
        elif isinstance(event, Returned):
            self.calls.pop(event.occurrence, None)
        self._make_milder()

    def _make_milder(self) -> None:
        for (job_id, _), began in self.began.items():
            policy = self.policies.get(job_id)
            overlap = policy.overlap if policy else "allow"
            began.overlap = overlap if began.overlap in ("", overlap) else "allow"
            began.limit = max(began.limit, self.limits.get(self.group_of(job_id) or "", NO_LIMIT))

    def group_of(self, job_id: str) -> str | None:
        return self.policies[job_id].group if job_id in self.policies else None

    def live_beside(self, call: Called) -> list[tuple[Called, Began]]:
        """The calls that may be going on when `call` comes: not returned, their attempt current, its lease not over."""
        found = []
        for occurrence, (other, began) in self.calls.items():
            state = self.states[occurrence]
            is_current = (state.status, state.attempt) == ("running", other.attempt)
            if is_current and state.lease_expires_at is not None and state.lease_expires_at >= call.at:
                found.append((other, began))
        return [one for one in found if one[0].occurrence != call.occurrence]

    def has_another(self, run: RunSeen) -> bool:
        """Whether another run of its job is open, or has been called: two must not be skipped for each other."""
        others = {one: state for one, state in self.states.items() if one[0] == run.job_id and one != run.occurrence}
        is_open = any(state.status in ("running", "failed", "enqueued") for state in others.values())
        return is_open or not others.keys().isdisjoint(self.called)

    def between_attempts(self, call: Called) -> list[Occurrence]:
        """Other runs of the job that wait for their next attempt."""
        return [
            occurrence
            for occurrence, state in self.states.items()
            if occurrence[0] == call.job_id and occurrence != call.occurrence and state.status == "failed"
        ]


def violations(history: History) -> Iterator[tuple[str, str]]:
    """(what is broken, what shows it)."""
    account = Account()
    for event in history.events:
        account.take(event)
        if isinstance(event, RunSeen) and event.status == "running" and event.occurrence in account.calls:
            call, began = account.calls[event.occurrence]  # a lease that is renewed is live again from here on
            if call.attempt == event.attempt:
                yield from _judged(replace(call, at=event.at), began, account)
        if isinstance(event, Called):
            began = account.began.pop(event.occurrence, Began("allow", NO_LIMIT))
            yield from _judged(event, began, account)
            account.calls[event.occurrence] = (event, began)
            account.called.add(event.occurrence)
        is_left_out = isinstance(event, RunSeen) and (event.status, event.reason) == ("skipped", "overlap")
        if isinstance(event, RunSeen) and is_left_out and not account.has_another(event):
            yield "overlap", f"{event.job_id}/{event.scheduled_for:%H:%M:%S} was skipped, and there is no other run"


def _judged(call: Called, began: Began, account: Account) -> Iterator[tuple[str, str]]:
    live = account.live_beside(call)
    if began.overlap != "allow":
        for other, _ in live:
            if other.job_id == call.job_id:
                yield "overlap", f"{_name(call)} was called while {_name(other)} was going on"
        for occurrence in account.between_attempts(call):
            yield "overlap", f"{_name(call)} was called while {occurrence[1]:%H:%M:%S} waited for its next attempt"
    group = account.group_of(call.job_id)
    places = [other for other, how in live if account.group_of(other.job_id) == group and how.limit < NO_LIMIT]
    if group is not None and len(places) + 1 > began.limit:
        yield "group", f"{_name(call)} was called beside {[_name(one) for one in places]}; {began.limit} are allowed"


def _name(call: Called) -> str:
    return f"{call.job_id}/{call.scheduled_for:%H:%M:%S} attempt {call.attempt}"
