"""One HTTP request, read strictly: body, path, query, headers, caller. It never knows what the request is for."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from functions.submit import strict_json
from functions.submit.errors import UnsupportedMediaTypeError
from functions.submit.strict_json import Json, show
from shared.model.errors import InputError, TooLargeError

JOB_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"
MAX_PAYLOAD_BYTES = 262_144
MAX_BODY_BYTES = MAX_PAYLOAD_BYTES + 65_536  # the payload, and room for all other fields
MAX_QUERY_FIELDS = 50
ANONYMOUS = "anonymous"

_JOB_ID = re.compile(JOB_ID_PATTERN.removesuffix("$") + r"\Z")
_IDEMPOTENCY_KEY = re.compile(r"[\x20-\x7e]{1,255}\Z")


def is_job_id(text: str) -> bool:
    """Whether a job, or a group, can be called so."""
    return _JOB_ID.match(text) is not None


@dataclass(frozen=True, slots=True)
class Request:
    """An event of an HTTP API, format 2.0. `path` holds the parameters of the route.

    An HTTP API hands the path over decoded: it is not decoded again.
    """

    event: Mapping[str, Any]
    path: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """GET, POST …"""
        return str(self.event["requestContext"]["http"]["method"])

    @property
    def whole_path(self) -> str:
        """The path as it was asked for: the API's stage, `$default`, is not a part of it."""
        return str(self.event["rawPath"])

    @property
    def job_id(self) -> str:
        """Raises InputError when the path's job id is not one that a job can have."""
        job_id = self.path["job_id"]
        if not is_job_id(job_id):
            raise InputError("job_id", f"must be the id of a job (letters, digits, _ . : -), not {show(job_id)}")
        return job_id

    @property
    def caller(self) -> str:
        """Who signed the request: the ARN of the IAM principal, or `anonymous` where the API asks for no signature."""
        context = self.event.get("requestContext") or {}
        iam = (context.get("authorizer") or {}).get("iam") or {}
        return str(iam.get("userArn") or ANONYMOUS)

    @property
    def idempotency_key(self) -> str | None:
        """Raises InputError when the header is there but is not 1 to 255 characters of printable ASCII."""
        key = self._header("idempotency-key")
        if key is not None and not _IDEMPOTENCY_KEY.match(key):
            raise InputError("Idempotency-Key", f"must be 1 to 255 printable ASCII characters, not {show(key)}")
        return key

    @property
    def if_match(self) -> str | None:
        """The If-Match header as it was sent."""
        return self._header("if-match")

    def body(self, most: int = MAX_BODY_BYTES) -> dict[str, Json]:
        """The JSON object that was sent, in at most so many bytes.

        Raises UnsupportedMediaTypeError, TooLargeError, InputError (`body`).
        """
        self._check_media_type()
        return strict_json.read_object(self._text(most))

    def no_body(self) -> None:
        """For a call that takes no body (an empty object will do). Raises InputError."""
        if self._text().strip() not in {"", "{}"}:
            raise InputError("body", "must be empty: this call takes none")

    def query(self, *known: str) -> dict[str, str]:
        """The query's values. Raises InputError for a name that is not one of `known`."""
        query: dict[str, str] = self.event.get("queryStringParameters") or {}
        for name in query:
            if name not in known:
                raise InputError(name, f"is not a parameter of this call; {', '.join(known) or 'it takes none'}")
        return query

    def query_lists(self, *many: str, once: Sequence[str]) -> dict[str, list[str]]:
        """The query's values in order, where those of `many` may come more than once and those of `once` not.

        The decoded query of the event has them as one text with commas, which values may have too. Raises InputError.
        """
        try:
            pairs = parse_qsl(
                self.event.get("rawQueryString") or "",
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MAX_QUERY_FIELDS,
            )
        except ValueError:
            raise InputError("query", f"must be UTF-8, and at most {MAX_QUERY_FIELDS} parameters") from None
        found: dict[str, list[str]] = {}
        for name, value in pairs:
            if name not in (*once, *many):
                raise InputError(name, f"is not a parameter of this call; {', '.join((*once, *many))}")
            if name in once and name in found:
                raise InputError(name, "must be there once")
            found.setdefault(name, []).append(value)
        return found

    def _header(self, name: str) -> str | None:
        headers: Mapping[str, str] = self.event.get("headers") or {}
        return next((value for given, value in headers.items() if given.lower() == name), None)

    def _check_media_type(self) -> None:
        sent = self._header("content-type")
        if sent is None:
            return
        kind, *parameters = (part.strip().lower() for part in sent.split(";"))
        charsets = {part.removeprefix("charset=").strip('"') for part in parameters if part.startswith("charset=")}
        if kind != "application/json" or not charsets <= {"utf-8", "utf8"}:
            raise UnsupportedMediaTypeError(f"Content-Type must be application/json in UTF-8, not {show(sent)}")

    def _text(self, most: int = MAX_BODY_BYTES) -> str:
        text = self.event.get("body") or ""
        data = self._decoded(text) if self.event.get("isBase64Encoded") else text.encode("utf-8", "surrogatepass")
        if len(data) > most:
            raise TooLargeError("body", f"must be at most {most:,} bytes, not {len(data):,}")
        try:
            return data.decode("utf-8", "surrogatepass" if not self.event.get("isBase64Encoded") else "strict")
        except UnicodeDecodeError as error:
            raise InputError("body", f"is not UTF-8: {error.reason} at byte {error.start}") from None

    @staticmethod
    def _decoded(text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise InputError("body", "is said to be base64 but is not") from None
