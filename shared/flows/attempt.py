"""One attempt of one run: start → read the job → call the target → write its end. It never touches the queue."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from shared.flows.dead_letter import dead_letter_text
from shared.flows.gates import MustSkipError, MustWaitError
from shared.flows.workshop import Ended, Workshop
from shared.model.call import Call
from shared.model.errors import LeaseLostError
from shared.model.job import Job, JobStatus
from shared.model.message import Message
from shared.model.run import Attempt, Outcome, Result, Run, RunStatus
from shared.queue import SendError
from shared.rules.dependencies import WAITS
from shared.rules.lease import LEASE_MARGIN_S, LEASE_MAX_S, RENEW_EVERY_S
from shared.rules.lifecycle import is_over
from shared.rules.retry import backoff_s, is_last, is_worth_another, kinds_of
from shared.rules.void_starts import (
    CANCELLED,
    EXPIRED,
    RESCHEDULED,
    comes_again,
    is_expired,
    may_come_again,
    void_reason,
)
from shared.rules.waits import look_again_s
from shared.store.run_records import RunRecord
from shared.store.runs import CancelRequestedError, Success, closed, is_same_attempt
from shared.targets.target import Signals

WITHDRAWN_WITHIN = timedelta(seconds=3)  # a start under an older revision is void, and most often gone by then


class VoidStartError(Exception):
    """The start must be taken back: the job is gone, cancelled, paused, of another revision, or too late."""

    def __init__(self, job: Job | None, reason: str) -> None:
        super().__init__(reason)
        self.job = job
        self.reason = reason


class AttemptFailedError(Exception):
    """The attempt did not succeed; `result` None: it was one too many, and its target was not called."""

    def __init__(self, job: Job, result: Result | None) -> None:
        super().__init__(result.error if result else "no attempt is left")
        self.job = job
        self.result = result


@dataclass(slots=True)
class AttemptFlow:
    """The attempt that message `message` asks for. `started` and `job`: what its batch has done for it before.

    `hands_in`: its success is not written here, but by its batch with others.
    """

    workshop: Workshop
    message: Message
    receives: int = 1  # how often the message has been received
    hands_in: bool = False
    worker_id: str = ""
    started: Run | None = None
    job: Job | None = None
    handed_in: Success | None = None
    signals: Signals = field(default_factory=Signals)
    run: Run | None = None  # while it is going on
    lease_expires_at: datetime | None = None
    may_take_until: datetime | None = None  # when the target's own timeout will have ended it
    late_s: float | None = None  # start less scheduled time, of a first attempt
    _called: bool = False  # the target
    _is_lost: bool = False  # the lease, while the target ran
    _shown: str | None = None  # the progress that is written
    _retry_at: datetime | None = None
    _is_awaited: bool = False  # other jobs wait for the run's end

    def __post_init__(self) -> None:
        self.worker_id = self.workshop.worker_id()

    @property
    def is_fresh(self) -> bool:
        """Whether its run is most likely not there yet. (One that was asked for is, and cannot be told from others.)"""
        return self.receives == 1 and self.message.skip is None and not self.message.woken

    def make(self) -> Ended | None:
        """Make it; None: its success is handed in, for `finish`.

        Never raises for what goes wrong in the target or for a lost lease; AWS errors come through.
        """
        ended = self._make()
        if self.handed_in is not None:
            return None
        return self._over(ended)

    def finish(self, *, is_written: bool) -> Ended:
        """The end of a success that was handed in; if it is not known to be written, it is written here."""
        if self.handed_in is None:
            raise ValueError("no success was handed in")
        try:
            if not is_written:
                self._is_awaited |= self.workshop.runs.succeed(self.handed_in)
        except LeaseLostError:
            return Ended(done=False, outcome="lease_lost")
        finally:
            self.run = None
        return self._over(Ended(done=True, outcome=Outcome.SUCCEEDED, late_s=self.late_s))

    def _over(self, ended: Ended) -> Ended:
        if ended.done and self._is_awaited:
            self._wake()
        return ended

    def _make(self) -> Ended:
        if self.message.skip is not None:
            return self._skip(self.message.skip)
        record = RunRecord(self.message, self._start, self._succeed, self._undo)
        try:
            result = record.run_once(self._effect)
        except VoidStartError as void:
            return Ended(done=True, outcome=void.reason)
        except MustSkipError as skip:
            return Ended(done=True, outcome=skip.reason)
        except MustWaitError as wait:
            # One that was woken too soon is not needed: the run's own message comes back.
            is_spare = self.message.woken and wait.reason == WAITS
            return Ended(done=is_spare, back_s=None if is_spare else wait.back_s, outcome="waiting")
        except AttemptFailedError as failed:
            return self._ended(failed)
        except LeaseLostError:
            # Whoever has the run now needs the message: it is not acknowledged and not moved.
            return Ended(done=False, outcome="lease_lost")
        finally:
            if self.handed_in is None:
                self.run = None
        if record.refused is not None:
            return self._refused(record.refused)
        return Ended(done=True, outcome=result.outcome if result else None, late_s=self.late_s)

    def _skip(self, reason: str) -> Ended:
        #   resume: claims 12:03 as skipped ── sends        a message from before the pause is void and takes its start
        #   A (1):                                  start ─────────────────── forget_start      back: what it leaves
        #   B (3):                                         record_skip → there is a run → back   is for the skip
        try:
            there = self.workshop.runs.record_skip(self.message, reason, self.workshop.clock.now())
        except LeaseLostError:
            return Ended(done=False, outcome="lease_lost")
        if there is None or is_over(there.status):
            return Ended(done=True, outcome="skipped")
        return self._refused(there)

    def renew(self, lease_s: float) -> None:
        """A heartbeat: move the lease on if the target may run past it, show what it reports, and look for a cancel.

        A lease that was taken over stops the attempt. A cancel is told to the handler first, and stops it a heartbeat
        later.
        """
        run, lease, until = self.run, self.lease_expires_at, self.may_take_until
        if run is None or lease is None or until is None:
            return
        if self.signals.cancelled.is_set():
            self.signals.stop.set()
        runs, now, news = self.workshop.runs, self.workshop.clock.now(), self._news()
        is_long = until + timedelta(seconds=LEASE_MARGIN_S) > lease
        longer = now + timedelta(seconds=lease_s) if is_long else None
        try:
            there = runs.renew(run, longer, news) if longer or news else runs.look(run)
        except LeaseLostError:
            self._lose()
        except Exception:
            if self.workshop.clock.now() >= lease:  # somebody else may start now, so this one must end
                self._lose()
            raise
        else:
            self.lease_expires_at, self._shown = longer or lease, news or self._shown
            if there.cancel_requested:
                self.signals.cancelled.set()

    def _lose(self) -> None:
        self._is_lost = True
        self.signals.stop.set()

    def _news(self) -> str | None:
        """The progress that is not written yet."""
        reported = self.signals.progress
        return reported if reported != self._shown else None

    def _start(self) -> Run:
        self.run = self.started or self.workshop.runs.start(self.message, self.worker_id, self.workshop.clock.now())
        self.lease_expires_at = self.run.lease_expires_at
        if self.run.attempt == 1 and not self.run.waited:
            self.late_s = (self.run.attempts[-1].started_at - self.run.scheduled_for).total_seconds()
        return self.run

    def _effect(self) -> Result:
        """Read the job, only now that the run is written (the order that I5 needs), and call its target."""
        run = self._running()
        job = self.job or self.workshop.jobs.get(self.message.job_id)
        now = self.workshop.clock.now()
        if job is None:
            raise VoidStartError(None, CANCELLED)
        self._is_awaited = job.has_children
        reason = void_reason(job, run, self.message)
        if reason is not None:
            raise VoidStartError(job, reason)
        if run.attempts_of_round > job.spec.retry.max_attempts:
            raise AttemptFailedError(job, None)
        if is_expired(job, run, now):
            raise VoidStartError(job, EXPIRED)
        self.workshop.gates.enter(job, run, self.receives, now)
        try:
            return self._call(job, run)
        finally:
            self._leave(job, run)

    def _call(self, job: Job, run: Run) -> Result:
        now = self.workshop.clock.now()
        self.may_take_until = now + timedelta(seconds=job.spec.timeout_s)
        self._hold(run, now, self.may_take_until)
        self._called = True
        result = self.workshop.targets.call(
            Call(
                job_id=job.job_id,
                scheduled_for=run.scheduled_for,
                attempt=run.attempt,
                max_attempts=run.earlier_attempts + job.spec.retry.max_attempts,
                target=job.spec.target,
                payload=job.spec.payload,
                timeout_s=job.spec.timeout_s,
            ),
            self.signals,
        )
        if self._is_lost:
            raise LeaseLostError("the lease was lost while the target ran")
        if self.signals.told and result.outcome in (Outcome.SUCCEEDED, Outcome.FAILED):
            result = replace(result, outcome=Outcome.CANCELLED)  # it knew, and ended for that
        if result.outcome is not Outcome.SUCCEEDED:
            raise AttemptFailedError(job, result)
        return result

    def _hold(self, run: Run, now: datetime, may_take_until: datetime) -> None:
        """Renew a lease that slow reads have used up, before the target is called. Raises LeaseLostError."""
        #   A: start ── read job, very slowly ────────────── renew → LeaseLostError: not called beside B's attempt (I2)
        #   B:               the lease runs out → start, call
        lease = self.lease_expires_at or now
        if may_take_until > lease and lease - now < timedelta(seconds=RENEW_EVERY_S + LEASE_MARGIN_S):
            longer = now + timedelta(seconds=LEASE_MAX_S + LEASE_MARGIN_S)
            there = self.workshop.runs.renew(run, longer)
            self.lease_expires_at = longer
            if there.cancel_requested:
                self.signals.cancelled.set()

    def _succeed(self, result: Result) -> None:
        success = Success(self._running(), result.result, result.note, self.workshop.clock.now())
        if self.hands_in:
            self.handed_in = success
        else:
            self._is_awaited |= self.workshop.runs.succeed(success)

    def _undo(self, why: Exception) -> None:
        if isinstance(why, VoidStartError):
            self._withdraw(why)
        elif isinstance(why, MustSkipError | MustWaitError):
            self._hold_back(why)
        elif isinstance(why, AttemptFailedError):
            self._fail(why)
        elif isinstance(why, ClientError | BotoCoreError) and not self._called:
            self._give_back()

    def _hold_back(self, why: MustSkipError | MustWaitError) -> None:
        """A gate did not let the run begin: it waits as it was before its start, or is recorded as skipped (I1)."""
        run, runs, now = self._running(), self.workshop.runs, self.workshop.clock.now()
        before = run.attempts[:-1]
        try:
            if isinstance(why, MustWaitError):
                runs.park(run, before, why.reason, now + timedelta(seconds=why.back_s), now)
            elif any(attempt.outcome is not Outcome.LOST for attempt in before):
                runs.cancel(run, before, why.reason, now)
            else:  # those that were lost did not come to be judged, most often
                runs.skip_started(run, why.reason, now, before)
        except CancelRequestedError:
            runs.cancel(run, before, CANCELLED, now)

    def _wake(self) -> None:
        # Who is not woken looks by itself before long: it never holds up the message.
        try:
            self.workshop.wake(self.message.job_id, self.workshop.clock.now())
        except (ClientError, BotoCoreError, SendError) as error:
            self.workshop.problem(error)

    def _leave(self, job: Job, run: Run) -> None:
        # What cannot be given back is found by whoever needs it: it never holds up the run's own end.
        try:
            self.workshop.gates.leave(job, run)
        except (ClientError, BotoCoreError) as error:
            self.workshop.problem(error)

    def _give_back(self) -> None:
        """An AWS error came before the target was called: this was no attempt (I7), and the message comes back."""
        run, runs, now = self._running(), self.workshop.runs, self.workshop.clock.now()
        try:
            if run.requested_at is not None and run.attempts_of_round == 1:
                runs.park(run, run.attempts[:-1], None, now, now)
            elif run.attempt == 1:
                runs.forget_start(run)
            else:
                runs.fail(run, run.attempts[:-1], now, now)
        except CancelRequestedError:
            runs.cancel(run, run.attempts[:-1], CANCELLED, now)

    def _withdraw(self, void: VoidStartError) -> None:
        """Take the start back: forget it if the occurrence may come again, else record why it never ran (I1)."""
        run, runs, now = self._running(), self.workshop.runs, self.workshop.clock.now()
        job, comes = void.job, void.reason != EXPIRED and comes_again(void.job, run.scheduled_for)
        is_recurring = job is not None and not job.spec.schedule.is_one_off
        may_come = void.reason != EXPIRED and may_come_again(job, run.scheduled_for)
        try:
            if run.requested_at is not None and void.reason != EXPIRED:
                runs.cancel(run, run.attempts[:-1], void.reason, now)
            elif may_come and (run.attempt == 1 or is_recurring):
                # Of a recurring job, what was due after the change was void at each start: there are no attempts to
                # keep, and a resume may leave the occurrence out.
                runs.forget_start(run, anyway=comes and job is not None and job.status is JobStatus.SCHEDULED)
            elif run.attempt > 1 and job is not None and comes:
                runs.hand_over(run, run.attempts[:-1], job.revision, now)  # its own message goes on with it
            elif run.attempt > 1:
                runs.cancel(run, run.attempts[:-1], void.reason, now)
            else:
                runs.skip_started(run, void.reason, now)
        except CancelRequestedError:
            runs.cancel(run, run.attempts[:-1], CANCELLED, now)

    def _fail(self, failed: AttemptFailedError) -> None:
        run, runs, now = self._running(), self.workshop.runs, self.workshop.clock.now()
        job, result = failed.job, failed.result
        kinds = kinds_of(result) if result else ()
        attempts = closed(run, result.outcome, result.error, now, *kinds[:1]) if result else run.attempts[:-1]
        retry = job.spec.retry
        if result is not None and result.outcome is Outcome.CANCELLED:
            self._is_awaited |= runs.cancel(run, attempts, CANCELLED, now, result.result)
            return
        try:
            if result is None or is_last(retry, run.attempts_of_round) or not is_worth_another(retry, kinds):
                self._exhaust(job, run, attempts, now)
            else:
                wait_s = backoff_s(retry, run.attempts_of_round, self.workshop.fraction())
                self._retry_at = now + timedelta(seconds=wait_s)
                runs.fail(run, attempts, self._retry_at, now)
        except CancelRequestedError:
            self._retry_at = None
            self._is_awaited |= runs.cancel(run, attempts, CANCELLED, now)

    def _exhaust(self, job: Job, run: Run, attempts: tuple[Attempt, ...], now: datetime) -> None:
        """Dead-letter queue first, then the mark: a crash in between can put it there twice, never not at all."""
        there = self.workshop.runs.get(run.job_id, run.scheduled_for)
        if there is None or not is_same_attempt(there, run):
            raise LeaseLostError("the run was taken over")
        if there.cancel_requested:
            raise CancelRequestedError
        self.workshop.dead_letters.send(dead_letter_text(job, run, attempts))
        self._is_awaited |= self.workshop.runs.exhaust(run, attempts, now)

    def _ended(self, failed: AttemptFailedError) -> Ended:
        outcome = failed.result.outcome if failed.result else Outcome.LOST
        if self._retry_at is None:
            return Ended(done=True, outcome=outcome, late_s=self.late_s)
        wait = self._retry_at - self.workshop.clock.now()
        return Ended(done=False, back_s=wait.total_seconds(), outcome=outcome, late_s=self.late_s)

    def _refused(self, there: Run) -> Ended:
        """The run is over: nothing to do. It is going on or waits for its retry: come back then, no attempt used."""
        if there.revision > self.message.revision:
            return Ended(done=True, outcome=RESCHEDULED)
        until = there.lease_expires_at or there.retry_at
        if until is None or (self.message.woken and there.status is not RunStatus.RUNNING):
            return Ended(done=True, outcome="duplicate")
        now = self.workshop.clock.now()
        # A moment more than the lease: at its very end it still holds.
        wait_s = (until - now).total_seconds() + 1
        is_older = there.revision < self.message.revision and there.attempts
        if is_older and now < there.attempts[-1].started_at + WITHDRAWN_WITHIN:
            wait_s = min(wait_s, WITHDRAWN_WITHIN.total_seconds())
        if self.message.woken:  # most often another look is just going on, which did not see what this one would
            wait_s = look_again_s(self.receives, wait_s, self.message.job_id)
        return Ended(done=False, back_s=max(1.0, wait_s), outcome="put_back")

    def _running(self) -> Run:
        """The run as it is now, with the lease that the attempt has by now, and the progress yet to be written."""
        if self.run is None or self.lease_expires_at is None:
            raise LeaseLostError("no attempt is going on")
        going_on = replace(self.run.attempts[-1], lease_expires_at=self.lease_expires_at)
        return replace(self.run, attempts=(*self.run.attempts[:-1], going_on), progress=self._news())
