"""A fixed share of the faults of single answers, and all troubles that last; `make faults` tries them all."""

import pytest

from tests.faults import answers
from tests.faults.answers import Struck
from tests.faults.checker import told
from tests.faults.system import Step, System, deployed
from tests.support import aws_rules, calls

STRIDE = 11


def right(struck: Struck) -> None:
    assert not struck.violations, f"{struck.name}:\n{told(struck.violations)}"


@pytest.mark.parametrize("name", answers.STORIES)
def test_no_fault_of_an_answer_loses_or_doubles_a_run(name: str) -> None:
    with aws_rules.off():
        for struck in answers.every_answer(answers.SCENARIOS[name], STRIDE):
            right(struck)


@pytest.mark.parametrize("name", answers.STORIES)
def test_duplicates_disorder_lag_and_skew_lose_and_double_nothing(name: str) -> None:
    with aws_rules.off():
        for struck in answers.every_trouble(answers.SCENARIOS[name]):
            right(struck)


@pytest.mark.parametrize("kind", [kind for kind in answers.KINDS if kind.name in ("throttled", "500", "answer lost")])
def test_a_submit_that_has_stored_its_job_says_so_whatever_becomes_of_its_page(kind: answers.Kind) -> None:
    class Settling(answers._Striking):
        def before(self, step: Step) -> None:
            self.number = step.number if str(step) == "submit: DeleteItem claim" else -1

    def submitted(system: System) -> str | None:
        shown = system.submit_job("a", in_s=5)
        return shown.status if shown else None

    with deployed(Settling(kind, -1)) as system:
        assert submitted(system) == "enqueued"
        system.settle(300)
        with calls.unseen():
            assert system.statuses("a") == ["succeeded"]
