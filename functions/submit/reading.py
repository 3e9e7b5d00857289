"""From a body to what the flows take: a checked schedule, a job's specification. It never calls AWS."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from functions.submit.errors import FieldError, InvalidRequestError
from functions.submit.models import JobBody, Limits, PreviewBody, ScheduleFields
from functions.submit.plain_words import field_errors
from functions.submit.strict_json import Json
from shared.flows.dependencies import refuse_bad_list
from shared.model.errors import InputError
from shared.model.job import JobSpec, Schedule, Target
from shared.rules.schedules import read_schedule

Body = TypeVar("Body", JobBody, PreviewBody)


def read_body(model: type[Body], body: Mapping[str, Json], limits: Limits, now: datetime) -> Body:
    """`body` as a `model`, each field checked for itself. Raises InvalidRequestError with all that is wrong."""
    try:
        return model.model_validate(body, context=limits)
    except ValidationError as error:
        schedule = _schedule_errors(body, limits, now)
        raise InvalidRequestError(field_errors(error, body, model, schedule)) from None


def read_schedule_fields(fields: ScheduleFields, now: datetime, job_id: str) -> Schedule:
    """The schedule that `fields` mean for a job of this id that is submitted at `now`. Raises InputError."""
    return read_schedule(
        now=now,
        run_at=now.isoformat() if isinstance(fields, JobBody) and fields.is_at_once else fields.run_at,
        cron=fields.cron,
        every=fields.every,
        timezone=fields.timezone,
        start_at=fields.start_at,
        end_at=fields.end_at,
        max_runs=fields.max_runs,
        jitter_s=fields.jitter_s,
        dst_gap=fields.dst_gap,
        catch_up=fields.catch_up,
        job_id=job_id,
    )


def job_spec(body: JobBody, schedule: Schedule, job_id: str) -> JobSpec:
    """The job that `body` describes. Raises TooLargeError, and InputError for parents that no job can have."""
    spec = JobSpec(
        job_id=job_id,
        name=body.name,
        group=body.group,
        tags=body.tags,
        target=Target(kind=body.target.kind, params={"handler": body.target.handler}),
        payload=body.payload_text,
        schedule=schedule,
        retry=body.retry.as_retry(),
        timeout_s=body.timeout_s,
        deadline_s=body.deadline_s,
        overlap=body.overlap,
        priority=body.priority,
        depends_on=tuple(body.depends_on),
        on_parent_failure=body.on_parent_failure,
    )
    refuse_bad_list(job_id, spec)
    return spec


def _schedule_errors(body: Mapping[str, Json], limits: Limits, now: datetime) -> list[FieldError]:
    """What is wrong with the schedule of a body that is refused anyway, so that one answer tells all."""
    own = {name: value for name, value in body.items() if name in ScheduleFields.model_fields}
    if body.get("depends_on") and not own.keys() & {"run_at", "cron", "every"}:
        return []  # it needs none
    try:
        read_schedule_fields(ScheduleFields.model_validate(own, context=limits), now, "")
    except InputError as error:
        return [FieldError(error.field, error.message)]
    except ValidationError:
        return []  # its fields are named one by one already
    return []
