"""The runs: start, renew, finish, withdraw, read; each write states the state it expects. It never decides.

What users ask of runs is in store.run_requests, and a job's whole history is read by store.run_history.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from shared.model.errors import LeaseLostError
from shared.model.instants import epoch_s, sort_text
from shared.model.message import Message
from shared.model.run import Attempt, Outcome, Run, RunStatus
from shared.rules import lifecycle
from shared.rules.lifecycle import Event
from shared.store import keys
from shared.store.codec import attempts_value, lost, read_all, run_of
from shared.store.table import ConditionFailedError, Item, Table, number, text

# Named clauses of the conditions below.
_ABSENT = "attribute_not_exists(#pk)"
_WAITED = "#status = :failed AND #retry_at <= :now"
_WAITING = "#status = :enqueued"
_LEASE_OVER = "#status = :running AND #lease_expires_at < :now"
_NOT_NEWER = "#revision <= :revision"
_MINE = "#status = :running AND #attempt = :current AND #attempts[{last}].#worker = :worker"
_SHORTER = "#status = :skipped AND attribute_not_exists(#missed_until)"
_NOT_CANCELLED = "(attribute_not_exists(#cancel_requested) OR #cancel_requested <= #revision)"

_NOT_AWAITED = "attribute_not_exists(#has_children)"

# Two executors get the same message, or a message twice:
#
#   A: start ──────────── running, lease to 12:01:05 ──────── finish (_MINE)
#   B:        start → _ABSENT, _WAITED, _LEASE_OVER all false → put back until 12:01:05, no attempt used
#   A dies:   B: start → _LEASE_OVER → attempt 2;  A wakes: finish → _MINE fails (attempt is 2) → LeaseLostError
#
# The number alone does not tell whose the attempt is: a start that is taken back leaves its number to the next
#
#   A: start (1) ── forget_start, its answer is lost ──────────────── made again: _MINE fails (another worker)
#   B:                                              start (1) → runs
#
# A job is cancelled and submitted again: its 12:05 is in the queue under revision 1 (void) and 3
#
#   A (3): start, fails ────────── waits
#   B (1):                 start → _NOT_NEWER false → void: it must not take the run over only to withdraw it
_MAY_START = f"{_ABSENT} OR ({_NOT_NEWER} AND (({_WAITED}) OR ({_WAITING}) OR ({_LEASE_OVER})))"


class StartRefusedError(Exception):
    """The run may not start now; `run` says why: live lease, waiting for its retry, or over."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"run is {run.status}")
        self.run = run


class CancelRequestedError(Exception):
    """A failed attempt may not be tried again: a cancel was asked for while it ran."""


class _AwaitedError(Exception):
    """Somebody has written since the start that other jobs wait for the run's end."""


@dataclass(frozen=True, slots=True)
class Success:
    """The end of `run`'s running attempt, at `now`: it went well. `result` is one JSON text."""

    run: Run
    result: str | None
    reason: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of `table`, kept for `retention` after their last write."""

    table: Table
    retention: timedelta

    def start(self, message: Message, worker_id: str, now: datetime) -> Run:
        """Begin the next attempt of the message's run, with a lease of `lease_s`. Raises StartRefusedError.

        A run that was started under a later revision than the message's is not touched.

        `worker_id` is a new one for each start: a start whose answer was lost is known again by it.
        """
        lease = now + timedelta(seconds=message.lease_s)
        opened = Attempt(attempt=0, worker_id=worker_id, started_at=now, lease_expires_at=lease)
        try:
            item = self.table.update(
                keys.run_key(message.job_id, message.scheduled_for),
                "SET #status = :running, #revision = :revision, #lease_expires_at = :lease, #ttl = :ttl,"
                " #attempt = if_not_exists(#attempt, :zero) + :one,"
                " #attempts = list_append(if_not_exists(#attempts, :none), :opened)"
                " REMOVE #retry_at, #reason",
                _MAY_START,
                {
                    ":running": text(RunStatus.RUNNING),
                    ":failed": text(RunStatus.FAILED),
                    ":enqueued": text(RunStatus.ENQUEUED),
                    ":revision": number(message.revision),
                    ":lease": text(sort_text(lease)),
                    ":now": text(sort_text(now)),
                    ":ttl": self.ttl(now),
                    ":zero": number(0),
                    ":one": number(1),
                    ":none": {"L": []},
                    ":opened": attempts_value((opened,)),
                },
                returned="ALL_NEW",
            )
        except ConditionFailedError as refused:
            if refused.item is None:
                raise _vanished(message) from refused
            there = run_of(refused.item)
            if there.status is RunStatus.RUNNING and there.attempts[-1].worker_id == worker_id:
                return there
            raise StartRefusedError(there) from None
        return run_of(item)

    def renew(self, run: Run, lease: datetime | None, progress: str | None = None) -> Run:
        """Move the lease of the running attempt, show what it has reported, or both. Raises LeaseLostError.

        Returns the run as it is then: a cancel is seen without a read.
        """
        sets, values = [], {}
        if lease is not None:
            sets += ["#lease_expires_at = :lease", f"#attempts[{len(run.attempts) - 1}].#lease = :lease"]
            values[":lease"] = text(sort_text(lease))
        if progress is not None:
            sets.append("#progress = :progress")
            values[":progress"] = text(progress)
        return run_of(self._write_mine(run, f"SET {', '.join(sets)}", values, returned="ALL_NEW"))

    def look(self, run: Run) -> Run:
        """The run of the running attempt as it is now, without a write. Raises LeaseLostError."""
        there = self.get(run.job_id, run.scheduled_for)
        if there is None or not is_same_attempt(there, run):
            raise _lost(run)
        return there

    def succeed(self, success: Success) -> bool:
        """The attempt ended well. Whether others wait for that (see `_end`). Raises LeaseLostError."""
        #   A:  UPDATE (of its batch, or alone), its answer is lost ── made again: _MINE fails, and the end is A's own
        try:
            return self._end(success.run, Event.SUCCEED, self.ending_well(success))
        except LeaseLostError:
            there = self.get(success.run.job_id, success.run.scheduled_for)
            ended = closed(success.run, Outcome.SUCCEEDED, None, success.now)[-1]
            if there is None or not there.attempts or there.attempts[-1] != ended:
                raise
            return False

    def ending_well(self, success: Success) -> Item:
        """What a success sets; it removes the lease besides."""
        run, now = success.run, success.now
        values = {"result": text(success.result)} if success.result is not None else {}
        values |= {"reason": text(success.reason)} if success.reason is not None else {}
        return self._ending(run, Event.SUCCEED, closed(run, Outcome.SUCCEEDED, None, now), now, values)

    def fail(self, run: Run, attempts: tuple[Attempt, ...], retry_at: datetime, now: datetime) -> None:
        """The attempt failed and another comes at `retry_at`. Raises LeaseLostError, CancelRequestedError."""
        retry = {"retry_at": text(sort_text(retry_at))}
        self._finish(run, Event.FAIL, self._ending(run, Event.FAIL, attempts, now, retry), _NOT_CANCELLED)

    def lose(self, run: Run, now: datetime) -> None:
        """End an attempt whose lease has run out, before another takes it over. Raises LeaseLostError if it has not."""
        #   zombie:   lease over ──────────────────────── renew: _MINE fails: it stops, and is live no more
        #   another:              lose, takes its place
        self._write_mine(
            run,
            "SET #status = :status, #attempts = :attempts, #retry_at = :now, #ttl = :ttl REMOVE #lease_expires_at",
            {
                ":status": text(lifecycle.after(RunStatus.RUNNING, Event.FAIL)),
                ":attempts": attempts_value((*run.attempts[:-1], lost(run.attempts[-1]))),
                ":now": text(sort_text(now)),
                ":ttl": self.ttl(now),
            },
            _LEASE_OVER,
        )

    def hand_over(self, run: Run, attempts: tuple[Attempt, ...], revision: int, now: datetime) -> None:
        """The start was void, and the job's `revision` brings the run's next attempt. Raises LeaseLostError.

        A cancel of an older revision does not hold for it.
        """
        values = {"retry_at": text(sort_text(now)), "revision": number(revision)}
        self._finish(run, Event.FAIL, self._ending(run, Event.FAIL, attempts, now, values))

    def exhaust(self, run: Run, attempts: tuple[Attempt, ...], now: datetime) -> bool:
        """The last attempt failed and the dead-letter queue has it. Whether others wait for that (see `_end`).

        Raises LeaseLostError, CancelRequestedError.
        """
        part, at = keys.dead_part_of(run.job_id), keys.dead_list_at(run.job_id, run.scheduled_for)
        listed = {"list_key": text(keys.dead_list_key(part)), "list_at": text(at)}
        return self._end(run, Event.EXHAUST, self._ending(run, Event.EXHAUST, attempts, now, listed), _NOT_CANCELLED)

    def park(
        self, run: Run, attempts: tuple[Attempt, ...], reason: str | None, retry_at: datetime, now: datetime
    ) -> None:
        """The start was too soon: the run waits, for `reason`, and is looked at again at `retry_at`.

        Raises LeaseLostError, CancelRequestedError.
        """
        values: Item = {"retry_at": text(sort_text(retry_at)), "waited": {"BOOL": True}}
        values |= {"reason": text(reason)} if reason else {}
        self._finish(run, Event.WITHDRAW, self._ending(run, Event.WITHDRAW, attempts, now, values), _NOT_CANCELLED)

    def cancel(
        self, run: Run, attempts: tuple[Attempt, ...], reason: str, now: datetime, result: str | None = None
    ) -> bool:
        """No further attempt: the run ends as cancelled, for the mark's reason if it has one. Raises LeaseLostError."""
        values = {"reason": text(reason)} | ({"result": text(result)} if result is not None else {})
        return self._end(run, Event.CANCEL, self._ending(run, Event.CANCEL, attempts, now, values))

    def skip_started(self, run: Run, reason: str, now: datetime, attempts: tuple[Attempt, ...] = ()) -> None:
        """The start was void and never comes again: the run is recorded as skipped, with no attempt but `attempts`."""
        reasoned = {"reason": text(reason)}
        self._finish(run, Event.SKIP, self._ending(run, Event.SKIP, attempts, now, reasoned), _NOT_CANCELLED)

    def forget_start(self, run: Run, *, anyway: bool = False) -> None:
        """The start was void and may come again under another revision: as if it had never been.

        `anyway`: also when a cancel was asked for, since a later job brings the occurrence.
        Raises LeaseLostError, CancelRequestedError.
        """
        mine, values = _mine(run)
        try:
            self.table.delete(self._key(run), mine if anyway else f"{mine} AND {_NOT_CANCELLED}", values)
        except ConditionFailedError as failed:
            raise self._not_mine(run, failed.item) from None

    def record_skip(self, message: Message, reason: str, now: datetime) -> Run | None:
        """Record an occurrence that is not run. What is there already stays, and is returned.

        But a span that begins with it takes the place of a record of this one occurrence.
        """
        item: Item = {
            **keys.run_key(message.job_id, message.scheduled_for),
            "status": text(lifecycle.after(RunStatus.ENQUEUED, Event.SKIP)),
            "revision": number(message.revision),
            "attempt": number(0),
            "attempts": {"L": []},
            "reason": text(reason),
            keys.TTL_ATTRIBUTE: self.ttl(now),
        }
        condition, values = _ABSENT, Item()
        if message.missed is not None and message.missed_until is not None:
            item |= {"missed": number(message.missed), "missed_until": text(sort_text(message.missed_until))}
            condition, values = f"{_ABSENT} OR ({_SHORTER})", {":skipped": item["status"]}
        try:
            self.table.put(item, condition, values)
        except ConditionFailedError as refused:
            if refused.item is None:
                raise _vanished(message) from refused
            return run_of(refused.item)
        return None

    def get(self, job_id: str, scheduled_for: datetime) -> Run | None:
        """One run, or None where the occurrence has none (yet)."""
        item = self.table.get(keys.run_key(job_id, scheduled_for))
        return run_of(item) if item else None

    def get_many(self, occurrences: Sequence[tuple[str, datetime]]) -> list[Run]:
        """The runs of (job_id, scheduled_for) that there are and can be read."""
        wanted = {(job_id, moment): keys.run_key(job_id, moment) for job_id, moment in occurrences}
        return read_all(self.table.get_many(list(wanted.values())), run_of)[0]

    def _ending(self, run: Run, event: Event, attempts: tuple[Attempt, ...], now: datetime, values: Item) -> Item:
        """What the running attempt's last write sets: the run's state, its attempts, and the optional `values`.

        `run.progress` is what is yet to be written of it.
        """
        return {
            **values,
            **({"progress": text(run.progress)} if run.progress is not None else {}),
            "status": text(lifecycle.after(RunStatus.RUNNING, event)),
            "attempt": number(attempts[-1].attempt if attempts else 0),
            "attempts": attempts_value(attempts),
            keys.TTL_ATTRIBUTE: self.ttl(now),
        }

    def _end(self, run: Run, event: Event, ending: Item, also: str | None = None) -> bool:
        """As `_finish`; and whether somebody has written since the start that other jobs wait for this end.

        That is seen without a read, or a byte more of an answer, by those runs that nobody waits for.
        """
        #   submit:             link ── flag the parent ── mark its run
        #   execute:   start ── read the parent, no flag ──────────────── end: _NOT_AWAITED fails → end, and wake
        try:
            self._finish(run, event, ending, f"{_NOT_AWAITED} AND {also}" if also else _NOT_AWAITED)
        except _AwaitedError:
            self._finish(run, event, ending, also)
            return True
        return False

    def _finish(self, run: Run, event: Event, ending: Item, also: str | None = None) -> None:
        """The running attempt's last write."""
        sources = {"reason": "if_not_exists(#cancel_reason, :reason)"} if event is Event.CANCEL else {}
        sets = ", ".join(f"#{name} = {sources.get(name, f':{name}')}" for name in ending)
        values = {f":{name}": value for name, value in ending.items()}
        self._write_mine(run, f"SET {sets} REMOVE #lease_expires_at", values, also)

    def _write_mine(
        self, run: Run, update: str, values: dict[str, Any], also: str | None = None, returned: str = "NONE"
    ) -> Item:
        mine, whose = _mine(run)
        condition = f"{mine} AND {also}" if also else mine
        try:
            return self.table.update(self._key(run), update, condition, {**values, **whose}, returned=returned)
        except ConditionFailedError as failed:
            if _NOT_AWAITED in condition and "has_children" in (failed.item or {}):
                raise _AwaitedError from None
            raise self._not_mine(run, failed.item) from None

    def _not_mine(self, run: Run, found: Item | None) -> Exception:
        there = run_of(found) if found else None
        if there and is_same_attempt(there, run) and there.cancel_requested:
            return CancelRequestedError()
        return _lost(run)

    def _key(self, run: Run) -> Item:
        return keys.run_key(run.job_id, run.scheduled_for)

    def ttl(self, now: datetime) -> dict[str, str]:
        """When a run that is written now may be removed."""
        return number(epoch_s(now + self.retention))


def is_same_attempt(there: Run, run: Run) -> bool:
    """Whether the attempt that `run` was started for is still the one that is going on."""
    if there.status is not RunStatus.RUNNING or there.attempt != run.attempt:
        return False
    return there.attempts[-1].worker_id == run.attempts[-1].worker_id


def closed(
    run: Run, outcome: Outcome, error: str | None, now: datetime, kind: str | None = None
) -> tuple[Attempt, ...]:
    """The run's attempts with the running one ended now."""
    ended = replace(run.attempts[-1], finished_at=now, outcome=outcome, error=error, error_kind=kind)
    return (*run.attempts[:-1], ended)


def _vanished(message: Message) -> LeaseLostError:
    """It went between the judgement and the answer: a withdrawn start. The message finds that when it comes again."""
    return LeaseLostError(f"run {message.job_id}/{sort_text(message.scheduled_for)} vanished")


def _lost(run: Run) -> LeaseLostError:
    run_name = f"{run.job_id}/{sort_text(run.scheduled_for)}"
    return LeaseLostError(f"attempt {run.attempt} of run {run_name} is no longer the current one")


def _mine(run: Run) -> tuple[str, Item]:
    """The clause _MINE and its values: the run is still that of `run`'s running attempt."""
    last = len(run.attempts) - 1
    values = {
        ":running": text(RunStatus.RUNNING),
        ":current": number(run.attempt),
        ":worker": text(run.attempts[last].worker_id),
    }
    return _MINE.format(last=last), values
