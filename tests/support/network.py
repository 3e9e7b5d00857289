"""Keeps the test process on this machine: connections, listening and look-ups of names are for loopback only.

It never opens a socket. Processes that tests start are not under it; a test looks at the emulator's own sockets.
"""

import ipaddress
import sys
from typing import Any


class BeyondLoopbackError(BaseException):
    """A test touched the network. Not an Exception, so that no code under test hides it."""


touched: list[str] = []  # what was refused, for the end of the test


def _is_local(host: object) -> bool:
    if host in (None, "localhost"):
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse(what: str) -> None:
    touched.append(what)
    raise BeyondLoopbackError(f"{what}: tests stay on loopback")


def _judge(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        if not _is_local(arguments[0]):
            _refuse(f"look-up of {arguments[0]!r}")
    elif event in ("socket.connect", "socket.bind", "socket.sendto"):
        address = arguments[1]
        if isinstance(address, tuple) and not _is_local(address[0]):  # unix sockets have a path for an address
            _refuse(f"{event.removeprefix('socket.')} of {address[:2]}")


def forget() -> list[str]:
    found = touched[:]
    touched.clear()
    return found


def guard() -> None:
    """From now on and for the life of the process; an audit hook cannot be taken away, nor gone around."""
    sys.addaudithook(_judge)
