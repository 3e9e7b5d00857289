"""An HTTP server on loopback that answers by a script and remembers what it was asked, to the byte. It knows no API."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    target: str  # path and query, still encoded
    headers: Message
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What to answer."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    @classmethod
    def of(cls, document: object, status: int = 200) -> "Answer":
        return cls(status, json.dumps(document).encode())


@dataclass
class ScriptedServer:
    """A running server: `script` decides each answer, `asked` holds the requests in order."""

    port: int
    script: Callable[[Asked], Answer]
    asked: list[Asked] = field(default_factory=list)
    drop_next: bool = False  # close the connection instead of answering, once

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def scripted_server(script: Callable[[Asked], Answer]) -> Iterator[ScriptedServer]:
    """Serve on a free port of 127.0.0.1 until the block ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            asked = Asked(self.command, self.path, self.headers, body)
            state.asked.append(asked)
            if state.drop_next:
                state.drop_next = False
                self.close_connection = True
                return
            answer = state.script(asked)
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status not in {204, 304}:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD" and answer.status not in {204, 304}:
                self.wfile.write(answer.body)

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state = ScriptedServer(server.server_address[1], script)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
