"""What each call without a body does: read the request, ask one flow, show what it says. It never builds the flows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from functions.submit import documents
from functions.submit.cursors import Cursors, not_ours
from functions.submit.request import Request
from functions.submit.strict_json import show
from shared.model.errors import InputError
from shared.model.instants import from_text, to_text
from shared.rules.instants import read_instant
from shared.wiring.api import Api

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call answers: a document, and headers beside the content type."""

    document: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def show_job(request: Request, api: Api, now: datetime) -> Reply:
    """A job and its latest runs."""
    request.query()
    return Reply(documents.job_document(api.inspect.job(request.job_id, now)))


def list_runs(request: Request, api: Api, now: datetime) -> Reply:
    """A job's history, page by page."""
    del now
    query = request.query("cursor", "limit")
    cursors = Cursors(api.cursor_secret.get, ["runs", request.job_id])
    position = cursors.open(query.get("cursor"))
    try:
        before = from_text(str(position[0])) if position else None
    except ValueError:  # signed, and yet no run's
        raise not_ours(query["cursor"]) from None
    page = api.inspect.runs(request.job_id, before, page_limit(query.get("limit")))
    return Reply(documents.run_page_document(page, cursors.seal((to_text(page.before),) if page.before else None)))


def show_run(request: Request, api: Api, now: datetime) -> Reply:
    """One run with its attempts."""
    del now
    request.query()
    scheduled_for = read_instant(request.path["scheduled_for"], "scheduled_for", error=InputError)
    return Reply(documents.run_document(api.inspect.run(request.job_id, scheduled_for)))


def cancel_job(request: Request, api: Api, now: datetime) -> Reply:
    """Cancel a job: once this has answered, no handler is called for it."""
    request.query()
    request.no_body()
    return Reply(documents.cancelled_job_document(api.control.cancel(request.job_id, now)))


def pause_job(request: Request, api: Api, now: datetime) -> Reply:
    """Pause a job: no run of its schedule starts until it is resumed."""
    request.query()
    request.no_body()
    return Reply(documents.job_document(api.control.pause(request.job_id, now)))


def resume_job(request: Request, api: Api, now: datetime) -> Reply:
    """Resume a job; what it missed is made up for by its `catch_up`."""
    request.query()
    request.no_body()
    return Reply(documents.job_document(api.control.resume(request.job_id, now)))


def trigger_job(request: Request, api: Api, now: datetime) -> Reply:
    """Have a job run now, beside its schedule."""
    request.query()
    request.no_body()
    run = api.again.trigger(request.job_id, now)
    path = f"/v1/jobs/{run.job_id}/runs/{to_text(run.scheduled_for)}"
    return Reply(documents.run_document(run), status=202, headers={"Location": path})


def redrive_run(request: Request, api: Api, now: datetime) -> Reply:
    """Have a dead-lettered run begin again."""
    request.query()
    request.no_body()
    scheduled_for = read_instant(request.path["scheduled_for"], "scheduled_for", error=InputError)
    return Reply(documents.run_document(api.again.redrive(request.job_id, scheduled_for, now)), status=202)


def redrive_job(request: Request, api: Api, now: datetime) -> Reply:
    """Have a job's dead-lettered runs begin again, up to 100 a call."""
    request.query()
    request.no_body()
    return Reply(documents.redriven_document(api.again.redrive_all(request.job_id, now)), status=202)


def show_health(request: Request, api: Api, now: datetime) -> Reply:
    """Whether every shard is ticked: 200 if so, 503 if not."""
    request.query()
    health = api.inspect.health(now)
    return Reply(documents.health_document(health), status=200 if health.ok else 503)


def page_limit(text: str | None) -> int:
    """The `limit` of a query. Raises InputError."""
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MAX_LIMIT):
        raise InputError("limit", f"must be a whole number from 1 to {MAX_LIMIT}, not {show(text)}")
    return int(text)
