"""What a PATCH makes of a job: its own fields, merged with those that were sent (RFC 7396). It stores nothing.

Fields that are left out keep their value; null gives one its default. `payload` and `target` are replaced as a whole.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from functions.submit.models import JobBody, Limits, RetryBody
from functions.submit.reading import job_spec, read_body, read_schedule_fields
from functions.submit.strict_json import Json, show
from shared.model.errors import InputError
from shared.model.instants import to_text
from shared.model.job import JobSpec, Retry, Schedule

FIXED = {
    "job_id": "names the job: it cannot be changed",
    "depends_on": "cannot be changed: submit another job",
    "on_parent_failure": "cannot be changed: submit another job",
}
KINDS = ("run_at", "cron", "every")
OF_RECURRING = ("start_at", "end_at", "max_runs", "jitter_s")
OF_SCHEDULE = (*KINDS, *OF_RECURRING, "timezone", "dst_gap")  # and not catch_up, which is a policy
WHOLE = ("payload", "target")

NEVER_NULL = ("target",)

_VERSION = re.compile(r'(?:W/)?"([0-9]{1,15})"|([0-9]{1,15})')


def read_patch(patch: Mapping[str, Json]) -> Mapping[str, Json]:
    """`patch`, if it says something that can be changed. Raises InputError."""
    if not patch:
        raise InputError("body", "must name at least one field to change")
    for field in NEVER_NULL:
        if field in patch and patch[field] is None:
            raise InputError(field, "cannot be null: every job has one")
    for field, why in FIXED.items():
        if field in patch:
            raise InputError(field, why)
    given = [kind for kind in KINDS if patch.get(kind) is not None]
    if len(given) > 1:
        raise InputError(given[1], f"cannot go with {given[0]}; give one of run_at, cron and every")
    return patch


def patched(spec: JobSpec, patch: Mapping[str, Json], limits: Limits, now: datetime) -> JobSpec:
    """The job's new specification. Raises InputError and what a submit of it would raise."""
    before = _fields(spec)
    after = _merged(before, patch)
    body = read_body(JobBody, after, limits, now)
    job_id = spec.job_id or ""
    if all(before.get(name) == after.get(name) for name in OF_SCHEDULE):
        schedule = replace(spec.schedule, catch_up=body.catch_up)
    else:
        schedule = read_schedule_fields(body, now, job_id)
        if all(before.get(name) == after.get(name) for name in ("every", "start_at")):
            schedule = replace(schedule, anchor=spec.schedule.anchor)  # the same period goes on
    changed = replace(job_spec(body, schedule, job_id), depends_on=spec.depends_on)
    return changed if "payload" in patch else replace(changed, payload=spec.payload)


def read_versions(if_match: str | None) -> frozenset[int] | None:
    """The versions that an If-Match header names (`3`, `"3"`, `"3", "4"`); None for any. Raises InputError."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = [_VERSION.fullmatch(part.strip()) for part in if_match.split(",")]
    if not all(found):
        raise InputError("If-Match", f'must be a version of the job, such as "3", or *, not {show(if_match)}')
    return frozenset(int(version[1] or version[2]) for version in found if version)


def _merged(fields: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    merged = dict(fields)
    kind = next((kind for kind in KINDS if patch.get(kind) is not None), None)
    if kind is not None:
        for other in {*KINDS, *(OF_RECURRING if kind == "run_at" else ())} - {kind}:
            merged.pop(other, None)
    for name, value in patch.items():
        there = merged.get(name, {})
        if value is None and name in JobBody.model_fields and name != "payload":
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(there, dict) and name not in WHOLE:
            inner = {**there, **value}
            # What no job has stays, to be refused: a null is no way to pass a wrong name.
            unknown = inner.keys() - RetryBody.model_fields.keys() if name == "retry" else set()
            merged[name] = {key: one for key, one in inner.items() if one is not None or key in unknown}
        else:
            merged[name] = value
    return merged


def _fields(spec: JobSpec) -> dict[str, Json]:
    """The job as a body that would submit it, without its payload; what has its default value is left out."""
    plain = JobSpec(target=spec.target, schedule=spec.schedule)
    simple = ("name", "group", "timeout_s", "deadline_s", "overlap", "priority", "on_parent_failure")
    changed = [name for name in simple if getattr(spec, name) != getattr(plain, name)]
    fields: dict[str, Json] = {name: _shown(getattr(spec, name)) for name in changed}
    fields["target"] = {"kind": spec.target.kind, **{name: _shown(value) for name, value in spec.target.params.items()}}
    fields |= {"tags": dict(spec.tags)} if spec.tags else {}
    fields |= {"depends_on": list(spec.depends_on)} if spec.depends_on else {}
    default, of_times = Retry(), Schedule()
    retry = {name: getattr(spec.retry, name) for name in Retry.__dataclass_fields__}
    fields["retry"] = {name: _shown(value) for name, value in retry.items() if value != getattr(default, name)}
    for name in (*OF_SCHEDULE, "catch_up"):
        value = getattr(spec.schedule, name)
        if value != getattr(of_times, name):
            fields[name] = _shown(value)
    return fields


def _shown(value: object) -> Json:
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, tuple):
        return [_shown(one) for one in value]
    if value is None or isinstance(value, str | int | Decimal):
        return value
    raise TypeError(f"{type(value).__name__} is no value of a field")
