"""The bodies that the API takes, field by field with their limits. It never decides what a schedule means (rules do).

A field that may be left out may not be null: `"timezone": null` is a mistake rather than a default.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    StringConstraints,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticCustomError

from functions.submit import strict_json
from functions.submit.request import JOB_ID_PATTERN, MAX_PAYLOAD_BYTES
from shared.model.errors import TooLargeError
from shared.model.job import MAX_CRON, Retry
from shared.rules.dependencies import MAX_PARENTS
from shared.rules.group_limits import MAX_RUNNING
from shared.rules.schedules import MAX_JITTER_S, MAX_MAX_RUNS

MAX_TAGS = 20
MAX_ERROR_KINDS = 20
MAX_SPAN_S = 31_536_000  # a year
MAX_BACKOFF_S = 604_800  # a week
MAX_PREVIEW = 100
MAX_BATCH = 100
ERROR_KIND_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.]*$"
NO_CONTROLS_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the deployment allows."""

    handler_names: frozenset[str]
    max_timeout_s: int


class _NotNull:
    """On `X | None = None`: the field may be missing (then it is None), but null is not taken."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        nullable = handler(source)
        inner: CoreSchema = nullable["schema"] if nullable["type"] == "nullable" else nullable
        return inner


def _number(value: object) -> float:
    """A JSON number: pydantic's strict float takes no Decimal, and stumbles over a whole number of 400 digits."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise PydanticCustomError("number", "must be a number")
    return float(value) if -1e300 < value < 1e300 else math.inf if value > 0 else -math.inf


def _known_handler(name: str, info: ValidationInfo) -> str:
    known = sorted(_limits(info).handler_names)
    if name not in known:
        names = ", ".join(known[:20]) + (" …" if len(known) > 20 else "") if known else "there are none"
        raise PydanticCustomError("handler", "must be a registered handler ({names})", {"names": names})
    return name


def _within_executor(timeout_s: int, info: ValidationInfo) -> int:
    limit = _limits(info).max_timeout_s
    if timeout_s > limit:
        raise PydanticCustomError("timeout", "must be at most {limit}", {"limit": limit})
    return timeout_s


def _not_in_retry_on(kinds: list[str], info: ValidationInfo) -> list[str]:
    both = [kind for kind in kinds if kind in info.data.get("retry_on", ())]
    if both:
        raise PydanticCustomError("both", "must not name what retry_on names ({kind})", {"kind": both[0]})
    return kinds


def _limits(info: ValidationInfo) -> Limits:
    if not isinstance(info.context, Limits):
        raise TypeError("the limits are the context of the validation")
    return info.context


NOT_NULL = _NotNull()
JobId = Annotated[str, StringConstraints(pattern=JOB_ID_PATTERN)]
PlainText = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=NO_CONTROLS_PATTERN)]
TagValue = Annotated[str, StringConstraints(max_length=256, pattern=NO_CONTROLS_PATTERN)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=64)]
CronText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CRON)]
Seconds = Annotated[float, BeforeValidator(_number)]
ErrorKind = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ERROR_KIND_PATTERN)]
ErrorKinds = Annotated[list[ErrorKind], Field(max_length=MAX_ERROR_KINDS)]
HandlerName = Annotated[str, AfterValidator(_known_handler)]


_SCHEDULES: tuple[dict[str, JsonValue], ...] = tuple({"required": [kind]} for kind in ("run_at", "cron", "every"))
_NO_SCHEDULE: dict[str, JsonValue] = {
    "required": ["depends_on"],
    "properties": {"depends_on": {"minItems": 1}},
    "not": {"anyOf": list(_SCHEDULES)},
}


class Body(BaseModel):
    """What all of them are: strict, without other fields."""

    # Deferred: a model is built by the first call that reads one, not by every start.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class ScheduleFields(Body):
    """When a job is due: exactly one of run_at, cron and every."""

    model_config = ConfigDict(json_schema_extra={"oneOf": list(_SCHEDULES)})

    run_at: Annotated[ShortText | None, NOT_NULL] = Field(
        None, description="Once, at this time: RFC 3339 with an offset, or without one together with `timezone`."
    )
    cron: Annotated[CronText | None, NOT_NULL] = Field(
        None, description="Recurring: 5, 6 (seconds first) or 7 fields (year last), `@daily`, or an AWS form."
    )
    every: Annotated[ShortText | None, NOT_NULL] = Field(
        None, description="Recurring: a period of at least 1 s, such as `30s`, `5m` or `PT1H`."
    )
    timezone: Annotated[ShortText | None, NOT_NULL] = Field(
        None, description="IANA name of the zone that cron and local times are read in; UTC if missing."
    )
    start_at: Annotated[ShortText | None, NOT_NULL] = Field(None, description="No occurrence before it.")
    end_at: Annotated[ShortText | None, NOT_NULL] = Field(None, description="No occurrence after it.")
    max_runs: Annotated[Annotated[int, Field(ge=1, le=MAX_MAX_RUNS)] | None, NOT_NULL] = Field(
        None, description="The job is over after so many occurrences."
    )
    jitter_s: int = Field(
        0, ge=0, le=MAX_JITTER_S, description="Each occurrence is moved later by up to this, always by the same."
    )
    dst_gap: Literal["run", "skip"] = Field(
        "run", description="What becomes of a fixed local time that does not exist on a day: once right after, or not."
    )
    catch_up: Literal["latest", "all", "skip"] = Field("latest", description="What an outage has missed.")


class TargetBody(Body):
    """What a run calls."""

    kind: Literal["python"]
    handler: HandlerName = Field(description="Name of a function registered with `@handler`.")


class RetryBody(Body):
    """How often and how soon a failed run is tried again: base_s × factor^n, at most max_s, with full jitter."""

    max_attempts: int = Field(3, ge=1, le=100)
    base_s: Seconds = Field(10, ge=0, le=MAX_BACKOFF_S)
    factor: Seconds = Field(2, ge=1, le=10)
    max_s: Seconds = Field(3600, ge=0, le=MAX_BACKOFF_S)
    retry_on: ErrorKinds = Field(
        default_factory=list,
        description="Only after these kinds of error, if there are any: `TimeoutError`, `timed_out`.",
    )
    give_up_on: Annotated[ErrorKinds, AfterValidator(_not_in_retry_on)] = Field(
        default_factory=list, description="Never after these kinds of error; the run is dead-lettered at once."
    )

    def as_retry(self) -> Retry:
        """The policy as a value."""
        kinds = {"retry_on": tuple(self.retry_on), "give_up_on": tuple(self.give_up_on)}
        return Retry(**(self.model_dump() | kinds))


class JobBody(ScheduleFields):
    """The body of `POST /v1/jobs`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [*_SCHEDULES, _NO_SCHEDULE]})

    job_id: Annotated[JobId | None, NOT_NULL] = Field(None, description="Chosen by the client; made up if missing.")
    name: Annotated[PlainText | None, NOT_NULL] = None
    group: Annotated[JobId | None, NOT_NULL] = None
    tags: dict[PlainText, TagValue] = Field(default_factory=dict, max_length=MAX_TAGS)
    target: TargetBody
    payload: object = Field(None, description=f"Any JSON, at most {MAX_PAYLOAD_BYTES:,} bytes as compact UTF-8.")
    retry: RetryBody = RetryBody()  # type: ignore[call-arg]
    timeout_s: Annotated[int, AfterValidator(_within_executor)] = Field(60, ge=1)
    deadline_s: Annotated[Annotated[int, Field(ge=1, le=MAX_SPAN_S)] | None, NOT_NULL] = Field(
        None, description="A run that could not start so long after its time is skipped as expired."
    )
    overlap: Literal["allow", "skip", "queue", "replace"] = Field(
        "allow", description="What becomes of a run while another run of the job is not over."
    )
    priority: Literal["high", "normal", "low"] = Field(
        "normal", description="A queue and executors of its own; holds from the next claim on."
    )

    depends_on: Annotated[list[JobId], Field(max_length=MAX_PARENTS)] = Field(
        default_factory=list,
        description="Ids of jobs that run once: it runs when all have succeeded, and not before its own time.",
    )
    on_parent_failure: Literal["skip", "run"] = Field(
        "skip", description="What becomes of it when one of them is over without success, or gone."
    )

    @property
    def is_at_once(self) -> bool:
        """Whether it has no schedule but its parents: then it is due when it is submitted."""
        return bool(self.depends_on) and self.run_at is self.cron is self.every is None

    @property
    def payload_text(self) -> str:
        """The payload as the compact JSON text that is kept. Raises TooLargeError."""
        text = strict_json.write(self.payload)
        size = len(text.encode())
        if size > MAX_PAYLOAD_BYTES:
            raise TooLargeError("payload", f"must be at most {MAX_PAYLOAD_BYTES:,} bytes of JSON, not {size:,}")
        return text


class GroupBody(Body):
    """The body of `PUT /v1/groups/{group}`."""

    max_running: Annotated[int, Field(ge=1, le=MAX_RUNNING)] | None = Field(
        description="So many runs of the group's jobs go on at a time; null: any number."
    )


class PreviewBody(ScheduleFields):
    """The body of `POST /v1/preview`: a schedule, and how much of it to show."""

    job_id: Annotated[JobId | None, NOT_NULL] = Field(None, description="What `H` and jitter are spread by.")
    count: int = Field(5, ge=1, le=MAX_PREVIEW)
    after: Annotated[ShortText | None, NOT_NULL] = Field(None, description="Times after this one; default: now.")
