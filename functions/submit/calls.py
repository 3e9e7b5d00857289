"""What each call of the API does: read the request, ask one flow, show what it says. It never builds the flows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from functions.submit import documents, strict_json
from functions.submit.cursors import Cursors, not_ours
from functions.submit.models import JobBody, Limits, PreviewBody
from functions.submit.patch import patched, read_patch, read_versions
from functions.submit.reading import job_spec, read_body, read_schedule_fields
from functions.submit.request import Request
from functions.submit.strict_json import show
from shared.flows.inspect import JobView
from shared.model.errors import InputError, JobNotFoundError
from shared.model.instants import from_text, to_text
from shared.rules.instants import read_instant
from shared.rules.schedules import preview
from shared.store.idempotency import Turn
from shared.wiring.api import Api

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call answers: a document, and headers beside the content type."""

    document: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def submit_job(request: Request, api: Api, now: datetime) -> Reply:
    """Take a job. With an Idempotency-Key, the same body again gets the same answer."""
    request.query()
    sent, key = request.body(), request.idempotency_key
    body = read_body(JobBody, sent, limits_of(api), now)
    job_id = body.job_id or api.new_job_id()
    if key is None:
        return _created(documents.job_document(_submit(api, body, job_id, now)), {})
    answer = api.idempotency.once(
        caller=request.caller,
        key=key,
        body=strict_json.write(sent, sort_keys=True),
        job_id=job_id,
        token=api.new_job_id(),
        now=now,
        call=partial(_take_turn, api, body),
    )
    # The payload is not kept a second time: the same body has the same payload.
    document = {**strict_json.read_object(answer.text), "payload": body.payload}
    return _created(document, {"Idempotent-Replay": "true"} if answer.replayed else {})


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


def change_job(request: Request, api: Api, now: datetime) -> Reply:
    """Change a job: what is left out stays as it is."""
    request.query()
    changes, versions = read_patch(request.body()), read_versions(request.if_match)
    view = api.control.update(request.job_id, lambda spec: patched(spec, changes, limits_of(api), now), versions, now)
    return Reply(documents.job_document(view))


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


def preview_schedule(request: Request, api: Api, now: datetime) -> Reply:
    """The next times of a schedule; nothing is stored."""
    request.query()
    body = read_body(PreviewBody, request.body(), limits_of(api), now)
    job_id = body.job_id or "preview"
    schedule = read_schedule_fields(body, now, job_id)
    after = now if body.after is None else read_instant(body.after, "after", schedule.timezone, error=InputError)
    return Reply(documents.preview_document(schedule, preview(schedule, job_id, after, body.count)))


def show_health(request: Request, api: Api, now: datetime) -> Reply:
    """Whether every shard is ticked: 200 if so, 503 if not."""
    request.query()
    health = api.inspect.health(now)
    return Reply(documents.health_document(health), status=200 if health.ok else 503)


def _submit(api: Api, body: JobBody, job_id: str, now: datetime) -> JobView:
    schedule = read_schedule_fields(body, now, job_id)
    return api.submit.submit(job_spec(body, schedule, job_id), now)


def _take_turn(api: Api, body: JobBody, turn: Turn) -> str:
    """Submit under the turn's job id; the answer is kept without its payload."""
    made = made_before(api, body, turn) if turn.taken_over else None
    view = made or _submit(api, body, turn.job_id, turn.now)
    return strict_json.write({**documents.job_document(view), "payload": None})


def made_before(api: Api, body: JobBody, turn: Turn) -> JobView | None:
    """The job that an earlier call with the same key and body has made before it died, if it got so far."""
    try:
        view = api.inspect.job(turn.job_id, turn.now)
    except JobNotFoundError:
        return None
    there = view.job.spec
    same_times = (there.schedule.cron, there.schedule.every) == (body.cron, body.every)
    same = same_times and job_spec(body, there.schedule, turn.job_id) == there
    return view if same and view.job.created_at >= turn.begun_at else None


def _created(document: Mapping[str, object], headers: Mapping[str, str]) -> Reply:
    return Reply(document, status=201, headers={"Location": f"/v1/jobs/{document['job_id']}", **headers})


def limits_of(api: Api) -> Limits:
    """What this deployment allows."""
    return Limits(api.handler_names, api.settings.max_timeout_s)


def page_limit(text: str | None) -> int:
    """The `limit` of a query. Raises InputError."""
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MAX_LIMIT):
        raise InputError("limit", f"must be a whole number from 1 to {MAX_LIMIT}, not {show(text)}")
    return int(text)
