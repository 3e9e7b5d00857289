"""How the jobs stand that another depends on, at its submit and at the gate before its run. It never writes.

Whether a child may run is decided by what its parents are when it looks, and it looks again until they are over: so no
crash leaves anything to repair.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.flows.gates import MustSkipError, MustWaitError
from shared.flows.shown import latest_runs, shown_status
from shared.model.errors import InputError, TooLargeError
from shared.model.instants import to_text
from shared.model.job import Job, JobSpec
from shared.model.run import Run
from shared.rules import dependencies as rules
from shared.rules.dependencies import MAX_ANCESTORS, MAX_PARENTS, Standing, Word
from shared.rules.waits import look_again_s
from shared.store.jobs import Jobs
from shared.store.run_history import RunHistory
from shared.store.runs import Runs

MAX_READ = 5_000  # jobs that one call reads to judge what stands above its own

Specs = Mapping[str, JobSpec]  # jobs that are about to be written, by id


@dataclass(frozen=True, slots=True)
class Parent:
    """A job that another depends on, as it was seen. `job` None: it is gone, or cannot be read (then it is open)."""

    job: Job | None
    standing: Standing


@dataclass(frozen=True, slots=True)
class Above:
    """What was read above some jobs.

    `waits_for`: of each that is not over, those of its parents that are not over. `unread` was too much to read.
    """

    parents: Mapping[str, Parent]
    waits_for: Mapping[str, tuple[str, ...]]
    unread: frozenset[str]

    def is_open(self, job_id: str) -> bool:
        """Whether this job was not over, or was not read."""
        return job_id not in self.parents or self.parents[job_id].standing is Standing.OPEN


@dataclass(frozen=True, slots=True)
class Parents:
    """Reads, all consistent."""

    jobs: Jobs
    runs: Runs
    history: RunHistory

    def look(self, job_ids: Sequence[str]) -> dict[str, Parent]:
        """How each of these jobs stands now."""
        #   parent:  … its run ends, and never changes again
        #   child:          read the job ── read its run       whatever comes first: it is seen now, or at the next look
        jobs, unreadable = self.jobs.read_many(job_ids)
        own = [(job.job_id, job.spec.schedule.run_at) for job in jobs.values() if job.spec.schedule.run_at is not None]
        runs = {run.job_id: (run,) for run in self.runs.get_many(own)}
        found: dict[str, Parent] = {}
        for job_id in job_ids:
            job = jobs.get(job_id)
            if job is None:
                found[job_id] = Parent(None, Standing.OPEN if job_id in unreadable else Standing.FAILED)
            else:
                seen = runs.get(job_id, ()) if job.spec.schedule.is_one_off else latest_runs(self.history, job)
                found[job_id] = Parent(job, rules.standing_of(shown_status(job, seen)))
        return found | self._moved(found)

    def _moved(self, found: Mapping[str, Parent]) -> dict[str, Parent]:
        """Of those that look failed, the ones that were changed while they were looked at: they may yet succeed."""
        #   child:     reads the parent: it is due 12:00 ─────────────────────────────── reads its run of 12:00: skipped
        #   user:                                          the parent is to run at 13:00
        #   execute:                                               12:00 is void: recorded as skipped
        seen = {job_id: one.job for job_id, one in found.items() if one.standing is Standing.FAILED and one.job}
        there = self.jobs.get_many(list(seen)) if seen else {}
        return {one: Parent(job, Standing.OPEN) for one, job in there.items() if job.revision != seen[one].revision}

    def above(self, job_ids: Iterable[str], own: Container[str]) -> Above:
        """These jobs and all that stands above them and is not over, generation by generation.

        Those in `own` are about to be written: what the table has under their ids does not count.
        """
        parents: dict[str, Parent] = {}
        named: dict[str, tuple[str, ...]] = {}
        todo = [job_id for job_id in dict.fromkeys(job_ids) if job_id not in own]
        while todo and len(parents) < MAX_READ:
            found = self.look(todo)
            parents |= found
            still = {job_id: one.job for job_id, one in found.items() if one.standing is Standing.OPEN and one.job}
            named |= {job_id: job.spec.depends_on for job_id, job in still.items()}
            further = dict.fromkeys(parent for job in still.values() for parent in job.spec.depends_on)
            todo = [job_id for job_id in further if job_id not in own and job_id not in parents]
        above = Above(parents, {}, frozenset(todo))
        return Above(parents, {one: tuple(filter(above.is_open, its)) for one, its in named.items()}, above.unread)

    def check(self, job_id: str, spec: JobSpec, now: datetime) -> Mapping[str, Parent]:
        """The parents that a job to be submitted names. Raises InputError, naming what is wrong with them."""
        refuse_bad_list(job_id, spec)
        own = {job_id: spec}
        above = self.above(spec.depends_on, own)
        self.judge(job_id, own, above, now)
        return above.parents

    def judge(self, job_id: str, own: Specs, above: Above, now: datetime) -> None:
        """Whether a job of `own`, which are submitted together, may have its parents. Raises InputError."""
        spec = own[job_id]
        for place, parent_id in enumerate(spec.depends_on):
            self._refuse_unfit(f"depends_on[{place}]", spec, _run_at(parent_id, own, above, place), now)
        waits_for = dict(above.waits_for)
        waits_for |= {one: tuple(filter(above.is_open, its.depends_on)) for one, its in own.items()}
        circle = rules.back_to(job_id, spec.depends_on, waits_for)
        if circle is not None:
            raise InputError(f"depends_on[{circle}]", f"{spec.depends_on[circle]!r} waits for {job_id!r} in its turn")
        found = rules.ancestors_of(job_id, waits_for, MAX_ANCESTORS)
        if found is None or found & above.unread:
            raise TooLargeError(
                "depends_on", f"leads up to more than {MAX_ANCESTORS} jobs that are not over; so many may at most"
            )

    def waits_for_itself(self, job: Job) -> bool:
        """Whether the job, as it is stored, has come to stand above itself."""
        above = self.above(job.spec.depends_on, {job.job_id})
        return rules.back_to(job.job_id, job.spec.depends_on, above.waits_for) is not None

    def _refuse_unfit(self, field: str, spec: JobSpec, parent_run_at: datetime, now: datetime) -> None:
        """A parent is kept for some time after its end; a child that looks later would find it gone."""
        run_at = spec.schedule.run_at
        if run_at is not None and run_at > max(parent_run_at, now) + self.jobs.retention:
            raise InputError(
                field,
                f"is kept for {self.jobs.retention.days} days after its end, and may be gone at {to_text(run_at)}, when"
                " this job is to run",
            )


@dataclass(frozen=True, slots=True)
class ParentsGate:
    """Lets the run of a job with parents begin once they have succeeded. It holds nothing."""

    parents: Parents

    def enter(self, job: Job, run: Run, receives: int, now: datetime) -> None:
        """Raises MustWaitError, MustSkipError. A run beside the schedule is a user's own wish, and waits for nobody."""
        del now
        if not job.spec.depends_on or run.scheduled_for != job.spec.schedule.run_at or rules.is_past(run):
            return
        standings = [parent.standing for parent in self.parents.look(job.spec.depends_on).values()]
        word = rules.word_of(standings, job.spec.on_parent_failure)
        if word is Word.SKIP:
            raise MustSkipError(rules.PARENT_FAILED)
        if word is Word.WAIT:
            raise MustWaitError(rules.WAITS, look_again_s(receives, rules.LONGEST_WAIT_S, job.job_id))

    def leave(self, job: Job, run: Run) -> None:
        """Nothing was taken."""


def refuse_bad_list(job_id: str, spec: JobSpec) -> None:
    """Raises InputError for parents that a job of this id cannot have, whatever they are."""
    if spec.depends_on and not spec.schedule.is_one_off:
        kind = "cron" if spec.schedule.cron else "every"
        raise InputError(kind, "cannot go with depends_on: a job that waits for others runs once")
    if len(spec.depends_on) > MAX_PARENTS:
        raise InputError("depends_on", f"must name at most {MAX_PARENTS} jobs, not {len(spec.depends_on)}")
    for place, parent_id in enumerate(spec.depends_on):
        if parent_id == job_id:
            raise InputError(f"depends_on[{place}]", f"{job_id!r} is the job itself")
        if parent_id in spec.depends_on[:place]:
            raise InputError(f"depends_on[{place}]", f"names {parent_id!r} a second time")


def _run_at(parent_id: str, own: Specs, above: Above, place: int) -> datetime:
    """When a parent runs. Raises InputError where there is none, or one that runs more than once."""
    field = f"depends_on[{place}]"
    if parent_id in own:
        schedule = own[parent_id].schedule
    else:
        job = above.parents[parent_id].job
        if job is None:
            raise InputError(field, f"there is no job {parent_id!r}")
        schedule = job.spec.schedule
    if schedule.run_at is None:
        raise InputError(field, f"job {parent_id!r} is recurring; only one that runs once can be depended on")
    return schedule.run_at
