"""Stories of what users say about a schedule: pause, resume, another schedule, trigger, redrive; see scenarios."""

from collections.abc import Callable
from datetime import timedelta

from shared.model.call import Call
from shared.model.run import Result
from tests.faults.scenarios import scenario
from tests.faults.system import System
from tests.support.world import SUCCEED, failure


def fails_in_round(first: int) -> Callable[[Call], Result]:
    """Every attempt up to number `first` fails."""
    return lambda call: failure() if call.attempt <= first else SUCCEED


def _pause_and_resume(system: System, catch_up: str, paused_s: float) -> None:
    """Claimed ahead, paused with one just due, resumed; `max_runs` goes on."""
    system.submit_job("often", every_s=50, runs=5, catch_up=catch_up)
    system.pass_s(51, deliveries=False)  # the first is due and not started when the pause comes
    system.pause_job("often")
    system.pass_s(paused_s)
    system.resume_job("often")
    system.pass_s(300)


@scenario("pause and resume, all that was missed", late_s=150)
def resume_all(system: System) -> None:
    _pause_and_resume(system, "all", 180)


@scenario("pause and resume, the latest that was missed", late_s=150)
def resume_latest(system: System) -> None:
    _pause_and_resume(system, "latest", 180)


@scenario("pause and resume, nothing that was missed", late_s=150)
def resume_skip(system: System) -> None:
    _pause_and_resume(system, "skip", 180)


@scenario("pause and resume, near", late_s=250, pairs=True)
def resume_near(system: System) -> None:
    """One occurrence is due and not started when the pause comes, one is missed."""
    system.submit_job("near", every_s=8, runs=3, catch_up="all")
    system.pass_s(9, deliveries=False)
    system.pause_job("near")
    system.pass_s(10)
    system.resume_job("near")
    system.pass_s(10)


@scenario("a short pause, again and again", late_s=150)
def short_pauses(system: System) -> None:
    """Messages of three revisions are in the queue for one occurrence."""
    system.submit_job("often", every_s=40, runs=4)
    for _ in range(2):
        system.pass_s(30)
        system.pause_job("often")
        system.pass_s(5)
        system.resume_job("often")
    system.pass_s(150)


@scenario("pause of what no tick has claimed, and resume", late_s=700)
def pause_unclaimed(system: System) -> None:
    system.submit_job("late", every_s=310, catch_up="all")
    system.pass_s(650, ticks=False)
    system.pause_job("late")
    system.pass_s(60)
    system.resume_job("late")
    system.pass_s(30)
    system.cancel_job("late")


@scenario("pause of a job that is then cancelled, and the id again", late_s=150)
def pause_cancel(system: System) -> None:
    system.submit_job("again", every_s=50)
    system.pass_s(51)
    system.pause_job("again")
    system.pass_s(20)
    system.cancel_job("again")
    system.submit_job("again", in_s=79)
    system.pass_s(90)


@scenario("pause of a one-off while it runs, waits and is yet to come", late_s=150)
def pause_one_off(system: System) -> None:
    def handler(call: Call) -> Result:
        if call.job_id == "runs" and call.attempt == 1:
            system.pause_job("runs")
        return failure() if call.attempt == 1 else SUCCEED

    system.handler = handler
    system.submit_job("runs", in_s=5)
    system.submit_job("waits", in_s=6)
    system.submit_job("comes", in_s=30)
    system.pass_s(10)
    system.pause_job("waits")
    system.pause_job("comes")
    system.pass_s(40)
    for job_id in ("runs", "waits", "comes"):
        system.resume_job(job_id)
    system.pass_s(60)


@scenario("another schedule", late_s=150)
def reschedule(system: System) -> None:
    """What was claimed of the old one is void; one of it is due and not started."""
    system.submit_job("moved", every_s=50)
    system.pass_s(51, deliveries=False)
    system.patch_job("moved", every="40s", max_runs=3)
    system.pass_s(150)


@scenario("another schedule, near", late_s=250, pairs=True)
def reschedule_near(system: System) -> None:
    system.submit_job("near", every_s=8, runs=2)
    system.pass_s(9, deliveries=False)
    system.patch_job("near", every="10s", max_runs=1)
    system.pass_s(12)


@scenario("another time for a one-off, near and far", late_s=150)
def reschedule_one_off(system: System) -> None:
    system.submit_job("nearer", in_s=400)
    system.submit_job("farther", in_s=20)
    system.submit_job("back", in_s=60)
    system.pass_s(5)
    system.patch_job("nearer", run_at=system.after(10))
    system.patch_job("farther", run_at=system.after(400))
    first = system.after(55)
    system.patch_job("back", run_at=system.after(90))
    system.patch_job("back", run_at=first)
    system.pass_s(430)


@scenario("another schedule for what no tick has claimed", late_s=700)
def reschedule_unclaimed(system: System) -> None:
    system.submit_job("late", every_s=310)
    system.pass_s(700, ticks=False)
    system.patch_job("late", every="100s", max_runs=2)
    system.pass_s(230)


@scenario("another schedule while it is paused, and while its run goes on", late_s=150)
def reschedule_paused(system: System) -> None:
    first = system.clock.now() + timedelta(seconds=5)

    def handler(call: Call) -> Result:
        if call.job_id == "runs" and call.scheduled_for == first:
            system.patch_job("runs", run_at=system.after(50))
            return failure()
        return SUCCEED

    system.handler = handler
    system.submit_job("paused", every_s=50, runs=4)
    system.submit_job("runs", in_s=5)
    system.pass_s(55)
    system.pause_job("paused")
    system.pass_s(10)
    system.patch_job("paused", every="30s", max_runs=2)
    system.resume_job("paused")
    system.pass_s(90)


@scenario("another payload and policy", late_s=150)
def policies(system: System) -> None:
    """A long payload is an item of its own, written before the job that names it."""
    system.handler = lambda call: failure() if call.attempt == 1 else SUCCEED
    system.submit_job("often", every_s=60, runs=2, max_attempts=2)
    system.pass_s(61)
    system.patch_job("often", payload="x" * 600, retry={"max_attempts": 3}, group="g")
    system.pass_s(90)


@scenario("trigger, also of a paused job, and cancel", late_s=150)
def trigger(system: System) -> None:
    system.handler = fails_in_round(1)
    system.submit_job("far", in_s=600)
    system.submit_job("gone", in_s=700)
    system.pass_s(0.5)
    system.trigger_job("far")
    system.pause_job("far")
    system.trigger_job("gone")
    system.pass_s(5)
    system.cancel_job("gone")
    system.trigger_job("far")
    system.pass_s(60)
    system.cancel_job("far")


@scenario("trigger of a job that is paused", late_s=250, pairs=True)
def trigger_paused(system: System) -> None:
    system.submit_job("far", in_s=600)
    system.pass_s(0.5)
    system.pause_job("far")
    system.trigger_job("far")
    system.pass_s(5)


@scenario("trigger of an id that is then another job's", late_s=150)
def trigger_of_another(system: System) -> None:
    system.submit_job("again", in_s=600)
    system.pass_s(0.5)
    system.trigger_job("again")
    system.cancel_job("again")
    system.submit_job("again", in_s=30)
    system.pass_s(60)


@scenario("redrive of one run", late_s=250, pairs=True)
def redrive(system: System) -> None:
    """Its second round fails once and then succeeds."""
    system.handler = fails_in_round(3)
    due = system.clock.now() + timedelta(seconds=5)
    system.submit_job("dead", in_s=5, max_attempts=2, base_s=3)
    system.pass_s(20)
    system.redrive_job("dead", due)
    system.pass_s(30)


@scenario("redrive of all runs, and again", late_s=150)
def redrive_all(system: System) -> None:
    system.submit_job("dead", every_s=20, runs=3, max_attempts=1)
    system.handler = fails_in_round(2)
    system.pass_s(70)
    system.redrive_job("dead")
    system.pass_s(10)
    system.redrive_job("dead")
    system.pass_s(20)


@scenario("redrive, beside pause, another schedule and cancel", late_s=150)
def redrive_beside(system: System) -> None:
    system.handler = fails_in_round(1)
    for job_id in ("paused", "moved", "gone"):
        system.submit_job(job_id, every_s=20, runs=8, max_attempts=1)
    system.pass_s(30)
    system.pause_job("paused")
    system.patch_job("moved", every="1h", max_runs=1)
    for job_id in ("paused", "moved", "gone"):
        system.redrive_job(job_id)
    system.cancel_job("gone")
    system.pass_s(30)
    for job_id in ("paused", "moved"):
        system.cancel_job(job_id)


@scenario("redrive of an id that is another job's by now", late_s=150)
def redrive_of_another(system: System) -> None:
    system.handler = lambda call: failure()
    system.submit_job("again", in_s=5, max_attempts=1)
    system.pass_s(10)
    system.submit_job("again", in_s=40, max_attempts=1)
    system.redrive_job("again")
    system.pass_s(60)
    system.redrive_job("again")
    system.pass_s(10)
