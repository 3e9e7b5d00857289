"""Each outage ends well: nothing is lost, the lateness is as stated, and the work at the return is bounded."""

import pytest

from tests.faults import outages
from tests.faults.checker import told
from tests.faults.history import Ended, RunSeen
from tests.faults.outages import OUTAGES
from tests.support import aws_rules

MOST_STEPS = {"no tick for 14 days": 45 / 0.004 + 100}  # a tick stops in time, and the next one goes on


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_loses_and_doubles_nothing(name: str) -> None:
    with aws_rules.off():
        weathered, _ = outages.run(OUTAGES[name])
    assert not weathered.violations, f"{name}:\n{told(weathered.violations)}"
    assert weathered.most_steps < MOST_STEPS.get(name, 400)


def test_fourteen_days_of_a_minutely_job_are_one_record_and_one_late_run() -> None:
    with aws_rules.off():
        weathered, history = outages.run(OUTAGES["no tick for 14 days"])
    spans = [run for run in history.of(RunSeen) if run.missed_until is not None]
    assert len(spans) == 1
    assert weathered.calls < 40


def test_what_a_purge_took_is_found_by_the_audit_and_by_nothing_else() -> None:
    one = OUTAGES["the queue is purged"]
    with aws_rules.off():
        assert outages.run(one)[0].violations == ()
        alone, history = outages.run(outages.Outage(one.name, one.story, one.promise, 1200, audited=False))
    assert {violation.invariant for violation in alone.violations} >= {"I1", "end"}
    assert history.of(Ended)[0].findings > 0
