"""shared/flows/control.py and again.py, call by call."""

from tests.model.flows_changes import REFUSED, is_finished
from tests.model.flows_claims import Flow
from tests.model.flows_submit import SubmitFlows
from tests.model.store_jobs import NOT_WRITTEN, WRITTEN
from tests.model.world import (
    CANCELLED,
    DEAD_LETTERED,
    ENQUEUED,
    FAILED,
    OVER,
    PAUSED,
    RESCHEDULED,
    RUNNING,
    Asked,
    Job,
    Mark,
    Message,
    Run,
    Spec,
)


class ControlFlows(SubmitFlows):
    """What users say of a job after its submit. Each flow takes `now`, the moment at which its call came."""

    # --- shared/flows/control.py

    def cancel(self, now: int, job_id: int = 0) -> Flow:
        """ControlFlow.cancel: the job → its open runs → the answer."""
        job, _ = yield from self.change(job_id, self.decide_cancel, (now,), True, now)
        if job in (None, REFUSED):
            return  # 404, 409
        running = yield from self.mark_open_runs(job.id, job.revision)
        yield self.store.answer_cancelled(job.by, running)

    def decide_cancel(self, job: Job, now: int) -> Flow:
        if job.status == CANCELLED:
            return None
        if (yield from self.is_over(job)):
            return REFUSED
        return self.cancelled(job, now)

    def is_over(self, job: Job) -> Flow:
        """ControlFlow._refuse_if_over."""
        if job.status == CANCELLED:
            return True
        runs = yield self.store.newest(job.id)
        return is_finished(job, runs)

    def mark_open_runs(self, job_id: int, revision: int) -> Flow:
        found, running = (yield self.store.open_runs(job_id)), ()
        while found:
            (slot, run), found = found[0], found[1:]
            status = yield from self.request_cancel(slot, Mark(revision), run.status)
            if status == RUNNING:
                running = (*running, slot)
        return running

    def request_cancel(self, slot: int, mark: Mark, status: str | None) -> Flow:
        """RunRequests.cancel."""
        while status in (FAILED, ENQUEUED):
            status = yield self.store.cancel_waiting(slot, mark, status)
        if status == RUNNING:
            status = yield self.store.mark_running(slot, mark)
        return status

    def pause(self, now: int) -> Flow:
        """ControlFlow.pause."""
        yield from self.change(0, self.decide_pause, (now,), True, now)

    def decide_pause(self, job: Job, now: int) -> Flow:
        if job.status == PAUSED:
            return None
        if (yield from self.is_over(job)):
            return REFUSED
        return self.paused(job, now)

    def resume(self, near: bool, now: int) -> Flow:
        """ControlFlow.resume."""
        yield from self.change(0, self.decide_resume, (), near, now)

    def decide_resume(self, job: Job) -> Flow:
        if (yield from self.is_over(job)):
            return REFUSED
        return self.resumed(job) if job.status == PAUSED else None

    def update(self, spec: Spec, near: bool, now: int) -> Flow:
        """ControlFlow.update."""
        job, before = yield from self.change(0, self.decide_update, (spec, now), near, now)
        if job in (None, REFUSED):
            return
        if before.status == PAUSED and before.spec.run_at not in (None, job.spec.run_at):
            yield from self.end_waiting(before.spec.run_at, job.revision)
        yield self.store.answer_changed(spec)

    def end_waiting(self, run_at: int, revision: int) -> Flow:
        """ControlFlow._end_waiting: of a paused one-off that has another time now."""
        run = yield self.store.get_run(run_at)
        if run is not None and run.asked is None and run.status in (FAILED, ENQUEUED):
            yield from self.request_cancel(run_at, Mark(revision, RESCHEDULED), run.status)

    def decide_update(self, job: Job, wanted: Spec, now: int) -> Flow:
        if (yield from self.is_over(job)):
            return REFUSED
        spec = self.patched(job.spec, wanted)
        if spec == job.spec:
            return None
        if spec.run_at is not None and spec.run_at != job.spec.run_at:
            run = yield self.store.get_run(spec.run_at)
            if run is not None and run.status in OVER:
                return REFUSED
            del run
        return self.with_spec(job, spec, now)

    def patched(self, spec: Spec, wanted: Spec) -> Spec:
        """functions/submit/patch: fields that are left out stay. `wanted` without slots leaves the schedule out."""
        if not wanted.slots:
            return spec._replace(policy=wanted.policy, overlap=wanted.overlap)
        return spec._replace(slots=wanted.slots, one_off=wanted.one_off, max_runs=wanted.max_runs)

    # --- shared/flows/again.py

    def trigger(self, slot: int, asked: Asked) -> Flow:
        """AgainFlow.trigger; `slot` is the moment."""
        job = yield self.store.get_job()
        if job is None or job.status == CANCELLED:
            return
        runs = yield self.store.newest()
        if is_finished(job, runs):
            return
        del runs
        message, by = Message(slot, job.revision), job.by
        del job
        done = yield from self.enqueue((message,), self.write_trigger, asked)
        if done != NOT_WRITTEN:
            yield self.store.answer_granted(((slot, 0, by),))

    def write_trigger(self, messages: tuple[Message, ...], asked: Asked) -> Flow:
        done = yield self.store.trigger(messages[0], asked)
        return (messages, WRITTEN) if done else ((), NOT_WRITTEN)

    def redrive(self, slots: tuple[int, ...], asked: Asked) -> Flow:
        """AgainFlow.redrive and redrive_all: the dead-lettered among the runs."""
        job = yield self.store.get_job()
        if job is None or job.status == CANCELLED:
            return
        revision, by = job.revision, job.by
        del job
        found = yield self.store.some_runs(slots)
        runs = tuple((slot, run) for slot, run in found if run.status == DEAD_LETTERED and self.is_own(run, by))
        del found
        if not runs:
            return
        messages = tuple(Message(slot, revision) for slot, _ in runs)
        done = yield from self.enqueue(messages, self.write_redrives, tuple(run for _, run in runs), asked)
        if done:
            granted = tuple((slot, run.number, by) for slot, run in runs if Message(slot, revision) in done)
            yield self.store.answer_granted(granted)

    def is_own(self, run: Run, by: str) -> bool:
        """again._is_of_earlier: it began after the job was created."""
        return by in run.begun

    def write_redrives(self, messages: tuple[Message, ...], runs: tuple[Run, ...], asked: Asked) -> Flow:
        done: tuple[Message, ...] = ()
        while runs:
            run, runs = runs[0], runs[1:]
            message, messages = messages[0], messages[1:]
            if (yield self.store.redrive(message, run, asked)):
                done = (*done, message)
        return done, done
