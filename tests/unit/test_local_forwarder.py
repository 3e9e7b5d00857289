"""The local URL against a scripted emulator: what it passes on, what it refuses, and that it signs."""

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator

import pytest

from duetime.local.errors import PortInUseError
from duetime.local.forwarder import MAX_BODY, Forwarder, Upstream
from duetime.signing import Credentials
from tests.support.scripted_server import Answer, ScriptedServer, scripted_server

CREDENTIALS = Credentials(access_key_id="AKIDLOCAL", secret_access_key="secret")


@pytest.fixture
def upstream() -> Iterator[ScriptedServer]:
    with scripted_server(lambda asked: Answer()) as server:
        yield server


@pytest.fixture
def forwarder(upstream: ScriptedServer) -> Iterator[Forwarder]:
    forwarder = Forwarder(0)
    forwarder.point_at(Upstream(port=upstream.port, api_id="abc", credentials=CREDENTIALS, region="us-east-1"))
    yield forwarder
    forwarder.close()


def ask(
    port: int, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, target, body, headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def raw(port: int, request: bytes) -> bytes:
    """Send bytes as they are and read until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65_536):
            received += chunk
    return received


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_method_path_query_headers_and_body_go_on_as_they_came(
    forwarder: Forwarder, upstream: ScriptedServer, method: str
) -> None:
    target = "/v1/jobs/%2e%2e%2fa%20b%25:cancel?cursor=a%2Bb&x=1&x=&y"
    body = b'{"a": 30.40, "broken": \xff'
    headers = {"Idempotency-Key": "k", "If-Match": '"3"', "Content-Type": "application/json", "X-Own": "yes"}
    assert ask(forwarder.port, method, target, body, headers)[0] == 200
    (asked,) = upstream.asked
    assert (asked.method, asked.target) == (method, f"/_aws/execute-api/abc/$default{target}")
    assert asked.body == body
    assert {name: asked.headers[name] for name in headers} == headers


def test_each_request_is_signed_whatever_the_client_says_of_itself(
    forwarder: Forwarder, upstream: ScriptedServer
) -> None:
    ask(forwarder.port, "GET", "/v1/health", None, {"Authorization": "Bearer mine", "X-Amz-Date": "old"})
    (asked,) = upstream.asked
    assert re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKIDLOCAL/\d{8}/us-east-1/execute-api/aws4_request, "
        r"SignedHeaders=host;x-amz-date, Signature=[0-9a-f]{64}",
        asked.headers["Authorization"],
    )
    assert asked.headers.get_all("X-Amz-Date") != ["old"]
    assert asked.headers["Host"] == f"127.0.0.1:{upstream.port}"


@pytest.mark.parametrize("status", [201, 204, 304, 400, 404, 409, 413, 422, 500, 503])
def test_the_answer_comes_back_as_it_was(forwarder: Forwarder, upstream: ScriptedServer, status: int) -> None:
    body = b"" if status in {204, 304} else b'{"detail": "\xc3\xa4"}'
    headers = {"Content-Type": "application/problem+json", "Retry-After": "7", "ETag": '"3"'}
    upstream.script = lambda asked: Answer(status, body, headers)
    got, got_headers, got_body = ask(forwarder.port, "GET", "/v1/jobs/x")
    assert (got, got_body) == (status, body)
    assert {name: got_headers[name.lower()] for name in headers} == headers


def test_head_has_the_length_and_no_body(forwarder: Forwarder, upstream: ScriptedServer) -> None:
    upstream.script = lambda asked: Answer(200, b"x" * 77)
    status, headers, body = ask(forwarder.port, "HEAD", "/v1/health")
    assert (status, headers["content-length"], body) == (200, "77", b"")


def test_headers_that_come_twice_go_on_joined(forwarder: Forwarder, upstream: ScriptedServer) -> None:
    raw(
        forwarder.port,
        b"GET /v1/x HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\n\r\n",
    )
    assert upstream.asked[0].headers.get_all("X-A") == ["1, 2"]


def test_a_large_body_goes_on_and_a_larger_one_is_refused(forwarder: Forwarder, upstream: ScriptedServer) -> None:
    assert ask(forwarder.port, "POST", "/v1/jobs", b"x" * 3_000_000)[0] == 200
    assert len(upstream.asked[0].body) == 3_000_000
    said = raw(
        forwarder.port,
        f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MAX_BODY + 1}\r\n\r\n".encode(),
    )
    assert said.startswith(b"HTTP/1.1 413 ")
    assert len(upstream.asked) == 1


def test_a_body_in_chunks_goes_on_whole(forwarder: Forwarder, upstream: ScriptedServer) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    said = raw(forwarder.port, head + b'4\r\n{"a"\r\n3;x=y\r\n:1}\r\n0\r\nTrailer: t\r\n\r\n')
    assert said.startswith(b"HTTP/1.1 200 ")
    assert upstream.asked[0].body == b'{"a":1}'
    assert raw(forwarder.port, head + b"zz\r\n").startswith(b"HTTP/1.1 400 ")


def test_many_requests_over_one_connection_are_quick(forwarder: Forwarder, upstream: ScriptedServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", forwarder.port, timeout=10)
    begun = time.monotonic()
    for number in range(300):
        connection.request("POST", "/v1/jobs", f'{{"n": {number}}}')
        assert connection.getresponse().read() == b"{}"
    connection.close()
    assert time.monotonic() - begun < 10
    assert [json.loads(asked.body)["n"] for asked in upstream.asked] == list(range(300))


def test_a_connection_that_was_closed_while_idle_is_opened_again(
    forwarder: Forwarder, upstream: ScriptedServer
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", forwarder.port, timeout=10)
    connection.request("GET", "/v1/a")
    connection.getresponse().read()
    upstream.drop_next = True
    connection.request("GET", "/v1/b")
    assert connection.getresponse().status == 200
    connection.close()


def problem(answer: tuple[int, dict[str, str], bytes]) -> dict[str, object]:
    status, headers, body = answer
    assert headers["content-type"] == "application/problem+json"
    document: dict[str, object] = json.loads(body)
    assert document.keys() == {"type", "title", "status", "detail"}
    assert document["status"] == status
    return document


def test_before_there_is_an_upstream_it_says_so() -> None:
    forwarder = Forwarder(0)
    try:
        answer = ask(forwarder.port, "POST", "/v1/jobs", b"{}")
        assert problem(answer)["status"] == 503
        assert answer[1]["retry-after"] == "1"
    finally:
        forwarder.close()


def test_an_upstream_that_is_gone_is_a_502(forwarder: Forwarder) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = taken.getsockname()[1]
        forwarder.point_at(Upstream(port=port, api_id="abc", credentials=CREDENTIALS, region="us-east-1"))
        assert problem(ask(forwarder.port, "GET", "/v1/health"))["status"] == 502


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:8484"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:8484", "Origin": "http://localhost:8484"}, 200),
        ({"Host": "[::1]:8484"}, 200),
    ],
)
def test_only_local_names_and_no_page_of_another_origin(
    forwarder: Forwarder, upstream: ScriptedServer, headers: dict[str, str], status: int
) -> None:
    assert ask(forwarder.port, "POST", "/v1/jobs", b"{}", headers)[0] == status
    assert len(upstream.asked) == (status == 200)


@pytest.mark.parametrize(
    "request_line", [b"GET http://127.0.0.1/v1 HTTP/1.1", b"GET /\x01 HTTP/1.1", b"GARBAGE", b"GET / HTTP/9.9"]
)
def test_what_cannot_be_read_is_refused_in_the_same_form(
    forwarder: Forwarder, upstream: ScriptedServer, request_line: bytes
) -> None:
    said = raw(forwarder.port, request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b"application/problem+json" in said
    assert b"Traceback" not in said
    assert upstream.asked == []


def test_bytes_beyond_ascii_in_a_path_go_on_encoded(forwarder: Forwarder, upstream: ScriptedServer) -> None:
    raw(forwarder.port, "GET /v1/jobs/ä HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert upstream.asked[0].target.endswith("/v1/jobs/%C3%A4")


@pytest.mark.parametrize("length", ["-1", "1_000", "x", "٣"])
def test_a_length_that_is_none_is_refused(forwarder: Forwarder, length: str) -> None:
    said = raw(forwarder.port, f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
    assert said.startswith(b"HTTP/1.1 400 ")


def test_a_port_that_is_taken_is_named_with_its_option(forwarder: Forwarder) -> None:
    with pytest.raises(PortInUseError, match=f"port {forwarder.port} .*--port"):
        Forwarder(forwarder.port)
