"""A fixed share of the crash points of every scenario; `make faults` tries them all."""

import pytest

from tests.faults import crashes
from tests.faults.checker import told
from tests.faults.scenarios import SCENARIOS
from tests.support import aws_rules

STRIDE = 13  # prime, so that the share does not fall into step with a tick's calls
WHOLE = 80  # a story of so few points is tried whole
PAIRS_STRIDE = 17


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_crash_loses_or_doubles_a_run(name: str) -> None:
    scenario = SCENARIOS[name]
    assert crashes.run(scenario, ())[0].violations == ()  # under AWS's rules
    with aws_rules.off():
        for tried in crashes.every_point(scenario, STRIDE, WHOLE):
            assert not tried.violations, f"{tried.name} ({tried.where}):\n{told(tried.violations)}"


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if scenario.pairs])
def test_no_two_crashes_lose_or_double_a_run(name: str) -> None:
    with aws_rules.off():
        for tried in crashes.every_pair(SCENARIOS[name], PAIRS_STRIDE):
            assert not tried.violations, f"{tried.name} ({tried.where}):\n{told(tried.violations)}"


def test_a_point_replays_from_its_name() -> None:
    with aws_rules.off():
        tried = crashes.run(SCENARIOS["one-off, near"], (crashes.Point("after", 3),))[0]
        history, again = crashes.replay(tried.name)
    assert again == tried
    assert tried.where == ("after submit: SendMessageBatch",)
    assert len(history.events) > 5
