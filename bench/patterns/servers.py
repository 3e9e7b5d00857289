"""Redis and PostgreSQL for a bench, each on a socket in a directory of its own, ended by its process. Never a port."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

DEBIAN = "/usr/lib/postgresql"  # where its packages put what is not for the PATH
START_WITHIN_S = 20


class MissingServerError(Exception):
    """The server is not installed; the message names Debian's package."""


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """The path of its socket. It writes its log of changes, as one that must not lose jobs."""
    program = shutil.which("redis-server")
    if program is None:
        raise MissingServerError("redis-server is not installed (Debian: redis-server)")
    with tempfile.TemporaryDirectory() as home:
        socket = Path(home, "redis.sock")
        more = ["--port", "0", "--unixsocket", str(socket), "--dir", home, "--save", "", "--appendonly", "yes"]
        with _running([program, *more], socket, None):
            yield str(socket)


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """The directory of its socket; user postgres, without a password."""
    found = sorted(Path(DEBIAN).glob("*/bin/initdb"))
    initdb = str(found[-1]) if found else shutil.which("initdb")
    if initdb is None:
        raise MissingServerError("PostgreSQL is not installed (Debian: postgresql)")
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    with tempfile.TemporaryDirectory() as home:
        if user is not None:
            os.chown(home, pwd.getpwnam(user).pw_uid, -1)
        data = str(Path(home, "data"))
        make = [initdb, "--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-instructions"]
        subprocess.run(make, user=user, cwd=home, check=True, capture_output=True)
        program = str(Path(initdb).with_name("postgres"))
        command = [program, "-D", data, "-k", home, "-c", "listen_addresses="]
        with _running(command, Path(home, ".s.PGSQL.5432"), user):
            yield home


@contextlib.contextmanager
def _running(command: list[str], socket: Path, user: str | None) -> Iterator[None]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, user=user, cwd=socket.parent, stdout=log, stderr=log)
        try:
            end = time.monotonic() + START_WITHIN_S
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise RuntimeError(f"{Path(command[0]).name} did not start:\n{log.read().decode()[-2000:]}")
                time.sleep(0.05)
            time.sleep(0.5)  # its socket is there a moment before it answers
            yield
        finally:
            process.terminate()
            process.wait(START_WITHIN_S)
