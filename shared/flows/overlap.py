"""The gate of jobs whose runs may not overlap: skip, queue or replace. It calls no target and gives nothing back.

Who has the place is judged by the runs themselves: one that is over has none. So a crash leaves nothing behind but a
run, and a run ends by its lease.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from shared.flows.gates import MustSkipError, MustWaitError
from shared.model.job import Job
from shared.model.run import Run, RunStatus
from shared.rules.lifecycle import is_over
from shared.rules.overlap import Decision, Place, Step, decide
from shared.rules.waits import look_again_s
from shared.store.overlaps import Overlaps, PlaceChangedError, PlaceRecord
from shared.store.run_history import RunHistory
from shared.store.run_requests import RunRequests
from shared.store.runs import Runs

OVERLAP = "overlap"
REPLACED = "replaced"
LONGEST_WAIT_S = 15.0
TRIES = 8
OPEN_RUN_PAGES = 10  # of 1 MB: far more runs than can be open at once
_WITH_ATTEMPTS = (RunStatus.RUNNING, RunStatus.FAILED)


@dataclass(frozen=True, slots=True)
class OverlapGate:
    """Lets one run of a job go on at a time. A job with `allow` costs nothing."""

    overlaps: Overlaps
    runs: Runs
    history: RunHistory
    requests: RunRequests

    def enter(self, job: Job, run: Run, receives: int, now: datetime) -> None:
        """Take the place, or raise MustWaitError or MustSkipError; with `replace`, whoever has it is cancelled."""
        if run.cancel_requested:  # it was replaced, and its executor died before it saw that
            raise MustSkipError(REPLACED)
        if job.spec.overlap == "allow":
            return
        for _ in range(TRIES):
            try:
                decision = self._decide(job, run, now)
            except PlaceChangedError:
                continue
            if decision.step is Step.GO:
                return
            if decision.step is Step.SKIP:
                raise MustSkipError(OVERLAP)
            if not self._replace(job, decision, now):
                break
        raise MustWaitError(OVERLAP, look_again_s(receives, LONGEST_WAIT_S, f"{run.job_id}/{run.scheduled_for}"))

    def leave(self, job: Job, run: Run) -> None:
        """Nothing to give back: the run keeps the place until it is over."""

    def _decide(self, job: Job, run: Run, now: datetime) -> Decision:
        """Decide on what there is, and write what follows from it. Raises PlaceChangedError."""
        #   12:05:  reads the place (12:00 has it) ── reads run 12:00: over ── takes the place
        #   12:00:                          redriven: started ── asks: whoever of the two writes second reads again
        #
        # A run is started before it asks, and asks before it is called: who finds it over, and the place unchanged,
        # stands before its call.
        me = run.scheduled_for
        seen = self.overlaps.get(job)
        known = self._with_earlier(job, run, seen)
        decision = decide(job.spec.overlap, me, has_begun=run.attempt > 1, place=self._open(job, me, known.place))
        wanted = replace(known, place=decision.place)
        if decision.step is Step.SKIP and known.last_skipped != me:
            wanted = replace(wanted, skipped=known.skipped + 1, last_skipped=me)
        # A run that goes on always writes: what others have read of the place before is void.
        if decision.step is Step.GO or wanted != seen:
            self.overlaps.write(job, wanted, now)
        return decision

    def _with_earlier(self, job: Job, run: Run, seen: PlaceRecord) -> PlaceRecord:
        """At the job's first run since its user changed it: also the runs that began before, whatever it said then."""
        #   user:    allow ────────────────────── skip
        #   12:00:          start, reads `allow`, is called ─────────────────     never asks
        #   12:05:                                     start, reads `skip`, looks: finds 12:00
        #
        # One that starts after this look reads the job after it, and so asks.
        if seen.version == job.version:
            return seen
        found = self.history.open(job.job_id, OPEN_RUN_PAGES)
        earlier = {one.scheduled_for for one in found if one.status in _WITH_ATTEMPTS} - {run.scheduled_for}
        return replace(seen, place=replace(seen.place, earlier=seen.place.earlier | earlier), version=job.version)

    def _open(self, job: Job, me: datetime, place: Place) -> Place:
        """`place` without the runs that are over, or whose start was taken back."""
        moments = {moment for moment in (place.holder, place.waiting) if moment} | place.earlier | place.displaced
        closed = {moment for moment in moments - {me} if not self._is_open(job, moment)}
        return Place(
            None if place.holder in closed else place.holder,
            None if place.waiting in closed else place.waiting,
            place.earlier - closed,
            place.displaced - closed,
        )

    def _is_open(self, job: Job, moment: datetime) -> bool:
        run = self.runs.get(job.job_id, moment)
        return run is not None and not is_over(run.status)

    def _replace(self, job: Job, decision: Decision, now: datetime) -> bool:
        """Cancel those that are to be replaced; whether one of them ended by that at once."""
        is_free = False
        for moment in sorted(decision.replaced):
            run = self.runs.get(job.job_id, moment)
            if run is None or is_over(run.status):
                is_free = True
            elif not (run.status is RunStatus.RUNNING and run.cancel_requested):
                # The mark of a revision that the job does not have yet: it means this run, and none of a later job.
                found = self.requests.cancel(run, job.revision + 1, REPLACED, now)
                is_free = is_free or found is RunStatus.CANCELLED
        return is_free
