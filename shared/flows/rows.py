"""The jobs of a list as they are shown: each by its own item and at most one run. It never reads one by one."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.flows.inspect import JobView, view
from shared.model.job import Job, JobStatus
from shared.model.run import Run, RunStatus
from shared.rules.listing import ListQuery, is_in_window, is_of_group_and_tags
from shared.store.jobs import Jobs
from shared.store.runs import Runs

SKIPPED_FOR_SURE = timedelta(hours=1)  # an occurrence so long ago that has no run: the audit would have brought it


@dataclass(frozen=True, slots=True)
class Rows:
    """From jobs to rows: those that fit, as they are shown. Reads by hundreds, never one by one."""

    jobs: Jobs
    runs: Runs

    def of_ids(self, query: ListQuery, job_ids: Sequence[str], now: datetime) -> dict[str, JobView]:
        """The jobs of these ids that are there and fit."""
        return self.of_jobs(query, self.jobs.get_many(job_ids).values(), now)

    def of_jobs(self, query: ListQuery, jobs: Iterable[Job], now: datetime) -> dict[str, JobView]:
        """Those of `jobs` that fit."""
        likely = [job for job in jobs if is_of_group_and_tags(query, job.spec) and _may_fit(query, job)]
        telling = {job.job_id: moment for job in likely if (moment := telling_run(job)) is not None}
        runs = {run.job_id: run for run in self.runs.get_many(list(telling.items()))}
        found: dict[str, JobView] = {}
        for job in likely:
            with suppress(Exception):  # a schedule that cannot be worked out hides its job alone; the audit tells of it
                shown = row(job, (runs[job.job_id],) if job.job_id in runs else (), now)
                if _fits(query, shown):
                    found[job.job_id] = shown
        return found


def telling_run(job: Job) -> datetime | None:
    """The occurrence whose run says how the job stands; None where the job's own item does."""
    if job.claimed_until is None or (job.status is JobStatus.SCHEDULED and job.due_at is not None):
        return None
    if job.spec.schedule.is_one_off:
        return job.spec.schedule.run_at
    return job.claimed_until if job.status is JobStatus.SCHEDULED else None


def row(job: Job, runs: tuple[Run, ...], now: datetime) -> JobView:
    """A job as a list shows it, by the one run that tells: a recurring job is `completed` when its last one is over."""
    shown = view(job, runs, now)
    if shown.status != JobStatus.SCHEDULED or job.due_at is not None or runs or job.claimed_until is None:
        return shown
    # With catch_up "skip", what was missed last stands in a record that begins at the first occurrence missed.
    skipped = job.spec.schedule.catch_up == "skip" and job.claimed_until < now - SKIPPED_FOR_SURE
    return replace(shown, status=JobStatus.COMPLETED) if skipped else shown


def _may_fit(query: ListQuery, job: Job) -> bool:
    """False where the job's own item tells that it does not: then no run need be read."""
    run_at = job.spec.schedule.run_at
    if run_at is not None and not is_in_window(query, run_at):
        return False
    if query.status == JobStatus.PAUSED:
        return job.status is JobStatus.PAUSED
    if query.status == JobStatus.SCHEDULED:
        return job.status is JobStatus.SCHEDULED and (run_at is None or job.due_at is not None)
    return True


def _fits(query: ListQuery, shown: JobView) -> bool:
    is_wanted = query.status in (None, RunStatus.DEAD_LETTERED, shown.status)  # a walk has judged dead_lettered
    return is_wanted and is_in_window(query, shown.next_run_at)
