"""What users ask of runs: one now, one again, an end; each write states the state it expects. It never decides."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.model.instants import epoch_s, sort_text
from shared.model.message import Message
from shared.model.run import Run, RunStatus
from shared.rules import lifecycle
from shared.rules.lifecycle import Event
from shared.store import keys
from shared.store.codec import run_of
from shared.store.table import ConditionFailedError, Item, NotWrittenError, Table, number, text

_ABSENT = "attribute_not_exists(#pk)"
_OLDER = "#revision < :later"
_AS_SEEN = "#status = :seen AND #attempt = :attempt"


class RunChangedError(NotWrittenError):
    """The run is no longer as it was seen."""


@dataclass(frozen=True, slots=True)
class RunRequests:
    """What users write to the runs of `table`, kept for `retention` after it."""

    table: Table
    retention: timedelta

    def trigger(self, message: Message, now: datetime) -> None:
        """Record a run beside the schedule. Its item makes it known to recovery and audit: no schedule has it.

        Raises RunChangedError where there is a run of that very moment.
        """
        requested = text(sort_text(now))
        item: Item = {
            **keys.run_key(message.job_id, message.scheduled_for),
            "status": text(RunStatus.ENQUEUED),
            "revision": number(message.revision),
            "attempt": number(0),
            "attempts": {"L": []},
            "requested_at": requested,
            "retry_at": requested,
            keys.TTL_ATTRIBUTE: self._ttl(now),
        }
        try:
            self.table.put(item, _ABSENT)
        except ConditionFailedError as there:
            if there.item is None or there.item.get("requested_at") != requested:
                raise RunChangedError(f"{message.job_id} has a run of {sort_text(message.scheduled_for)}") from None

    def redrive(self, run: Run, revision: int, now: datetime) -> None:
        """A dead-lettered run again, with all its attempts anew. Raises RunChangedError."""
        #   two redrives of one run, both having seen it dead-lettered after attempt 3:
        #   A: redrive ────────────── starts, fails … dead-lettered after attempt 6
        #   B:          redrive → _AS_SEEN fails (status, or by then the attempt)
        requested = text(sort_text(now))
        try:
            self.table.update(
                keys.run_key(run.job_id, run.scheduled_for),
                "SET #status = :enqueued, #revision = :revision, #requested_at = :now, #retry_at = :now,"
                " #earlier_attempts = :attempt, #ttl = :ttl REMOVE #reason, #list_key, #list_at",
                _AS_SEEN,
                {
                    ":enqueued": text(lifecycle.after(run.status, Event.REDRIVE)),
                    ":seen": text(run.status),
                    ":attempt": number(run.attempt),
                    ":revision": number(revision),
                    ":now": requested,
                    ":ttl": self._ttl(now),
                },
            )
        except ConditionFailedError as there:
            if there.item is None or there.item.get("requested_at") != requested:
                raise RunChangedError(f"{run.job_id}/{sort_text(run.scheduled_for)} is not dead-lettered") from None

    def cancel(self, run: Run, revision: int, reason: str, now: datetime) -> RunStatus:
        """Mark an open run, as the job's `revision` asks for: waiting → cancelled; running → its attempt is the last.

        Returns what the run was found to be; `enqueued` if it began under that revision or a later one.
        """
        #   cancel:  job → cancelled ── read runs ── mark              an executor that starts after the job was
        #   execute:        start ── read job (sees cancelled)         written sees it; one that started before is
        #                                                              seen here and marked
        #
        #   cancel:   job → cancelled (2) ──────────────────────── mark: _OLDER fails, and the mark means nothing to
        #   submit:                       the same id (3)                a run that started under a later revision
        #   execute:                                      start (3)
        if run.status in (RunStatus.FAILED, RunStatus.ENQUEUED):
            try:
                self.table.update(
                    keys.run_key(run.job_id, run.scheduled_for),
                    "SET #status = :cancelled, #reason = :reason, #ttl = :ttl REMOVE #retry_at",
                    f"#status = :seen AND {_OLDER}",
                    {
                        ":cancelled": text(lifecycle.after(run.status, Event.CANCEL)),
                        ":later": number(revision),
                        ":reason": text(reason),
                        ":seen": text(run.status),
                        ":ttl": self._ttl(now),
                    },
                )
                return RunStatus.CANCELLED
            except ConditionFailedError as changed:
                if changed.item is None:
                    return RunStatus.ENQUEUED
                run = run_of(changed.item)
        if run.revision >= revision:
            return RunStatus.ENQUEUED
        if run.status in (RunStatus.FAILED, RunStatus.ENQUEUED):  # it went on to wait meanwhile
            return self.cancel(run, revision, reason, now)
        if run.status is RunStatus.RUNNING:
            try:
                self.table.update(
                    keys.run_key(run.job_id, run.scheduled_for),
                    "SET #cancel_requested = :later, #cancel_reason = :reason",
                    f"#status = :running AND {_OLDER}",
                    {":later": number(revision), ":running": text(RunStatus.RUNNING), ":reason": text(reason)},
                )
            except ConditionFailedError as changed:
                there = run_of(changed.item) if changed.item else None
                return there.status if there and there.revision < revision else RunStatus.ENQUEUED
        return run.status

    def _ttl(self, now: datetime) -> dict[str, str]:
        return number(epoch_s(now + self.retention))
