"""Overlap, a group's limit and depends_on with one safeguard taken away, each where the search must find it."""

from shared.rules.overlap import Decision
from tests.model.flows import Flow, Flows
from tests.model.store import Store
from tests.model.weakening import breaks
from tests.model.world import FAILED, OVER, Holder, Job, Message, Place, Run, World

# --- overlap


@breaks("overlap: the handler", "overlap skip: three runs")
class PlaceOfAnyWriter(Store):
    """The place is written whoever has written it since it was read."""

    def is_fresh(self, world: World, me: int) -> bool:
        return True


@breaks("overlap: the handler", "overlap queue: and redrive, a crash")
class WritesWhatIsNew(Flows):
    """A run that goes on does not write the place when it has it already."""

    def must_write(self, decision: Decision, wanted: Place, seen: Place) -> bool:
        return wanted != seen


@breaks("overlap: the handler", "overlap queue: which was allow")
class NeverLooksBack(Flows):
    """Runs that began under another policy are not looked for."""

    def with_earlier(self, job: Job, me: int, seen: Place) -> Flow:
        yield from ()
        return seen


@breaks("overlap: ", "overlap skip: failures and a crash")
class RunningIsNotOver(Flows):
    """A run gives up its place when it waits for its retry."""

    def is_open(self, run: Run | None) -> bool:
        return run is not None and run.status not in (*OVER, FAILED)


@breaks("from here on no end", "overlap queue: and trigger, a crash")
class GoneHasThePlace(Flows):
    """The place is its holder's, also when that is over."""

    def is_open(self, run: Run | None) -> bool:
        return True


# --- a group's limit


@breaks("max_running: ", "max_running: failures and a crash")
class RoomForAll(Store):
    """A place is taken whether there is room or not."""

    def may_take(self, world: World, limit: int, slot: int, before: Holder | None) -> bool:
        return True


@breaks("from here on no end", "max_running: two crashes")
class NobodyIsStale(Flows):
    """The place of an attempt that died stays taken."""

    def make_room(self, holders: tuple[Holder, ...]) -> Flow:
        yield from ()
        return False


@breaks("max_running: ", "max_running: two stalls")
class NoFence(Flows):
    """The place of an attempt whose lease is over is taken, and the attempt left to renew it."""

    def fence(self, holder: Holder) -> Flow:
        yield from ()
        return True


@breaks("max_running: ", "max_running: two stalls")
class DropByRun(Store):
    """A place is taken away whichever attempt of the run has it."""

    def is_held_by(self, there: Holder, holder: Holder) -> bool:
        return there.slot == holder.slot


@breaks("max_running: ", "max_running: two stalls")
class TakesFromTheNext(Flows):
    """An attempt takes the place that its run has, also that of a later attempt."""

    def is_mine_still(self, slot: int, run: Run) -> Flow:
        yield from ()
        return True


# --- depends_on


@breaks("depends_on: ", "depends_on: a stall, a message twice")
class OpenIsEnough(Flows):
    """A parent that has begun is enough."""

    def standing_of(self, job: Job, run: Run | None) -> str:
        return super().standing_of(job, run) if run is None else "succeeded"


@breaks("depends_on: ", "depends_on: and an update of the parent")
class SkippedIsFailed(Flows):
    """A parent has failed whose run was skipped, whatever became of the parent itself."""

    def moved(self, seen: tuple[Job | None, ...], found: tuple[str, ...]) -> Flow:
        yield from ()
        return found


@breaks("depends_on: ", "depends_on: failures and a crash")
class LostIsPast(Flows):
    """An attempt that was lost counts as one that was let pass."""

    def is_past(self, run: Run) -> bool:
        return run.number > 1


@breaks("run 1 is enqueued for ever", "depends_on: failures and a crash")
class WaitingIsDone(Flows):
    """The message of a run that waits is acknowledged."""

    def is_spare(self, message: Message, word: object) -> bool:
        return True
