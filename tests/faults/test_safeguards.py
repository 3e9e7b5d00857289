"""Safeguards that stand behind another one: each is judged alone, in a state that the other keeps from coming about."""

from dataclasses import replace
from datetime import timedelta

from shared.rules.plan import plan
from shared.store.jobs import Claim, ClaimOutcome
from tests.faults.system import System, deployed
from tests.support import calls


def _claim(system: System, fence: int, *, revision: int = 1) -> ClaimOutcome:
    """A claim of job a as the index shows it, by the tick of epoch `fence`."""
    now = system.clock.now()
    with calls.unseen():
        pages = [page for minute in range(7) for page in system.ticker.jobs.due(now + minute * MINUTE, 0, now + HOUR)]
        (due,) = [due for page, _ in pages for due in page]
        claim = Claim(replace(due, revision=revision), plan(due, now, 400))
        return system.ticker.jobs.claim([claim], 0, fence, now)[0]


MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_a_claim_with_an_older_fence_is_lost() -> None:
    """The job's due time alone stops a zombie tick, unless it is set back; then its fence does."""
    with deployed() as system:
        system.submit_job("a", every_s=310)
        item = system.table.get(("job#a", "job"))
        assert item is not None
        system.table.set(("job#a", "job"), {**item, "fence": {"N": "8"}})
        assert _claim(system, 7) is ClaimOutcome.LOST
        assert _claim(system, 8) is ClaimOutcome.WON


def test_a_claim_of_an_older_revision_is_not_won() -> None:
    """A job that was changed and has the same due time again. Whether this claim was made before is not to see."""
    with deployed() as system:
        system.submit_job("a", in_s=310)
        item = system.table.get(("job#a", "job"))
        assert item is not None
        system.table.set(("job#a", "job"), {**item, "revision": {"N": "2"}})
        assert _claim(system, 1) is ClaimOutcome.OVERTAKEN
        assert _claim(system, 1, revision=2) is ClaimOutcome.WON


def test_a_claim_of_a_paused_job_is_lost() -> None:
    """The index still shows it."""
    with deployed() as system:
        system.submit_job("a", in_s=310)
        item = system.table.get(("job#a", "job"))
        assert item is not None
        system.table.set(("job#a", "job"), {**item, "status": {"S": "paused"}})
        assert _claim(system, 1) is ClaimOutcome.LOST


def test_a_claim_of_a_due_time_that_is_past_is_lost() -> None:
    """Another tick of the same epoch has claimed it since the index was read; the claim would set it back."""
    with deployed() as system:
        system.submit_job("a", every_s=310)
        item = system.table.get(("job#a", "job"))
        assert item is not None
        later = {"S": (system.clock.now() + timedelta(seconds=620)).isoformat()[:19]}
        system.table.index_lag_s = 60  # the index still shows it as it was
        system.table.set(("job#a", "job"), {**item, "due_at": later})
        assert _claim(system, 1) is ClaimOutcome.LOST
