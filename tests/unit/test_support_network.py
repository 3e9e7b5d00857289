"""No test leaves this machine, and none listens beyond it."""

import socket
import urllib.request

import pytest

from tests.support import network
from tests.support.network import BeyondLoopbackError


@pytest.mark.parametrize("host", ["169.254.169.254", "8.8.8.8", "0.0.0.0", "::", "fd00:ec2::254"])
def test_connecting_and_listening_elsewhere(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as one:
        for act in (one.connect, one.connect_ex, one.bind):
            with pytest.raises(BeyondLoopbackError):
                act((host, 80))
    assert len(network.forget()) == 3


def test_listening_everywhere_by_an_empty_name() -> None:
    with socket.socket() as one, pytest.raises(BeyondLoopbackError):
        one.bind(("", 0))
    assert network.forget()


def test_names_are_not_looked_up() -> None:
    with pytest.raises(BeyondLoopbackError, match=r"look-up of 'example.com'"):
        urllib.request.urlopen("http://example.com/", timeout=1)
    assert network.forget()


def test_loopback_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1])).close()
