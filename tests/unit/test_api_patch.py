"""PATCH as a merge: a job's own shown values change nothing, a null is a default, and what is left out stays."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from functions.submit import strict_json
from functions.submit.documents import job_document
from functions.submit.models import JobBody, Limits
from functions.submit.patch import FIXED, patched, read_patch, read_versions
from functions.submit.reading import job_spec, read_body, read_schedule_fields
from shared.flows.inspect import JobView
from shared.flows.submit import new_job
from shared.model.errors import DuetimeError, InputError
from shared.model.job import JobSpec

NOW = datetime(2026, 11, 30, 11, 58, 3, 250_000, tzinfo=UTC)
LIMITS = Limits(frozenset({"demo.echo", "demo.fail"}), 105)
ECHO = {"kind": "python", "handler": "demo.echo"}

SCHEDULES = st.one_of(
    st.fixed_dictionaries(
        {"cron": st.sampled_from(["0 9 * * *", "H/7 2-4 * * MON#2", "cron(0 12 * * ? *)", "@daily"])},
        optional={
            "timezone": st.sampled_from(["Europe/Berlin", "America/New_York"]),
            "start_at": st.sampled_from(["2026-12-01T00:00:00.5Z", "2027-01-01T00:00:00+05:30"]),
            "end_at": st.just("2030-01-01T00:00:00Z"),
            "max_runs": st.integers(1, 9),
            "jitter_s": st.integers(0, 100),
            "dst_gap": st.sampled_from(["run", "skip"]),
        },
    ),
    st.fixed_dictionaries(
        {"every": st.sampled_from(["90s", "PT1H", "rate(5 minutes)", "1d"])},
        optional={"start_at": st.just("2026-12-01T00:00:00.5Z"), "max_runs": st.integers(1, 9), "jitter_s": st.just(7)},
    ),
    st.fixed_dictionaries(
        {
            "run_at": st.sampled_from(
                ["2026-12-01T00:00:00Z", "2026-11-30T12:00:00.123456+05:30", "at(2027-01-01T00:00:00)"]
            )
        },
        optional={"timezone": st.sampled_from(["Europe/Berlin", "UTC"])},
    ),
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["n", "Käse"]),
        "group": st.just("g"),
        "tags": st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["", "1"])),
        "payload": st.sampled_from([None, 0, [], {"a": [1.5]}, "x"]),
        "retry": st.fixed_dictionaries(
            {},
            optional={
                "max_attempts": st.integers(1, 100),
                "base_s": st.sampled_from([0, 0.1, 10, 2.5]),
                "factor": st.sampled_from([1, 1.5, 10]),
                "max_s": st.sampled_from([0, 60]),
                "retry_on": st.just(["lost"]),
                "give_up_on": st.just(["KeyError", "a.B"]),
            },
        ),
        "timeout_s": st.integers(1, 105),
        "deadline_s": st.integers(1, 100),
        "overlap": st.sampled_from(["allow", "skip", "queue", "replace"]),
        "priority": st.sampled_from(["high", "normal", "low"]),
        "catch_up": st.sampled_from(["latest", "all", "skip"]),
    },
)
BODIES = st.builds(lambda schedule, policy: {"target": ECHO, **schedule, **policy}, SCHEDULES, POLICIES)


def wire(body: Any) -> Any:
    """As a request's body is read: numbers keep their digits."""
    return strict_json.read_object(strict_json.write(body))


def submitted(body: Any, now: datetime = NOW) -> JobSpec:
    read = read_body(JobBody, wire(body), LIMITS, now)
    try:
        return job_spec(read, read_schedule_fields(read, now, "j"), "j")
    except InputError:
        assume(False)
        raise


def shown(spec: JobSpec) -> dict[str, Any]:
    """The fields of a job's document that a PATCH may have: as a client would send them back."""
    job = new_job(spec, "j", NOW, "p")
    document = job_document(JobView(job=job, status="scheduled", next_run_at=None, runs=()))
    changeable = JobBody.model_fields.keys() - FIXED.keys()
    return {name: value for name, value in dict(document).items() if name in changeable}


@settings(deadline=None)
@given(BODIES, st.integers(0, 10**6), st.data())
def test_a_job_with_its_own_shown_values_is_unchanged(body: Any, later_s: int, data: st.DataObject) -> None:
    """All of them at once, or any of them alone: also long after, when its times have moved on."""
    spec = submitted(body)
    fields = shown(spec)
    some = data.draw(st.sets(st.sampled_from(sorted(fields)), min_size=1))
    kinds = {kind for kind in ("run_at", "cron", "every") if fields[kind] is None}
    for change in (fields, {name: fields[name] for name in some}):
        if set(change) <= kinds:
            continue
        assert patched(spec, read_patch(wire(change)), LIMITS, NOW + timedelta(seconds=later_s)) == spec


@settings(deadline=None)
@given(BODIES, POLICIES)
def test_a_changed_policy_is_as_it_would_be_submitted_and_the_rest_stays(body: Any, change: Any) -> None:
    assume(change)
    spec = submitted(body)
    changed = patched(spec, read_patch(wire(change)), LIMITS, NOW)
    merged = {**body, **change}
    for name in ("tags", "retry"):
        if name in body and name in change:
            merged[name] = {**body[name], **change[name]}
    assert changed == submitted(merged)
    assert replace(changed.schedule, catch_up=spec.schedule.catch_up) == spec.schedule


@settings(deadline=None)
@given(BODIES, st.sampled_from(sorted(JobBody.model_fields.keys() - FIXED.keys() - {"target"})))
def test_null_is_the_default(body: Any, name: str) -> None:
    spec = submitted(body)
    left = {field: value for field, value in body.items() if field != name}
    if name in ("run_at", "cron", "every") and name in body:
        with pytest.raises(DuetimeError):
            patched(spec, read_patch({name: None}), LIMITS, NOW)
        return
    if name == "timezone" and "run_at" in body:
        return  # the job keeps the moment that was meant, and not the words that were sent
    assert patched(spec, read_patch({name: None}), LIMITS, NOW) == submitted(left)


@settings(deadline=None)
@given(BODIES, SCHEDULES, st.integers(0, 10**6))
def test_a_new_schedule_is_as_it_would_be_submitted_now(body: Any, schedule: Any, later_s: int) -> None:
    spec, now = submitted(body), NOW + timedelta(seconds=later_s)
    kind = next(kind for kind in ("run_at", "cron", "every") if kind in schedule)
    assume(kind not in body)
    bounds = () if kind == "run_at" else ("start_at", "end_at", "max_runs", "jitter_s")
    kept = {name: value for name, value in body.items() if name in (*bounds, "timezone", "dst_gap", "catch_up")}
    try:
        wanted = read_schedule_fields(
            read_body(JobBody, wire({"target": ECHO, **kept, **schedule}), LIMITS, now), now, "j"
        )
    except InputError:
        assume(False)
        raise
    assert patched(spec, read_patch(wire(schedule)), LIMITS, now).schedule == wanted


@pytest.mark.parametrize(
    ("header", "versions"),
    [(None, None), ("*", None), (" * ", None), ("3", {3}), ('"3"', {3}), ('W/"3"', {3}), ('"3", "4",5', {3, 4, 5})],
)
def test_if_match(header: str | None, versions: set[int] | None) -> None:
    assert read_versions(header) == versions


@pytest.mark.parametrize("header", ["", "x", '"3', '3"', "W/3", "3,", "-3", "3.0", "1" * 16])
def test_an_if_match_that_names_no_version(header: str) -> None:
    with pytest.raises(InputError) as error:
        read_versions(header)
    assert error.value.field == "If-Match"
