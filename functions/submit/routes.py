"""The table of the API's routes. Routing, the Allow header and the OpenAPI document come from it; it runs none."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import import_module

from functions.submit import calls, documents, lists, problems
from functions.submit.calls import Reply
from functions.submit.errors import MethodNotAllowedError, RouteNotFoundError
from functions.submit.groups import show_group
from functions.submit.operations import Call, Operation, Parameter
from functions.submit.request import JOB_ID_PATTERN, Request
from shared.wiring.api import Api


def route(method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
    """The operation for this, with the path's parameters. Raises RouteNotFoundError and MethodNotAllowedError."""
    fitting = {
        operation.method: (operation, found) for operation in OPERATIONS if (found := operation.match(path)) is not None
    }
    if not fitting:
        raise RouteNotFoundError(path)
    if method not in fitting:
        raise MethodNotAllowedError(method, sorted(fitting))
    return fitting[method]


def _later(module: str, name: str) -> Call:
    """The call `name` of `module`, which the first such call loads: with it comes pydantic, a fifth of all imports."""

    def call(request: Request, api: Api, now: datetime) -> Reply:
        found: Call = getattr(import_module(f"functions.submit.{module}"), name)
        return found(request, api, now)

    return call


def show_openapi(request: Request, api: Api, now: datetime) -> Reply:
    """The OpenAPI document of the API as this deployment runs it."""
    del now
    request.query()
    return Reply(_openapi(api.settings.max_timeout_s, api.handler_names))


@cache
def _openapi(max_timeout_s: int, handler_names: frozenset[str]) -> dict[str, object]:
    from functions.submit.openapi import openapi_document  # here: few ever ask for it

    return openapi_document(OPERATIONS, max_timeout_s, handler_names)


JOB_ID = Parameter("job_id", "path", "The job's id.", {"type": "string", "pattern": JOB_ID_PATTERN})
GROUP = Parameter("group", "path", "The group, as its jobs name it.", {"type": "string", "pattern": JOB_ID_PATTERN})
SCHEDULED_FOR = Parameter(
    "scheduled_for", "path", "The occurrence, as its run shows it.", {"type": "string", "format": "date-time"}
)
CURSOR = Parameter("cursor", "query", "Where to go on: the `cursor` of the page before.", {"type": "string"})
LIMIT = Parameter(
    "limit",
    "query",
    "The most of a page.",
    {"type": "integer", "minimum": 1, "maximum": calls.MAX_LIMIT, "default": calls.DEFAULT_LIMIT},
)
LIST_FILTERS = (
    Parameter(
        "status",
        "query",
        "Jobs that are shown with this status; `dead_lettered`: jobs with a dead-lettered run.",
        {"type": "string", "enum": list(lists.STATUSES)},
    ),
    Parameter("group", "query", "Jobs of this group.", {"type": "string", "pattern": lists.GROUP_PATTERN}),
    Parameter(
        "tag",
        "query",
        "Jobs with this tag, `name` or `name:value`; more than once: with all of them.",
        {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": lists.MAX_TAG},
            "maxItems": lists.MAX_TAGS,
        },
    ),
    Parameter("from", "query", "Jobs whose next time is this or later.", {"type": "string", "format": "date-time"}),
    Parameter("to", "query", "Jobs whose next time is before this.", {"type": "string", "format": "date-time"}),
)
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "header",
    "The same key and body within 24 h give the same answer, and one job. Keys of different callers never meet.",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x20-\x7e]*$"},
)

IF_MATCH = Parameter(
    "If-Match",
    "header",
    'The `version` that the job must have, such as `"3"`; without it, any.',
    {"type": "string"},
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        operation_id="submitJob",
        method="POST",
        path="/v1/jobs",
        call=_later("bodies", "submit_job"),
        summary="Submit a job, once at a time or recurring",
        body="JobBody",
        answer=documents.JobDocument,
        status=201,
        parameters=(IDEMPOTENCY_KEY,),
        headers={
            "Location": "The job's own path.",
            "Idempotent-Replay": "`true` when an earlier call with the same Idempotency-Key was answered so.",
        },
        problems=(
            problems.INVALID,
            problems.CONFLICT,
            problems.IN_PROGRESS,
            problems.TOO_LARGE,
            problems.MEDIA_TYPE,
            problems.MISMATCH,
        ),
    ),
    Operation(
        operation_id="listJobs",
        method="GET",
        path="/v1/jobs",
        call=lists.list_jobs,
        summary="Jobs by status, group, tag and next time; a page may be short, or empty, before the last",
        answer=documents.JobPageDocument,
        parameters=(*LIST_FILTERS, LIMIT, CURSOR),
    ),
    Operation(
        operation_id="submitJobs",
        method="POST",
        path="/v1/jobs:batch",
        call=_later("batches", "submit_batch"),
        summary="Submit up to 100 jobs at once, each judged alone",
        body="BatchBody",
        answer=documents.BatchDocument,
        parameters=(IDEMPOTENCY_KEY,),
        headers={
            "Idempotent-Replay": "`true` when an earlier call with the same Idempotency-Key was answered so.",
        },
        problems=(
            problems.INVALID,
            problems.IN_PROGRESS,
            problems.TOO_LARGE,
            problems.MEDIA_TYPE,
            problems.MISMATCH,
        ),
    ),
    Operation(
        operation_id="showJob",
        method="GET",
        path="/v1/jobs/{job_id}",
        call=calls.show_job,
        summary="A job and its latest 20 runs",
        answer=documents.JobDocument,
        parameters=(JOB_ID,),
        problems=(problems.INVALID, problems.NO_JOB),
    ),
    Operation(
        operation_id="cancelJob",
        method="POST",
        path="/v1/jobs/{job_id}:cancel",
        call=calls.cancel_job,
        summary="Cancel a job: once answered, no handler is called for it",
        answer=documents.CancelledJobDocument,
        parameters=(JOB_ID,),
        problems=(problems.INVALID, problems.NO_JOB, problems.CONFLICT, problems.TOO_LARGE),
    ),
    Operation(
        operation_id="changeJob",
        method="PATCH",
        path="/v1/jobs/{job_id}",
        call=_later("bodies", "change_job"),
        summary="Change a job: a new schedule counts from now, all else from the next run that starts",
        body="ChangeBody",
        answer=documents.JobDocument,
        parameters=(JOB_ID, IF_MATCH),
        problems=(
            problems.INVALID,
            problems.NO_JOB,
            problems.CONFLICT,
            problems.PRECONDITION,
            problems.TOO_LARGE,
            problems.MEDIA_TYPE,
        ),
    ),
    Operation(
        operation_id="pauseJob",
        method="POST",
        path="/v1/jobs/{job_id}:pause",
        call=calls.pause_job,
        summary="Pause a job: no run of its schedule starts until it is resumed",
        answer=documents.JobDocument,
        parameters=(JOB_ID,),
        problems=(problems.INVALID, problems.NO_JOB, problems.CONFLICT, problems.TOO_LARGE),
    ),
    Operation(
        operation_id="resumeJob",
        method="POST",
        path="/v1/jobs/{job_id}:resume",
        call=calls.resume_job,
        summary="Resume a job; what it missed is made up for by its catch_up",
        answer=documents.JobDocument,
        parameters=(JOB_ID,),
        problems=(problems.INVALID, problems.NO_JOB, problems.CONFLICT, problems.TOO_LARGE),
    ),
    Operation(
        operation_id="triggerJob",
        method="POST",
        path="/v1/jobs/{job_id}:trigger",
        call=calls.trigger_job,
        summary="Run a job now, beside its schedule",
        answer=documents.RunDocument,
        status=202,
        parameters=(JOB_ID,),
        headers={"Location": "The run's own path."},
        problems=(problems.INVALID, problems.NO_JOB, problems.CONFLICT, problems.TOO_LARGE),
    ),
    Operation(
        operation_id="redriveJob",
        method="POST",
        path="/v1/jobs/{job_id}:redrive",
        call=calls.redrive_job,
        summary="Run a job's dead-lettered runs again, up to 100 a call",
        answer=documents.RedrivenDocument,
        status=202,
        parameters=(JOB_ID,),
        problems=(problems.INVALID, problems.NO_JOB, problems.CONFLICT, problems.TOO_LARGE),
    ),
    Operation(
        operation_id="listRuns",
        method="GET",
        path="/v1/jobs/{job_id}/runs",
        call=calls.list_runs,
        summary="A job's runs, newest first",
        answer=documents.RunPageDocument,
        parameters=(JOB_ID, CURSOR, LIMIT),
        problems=(problems.INVALID, problems.NO_JOB),
    ),
    Operation(
        operation_id="showRun",
        method="GET",
        path="/v1/jobs/{job_id}/runs/{scheduled_for}",
        call=calls.show_run,
        summary="One run with its attempts",
        answer=documents.RunDocument,
        parameters=(JOB_ID, SCHEDULED_FOR),
        problems=(problems.INVALID, problems.NO_JOB),
    ),
    Operation(
        operation_id="redriveRun",
        method="POST",
        path="/v1/jobs/{job_id}/runs/{scheduled_for}:redrive",
        call=calls.redrive_run,
        summary="Run a dead-lettered run again, its history kept",
        answer=documents.RunDocument,
        status=202,
        parameters=(JOB_ID, SCHEDULED_FOR),
        problems=(problems.INVALID, problems.NO_JOB, problems.CONFLICT, problems.TOO_LARGE),
    ),
    Operation(
        operation_id="limitGroup",
        method="PUT",
        path="/v1/groups/{group}",
        call=_later("bodies", "limit_group"),
        summary="Limit how many runs of a group's jobs go on at a time",
        body="GroupBody",
        answer=documents.GroupDocument,
        parameters=(GROUP,),
        problems=(problems.INVALID, problems.TOO_LARGE, problems.MEDIA_TYPE),
    ),
    Operation(
        operation_id="showGroup",
        method="GET",
        path="/v1/groups/{group}",
        call=show_group,
        summary="A group's limit, and how many of its runs go on",
        answer=documents.GroupDocument,
        parameters=(GROUP,),
    ),
    Operation(
        operation_id="previewSchedule",
        method="POST",
        path="/v1/preview",
        call=_later("bodies", "preview_schedule"),
        summary="The next times of a schedule; nothing is stored",
        body="PreviewBody",
        answer=documents.PreviewDocument,
        problems=(problems.INVALID, problems.TOO_LARGE, problems.MEDIA_TYPE),
    ),
    Operation(
        operation_id="showHealth",
        method="GET",
        path="/v1/health",
        call=calls.show_health,
        summary="Whether every shard is ticked",
        answer=documents.HealthDocument,
        also={503: "A shard's tick is overdue."},
    ),
    Operation(
        operation_id="showOpenapi",
        method="GET",
        path="/v1/openapi.json",
        call=show_openapi,
        summary="This document",
        answer=dict[str, object],
    ),
)
