"""The functions' package, built without Docker: locked wheels, the sources, bytecode. It never runs what it installs.

The wheels are kept under build/, named by all that decides them, so that only a change of a lock file installs again.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS_LOCK = "requirements-functions.lock"
HANDLERS_LOCK = "handlers/requirements.lock"
SOURCES = ("functions", "shared", "handlers")
_UV = str(Path(sys.prefix) / "bin" / "uv")
_PLATFORMS = {"arm64": "aarch64-manylinux2014", "x86_64": "x86_64-manylinux2014"}
# Lambda's runtime has these, since its boto3 needs them. Only our own lock goes without them: what handlers pin for
# themselves they get.
RUNTIME_BRINGS = ("botocore", "jmespath", "python-dateutil", "six", "urllib3")
# Scripts, stubs and packages' metadata are not read at run time (a test imports every function from the package).
_WHEEL_LEFTOVERS = (
    *("bin", "*.dist-info", "*-stubs", "**/__pycache__", "**/*.pyi", "**/py.typed", "**/*.c", ".lock"),
    *("croniter/tests", "simplejson/tests", "pydantic/mypy.py", "pydantic/v1/mypy.py"),
)
# What a start loads gets its bytecode, since Lambda keeps none from one start to the next; the rest of Powertools and
# pydantic is never loaded, and would take the package over 6 MB. (A test holds this list against what is loaded.)
_POWERTOOLS = (
    *("*.py", "exceptions", "logging", "metrics", "middleware_factory", "shared", "tracing", "warnings"),
    *("utilities/*.py", "utilities/idempotency", "utilities/jmespath_utils", "utilities/typing"),
)
_COMPILED_WHEELS = (
    *(f"aws_lambda_powertools/{part}" for part in _POWERTOOLS),
    *("pydantic/*.py", "pydantic/_internal", "pydantic/plugin", "pydantic_core", "annotated_types"),
    *("typing_inspection", "typing_extensions.py", "croniter", "simplejson", "itsdangerous"),
)
_SOURCE_LEFTOVERS = shutil.ignore_patterns("__pycache__", "*.pyc", "tests", "requirements.*", ".*")


class BundlingError(RuntimeError):
    """The package could not be built; the message holds what uv said."""


def bundle(architecture: str, python_version: str, root: Path = ROOT) -> Path:
    """Build the package for `architecture` (arm64, x86_64) and `python_version`; answers its folder, made anew.

    Bytecode is in it if there is a Python of that version here to write it.
    """
    python = _interpreter(python_version)
    wheels = _wheels(architecture, python_version, python, root)
    package = Path(tempfile.mkdtemp(prefix="package-", dir=root / "build"))
    shutil.copytree(wheels, package, dirs_exist_ok=True)
    for source in SOURCES:
        if (root / source).is_dir():
            shutil.copytree(root / source, package / source, ignore=_SOURCE_LEFTOVERS)
    _compile(package, python, SOURCES)
    for path in (package, *package.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)  # whatever the umask here: Lambda reads them as another user
    return package


def _interpreter(version: str) -> Path | None:
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return Path(sys.executable)
    command = [_UV, "python", "find", "--no-project", "--no-python-downloads", version]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if found.returncode else Path(found.stdout.strip())


def _compile(folder: Path, python: Path | None, patterns: Iterable[str]) -> None:
    """Write the bytecode of what fits `patterns`. A file that cannot be compiled is left: its import will tell why."""
    if python is None:
        return
    found = [path for pattern in patterns for path in folder.glob(pattern)]
    files = {file for path in found for file in (path.rglob("*.py") if path.is_dir() else [path])}
    # Unchecked: the sources are in the same package, with times of their own.
    command = [str(python), "-I", "-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(folder), "-p", "/var/task", "-i", "-"]
    subprocess.run(command, input="\n".join(map(str, sorted(files))), text=True, check=False)


def _wheels(architecture: str, python_version: str, python: Path | None, root: Path) -> Path:
    locks = [root / name for name in (FUNCTIONS_LOCK, HANDLERS_LOCK) if (root / name).is_file()]
    platform = _PLATFORMS[architecture]
    compiler = b"none" if python is None else subprocess.run([python, "-VV"], capture_output=True, check=True).stdout
    key = _digest([platform.encode(), python_version.encode(), compiler, Path(__file__).read_bytes()], locks)
    kept = root / "build" / f"wheels-{architecture}-{python_version}-{key[:16]}"
    if not kept.is_dir():
        kept.parent.mkdir(exist_ok=True)
        _into(kept, lambda target: _install(target, platform, python_version, python, locks))
    return kept


def _digest(parts: Iterable[bytes], files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for part in [*parts, *(file.read_bytes() for file in files)]:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _into(kept: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder beside `kept`, then rename it: a build that dies, or two at a time, leave nothing half done."""
    draft = Path(tempfile.mkdtemp(prefix=f"{kept.name}-", dir=kept.parent))
    try:
        fill(draft)
        draft.chmod(0o755)
        draft.rename(kept)
    except OSError:
        if not kept.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _install(target: Path, platform: str, python_version: str, python: Path | None, locks: list[Path]) -> None:
    command = [
        *(_UV, "pip", "install", "--quiet", "--no-deps"),
        *("--target", str(target), "--python", sys.executable, "--link-mode", "copy"),
        *("--python-platform", platform, "--python-version", python_version),
        *("--only-binary", ":all:", "--require-hashes"),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for number, lock in enumerate(locks):
            wanted = Path(scratch, f"{number}-{lock.name}")
            text = lock.read_text(encoding="utf-8")
            wanted.write_text(_without_runtime(text) if lock.name == FUNCTIONS_LOCK else text, encoding="utf-8")
            command += ["--requirements", str(wanted)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        names = " and ".join(str(lock) for lock in locks)
        raise BundlingError(f"uv could not install {names} for Python {python_version} on {platform}:\n{done.stderr}")
    for pattern in _WHEEL_LEFTOVERS:
        for leftover in list(target.glob(pattern)):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
    _compile(target, python, _COMPILED_WHEELS)


def _without_runtime(lock: str) -> str:
    """The lock file without what the runtime brings. A package starts its line; its hashes follow, indented."""
    kept: list[str] = []
    keeping = True
    for line in lock.splitlines(keepends=True):
        if not line[0].isspace():
            keeping = line.split("==")[0] not in RUNTIME_BRINGS
        if keeping:
            kept.append(line)
    return "".join(kept)
