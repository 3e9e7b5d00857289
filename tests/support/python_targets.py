"""Handlers for one test: source texts written into a package of their own, and a target that runs them."""

import os
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from shared.model.call import Call
from shared.model.job import Target
from shared.model.run import Result
from shared.targets.python import PythonTarget
from shared.targets.target import Signals

SCHEDULED_FOR = datetime(2026, 11, 29, 12, 0, 5, tzinfo=UTC)
HEAD = "from handlers import Run, handler\n"


def a_call(handler: object, payload: str = "null", *, attempt: int = 1, timeout_s: float = 20) -> Call:
    return Call(
        job_id="job-1",
        scheduled_for=SCHEDULED_FOR,
        attempt=attempt,
        max_attempts=3,
        target=Target(kind="python", params={"handler": handler}),
        payload=payload,
        timeout_s=timeout_s,
    )


def attempt(target: PythonTarget, handler: object, payload: str = "null", **more: float) -> Result:
    """One attempt that nobody stops."""
    return target.call(a_call(handler, payload, **more), Signals())  # type: ignore[arg-type]


def write_package(directory: Path, modules: dict[str, str]) -> Path:
    """`{"bad": source}` becomes `jobs/bad.py` under `directory`; returns the package's directory."""
    package = directory / "jobs"
    for name, source in {"__init__": "", **modules}.items():
        file = package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HEAD + textwrap.dedent(source) if source else "")
    return package


@contextmanager
def running(package: Path) -> Iterator[PythonTarget]:
    """A target for `package`, ended afterwards."""
    target = PythonTarget(package)
    try:
        yield target
    finally:
        target.close()


def zygote_pid(target: PythonTarget) -> int:
    target.load()
    zygote = target._zygote
    assert zygote is not None
    return zygote.pid


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, zombies included."""
    found: list[int] = []
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(parent, []).append(int(entry))
    waiting = [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def eventually(condition: Callable[[], bool], within_s: float = 10) -> bool:
    """Whether the condition comes true within this time."""
    limit = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True
