"""Submit, tick, execute, cancel and audit hold in every order of their calls. `python -m tests.model` tells more."""

import pytest

from tests.model.configuration import Configuration
from tests.model.configurations import CONFIGURATIONS
from tests.model.configurations_protocol import PROTOCOL
from tests.model.search import story

SMALL = (
    "two executors: two crashes",
    "two executors: a refused read, a lost answer, a message twice",
    "submit: near, two crashes and a lost answer",
    "submitted again: beyond the horizon, beside a tick, a lost answer",
    "pause: the latest is run",
    "redrive: two, a lost answer",
    "overlap queue: a refused read, a lost answer",
    "depends_on: and an update of the parent",
)


def name(one: Configuration) -> str:
    return one.name


@pytest.mark.parametrize("configuration", [one for one in PROTOCOL if not one.large], ids=name)
def test_the_protocol_holds_in_every_order_of_its_calls(configuration: Configuration) -> None:
    verdict = configuration.search()
    assert verdict.violation is None, story(verdict)
    assert verdict.ends > 0


@pytest.mark.parametrize("configuration", [one for one in CONFIGURATIONS if one.name in SMALL], ids=name)
def test_the_orders_that_are_left_out_lead_to_no_other_end(configuration: Configuration) -> None:
    short, long = configuration.prepared(), configuration.prepared(reduced=False)
    assert short.run().states < long.run().states
    assert short.ends == long.ends
