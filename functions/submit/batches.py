"""The bulk submit: each job is read and judged alone, and answered in its place. None ever spoils another."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import NAMESPACE_OID, uuid5

from functions.submit import documents, strict_json
from functions.submit.bodies import limits_of, made_before
from functions.submit.calls import Reply
from functions.submit.errors import FieldError, InvalidRequestError
from functions.submit.models import MAX_BATCH, JobBody, Limits
from functions.submit.problems import kind_of, problem
from functions.submit.reading import job_spec, read_body, read_schedule_fields
from functions.submit.request import Request
from functions.submit.strict_json import Json, show
from shared.flows.batch import Answer, Wish
from shared.flows.inspect import JobView
from shared.model.errors import InputError, TooLargeError, UnavailableError
from shared.store.idempotency import Turn
from shared.wiring.api import Api

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_ECHO_BYTES = 5_000_000  # of the body as a part of the answer: Lambda answers 6 MB at most, and we say more
MAX_FAULTS = 5  # told of one job
OF_THE_BODY = ("payload", "tags", "name", "depends_on")  # what a kept answer leaves out: the same body has the same


@dataclass(frozen=True, slots=True)
class _Sent:
    """A job of the body: as it was read, or why it could not be."""

    job_id: str | None  # as its client chose it
    body: JobBody | None
    error: InputError | None = None


class _NotKeptError(Exception):
    """Some jobs could not be written: the same call again is to try them, so its answer is not kept."""

    def __init__(self, results: Sequence[Mapping[str, object]]) -> None:
        super().__init__()
        self.results = results


def submit_batch(request: Request, api: Api, now: datetime) -> Reply:
    """Take up to 100 jobs. With an Idempotency-Key, the same body again gets the same answer."""
    request.query()
    body, key = request.body(MAX_BODY_BYTES), request.idempotency_key
    jobs = [_read(one, limits_of(api), now) for one in _jobs(body)]
    text = strict_json.write(body, sort_keys=True)
    _refuse_long_echo(text)
    if key is None:
        return Reply({"results": _results(api, jobs, Turn(api.new_job_id(), now, now, taken_over=False), now)})

    def call(turn: Turn) -> str:
        results = _results(api, jobs, turn, now)
        if any(result["status"] == UNAVAILABLE for result in results):
            raise _NotKeptError(results)
        return _kept(results)

    try:
        answer = api.idempotency.once(
            caller=request.caller,
            key=key,
            body=text,
            job_id=api.new_job_id(),
            token=api.new_job_id(),
            now=now,
            call=call,
        )
    except _NotKeptError as partly:
        return Reply({"results": partly.results})
    headers = {"Idempotent-Replay": "true"} if answer.replayed else {}
    return Reply({"results": _restored(answer.text, jobs)}, headers=headers)


UNAVAILABLE = kind_of(UnavailableError()).status


def _jobs(body: Mapping[str, Json]) -> list[Json]:
    unknown = [name for name in body if name != "jobs"]
    if unknown:
        raise InvalidRequestError(
            [FieldError(name, "is not a field that is known here") for name in unknown[:MAX_BATCH]]
        )
    jobs = body.get("jobs")
    if not isinstance(jobs, list):
        raise InputError(
            "jobs", "is missing" if jobs is None and "jobs" not in body else f"must be a list, not {show(jobs)}"
        )
    if not 1 <= len(jobs) <= MAX_BATCH:
        raise InputError("jobs", f"must have 1 to {MAX_BATCH} entries, not {len(jobs):,}")
    return jobs


def _refuse_long_echo(text: str) -> None:
    """What is sent comes back, within a JSON text in which quotes and backslashes are escaped."""
    size = len(text.encode()) + text.count('"') + text.count("\\")
    if size > MAX_ECHO_BYTES:
        raise TooLargeError("body", f"must be at most {MAX_ECHO_BYTES:,} bytes with its quotes escaped, not {size:,}")


def _read(sent: Json, limits: Limits, now: datetime) -> _Sent:
    if not isinstance(sent, dict):
        return _Sent(None, None, InputError("", f"must be an object, not {show(sent)}"))
    chosen = sent.get("job_id")
    try:
        body = read_body(JobBody, sent, limits, now)
    except InputError as error:
        return _Sent(chosen if isinstance(chosen, str) else None, None, error)
    return _Sent(body.job_id, body)


def _results(api: Api, jobs: Sequence[_Sent], turn: Turn, came_at: datetime) -> list[documents.BatchResult]:
    wishes = [_wish(api, one, replace(turn, job_id=_job_id(one, turn, place))) for place, one in enumerate(jobs)]
    return [_result(place, answer) for place, answer in enumerate(api.batch.submit(wishes, turn.now, came_at))]


def _job_id(sent: _Sent, turn: Turn, place: int) -> str:
    """A job's own id, or one that is made up: the same whenever the same call is tried again."""
    return sent.job_id or uuid5(NAMESPACE_OID, f"{turn.job_id}/{place}").hex


def _wish(api: Api, sent: _Sent, turn: Turn) -> Wish:
    if sent.body is None:
        return Wish(sent.job_id, None, sent.error)
    made = made_before(api, sent.body, turn) if turn.taken_over else None
    if made is not None:
        return Wish(turn.job_id, None, made)
    try:
        schedule = read_schedule_fields(sent.body, turn.now, turn.job_id)
        return Wish(turn.job_id, job_spec(sent.body, schedule, turn.job_id))
    except InputError as error:
        return Wish(turn.job_id, None, error)


def _result(place: int, answer: Answer) -> documents.BatchResult:
    if isinstance(answer, JobView):
        return {"index": place, "status": 201, "job": documents.job_document(answer)}
    error = _in_its_place(answer, place) if isinstance(answer, InputError) else answer
    return {"index": place, "status": kind_of(error).status, "problem": problem(error)[0]}


def _in_its_place(error: InputError, place: int) -> InputError:
    """The same fault, with its fields named as they are in the body: `jobs[3].retry.max_attempts`."""
    if isinstance(error, InvalidRequestError):
        return InvalidRequestError(
            [FieldError(_path(one.field, place), one.message) for one in error.errors[:MAX_FAULTS]]
        )
    kind = TooLargeError if isinstance(error, TooLargeError) else InputError
    return kind(_path(error.field, place), error.message)


def _path(field: str, place: int) -> str:
    return f"jobs[{place}].{field}" if field and field != "body" else f"jobs[{place}]"


def _kept(results: Sequence[documents.BatchResult]) -> str:
    """The results as they are kept, in far less than the 400 KB of an item."""
    short: list[dict[str, object]] = [{**result} for result in results]
    for one in short:
        if isinstance(job := one.get("job"), dict):
            one["job"] = {**job, **dict.fromkeys(OF_THE_BODY)}
    return b64encode(zlib.compress(strict_json.write({"results": short}).encode())).decode()


def _restored(text: str, jobs: Sequence[_Sent]) -> list[object]:
    results = strict_json.read_object(zlib.decompress(b64decode(text)).decode())["results"]
    assert isinstance(results, list)
    return [_whole(result, sent.body) for result, sent in zip(results, jobs, strict=True)]


def _whole(result: Json, body: JobBody | None) -> object:
    if body is None or not isinstance(result, dict) or not isinstance(job := result.get("job"), dict):
        return result
    return {**result, "job": {**job, **{name: getattr(body, name) for name in OF_THE_BODY}}}
