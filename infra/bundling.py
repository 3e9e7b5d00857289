"""The functions' package, built without Docker: locked wheels and the sources. It never runs what it installs.

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
_PLATFORMS = {"arm64": "aarch64-manylinux2014", "x86_64": "x86_64-manylinux2014"}
# Scripts, stubs and packages' metadata are not read at run time (a test imports every function from the package).
_WHEEL_LEFTOVERS = (
    *("bin", "*.dist-info", "*-stubs", "**/__pycache__", "**/*.pyi", "**/py.typed", "**/*.c", ".lock"),
    *("croniter/tests", "simplejson/tests"),
)
_SOURCE_LEFTOVERS = shutil.ignore_patterns("__pycache__", "*.pyc", "tests", "requirements.*", ".*")


class BundlingError(RuntimeError):
    """The package could not be built; the message holds what uv said."""


def bundle(architecture: str, python_version: str, root: Path = ROOT) -> Path:
    """Build the package for `architecture` (arm64, x86_64) and `python_version`; answers its folder, made anew."""
    wheels = _wheels(architecture, python_version, root)
    package = Path(tempfile.mkdtemp(prefix="package-", dir=root / "build"))
    shutil.copytree(wheels, package, dirs_exist_ok=True)
    for source in SOURCES:
        if (root / source).is_dir():
            shutil.copytree(root / source, package / source, ignore=_SOURCE_LEFTOVERS)
    for path in (package, *package.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)  # whatever the umask here: Lambda reads them as another user
    return package


def _wheels(architecture: str, python_version: str, root: Path) -> Path:
    locks = [root / name for name in (FUNCTIONS_LOCK, HANDLERS_LOCK) if (root / name).is_file()]
    platform = _PLATFORMS[architecture]
    key = _digest([platform.encode(), python_version.encode(), Path(__file__).read_bytes()], locks)
    kept = root / "build" / f"wheels-{architecture}-{python_version}-{key[:16]}"
    if not kept.is_dir():
        kept.parent.mkdir(exist_ok=True)
        _into(kept, lambda target: _install(target, platform, python_version, locks))
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


def _install(target: Path, platform: str, python_version: str, locks: list[Path]) -> None:
    command = [
        *(str(Path(sys.prefix) / "bin" / "uv"), "pip", "install", "--quiet", "--no-deps"),
        *("--target", str(target), "--python", sys.executable, "--link-mode", "copy"),
        *("--python-platform", platform, "--python-version", python_version),
        *("--only-binary", ":all:", "--require-hashes"),
    ]
    for lock in locks:
        command += ["--requirements", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        names = " and ".join(str(lock) for lock in locks)
        raise BundlingError(f"uv could not install {names} for Python {python_version} on {platform}:\n{done.stderr}")
    for pattern in _WHEEL_LEFTOVERS:
        for leftover in list(target.glob(pattern)):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
