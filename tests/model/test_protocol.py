"""The protocol holds in every order of its calls, and each safeguard is needed. `python -m tests.model` tells more."""

import pytest

from tests.model.configurations import CONFIGURATIONS, Configuration
from tests.model.search import Verdict
from tests.model.weakened import WEAKENED, Weakened

SMALL = (
    "two executors: two crashes",
    "two executors: a refused read, a lost answer, a message twice",
    "submit: near, two crashes and a lost answer",
    "submitted again: beyond the horizon, beside a tick, a lost answer",
)


def name(one: Configuration | Weakened) -> str:
    return one.name


def story(verdict: Verdict) -> str:
    return "\n".join([str(verdict.violation), *verdict.trace])


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=name)
def test_the_protocol_holds_in_every_order_of_its_calls(configuration: Configuration) -> None:
    verdict = configuration.search()
    assert verdict.violation is None, story(verdict)
    assert verdict.ends > 0


@pytest.mark.parametrize("weak", WEAKENED, ids=name)
def test_each_safeguard_is_needed(weak: Weakened) -> None:
    verdict = weak.search()
    assert verdict.violation is not None, f"nothing is wrong in any of {verdict.states} states"
    assert verdict.violation.startswith(weak.breaks), story(verdict)
    assert verdict.trace


@pytest.mark.parametrize("configuration", [one for one in CONFIGURATIONS if one.name in SMALL], ids=name)
def test_the_orders_that_are_left_out_lead_to_no_other_end(configuration: Configuration) -> None:
    short, long = configuration.prepared(), configuration.prepared(reduced=False)
    assert short.run().states < long.run().states
    assert short.ends == long.ends
