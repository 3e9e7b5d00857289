"""Random stories against a plain model: what users say, ticks, deliveries, audits, faults and steps of the clock.

The model knows what was asked for and what was answered, no more. The checker judges the history at the end of each
story; between two steps the API must show what the model allows.
"""

from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from shared.model.call import Call
from shared.model.run import Result
from tests.faults.checker import Promise, check, told
from tests.faults.history import Crashed, Failed
from tests.faults.system import Hook, Step, System, deployed
from tests.support import aws_rules, calls
from tests.support.fault_injection import cut_off, refused, throttled
from tests.support.world import SUCCEED, failure

SETTLE_S = 3 * 3600
ERRORS = {"throttled": throttled, "500": lambda: refused("InternalServerError", status=500), "lost": cut_off}


class Trouble(Hook):
    """The next fault: after `steps` steps the process dies, or the call is answered by an error."""

    def __init__(self) -> None:
        self.system: System | None = None
        self.left: int | None = None
        self.what = ""

    def before(self, step: Step) -> None:
        if self._strikes() and self.what == "dies before" and self.system is not None:
            self.system.dies(step, "before")

    def answer(self, step: Step) -> None:
        if self.left == 0 and self.what in ("throttled", "500"):
            self.left = None
            raise ERRORS[self.what]()

    def after(self, step: Step) -> None:
        if self.left != 0 or self.system is None:
            return
        what, self.left = self.what, None
        if what == "dies after":
            self.system.dies(step, "after")
        if what == "lost" and step.call is not None:
            raise cut_off()

    def _strikes(self) -> bool:
        if self.left is not None and self.left > 0:
            self.left -= 1
        return self.left == 0


class RandomStory(RuleBasedStateMachine):
    """One story."""

    jobs = Bundle("jobs")

    @initialize(skew=st.sampled_from(({}, {"tick": 2, "execute": -2}, {"execute": 2, "tick": -2})))
    def begin(self, skew: dict[str, float]) -> None:
        self.rules = aws_rules.off()
        self.rules.__enter__()
        self.trouble = Trouble()
        self.deployment = deployed(self.trouble, skews=skew)
        self.system = self.trouble.system = self.deployment.__enter__()
        self.system.audit_every_s = 3600
        self.outcomes: dict[tuple[str, int], bool] = {}
        self.system.handler = self.handler
        self.cancelled: set[str] = set()
        self.number = 0

    def handler(self, call: Call) -> Result:
        fails = self.outcomes.get((call.job_id, call.attempt), False)
        return failure() if fails else SUCCEED

    def _named(self, fails: list[bool]) -> str:
        self.number += 1
        job_id = f"j{self.number}"
        self.outcomes |= {(job_id, attempt): fail for attempt, fail in enumerate(fails, 1)}
        return job_id

    @rule(target=jobs, in_s=st.integers(0, 900), fails=st.lists(st.booleans(), max_size=3), most=st.integers(1, 3))
    def one_off(self, in_s: int, fails: list[bool], most: int) -> str:
        job_id = self._named(fails)
        self.system.submit_job(job_id, in_s=in_s, max_attempts=most, base_s=20)
        return job_id

    @rule(target=jobs, every_s=st.sampled_from((20, 60, 90, 400)), fails=st.lists(st.booleans(), max_size=2))
    def recurring(self, every_s: int, fails: list[bool]) -> str:
        job_id = self._named(fails)
        self.system.submit_job(job_id, every_s=every_s, catch_up="all", base_s=5)
        return job_id

    @rule(job_id=jobs)
    def cancel(self, job_id: str) -> None:
        self.system.cancel_job(job_id)

    @rule(job_id=jobs)
    def pause(self, job_id: str) -> None:
        self.system.pause_job(job_id)

    @rule(job_id=jobs)
    def resume(self, job_id: str) -> None:
        self.system.resume_job(job_id)

    @rule(job_id=jobs, every_s=st.sampled_from((30, 70, 500)))
    def another_schedule(self, job_id: str, every_s: int) -> None:
        self.system.patch_job(job_id, every=f"{every_s}s", catch_up="all")

    @rule(job_id=jobs, in_s=st.integers(0, 900))
    def another_time(self, job_id: str, in_s: int) -> None:
        if not self._is_endless(job_id):
            self.system.clock.advance(0.125)  # no job is to be due at the very moment of a run that was asked for
            self.system.patch_job(job_id, run_at=self.system.after(in_s))

    @rule(job_id=jobs, most=st.integers(1, 3))
    def another_policy(self, job_id: str, most: int) -> None:
        self.system.patch_job(job_id, retry={"max_attempts": most}, payload="x" * 600)

    @rule(job_id=jobs)
    def trigger(self, job_id: str) -> None:
        self.system.clock.advance(0.25)
        self.system.trigger_job(job_id)

    @rule(job_id=jobs)
    def redrive(self, job_id: str) -> None:
        self.system.redrive_job(job_id)

    @rule(seconds=st.sampled_from((1, 5, 30, 61, 200)))
    def time_passes(self, seconds: int) -> None:
        self.system.pass_s(seconds)

    @rule(seconds=st.sampled_from((30, 200, 700)), ticks=st.booleans())
    def something_is_away(self, seconds: int, ticks: bool) -> None:
        self.system.pass_s(seconds, ticks=ticks, deliveries=not ticks)

    @rule(steps=st.integers(1, 25), what=st.sampled_from(("dies before", "dies after", *ERRORS)))
    def a_fault_comes(self, steps: int, what: str) -> None:
        self.trouble.left, self.trouble.what = steps, what

    @rule(twice=st.booleans(), disorder=st.booleans(), lag_s=st.sampled_from((0, 0, 20, 130)))
    def sqs_and_the_index_are_as_they_may_be(self, twice: bool, disorder: bool, lag_s: int) -> None:
        self.system.duplicates, self.system.newest_first = twice, disorder
        self.system.table.index_lag_s = lag_s

    @rule()
    def an_extra_tick(self) -> None:
        self.system.tick_now()

    @rule()
    def an_audit(self) -> None:
        self.system.audit_now()

    @invariant()
    def a_job_is_shown_as_the_model_allows(self) -> None:
        """A cancelled job never looks alive again."""
        with calls.unseen():
            for job_id in self._answered_cancels():
                shown = self.system.show(job_id)
                assert shown.next_run_at is None
                assert shown.job.status == "cancelled"

    def _answered_cancels(self) -> set[str]:
        from tests.faults.history import Cancelled

        return {event.job_id for event in self.system.history.of(Cancelled)} if hasattr(self, "system") else set()

    def teardown(self) -> None:
        if not hasattr(self, "system"):
            return
        try:
            self.trouble.left = None
            for job_id in [f"j{number}" for number in range(1, self.number + 1)]:
                self.system.cancel_job(job_id) if self._is_endless(job_id) else None
            self.system.pass_s(SETTLE_S)
            history = self.system.end()
            troubles = len(history.of(Crashed)) + len(history.of(Failed))
            promise = Promise(late_s=SETTLE_S - 900, lost_attempts=troubles + 2, ticks=15)
            found = check(history, promise)
            assert not found, told(found)
        finally:
            self.deployment.__exit__(None, None, None)
            self.rules.__exit__(None, None, None)

    def _is_endless(self, job_id: str) -> bool:
        item: Any = self.system.table.get((f"job#{job_id}", "job"))
        return item is not None and '"every_s"' in item["schedule"]["S"]


TestRandomStories = RandomStory.TestCase
TestRandomStories.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)
