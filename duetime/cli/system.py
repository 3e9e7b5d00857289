"""The commands that start and end a local Duetime. They never touch a deployed one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from duetime.cli.demo import demo
from duetime.cli.exits import Exit
from duetime.cli.jobs import AsJson, complain, err, out
from duetime.local.environment import last_lines
from duetime.local.errors import EmulatorError, LocalError, StateInUseError
from duetime.local.places import StateDir, project_root
from duetime.local.stack import DEFAULT_PORT, LocalStack, is_held, is_running, read_status

DETACHED_START_S = 600
STOP_S = 25  # the local AWS is killed when its end takes 15 s

StateOption = Annotated[
    Path | None,
    typer.Option("--state-dir", help="Where jobs and deployment are kept (default: .duetime/state in the project)."),
]


def up(
    *,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready, and let it run.")] = False,
    state_dir: StateOption = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Of the local URL; 0: a free one.")] = DEFAULT_PORT,
    emulator_port: Annotated[int, typer.Option(min=0, max=65_535, help="Of the local AWS; 0: 4566 or a free one.")] = 0,
    enforce_iam: Annotated[bool, typer.Option("--enforce-iam", help="Refuse calls that IAM does not allow.")] = False,
    run_demo: Annotated[bool, typer.Option("--demo", help="When it is ready, run a job due in 10 s.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a local Duetime: the real stack on a local AWS, at http://127.0.0.1:8484."""
    with _plain_errors():
        state = _made(_state(state_dir))
        if detach:
            options = ["--port", str(port), "--emulator-port", str(emulator_port)]
            _detach(state, [*options, "--enforce-iam"] if enforce_iam else options)
            _say_ready(state, as_json)
            if run_demo:
                raise typer.Exit(demo(_url(state)))
            return
        steps = _Steps()
        stack = LocalStack(
            state.path, port=port, emulator_port=emulator_port, enforce_iam=enforce_iam, report=steps.say
        )
        _foreground(stack, steps, run_demo, as_json)


def down(state_dir: StateOption = None, *, as_json: AsJson = False) -> None:
    """End the local Duetime; its jobs are kept."""
    with _plain_errors():
        state = _state(state_dir)
        ended = is_held(state)
        if ended:
            _end(state)
        state.status.unlink(missing_ok=True)
        if as_json:
            sys.stdout.write(json.dumps({"ended": ended, "state_dir": str(state.path)}) + "\n")
            return
        said = f"ended; the jobs are kept in {state.path}" if ended else f"no local Duetime runs on {state.path}"
        out.print(said, markup=False, highlight=False)


def _end(state: StateDir) -> None:
    """Ask the process that holds the state to end, and wait until it has."""
    pid = (read_status(state) or {}).get("pid")
    if not isinstance(pid, int):
        raise LocalError(f"a local Duetime is just starting on {state.path}; try again in a moment")
    os.kill(pid, signal.SIGTERM)
    with err.status("ending; the state is being saved"):
        deadline = time.monotonic() + STOP_S
        while is_held(state) or is_running(pid):
            if time.monotonic() > deadline:
                raise LocalError(f"process {pid} has not ended within {STOP_S} s")
            time.sleep(0.1)


def _foreground(stack: LocalStack, steps: "_Steps", run_demo: bool, as_json: bool) -> None:
    with _signals_interrupt():
        try:
            with steps.shown():
                stack.start()
            _say_ready(stack.state, as_json)
            if run_demo:
                demo(stack.url)
            out.print("Ctrl-C ends it; the jobs are kept", highlight=False)
            while stack.alive:
                time.sleep(0.2)
        except KeyboardInterrupt:
            err.print("ending; the state is being saved" if stack.alive else "ended before it was ready")
            raise typer.Exit(Exit.OK if stack.alive else Exit.INTERRUPTED) from None
        finally:
            _uninterrupted(stack.stop)
    raise EmulatorError("the local AWS has died; what it saved up to 5 s before is kept: start again with `duetime up`")


def _detach(state: StateDir, options: list[str]) -> None:
    """Run `duetime up` in a session of its own and wait until it says that it is ready."""
    if is_held(state):
        raise StateInUseError(f"a local Duetime already runs on {state.path}: end it with `duetime down`")
    command = [sys.executable, "-m", "duetime", "up", "--state-dir", str(state.path), *options]
    with state.log.open("w") as log:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_until_ready(state, child)
    except KeyboardInterrupt:
        child.terminate()
        raise typer.Exit(Exit.INTERRUPTED) from None


def _wait_until_ready(state: StateDir, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DETACHED_START_S
    with err.status("starting") as line:
        while True:
            said = state.log.read_text(errors="replace")
            if child.poll() is not None:
                raise LocalError(last_lines(said).removeprefix("duetime: ") or "it ended without a word")
            status = read_status(state) or {}
            if status.get("pid") == child.pid and status.get("phase") == "ready":
                return
            if time.monotonic() > deadline:
                child.terminate()
                raise LocalError(f"it was not ready within {DETACHED_START_S} s; see {state.log}")
            line.update(escape(last_lines(said, 1)) or "starting")
            time.sleep(0.1)


def _say_ready(state: StateDir, as_json: bool) -> None:
    status = read_status(state) or {}
    if as_json:
        sys.stdout.write(json.dumps(status) + "\n")
        sys.stdout.flush()
        return
    table = Table(show_header=False, box=None)
    table.add_row("Duetime", f"[bold]{status.get('url')}/v1/[/bold]")
    table.add_row("AWS", f"{status.get('emulator_url')} (AWS_ENDPOINT_URL)")
    table.add_row("state", escape(str(state.path)))
    out.print(table)


class _Steps:
    """The steps of the start, each with the time since its beginning, and a sign of life below them."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._line = err.status("starting")

    def say(self, step: str) -> None:
        err.print(f"{time.monotonic() - self._begun:5.1f} s  {step}", markup=False, highlight=False)
        self._line.update(escape(step))

    def shown(self) -> AbstractContextManager[object]:
        return self._line


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except (LocalError, OSError) as error:  # as when the state directory may not be written to
        complain(_reason(error))
        raise typer.Exit(Exit.REFUSED) from None


def _reason(error: Exception) -> str:
    """An error of the system without its number, as `/proc/x: No such file or directory`."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """`duetime down` (SIGTERM) and a closed terminal (SIGHUP) end it just as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    former = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _uninterrupted(act: Callable[[], None]) -> None:
    """The state must be saved even when Ctrl-C is pressed twice."""
    former = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        act()
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _state(state_dir: Path | None) -> StateDir:
    return StateDir((state_dir or project_root() / ".duetime" / "state").resolve())


def _made(state: StateDir) -> StateDir:
    try:
        state.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(f"the state directory {state.path} cannot be made: {error.strerror}") from None
    return state


def _url(state: StateDir) -> str:
    return str((read_status(state) or {}).get("url"))
