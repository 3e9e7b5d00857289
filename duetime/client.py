"""The HTTP client of Duetime: one method a call of the API. It never retries and never changes what the API answers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import TracebackType
from typing import Self, TypeAlias
from urllib.parse import quote, urlsplit

import httpx

from duetime.signing import SignedAuth, region_of

DEFAULT_URL = "http://127.0.0.1:8484"
UNREACHABLE = frozenset({502, 503, 504})  # what stands before the API says that it cannot reach it

JsonValue: TypeAlias = "bool | int | Decimal | str | list[JsonValue] | dict[str, JsonValue] | None"


class ClientError(Exception):
    """The root of what the client raises.

    ClientError
    ├── ApiError            the API refused the request, or failed
    └── UnreachableError    no answer of the API was had
    """


class ApiError(ClientError):
    """An answer that is not a 2xx: `problem` is its problem document (RFC 9457).

    `errors` says what is wrong with which field, as far as fields are to blame; `field` is the first of them.
    """

    def __init__(self, status: int, problem: "Document") -> None:
        self.status = status
        self.problem = problem
        self.errors = _field_errors(problem.get("errors"))
        self.field = self.errors[0][0] if self.errors else None
        said = (_text(problem.get(key)) for key in ("detail", "title", "message"))  # the last is API Gateway's own
        self.detail = next(filter(None, said), f"HTTP {status}")
        super().__init__(self.detail)


class UnreachableError(ClientError):
    """No connection, no answer in time, or an answer from something that stands before the API."""


class Document(dict[str, JsonValue]):
    """A JSON object as the API answered it. `text` is the answer to the letter; fractions are read as Decimal."""

    def __init__(self, text: str, value: Mapping[str, JsonValue]) -> None:
        super().__init__(value)
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What `Client.submit` sends. None leaves a field out, so that the API's default holds."""

    target: Mapping[str, JsonValue]
    payload_json: str | None = None  # one JSON text, sent to the letter
    run_at: datetime | str | None = None
    cron: str | None = None
    every: str | None = None
    timezone: str | None = None
    job_id: str | None = None
    name: str | None = None
    group: str | None = None
    overlap: str | None = None
    max_attempts: int | None = None
    timeout_s: int | None = None
    depends_on: Sequence[str] = ()
    on_parent_failure: str | None = None
    priority: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, JsonValue] = field(default_factory=dict)  # any more of the body's fields, by name

    def to_json(self) -> str:
        """The request body. Raises ValueError for one of `others` that is given by its own name, too."""
        fields: dict[str, object] = {
            "job_id": self.job_id,
            "name": self.name,
            "group": self.group,
            "overlap": self.overlap,
            "target": self.target,
            "run_at": self.run_at.isoformat() if isinstance(self.run_at, datetime) else self.run_at,
            "cron": self.cron,
            "every": self.every,
            "timezone": self.timezone,
            "retry": None if self.max_attempts is None else {"max_attempts": self.max_attempts},
            "timeout_s": self.timeout_s,
            "depends_on": list(self.depends_on) or None,
            "on_parent_failure": self.on_parent_failure,
            "priority": self.priority,
            "tags": dict(self.tags) or None,
        }
        if both := [name for name in self.others if name == "payload" or fields.get(name) is not None]:
            raise ValueError(f"{both[0]} is given twice, or has its own place")
        fields |= self.others
        text = json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)
        return text if self.payload_json is None else f'{text[:-1]}, "payload": {self.payload_json}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    """What `Client.jobs` looks for: jobs that fit all that is said. Times are RFC 3339 with an offset, or aware."""

    status: str | None = None
    group: str | None = None
    tags: Sequence[str] = ()  # each `name` or `name:value`
    due_from: datetime | str | None = None  # whose next time is this or later
    due_to: datetime | str | None = None  # and before this

    def to_query(self, limit: int | None = None, cursor: str | None = None) -> str:
        """The query string, with its `?`; empty when nothing is said."""
        said: list[tuple[str, str | None]] = [
            ("status", self.status),
            ("group", self.group),
            *(("tag", tag) for tag in self.tags),
            *((name, _moment(at)) for name, at in (("from", self.due_from), ("to", self.due_to))),
            ("limit", None if limit is None else str(limit)),
            ("cursor", cursor),
        ]
        pairs = "&".join(f"{name}={quote(_bytes(value), safe='')}" for name, value in said if value is not None)
        return f"?{pairs}" if pairs else ""


class Client:
    """Talks to one deployed Duetime, at `url` with or without its `/v1`.

    Signs when `url` is an API Gateway address, or when told to by `sign`.
    Every method raises ApiError when the API refuses and UnreachableError when there is no answer.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        sign: bool | None = None,
        timeout_s: float = 35.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        _check_url(url)
        region = region_of(url)
        auth = SignedAuth(region) if (sign if sign is not None else region is not None) else None
        self.url = url.rstrip("/").removesuffix("/v1").rstrip("/")
        self._http = httpx.Client(auth=auth, timeout=timeout_s, transport=transport, trust_env=not _is_loopback(url))

    def submit(self, submission: Submission, *, idempotency_key: str | None = None) -> Document:
        """Submit a job; answers the job as created."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self.call("POST", "/v1/jobs", submission.to_json(), headers)

    def submit_batch(self, jobs_json: str, *, idempotency_key: str | None = None) -> Document:
        """Submit up to 100 jobs, each judged alone: `{"results": [{"index", "status", "job" or "problem"}, …]}`.

        `jobs_json`: a JSON list of bodies as `Submission.to_json` makes them, sent to the letter.
        """
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self.call("POST", "/v1/jobs:batch", f'{{"jobs": {jobs_json}}}', headers)

    def get(self, job_id: str) -> Document:
        """The job, its status and its latest runs."""
        return self.call("GET", f"/v1/jobs/{_segment(job_id)}")

    def runs(self, job_id: str, cursor: str | None = None) -> Document:
        """One page of the job's runs, newest first: `{"runs": […], "cursor": …}`."""
        query = f"?cursor={quote(_bytes(cursor), safe='')}" if cursor else ""
        return self.call("GET", f"/v1/jobs/{_segment(job_id)}/runs{query}")

    def jobs_page(self, query: JobQuery, limit: int | None = None, cursor: str | None = None) -> Document:
        """One page of the jobs that fit: `{"jobs": […], "cursor": …}`. It may be empty and not be the last."""
        return self.call("GET", "/v1/jobs" + query.to_query(limit, cursor))

    def jobs(self, query: JobQuery, page: int = 100) -> Iterator[dict[str, JsonValue]]:
        """All jobs that fit, asked for page by page as they are taken."""
        cursor: JsonValue = None
        while True:
            found = self.jobs_page(query, page, cursor if isinstance(cursor, str) else None)
            rows = found.get("jobs")
            yield from (row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()
            cursor = found.get("cursor")
            if cursor is None:
                return

    def cancel(self, job_id: str) -> Document:
        """Cancel the job. Twice is the same as once."""
        return self.call("POST", f"/v1/jobs/{_segment(job_id)}:cancel")

    def pause(self, job_id: str) -> Document:
        """Pause the job: no run of its schedule starts until it is resumed."""
        return self.call("POST", f"/v1/jobs/{_segment(job_id)}:pause")

    def resume(self, job_id: str) -> Document:
        """Resume the job; what it missed is made up for by its `catch_up`."""
        return self.call("POST", f"/v1/jobs/{_segment(job_id)}:resume")

    def update(self, job_id: str, changes_json: str, *, if_version: int | None = None) -> Document:
        """Change the fields that the JSON object names; with `if_version`, only a job of that version."""
        headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
        return self.call("PATCH", f"/v1/jobs/{_segment(job_id)}", changes_json, headers)

    def trigger(self, job_id: str) -> Document:
        """Run the job now, beside its schedule; answers the run."""
        return self.call("POST", f"/v1/jobs/{_segment(job_id)}:trigger")

    def redrive(self, job_id: str, scheduled_for: str) -> Document:
        """Run one dead-lettered run again; answers the run."""
        return self.call("POST", f"/v1/jobs/{_segment(job_id)}/runs/{_segment(scheduled_for)}:redrive")

    def redrive_all(self, job_id: str) -> Document:
        """Run up to 100 dead-lettered runs again: `{"redriven": […], "more": …}`."""
        return self.call("POST", f"/v1/jobs/{_segment(job_id)}:redrive")

    def group(self, group: str) -> Document:
        """The group's limit, and how many of its runs have a place: `{"group", "max_running", "running"}`."""
        return self.call("GET", f"/v1/groups/{_segment(group)}")

    def limit_group(self, group: str, max_running: int | None) -> Document:
        """Let at most `max_running` runs of the group go on at a time; None: any number."""
        return self.call("PUT", f"/v1/groups/{_segment(group)}", json.dumps({"max_running": max_running}))

    def preview(self, schedule: Mapping[str, JsonValue]) -> Document:
        """The next times of a schedule: `{"cron": "0 9 * * *", "timezone": "Europe/Berlin", "count": 5}`."""
        return self.call("POST", "/v1/preview", json.dumps(schedule, ensure_ascii=False))

    def health(self) -> Document:
        """Whether every shard is ticked (`ok`), shard by shard; an answer that they are not is an answer too."""
        return self.call("GET", "/v1/health")

    def call(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Document:
        """Any call of the API: `path` from `/v1` on, `body` one JSON text."""
        return self._call(method, path, body, headers or {})

    def _call(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str], also: frozenset[int] = frozenset()
    ) -> Document:
        sent = {_bytes(name): _bytes(value) for name, value in headers.items()}
        if body is not None:
            sent[b"Content-Type"] = b"application/json"
        try:
            answer = self._http.request(
                method, self.url + path, content=None if body is None else _bytes(body), headers=sent
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(f"cannot reach {self.url}: {error or type(error).__name__}") from error
        document = _read(answer)
        if document is not None and (answer.is_success or _is_health(document)):
            return document
        if answer.status_code in UNREACHABLE or document is None:
            detail = _text(document.get("detail")) if document is not None else None
            why = detail or f"it answered HTTP {answer.status_code}"
            raise UnreachableError(f"cannot reach the API at {self.url}: {why}")
        raise ApiError(answer.status_code, document)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _bytes(text: str) -> bytes:
    """UTF-8; what a terminal gave that is none goes on as it is, for the API to refuse."""
    return text.encode("utf-8", "surrogateescape")


def _moment(at: datetime | str | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return
        why = ""
    except ValueError as error:  # as of a port out of range
        why = f" ({error})"
    raise UnreachableError(f"{url!r} is not the URL of an API, such as {DEFAULT_URL}{why}")


def _is_loopback(url: str) -> bool:
    """A proxy has nothing to do with this machine's own addresses."""
    return (urlsplit(url).hostname or "") in {"127.0.0.1", "localhost", "::1"}


def _segment(job_id: str) -> str:
    return quote(_bytes(job_id), safe=":")


def _is_health(document: Document) -> bool:
    """The API's own 503: it answers, and says that ticks are missing."""
    return isinstance(document.get("shards"), list)


def _read(answer: httpx.Response) -> Document | None:
    text = answer.text
    try:
        value = json.loads(text, parse_float=Decimal)
    except ValueError:
        return None
    return Document(text, value) if isinstance(value, dict) else None


def _field_errors(value: JsonValue) -> list[tuple[str, str]]:
    faults = value if isinstance(value, list) else []
    return [(str(fault.get("field")), str(fault.get("message"))) for fault in faults if isinstance(fault, dict)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
