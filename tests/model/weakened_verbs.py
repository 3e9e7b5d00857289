"""Pause, resume, update, trigger and redrive with one safeguard taken away, each where the search must find it."""

from dataclasses import replace
from typing import Any

from tests.model.flows import Flow, Flows
from tests.model.flows_changes import changed
from tests.model.store import Store
from tests.model.store_jobs import NOT_WRITTEN
from tests.model.weakening import WEAKENED, Weakened, breaks, named
from tests.model.world import CANCELLED, OVER, PAUSED, SCHEDULED, Asked, Job, Message, Run, Spec

# --- pause, resume, update


@breaks("I1: occurrence", "pause: the latest is run")
class ChangeOfWhatWasClaimed(Store):
    """A change of when is written whatever was claimed since the job was read."""

    def is_not_claimed(self, there: Job, seen: Job) -> bool:
        return True


@breaks("I1: occurrence", "update: of when and of policies, a lost answer")
class ChangeOfWhatWasChanged(Store):
    """A change is written whatever others changed since the job was read."""

    def is_unchanged(self, there: Job, seen: Job) -> bool:
        return True


@breaks("I1: occurrence", "pause: a lost answer")
class LostChangeIsLost(Store):
    """A change whose answer was lost counts as not made, and its page is removed."""

    def is_change(self, there: Job, job: Job) -> bool:
        return False

    def unsure(self) -> str:
        return NOT_WRITTEN


@breaks("I1: occurrence", "pause: the latest is run")
class ResumeFromNow(Flows):
    """A resume goes on where the claims stand, and not at the pause."""

    def resumed(self, job: Job) -> Job:
        return changed(job)._replace(status=SCHEDULED)


@breaks("I1: occurrence", "pause: beside a tick")
class PauseFromNow(Flows):
    """A pause leaves out what was due before it and nobody had claimed."""

    def paused(self, job: Job, now: int) -> Job:
        return super().paused(job, now)._replace(changed=self.moment(job, now))


@breaks("I1: occurrence", "update: and pause")
class ChangesGoBack(Flows):
    """A change counts from the moment at which its call came, whatever was changed since."""

    def moment(self, job: Job, now: int) -> int:
        return now


@breaks("I1: occurrence", "update: a crash, one of its times is due")
class DropsTheUnclaimed(Flows):
    """A new schedule leaves out what the old one had due and nobody had claimed."""

    def dropped(self, job: Job, spec: Spec, now: int) -> None:
        return None


@breaks("max_runs: ", "pause: max_runs")
class VoidOnesCount(Flows):
    """What a pause made void counts as a run."""

    def resumed(self, job: Job) -> Job:
        return super().resumed(job)._replace(count=job.count)


@breaks("I1: occurrence", "pause: all are skipped")
class SkipMeetsAVoidStart(Flows):
    """A skip is done when a run is there, whatever that is."""

    def skip(self, message: Message) -> Flow:
        yield self.store.record_skip(message)
        return True


@breaks("I1: occurrence", "pause: a crash")
class VoidIsNothing(Flows):
    """Recovery leaves out what a change has made void."""

    def is_owed_a_record(self, job: Job, slot: int) -> bool:
        return False


@breaks("I1: occurrence", "pause: a lost answer")
class ClaimLostToAPause(Store):
    """A claim that was lost to a change by a user counts as never made."""

    def is_overtaken(self, job: Job, claim: Any, fence: int) -> bool:
        return job.revision == claim.revision and super().is_overtaken(job, claim, fence)


@breaks("the handler of A is called for 0", "update: a one-off to a later time, failures and a crash")
class OldTimesHold(Flows):
    """A message of an older revision is no reason to withdraw a start."""

    def is_void(self, job: Job | None, run: Run, revision: int) -> bool:
        return job is None or job.status != SCHEDULED


@breaks("I1: occurrence", "pause: a crash")
class AllMayComeAgain(Flows):
    """A void start is forgotten, also that of an occurrence which never comes again."""

    def may_come_again(self, job: Job | None, slot: int) -> bool:
        return True


# --- trigger


@breaks("run 1 is enqueued for ever", "trigger: failures and a crash")
class RecoveryBySchedule(Flows):
    """Recovery knows only the schedule, and no run that was asked for."""

    def is_wanted(self, run: Run | None, was_claimed: bool) -> bool:
        return was_claimed and not (run is not None and run.status in OVER)


@breaks("run 1 is enqueued for ever", "trigger: failures and a crash")
class AskedWithoutAPage(Flows):
    """A run is asked for without a page in the journal."""

    def write_page(self, messages: tuple[Message, ...]) -> Flow:
        yield from ()
        return 0


@breaks("I1: a run of 1 was granted", "trigger: and pause, a crash")
class PausedForAll(Flows):
    """A pause holds for a run that was asked for, too."""

    def is_void(self, job: Job | None, run: Run, revision: int) -> bool:
        return job is None or job.status in (CANCELLED, PAUSED) or super().is_void(job, run, revision)


@breaks("the handler of B is called for 1, which was asked", "trigger: and the same id again")
class AskedOfAnyJob(Flows):
    """A run that was asked for is whichever job's has the id."""

    def is_void(self, job: Job | None, run: Run, revision: int) -> bool:
        if run.asked is not None:
            return job is None or job.status == CANCELLED
        return super().is_void(job, run, revision)


@breaks("", "trigger: a refused read, a lost answer, a message twice")
class GivenBackAsNothing(Flows):
    """A start that AWS refused to go on with is forgotten, also that of a run which was asked for."""

    def give_back(self, slot: int, run: Run) -> Flow:
        return (yield from super().give_back(slot, run._replace(asked=None)))


@breaks("run 1 is enqueued for ever", "trigger: a refused read, a lost answer, a message twice")
class AskedTwice(Store):
    """A wish that is made twice does not know its own run again."""

    def is_asked_by(self, there: Run, asked: Asked) -> bool:
        return False


# --- redrive


@breaks("I4: ", "redrive: two, a crash")
class RedriveOfAnything(Store):
    """A redrive is written whatever became of the run since it was seen."""

    def is_as_seen(self, there: Run, seen: Run) -> bool:
        return True


@breaks("I7: one redrive", "redrive: a refused read, a lost answer, a message twice")
class RedriveByStatus(Store):
    """A redrive looks at the run's state alone, and not at its attempts."""

    def is_as_seen(self, there: Run, seen: Run) -> bool:
        return there.status == seen.status


@breaks("I1: a run of 0 was granted", "redrive: two, a crash")
class OldAttemptsCount(Store):
    """The attempts before a redrive count against max_attempts."""

    def earlier(self, run: Run) -> int:
        return run.earlier


for _name in ("trigger: a purged queue", "redrive: a purged queue"):
    WEAKENED.append(Weakened(f"No audit: {_name}", replace(named(_name), audit=False), ""))
