"""Makes the environments of the emulator and of the CDK command. It never touches the one that is running."""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from duetime.local.errors import MissingToolError, SetUpError

EMULATOR_LOCK = "requirements-emulator.lock"
INSTALL_S = 600
NODE_MAJOR = 18
_tools: set[subprocess.Popen[str]] = set()  # that run at this moment


def emulator_python(root: Path) -> Path:
    """The Python of the emulator's environment, made when its lock file is new. Raises SetUpError, MissingToolError.

    It holds ministack and boto3, as a Lambda runtime does, and none of Duetime's packages: a function that leans on a
    package which was not bundled with it fails here as it would on AWS.
    """
    lock = root / EMULATOR_LOCK
    key = hashlib.sha256(lock.read_bytes() + f"{sys.version_info[:2]}{sys.prefix}".encode()).hexdigest()[:12]
    home = root / ".duetime" / f"emulator-{key}"
    python = home / "bin" / "python"
    with _alone(root / ".duetime" / "emulator.lock"):
        if not (home / "ready").is_file():
            shutil.rmtree(home, ignore_errors=True)
            venv.create(home, with_pip=False, symlinks=True)
            run(
                [
                    _uv(),
                    "pip",
                    "sync",
                    "--quiet",
                    "--no-config",
                    "--require-hashes",
                    "--python",
                    str(python),
                    str(lock),
                ],
                root,
            )
            (home / "ready").touch()
    return python


def cdk_command(root: Path) -> Path:
    """The CDK command that package-lock.json pins, installed when missing. Raises SetUpError, MissingToolError."""
    check_node()
    command = root / "node_modules" / ".bin" / "cdk"
    lock = root / "package-lock.json"
    stamp = root / "node_modules" / ".duetime-lock"
    with _alone(root / ".duetime" / "node.lock"):
        current = hashlib.sha256(lock.read_bytes()).hexdigest()
        if not command.exists() or (stamp.is_file() and stamp.read_text() != current):
            npm = shutil.which("npm")
            if npm is None:
                raise MissingToolError(f"npm is not on the PATH: install Node.js {NODE_MAJOR} or newer, with npm")
            run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], root)
            stamp.write_text(current)
    return command


def check_node() -> None:
    """Raises MissingToolError when there is no Node.js, or too old a one."""
    wanted = f"the AWS CDK needs Node.js {NODE_MAJOR} or newer"
    node = shutil.which("node")
    if node is None:
        raise MissingToolError(f"node is not on the PATH: {wanted}")
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    major = said.removeprefix("v").partition(".")[0]
    if not major.isdigit() or int(major) < NODE_MAJOR:
        raise MissingToolError(f"{node} is version {said or 'unknown'}: {wanted}")


def run(command: list[str], directory: Path, env: dict[str, str] | None = None) -> None:
    """Run a tool to its end. Raises SetUpError with the last lines that it said."""
    code, said = run_tool(command, directory, env, INSTALL_S)
    if code is None:
        raise SetUpError(f"{Path(command[0]).name} did not end within {INSTALL_S} s")
    if code:
        raise SetUpError(f"{' '.join([Path(command[0]).name, *command[1:3]])} failed:\n{last_lines(said)}")


def run_tool(
    command: list[str], directory: Path, env: dict[str, str] | None, within_s: float
) -> tuple[int | None, str]:
    """Run a tool; answers its exit code, None when it had to be ended, and all that it said."""
    with subprocess.Popen(
        command,
        cwd=directory,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # it and what it starts can be ended together
    ) as tool:
        _tools.add(tool)
        try:
            said, _ = tool.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            _kill(tool)
            return None, tool.communicate()[0]
        except BaseException:
            _kill(tool)
            raise
        finally:
            _tools.discard(tool)
    return tool.returncode, said


@contextmanager
def tools_end_on_failure() -> Iterator[None]:
    """End the tools that other threads still wait for when this block fails, as by Ctrl-C."""
    try:
        yield
    except BaseException:
        for tool in list(_tools):
            _kill(tool)
        raise


def _kill(tool: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(tool.pid, signal.SIGKILL)


def last_lines(text: str, count: int = 15) -> str:
    """The end of what a tool said, where the reason stands."""
    return "\n".join(text.rstrip().splitlines()[-count:])


def _uv() -> str:
    beside = Path(sys.prefix) / "bin" / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise MissingToolError("uv is not in this environment: run `make setup`")
    return found


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Two local Duetimes that start at the same time must not set the same thing up twice."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
