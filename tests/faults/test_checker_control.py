"""The checker on what users ask for: right histories of pauses, schedules, triggers, redrives, and planted faults."""

from datetime import datetime, timedelta
from typing import Any

from tests.faults.checker import Promise, Violation, check
from tests.faults.history import (
    Called,
    ChangeAsked,
    Ended,
    Event,
    History,
    JobCancelled,
    JobRuled,
    Journaled,
    RedriveAsked,
    Redriven,
    Returned,
    RunSeen,
    Stored,
    Submitted,
    Ticked,
    Times,
    TriggerAsked,
    Triggered,
)
from tests.support.clocks import START

END = START + timedelta(hours=1)
PROMISE = Promise(late_s=30)
OLD = Times(first=START + timedelta(seconds=100), period_s=100, count=3)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def run(slot: float, begins: float | None = None, how: str = "succeeded", **more: Any) -> list[Event]:
    """A run of one attempt."""
    about: dict[str, Any] = {"job_id": "a", "scheduled_for": at(slot), "attempt": 1}
    begins = slot if begins is None else begins
    seen = {"attempts_kept": 1, "requested": more.pop("requested", False), **about}
    return [
        RunSeen(at=at(begins), status="running", lease_expires_at=at(begins + 65), **seen),
        Called(at=at(begins), **about),
        Returned(at=at(begins + 1), **about),
        RunSeen(at=at(begins + 1), status=how, **seen, **more),
    ]


def skipped(slot: float, recorded: float, reason: str, until: float | None = None) -> RunSeen:
    missed_until = None if until is None else at(until)
    about: dict[str, Any] = {"job_id": "a", "scheduled_for": at(slot), "missed_until": missed_until}
    return RunSeen(at=at(recorded), status="skipped", reason=reason, **about)


def ruled(seconds: float, status: str, times: Times = OLD) -> JobRuled:
    return JobRuled(at=at(seconds), job_id="a", status=status, times=times)


def judged(*events: Event | list[Event]) -> list[Violation]:
    job = Submitted(at=START, job_id="a", first=OLD.first, period_s=OLD.period_s, count=OLD.count)
    flat: list[Event] = [job, Stored(at=START, job_id="a")]
    for one in events:
        flat += one if isinstance(one, list) else [one]
    return check(History([*flat, Ended(at=END)]), PROMISE)


def said(found: list[Violation], invariant: str, text: str) -> bool:
    return any(one.invariant == invariant and text in one.text for one in found)


def test_a_pause_that_nothing_ends_asks_for_no_more_runs() -> None:
    assert judged(run(100), ruled(150, "paused")) == []
    assert judged(run(100), ruled(350, "paused")) == []  # no tick came that could have claimed them
    ticks: list[Event] = [Ticked(at=at(seconds)) for seconds in (310, 320, 330)]
    assert said(judged(run(100), ticks, ruled(350, "paused")), "I1", "vanished")


def test_what_a_resume_brings_late_is_right_and_what_it_forgets_is_not() -> None:
    right = [run(100), ruled(150, "paused"), ruled(450, "scheduled"), run(200, 451), run(300, 452)]
    assert judged(*right) == []
    assert said(judged(*right[:4]), "I1", "vanished")
    assert said(judged(*right[:4], run(300, 490)), "I1", "no run of a is left")


def test_what_a_resume_leaves_out_is_none_of_the_most_that_there_may_be() -> None:
    span = skipped(200, 451, "catch_up", 400)
    right = [run(100), ruled(150, "paused"), ruled(450, "scheduled"), span, run(500), run(600)]
    assert judged(*right) == []
    assert said(judged(*right, run(700)), "I1", "never due")
    assert said(judged(*right[:5]), "I1", "vanished")


def test_an_attempt_that_begins_while_the_job_is_paused_is_not_called() -> None:
    began, called, *end = run(200)
    assert judged(run(100), began, ruled(200, "paused"), called, *end) == []
    assert said(judged(run(100), ruled(150, "paused"), began, called, *end), "pause", "began while")
    asked = TriggerAsked(at=at(190), job_id="a")
    assert judged(run(100), ruled(150, "paused"), asked, run(191, requested=True)) == []


def test_a_new_schedule_takes_the_place_of_the_old_one() -> None:
    new = Times(first=at(190), period_s=40, count=2)
    right = [run(100), ruled(150, "scheduled", new), run(190), run(230)]
    assert judged(*right) == []
    assert said(judged(*right, run(200)), "I1", "never due")
    assert said(judged(*right[:3]), "I1", "vanished")
    assert said(judged(*right[1:]), "I1", "vanished")
    assert judged(skipped(100, 151, "rescheduled"), *right[1:]) == []


def test_a_new_schedule_of_a_paused_job_drops_what_was_held_back() -> None:
    new = Times(first=at(460), period_s=40, count=1)
    right = [run(100), ruled(150, "paused"), ruled(420, "paused", new), ruled(430, "scheduled", new), run(460)]
    assert judged(*right) == []
    assert judged(*right[:3]) == []


def test_a_retry_that_a_pause_has_ended_needs_nobody_who_asked_for_that() -> None:
    first = run(100, how="cancelled", reason="paused")
    assert judged(first, ruled(150, "paused")) == []
    assert said(judged(first, run(200), run(300)), "I1", "nobody asked")


def test_a_run_that_was_asked_for_comes_once_and_ends() -> None:
    asked = TriggerAsked(at=at(20), job_id="a")
    answered = Triggered(at=at(20), job_id="a", scheduled_for=at(20))
    own = [run(100), run(200), run(300)]
    assert judged(asked, answered, run(20, requested=True), *own) == []
    assert said(judged(asked, answered, *own), "I1", "never came")
    assert said(judged(asked, answered, run(20, requested=True)[:1], *own), "I1", "never came to its end")
    assert said(judged(asked, run(20, requested=True), run(21, requested=True), *own), "I1", "2 runs of a came beside")
    without = RunSeen(at=at(20), job_id="a", scheduled_for=at(20), status="cancelled", requested=True)
    assert said(judged(asked, without, *own), "I1", "without a call")
    assert said(judged(asked, run(20), *own), "I1", "never due")


def redriven(*, asked: bool = True, attempts: int = 1, most: int = 1) -> list[Violation]:
    """The first run of three is dead-lettered after one attempt and has `attempts` of `most` in its second round."""
    about: dict[str, Any] = {"job_id": "a", "scheduled_for": at(100)}
    events: list[Event] = [Journaled(at=START, occurrences=(("a", at(100)),)), *run(100, how="dead_lettered")]
    if asked:
        events += [RedriveAsked(at=at(110), job_id="a"), Redriven(at=at(110), **about)]
    events.append(RunSeen(at=at(110), status="enqueued", attempt=1, attempts_kept=1, requested=True, **about))
    for number in range(2, 2 + attempts):
        begins = at(110 + number)
        seen: dict[str, Any] = {"attempt": number, "attempts_kept": number, "requested": True, **about}
        status = "succeeded" if number == 1 + attempts else "failed"
        events += [
            RunSeen(at=begins, status="running", lease_expires_at=begins + timedelta(seconds=65), **seen),
            Called(at=begins, attempt=number, **about),
            Returned(at=begins, attempt=number, **about),
            RunSeen(at=begins, status=status, **seen),
        ]
    return judged(events, run(200), run(300), ChangeAsked(at=at(5), job_id="a", max_attempts=most))


def test_i4_a_dead_lettered_run_begins_again_if_that_was_asked_for() -> None:
    assert redriven(most=3) == []
    assert said(redriven(asked=False, most=3), "I4", "became enqueued")


def test_i7_each_round_has_as_many_attempts_as_are_allowed() -> None:
    assert redriven(attempts=3, most=3) == []
    assert said(redriven(attempts=4, most=3), "I7", "3 are allowed")


def test_a_submit_that_is_taken_back_is_due_for_nothing() -> None:
    again = [Submitted(at=at(400), job_id="a", first=at(500)), Stored(at=at(400), job_id="a")]
    own: list[Event | list[Event]] = [run(100), run(200), run(300)]
    assert said(judged(*own, again), "I1", "vanished")
    assert judged(*own, again, JobCancelled(at=at(401), job_id="a")) == []
