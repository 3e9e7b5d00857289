"""Reads when a job is to run, and refuses what can never run (its slots: rules.slots). It never reads the clock."""

from datetime import datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from shared.model.errors import InvalidScheduleError
from shared.model.instants import EPOCH, to_text
from shared.model.job import Schedule
from shared.rules.aws_forms import aws_at
from shared.rules.durations import read_duration
from shared.rules.instants import read_instant
from shared.rules.slots import count_slots, first_slot, latest_slot, next_slot, preview, slots
from shared.rules.zones import read_zone

__all__ = ["count_slots", "first_slot", "latest_slot", "next_slot", "preview", "read_schedule", "slots"]

MAX_AHEAD: Final = timedelta(days=3653)  # ten years
MAX_JITTER_S: Final = 86400
MAX_MAX_RUNS: Final = 10**9


def read_schedule(
    *,
    now: datetime,
    run_at: str | None = None,
    cron: str | None = None,
    every: str | None = None,
    timezone: str | None = None,
    start_at: str | None = None,
    end_at: str | None = None,
    max_runs: int | None = None,
    jitter_s: int = 0,
    dst_gap: str = "run",
    catch_up: str = "latest",
    job_id: str | None = None,
) -> Schedule:
    """A checked schedule that has at least one slot after `now` (a `run_at` in the past is taken: it runs at once).

    Moments without an offset are read in `timezone` (an IANA name; `start_at` and `end_at` in UTC if it is missing).
    AWS's `at(…)`, `cron(…)` and `rate(…)` are taken in `run_at`, `cron` and `every`. `job_id` is the seed of `H` and of
    the jitter.
    Raises InvalidScheduleError naming the field, and nothing else.
    """
    kind = _only_one(run_at, cron, every)
    zone = read_zone("UTC" if timezone is None else timezone)
    gap, missed = _dst_gap(dst_gap), _catch_up(catch_up)
    if kind == "run_at":
        _refuse_with_run_at(start_at, end_at, max_runs, jitter_s)
        return Schedule(
            run_at=_read_run_at(run_at, timezone, zone, now), timezone=zone.key, dst_gap=gap, catch_up=missed
        )
    start, end = _bounds(start_at, end_at, zone, now)
    every_s = None
    if kind == "every":
        every_s = read_duration(every, "every")
    else:
        from shared.rules.cron_text import read_cron  # here, for the reason in rules.slots

        read_cron(cron, job_id)
    schedule = Schedule(
        cron=cron,
        every=every,
        every_s=every_s,
        timezone=zone.key,
        anchor=(start or now.replace(microsecond=0)) if every_s else None,
        start_at=start,
        end_at=end,
        max_runs=None if max_runs is None else _whole(max_runs, "max_runs", 1, MAX_MAX_RUNS),
        jitter_s=_jitter(jitter_s, every_s),
        dst_gap=gap,
        catch_up=missed,
    )
    _refuse_if_never(schedule, kind, job_id or "", now)
    return schedule


def _only_one(run_at: object, cron: object, every: object) -> Literal["run_at", "cron", "every"]:
    kinds: dict[Literal["run_at", "cron", "every"], object] = {"run_at": run_at, "cron": cron, "every": every}
    given = [kind for kind, value in kinds.items() if value is not None]
    if not given:
        raise InvalidScheduleError("run_at", "is missing; give exactly one of run_at, cron and every")
    if len(given) > 1:
        raise InvalidScheduleError(given[1], f"cannot go with {given[0]}; give exactly one of run_at, cron and every")
    return given[0]


def _read_run_at(text: object, timezone: str | None, zone: ZoneInfo, now: datetime) -> datetime:
    inner = aws_at(text) if isinstance(text, str) else None
    # AWS reads at(…) in the schedule's zone, which is UTC if it has none; a plain time without any zone is a mistake.
    moment = (
        read_instant(text, "run_at", zone if timezone else None)
        if inner is None
        else read_instant(inner, "run_at", zone)
    )
    _refuse_far(moment, "run_at", now)
    return moment


def _refuse_with_run_at(start_at: object, end_at: object, max_runs: object, jitter_s: object) -> None:
    for field, value in (("start_at", start_at), ("end_at", end_at), ("max_runs", max_runs)):
        if value is not None:
            raise InvalidScheduleError(field, "goes with cron or every; a job with run_at runs once, at that time")
    if _whole(jitter_s, "jitter_s", 0, MAX_JITTER_S):
        raise InvalidScheduleError("jitter_s", "goes with cron or every; a job with run_at runs at that very time")


def _bounds(start_at: object, end_at: object, zone: ZoneInfo, now: datetime) -> tuple[datetime | None, datetime | None]:
    start = None if start_at is None else read_instant(start_at, "start_at", zone)
    end = None if end_at is None else read_instant(end_at, "end_at", zone)
    if start is not None:
        if start < EPOCH:
            raise InvalidScheduleError("start_at", f"{to_text(start)} is before 1970")
        _refuse_far(start, "start_at", now)
    if end is not None and start is not None and end < start:
        raise InvalidScheduleError("end_at", f"{to_text(end)} is before start_at, {to_text(start)}")
    if end is not None and end <= now:
        raise InvalidScheduleError("end_at", f"{to_text(end)} is in the past; nothing would run")
    return start, end


def _refuse_far(moment: datetime, field: str, now: datetime) -> None:
    if moment - now > MAX_AHEAD:
        raise InvalidScheduleError(field, f"{to_text(moment)} is more than ten years ahead")


def _jitter(jitter_s: object, every_s: int | None) -> int:
    jitter = _whole(jitter_s, "jitter_s", 0, MAX_JITTER_S)
    if every_s is not None and jitter >= every_s:
        raise InvalidScheduleError("jitter_s", f"{jitter} must be less than the time between two runs, {every_s} s")
    return jitter


def _whole(value: object, field: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidScheduleError(field, f"must be a whole number from {low} to {high}, not {type(value).__name__}")
    if not low <= value <= high:
        raise InvalidScheduleError(field, f"must be a whole number from {low} to {high}")
    return value


def _dst_gap(value: object) -> Literal["run", "skip"]:
    if value == "run":
        return "run"
    if value == "skip":
        return "skip"
    raise InvalidScheduleError("dst_gap", "must be 'run' or 'skip'")


def _catch_up(value: object) -> Literal["latest", "all", "skip"]:
    if value == "latest":
        return "latest"
    if value == "all":
        return "all"
    if value == "skip":
        return "skip"
    raise InvalidScheduleError("catch_up", "must be 'latest', 'all' or 'skip'")


def _refuse_if_never(schedule: Schedule, kind: str, job_id: str, now: datetime) -> None:
    if first_slot(schedule, job_id, now) is not None:
        return
    if schedule.end_at is not None:
        raise InvalidScheduleError(
            "end_at", f"{to_text(schedule.end_at)} comes before the first run; nothing would run"
        )
    raise InvalidScheduleError(kind, f"{(schedule.cron or schedule.every)!r:.60} has no time left in the next 50 years")
