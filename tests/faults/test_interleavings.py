"""A fixed share of the interleavings of every pair of actors; `make faults` tries them all."""

import pytest

from tests.faults import interleaving
from tests.faults.checker import told
from tests.faults.interleaving import Schedule
from tests.faults.pairs import PAIRS
from tests.support import aws_rules

STRIDE = 13  # of the schedules with two preemptions; those with one are all tried


@pytest.mark.parametrize("name", PAIRS)
def test_no_interleaving_loses_or_doubles_a_run(name: str) -> None:
    pair = PAIRS[name]
    assert interleaving.run(pair, Schedule("A", (2,))).violations == ()  # under AWS's rules
    with aws_rules.off():
        for woven in interleaving.every_schedule(pair, STRIDE):
            assert not woven.violations, f"{woven.name}:\n{told(woven.violations)}\nsteps: {'; '.join(woven.made)}"


def test_a_schedule_is_kept_to_the_step_and_replays_from_its_name() -> None:
    with aws_rules.off():
        woven = interleaving.run(PAIRS["execute/cancel"], Schedule("A", (2, 3)))
        assert [step[0] for step in woven.made[:5]] == ["A", "A", "B", "B", "B"]
        assert woven.made[5].startswith("A ")
        assert interleaving.replay(PAIRS, woven.name)[1] == woven


def test_schedules_are_read_from_their_names() -> None:
    for schedule in (Schedule("A", ()), Schedule("B", (4,)), Schedule("A", (3, 2))):
        assert Schedule.read(str(schedule)) == schedule


def test_each_schedule_is_tried_once() -> None:
    with aws_rules.off():
        names = [woven.name for woven in interleaving.every_schedule(PAIRS["execute/cancel"])]
        made = {woven.made for woven in interleaving.every_schedule(PAIRS["execute/cancel"])}
    assert len(names) == len(set(names)) > 50
    assert len(made) > 40  # a preemption at an actor's last step is the same as none
