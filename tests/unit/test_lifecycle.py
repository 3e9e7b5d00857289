"""The transition table of a run, and that nothing leaves a terminal state (I4)."""

import pytest

from shared.model.run import RunStatus
from shared.rules.lifecycle import TERMINAL, TRANSITIONS, Event, after, diagram, is_over


def test_i4_nothing_leaves_a_terminal_state_but_a_redrive() -> None:
    assert {line for line in TRANSITIONS if line[0] in TERMINAL} == {(RunStatus.DEAD_LETTERED, Event.REDRIVE)}
    assert {status.value for status in TERMINAL} == {"succeeded", "dead_lettered", "cancelled", "skipped"}


@pytest.mark.parametrize("status", RunStatus)
def test_every_state_is_reached_and_ends(status: RunStatus) -> None:
    seen = {RunStatus.ENQUEUED}
    for _ in RunStatus:
        seen |= {target for (source, _), target in TRANSITIONS.items() if source in seen}
    assert status in seen
    ends = {status}
    for _ in RunStatus:
        ends |= {target for (source, _), target in TRANSITIONS.items() if source in ends}
    assert ends & TERMINAL
    assert is_over(status) is (status in TERMINAL)


def sources(event: Event) -> set[RunStatus]:
    return {status for status, what in TRANSITIONS if what is event}


def test_only_running_attempts_end_and_only_waiting_ones_begin() -> None:
    assert sources(Event.SUCCEED) == sources(Event.FAIL) == sources(Event.EXHAUST) == {RunStatus.RUNNING}
    assert sources(Event.START) == {RunStatus.ENQUEUED, RunStatus.FAILED}
    assert after(RunStatus.RUNNING, Event.FAIL) is RunStatus.FAILED


@pytest.mark.parametrize(("status", "event"), [("succeeded", "start"), ("failed", "succeed"), ("enqueued", "fail")])
def test_what_the_table_does_not_have_is_an_error(status: str, event: str) -> None:
    with pytest.raises(KeyError):
        after(RunStatus(status), Event(event))


def test_the_diagram_shows_every_line_of_the_table() -> None:
    text = diagram()
    assert text.startswith("stateDiagram-v2\n")
    for (source, event), target in TRANSITIONS.items():
        assert f"    {source} --> {target}: {event}\n" in text
    assert text.count("--> [*]") == len(TERMINAL)
