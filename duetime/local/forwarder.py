"""The steady local URL: signs each request, hands it to the deployed API as it came. It never changes body or answer.

It stands where a signing client would, so its whole surface is loopback: it answers only to local host names, and to no
web page of another origin, since whoever reaches it acts with its keys.
"""

import http
import http.client
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import quote, urlsplit

from duetime.local.errors import PortInUseError
from duetime.signing import Credentials, signed_headers

HOST = "127.0.0.1"
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_BODY = 10 * 1024 * 1024  # API Gateway's own limit
MAX_IN_FLIGHT = 64  # more wait their turn
IDLE_S = 75  # how long a connection of a client may say nothing
ANSWER_S = 35  # API Gateway itself gives up at 30 s
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
REPLACED = HOP_BY_HOP | {"host", "content-length", "authorization", "x-amz-date", "x-amz-security-token", "expect"}

PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))

logger = logging.getLogger("duetime.forwarder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where the API is, and as whom to call it."""

    port: int  # of the emulator, on 127.0.0.1
    api_id: str
    credentials: Credentials
    region: str

    @property
    def prefix(self) -> str:
        return f"/_aws/execute-api/{self.api_id}/$default"


class RefusalError(Exception):
    """An answer that the forwarder gives by itself."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail


class Forwarder:
    """Serves `port` (0: a free one) from construction on; answers 503 until it is pointed at an upstream.

    Raises PortInUseError when the port is taken.
    """

    def __init__(self, port: int) -> None:
        try:
            self._server = _Server((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PortInUseError(f"port {port} cannot be opened ({reason}): choose another with --port") from None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="duetime-forwarder")
        self._thread.daemon = True
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def point_at(self, upstream: Upstream | None) -> None:
        """Forward to `upstream` from now on; None: answer 503."""
        self._server.upstream = upstream

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    upstream: Upstream | None = None

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.turns = threading.BoundedSemaphore(MAX_IN_FLIGHT)
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        logger.debug("a client's connection ended badly", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "duetime"
    sys_version = ""
    timeout = IDLE_S
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # headers and body in one packet

    server: _Server
    kept: ClassVar[threading.local] = threading.local()  # one connection to the emulator for each client's thread

    def forward(self) -> None:
        """Answer one request, whatever its method."""
        try:
            self._check_origin()
            self._check_target()
            body = self._body()
            with self.server.turns:
                status, headers, content = self._ask(body)
        except RefusalError as refusal:
            self._refuse(refusal)
            return
        self._answer(status, headers, content)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):  # the base class looks for do_GET, do_POST, …: the API judges methods, not we
            return self.forward
        raise AttributeError(name)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class cannot read is refused in the same form as all else."""
        self.close_connection = True
        self.request_version = self.protocol_version  # it may not have been read
        title = http.HTTPStatus(code).phrase
        self._refuse(RefusalError(code, title, explain or message or title))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the base class names it so
        logger.debug(format, *args)

    def finish(self) -> None:
        with suppress(OSError, ValueError):  # the client may be gone
            super().finish()
        _drop_connection(self.kept)

    def _check_origin(self) -> None:
        host = urlsplit(f"//{self.headers.get('Host', '')}")
        origin = self.headers.get("Origin")
        if host.hostname not in LOCAL_NAMES:
            raise RefusalError(
                403, "Forbidden", f"this address answers to 127.0.0.1 and localhost only, not {host.netloc!r}"
            )
        if origin is not None and urlsplit(origin).netloc != host.netloc:
            raise RefusalError(403, "Forbidden", f"web pages of another origin ({origin}) may not call this address")

    def _check_target(self) -> None:
        if not self.path.startswith("/") or any(character <= " " or character == "\x7f" for character in self.path):
            raise RefusalError(400, "Bad Request", f"{self.path!r} is not a path that can be called")
        self.path = quote(
            self.path, safe=PRINTABLE, encoding="latin-1"
        )  # bytes beyond ASCII, which HTTP has no room for

    def _headers(self) -> dict[str, str]:
        """The client's headers that go on; those that came more than once in one line, as API Gateway does it."""
        passed: dict[str, str] = {}
        for name, value in self.headers.items():
            if (key := name.lower()) not in REPLACED:
                passed[key] = f"{passed[key]}, {value}" if key in passed else value
        return passed

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(self._chunks())
        text = self.headers.get("Content-Length", "0")
        if not text.isascii() or not text.isdigit():
            self.close_connection = True
            raise RefusalError(400, "Bad Request", f"Content-Length must be a whole number, not {text!r}")
        self._check_size(int(text))
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            self.close_connection = True
            raise RefusalError(400, "Bad Request", "the body ended before its Content-Length")
        return body

    def _chunks(self) -> Iterator[bytes]:
        total = 0
        while True:
            try:
                size = int(self.rfile.readline(100).split(b";")[0], 16)
            except ValueError:
                self.close_connection = True
                raise RefusalError(400, "Bad Request", "the body's chunks cannot be read") from None
            total += size
            self._check_size(total)
            if size == 0:
                while self.rfile.readline(65_537).strip():
                    pass
                return
            yield self.rfile.read(size)
            self.rfile.readline(3)

    def _check_size(self, size: int) -> None:
        if not 0 <= size <= MAX_BODY:
            self.close_connection = True  # the body stays unread
            raise RefusalError(413, "Content Too Large", f"a body may be up to {MAX_BODY} bytes, not {size}")

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = self.server.upstream
        if upstream is None:
            raise RefusalError(
                503, "Service Unavailable", "the local Duetime is starting or ending; try again in a moment"
            )
        target = upstream.prefix + self.path
        headers = self._headers()
        url = f"http://{HOST}:{upstream.port}{target}"
        headers |= signed_headers(self.command, url, body, upstream.credentials, upstream.region)
        try:
            return self._exchange(upstream.port, target, headers, body)
        except TimeoutError:
            raise RefusalError(504, "Gateway Timeout", f"the API did not answer within {ANSWER_S} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise RefusalError(
                502, "Bad Gateway", f"the local AWS does not answer: {error or type(error).__name__}"
            ) from None

    def _exchange(
        self, port: int, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection: http.client.HTTPConnection | None = getattr(self.kept, "connection", None)
        reused = connection is not None and connection.port == port
        if connection is None or not reused:
            _drop_connection(self.kept)
            connection = self.kept.connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S)
        try:
            connection.request(self.command, target, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            _drop_connection(self.kept)
            if not reused:
                raise
            return self._exchange(port, target, headers, body)  # it had been closed while idle: nothing was done yet
        except BaseException:
            _drop_connection(self.kept)
            raise

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP and name.lower() != "content-length":
                self.send_header(name, value)
        length = next((value for name, value in headers if name.lower() == "content-length"), None)
        if self.command == "HEAD" and length is not None:
            self.send_header("Content-Length", length)
        elif status not in {204, 304}:
            self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, refusal: RefusalError) -> None:
        problem = {"type": "about:blank", "title": refusal.title, "status": refusal.status, "detail": refusal.detail}
        headers = [("Content-Type", "application/problem+json")]
        if refusal.status == 503:
            headers.append(("Retry-After", "1"))
        self._answer(refusal.status, headers, json.dumps(problem).encode())


def _drop_connection(kept: threading.local) -> None:
    connection: http.client.HTTPConnection | None = getattr(kept, "connection", None)
    kept.connection = None
    if connection is not None:
        connection.close()
