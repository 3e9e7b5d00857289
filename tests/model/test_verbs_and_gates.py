"""Pause, resume, update, trigger, redrive and all gates, in every order of their calls; each safeguard is needed."""

import pytest

from tests.model.configuration import Configuration
from tests.model.configurations_gates import GATES
from tests.model.configurations_verbs import VERBS
from tests.model.search import story
from tests.model.weakened import WEAKENED, Weakened


def name(one: Configuration | Weakened) -> str:
    return one.name


@pytest.mark.parametrize("configuration", [one for one in (*VERBS, *GATES) if not one.large], ids=name)
def test_what_users_say_holds_in_every_order_of_its_calls(configuration: Configuration) -> None:
    verdict = configuration.search()
    assert verdict.violation is None, story(verdict)
    assert verdict.ends > 0


@pytest.mark.parametrize("weak", WEAKENED, ids=name)
def test_each_safeguard_is_needed(weak: Weakened) -> None:
    verdict = weak.search()
    assert verdict.violation is not None, f"nothing is wrong in any of {verdict.states} states"
    assert verdict.violation.startswith(weak.breaks), story(verdict)
    assert verdict.trace
