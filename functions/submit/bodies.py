"""The calls that take a body, but for the bulk submit. The first of them loads this: what reads bodies is large."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from pydantic import ValidationError

from functions.submit import documents, strict_json
from functions.submit.calls import Reply
from functions.submit.errors import InvalidRequestError
from functions.submit.groups import group_document, group_of
from functions.submit.models import GroupBody, JobBody, Limits, PreviewBody
from functions.submit.patch import patched, read_patch, read_versions
from functions.submit.plain_words import field_errors
from functions.submit.reading import job_spec, read_body, read_schedule_fields
from functions.submit.request import Request
from shared.flows.inspect import JobView
from shared.model.errors import InputError, JobNotFoundError
from shared.rules.instants import read_instant
from shared.rules.schedules import preview
from shared.store.idempotency import Turn
from shared.wiring.api import Api


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


def change_job(request: Request, api: Api, now: datetime) -> Reply:
    """Change a job: what is left out stays as it is."""
    request.query()
    changes, versions = read_patch(request.body()), read_versions(request.if_match)
    view = api.control.update(request.job_id, lambda spec: patched(spec, changes, limits_of(api), now), versions, now)
    return Reply(documents.job_document(view))


def preview_schedule(request: Request, api: Api, now: datetime) -> Reply:
    """The next times of a schedule; nothing is stored."""
    request.query()
    body = read_body(PreviewBody, request.body(), limits_of(api), now)
    job_id = body.job_id or "preview"
    schedule = read_schedule_fields(body, now, job_id)
    after = now if body.after is None else read_instant(body.after, "after", schedule.timezone, error=InputError)
    return Reply(documents.preview_document(schedule, preview(schedule, job_id, after, body.count)))


def limit_group(request: Request, api: Api, now: datetime) -> Reply:
    """Set or take away the limit of a group; it holds for every attempt that starts from now on."""
    request.query()
    group, sent = group_of(request), request.body()
    try:
        body = GroupBody.model_validate(sent)
    except ValidationError as error:
        raise InvalidRequestError(field_errors(error, sent, GroupBody)) from None
    return Reply(group_document(api.groups.limit(group, body.max_running, now)))


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
