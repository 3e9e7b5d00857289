"""A job's document read as steps in the order of time."""

from duetime.cli.progress import is_over, lateness_s, steps, succeeded
from duetime.client import JsonValue


def attempt(
    number: int, started: str, finished: str | None, outcome: str | None, error: str | None = None
) -> JsonValue:
    return {
        "attempt": number,
        "worker_id": "w",
        "started_at": f"2026-11-29T12:00:{started}Z",
        "lease_expires_at": "2026-11-29T12:01:10Z",
        "finished_at": finished and f"2026-11-29T12:00:{finished}Z",
        "outcome": outcome,
        "error": error,
    }


def job(
    status: str, *attempts: JsonValue, run_status: str | None = None, reason: str | None = None
) -> dict[str, JsonValue]:
    run: JsonValue = {
        "job_id": "j",
        "scheduled_for": "2026-11-29T12:00:05Z",
        "status": run_status or status,
        "reason": reason,
        "result": None,
        "attempts": list(attempts),
    }
    return {
        "job_id": "j",
        "status": status,
        "created_at": "2026-11-29T12:00:00Z",
        "run_at": "2026-11-29T12:00:05Z",
        "cron": None,
        "every": None,
        "timezone": "UTC",
        "runs": [run] if attempts or run_status else [],
    }


def test_a_job_that_failed_once_and_then_succeeded() -> None:
    document = job(
        "succeeded", attempt(1, "05.310", "05.5", "failed", "ValueError: no"), attempt(2, "15", "15.25", "succeeded")
    )
    assert [(step.status, step.note) for step in steps(document)] == [
        ("scheduled", "for 2026-11-29T12:00:05Z"),
        ("running", "attempt 1, 0.31 s after its time"),
        ("failed", "attempt 1: ValueError: no"),
        ("running", "attempt 2"),
        ("succeeded", ""),
    ]
    assert is_over(document)
    assert succeeded(document)


def test_the_same_step_has_the_same_key_and_no_two_steps_share_one() -> None:
    before = steps(job("running", attempt(1, "05.310", None, None)))
    after = steps(job("succeeded", attempt(1, "05.310", "06", "succeeded")))
    assert [step.key for step in after][: len(before)] == [step.key for step in before]
    assert len({step.key for step in after}) == len(after)


def test_a_claimed_job_and_a_cancelled_one() -> None:
    assert [step.status for step in steps(job("enqueued"))] == ["scheduled", "enqueued"]
    assert [step.status for step in steps(job("cancelled"))] == ["scheduled", "cancelled"]
    assert is_over(job("cancelled"))
    assert not succeeded(job("cancelled"))


def test_what_waits_for_a_retry_or_recurs_is_not_over() -> None:
    assert not any(is_over(job(status)) for status in ("scheduled", "enqueued", "running", "failed", "paused"))


def test_a_finished_series_succeeded_when_its_last_run_did() -> None:
    ended = job("completed", attempt(1, "05", "06", "succeeded"), run_status="succeeded")
    assert succeeded(ended)
    assert not succeeded(job("completed", attempt(1, "05", "06", "failed", "x"), run_status="dead_lettered"))
    assert not succeeded(job("completed"))


def test_a_skipped_run_shows_its_reason() -> None:
    assert steps(job("skipped", run_status="skipped", reason="expired"))[-1].note == "expired"


def test_lateness_is_of_the_first_attempt_only() -> None:
    (first,) = [run for run in [job("running", attempt(1, "06.5", None, None))["runs"]] if isinstance(run, list)]
    assert isinstance(first[0], dict)
    assert lateness_s(first[0]) == 1.5
    assert lateness_s({"scheduled_for": "2026-11-29T12:00:05Z", "attempts": [attempt(3, "09", None, None)]}) is None
    assert lateness_s({}) is None
