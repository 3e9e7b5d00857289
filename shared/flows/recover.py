"""Recovery of the journal: what was claimed and perhaps never sent is sent again. It never claims."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from shared.model.job import Job, JobStatus
from shared.model.message import Message
from shared.model.run import Run
from shared.queue import JobQueue
from shared.rules.lifecycle import is_over
from shared.rules.plan import is_slot
from shared.store.jobs import Jobs
from shared.store.journal import Journal
from shared.store.runs import Runs


@dataclass(frozen=True, slots=True)
class Recovery:
    """Reads the old pages of a shard and makes their sends certain."""

    jobs: Jobs
    runs: Runs
    journal: Journal
    queue: JobQueue

    def run(self, shard: int, now: datetime, stop_at: datetime) -> int:
        """Recover the pages of `shard` whose writer is done or dead; the number of messages sent again.

        Begins no further page after `stop_at` and leaves the rest to the next tick.
        """
        sent = 0
        for page in self.journal.old_pages(shard, now):
            if self.queue.clock.now() >= stop_at:
                break
            again = self.unsent(page.messages)
            # Sending and removing are two calls: a crash between them only sends again; a start stops the duplicate.
            self.queue.send(again)
            self.journal.settle(page)
            sent += len(again)
        return sent

    def unsent(self, messages: Iterable[Message]) -> list[Message]:
        """Those whose claim did happen and whose run is not over.

        A run that has merely started is no reason to leave one out: its start may be about to be withdrawn.
        """
        entries = list(messages)
        jobs = self.jobs.get_many([message.job_id for message in entries])
        found = self.runs.get_many([(message.job_id, message.scheduled_for) for message in entries])
        runs = {(run.job_id, run.scheduled_for): run for run in found}
        return [
            replace(message, priority=job.spec.priority, group=job.spec.group)  # a page does not hold them
            for message in entries
            if (job := jobs.get(message.job_id)) is not None
            and _is_wanted(job, runs.get((message.job_id, message.scheduled_for)), message)
        ]


def _is_wanted(job: Job, run: Run | None, message: Message) -> bool:
    """Whether the run is to happen and is not over. One that a user asked for has its item for a claim."""
    if run is not None and is_over(run.status):
        return False
    return (run is not None and run.requested_at is not None) or _was_claimed(job, message)


def _was_claimed(job: Job, message: Message) -> bool:
    """Whether `job` took this occurrence under this revision.

    That it lies on the job's own schedule matters where two submits chose one id: only one of them became the job,
    and the other's page must not run the winner at the loser's time.
    """
    if job.revision > message.revision:
        return _is_owed_a_record(job, message.scheduled_for)
    if job.revision < message.revision:
        return False
    if message.skip is not None and message.scheduled_for <= job.changed_at:  # what a new schedule has taken away
        return True
    if job.claimed_until is None or message.scheduled_for > job.claimed_until:
        return False
    if job.due_at is not None and job.due_at <= message.scheduled_for:
        return False
    try:
        return is_slot(job.spec.schedule, job.job_id, message.scheduled_for)
    except Exception:  # noqa: BLE001 - a schedule that nobody can work out must not keep the other pages from recovery
        return True


def _is_owed_a_record(job: Job, moment: datetime) -> bool:
    """Whether a change of when made this occurrence void that was due by then: it never comes again (see attempt).

    An executor that gets its message records why it did not run (I1). Whether it lay on the schedule that the job had
    then nobody knows any more; it is not called for it in any case.
    """
    #   tick:   claims 12:00 ── dies before the send
    #   user:                                   12:00:30 pause: nobody else knows that 12:00 was due
    if job.status is JobStatus.CANCELLED or not job.created_at < moment <= job.changed_at:
        return False
    return job.due_at is None or job.due_at > moment
