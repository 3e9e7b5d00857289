"""The functions' package: complete, small, for its platform, and the same bytes each time."""

import hashlib
import marshal
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from infra.bundling import FUNCTIONS_LOCK, HANDLERS_LOCK, ROOT, BundlingError, bundle
from tests.infra.test_functions import SETTINGS

# What Lambda's Python brings with boto3.
RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six.py")
# The functions run on this Python in the local runtime, so this is the package that can be tried here.
HOST = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def deployed() -> Iterator[Path]:
    """The package of the default choices."""
    package = bundle("arm64", "3.13")
    yield package
    shutil.rmtree(package)


@pytest.fixture(scope="module")
def local() -> Iterator[Path]:
    """The package that runs on this machine."""
    package = bundle("x86_64" if os.uname().machine == "x86_64" else "arm64", HOST)
    yield package
    shutil.rmtree(package)


def files(package: Path) -> set[str]:
    return {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}


def digest(package: Path) -> str:
    total = hashlib.sha256()
    for name in sorted(files(package)):
        total.update(name.encode() + b"\0" + (package / name).read_bytes())
    return total.hexdigest()


def test_it_holds_the_sources_and_the_locked_packages_and_nothing_else(deployed: Path) -> None:
    """Whatever comes to this list is unpacked at every cold start. boto3 and what it needs are the runtime's."""
    assert {path.name for path in deployed.iterdir()} - {"__pycache__"} == {
        *("functions", "shared", "handlers"),
        *("aws_lambda_powertools", "croniter", "itsdangerous", "simplejson", "tzdata"),
        *("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions.py"),
    }


def test_it_holds_the_zone_database_which_lambda_lacks(deployed: Path) -> None:
    assert (deployed / "tzdata" / "zoneinfo" / "Europe" / "Berlin").is_file()


def test_it_leaves_out_what_is_not_read_at_run_time(deployed: Path) -> None:
    there = files(deployed)
    assert not [name for name in there if name.endswith((".pyi", ".dist-info"))]
    assert not [
        name for name in there if "/tests/" in name or name.startswith(("tests/", "infra/", "duetime/", "bin/"))
    ]
    assert not [name for name in there if ".dist-info/" in name]
    assert not list(deployed.glob("handlers/requirements*"))


def test_its_libraries_are_for_the_function_and_not_for_this_machine(deployed: Path) -> None:
    libraries = [name for name in files(deployed) if name.endswith(".so")]
    assert any("pydantic_core" in name for name in libraries)
    assert all("cpython-313-aarch64-linux-gnu" in name for name in libraries), libraries


def test_zipped_it_is_at_most_6_mb(deployed: Path, local: Path, tmp_path: Path) -> None:
    """With bytecode and without."""
    for package in (deployed, local):
        archive = tmp_path / "package.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
            for name in files(package):
                out.write(package / name, name)
        assert archive.stat().st_size <= 6_000_000


def test_its_bytecode_is_for_the_function_and_is_taken_as_it_is(deployed: Path, local: Path) -> None:
    assert all("cpython-313" in name for name in files(deployed) if name.endswith(".pyc"))
    compiled = [name for name in files(local) if name.endswith(".pyc")]
    assert f"shared/wiring/__pycache__/tick.cpython-{HOST.replace('.', '')}.pyc" in compiled
    for name in compiled:
        flags, code = int.from_bytes((local / name).read_bytes()[4:8], "little"), (local / name).read_bytes()[16:]
        assert flags == 0b01, "by hash, unchecked: a time or a check would void it on Lambda"
        assert marshal.loads(code).co_filename.startswith("/var/task/")


def test_it_goes_without_bytecode_where_no_such_python_is(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "none"))
    other = "3.13" if HOST != "3.13" else "3.12"
    assert not [name for name in files(bundle("arm64", other, project)) if name.endswith(".pyc")]


def test_a_handler_that_cannot_be_compiled_is_told_of_when_it_is_loaded(project: Path) -> None:
    (project / "handlers" / "broken.py").write_text("def")
    package = bundle("arm64", HOST, project)
    assert (package / "handlers" / "broken.py").is_file()
    compiled = {Path(name).name.split(".")[0] for name in files(package) if name.startswith("handlers/__pycache__/")}
    assert compiled == {"__init__"}


def test_the_same_sources_make_the_same_package(deployed: Path) -> None:
    again = bundle("arm64", "3.13")
    try:
        assert files(again) == files(deployed)
        assert digest(again) == digest(deployed)
    finally:
        shutil.rmtree(again)


def test_lambda_may_read_every_file_whatever_the_umask_here() -> None:
    before = os.umask(0o077)
    try:
        package = bundle("arm64", "3.13")
    finally:
        os.umask(before)
    try:
        modes = {path.stat().st_mode & 0o777 for path in package.rglob("*") if path.is_file()}
        assert modes == {0o644}
        assert package.stat().st_mode & 0o777 == 0o755
    finally:
        shutil.rmtree(package)


IMPORT = """
import importlib, pathlib
assert callable(importlib.import_module(f"functions.{name}.handler").handler)
loaded = [module for module in sys.modules.values() if getattr(module, "__file__", None)]
assert not [module for module in loaded if "site-packages" in module.__file__]
packaged = [module for module in loaded if module.__file__.startswith(sys.path[0]) and module.__file__.endswith(".py")]
assert not [module for module in packaged if not pathlib.Path(module.__cached__).is_file()], "without bytecode"
"""


@pytest.mark.parametrize("name", ["submit", "tick", "execute", "audit"])
def test_a_function_imports_from_the_package_and_the_runtime_alone(local: Path, tmp_path: Path, name: str) -> None:
    """Nothing of this environment is in sight but the packages that Lambda's runtime brings."""
    site = Path(boto3.__path__[0]).parent
    for package in RUNTIME:
        (tmp_path / package).symlink_to(site / package)
    program = f"import sys; sys.path[:0] = [{str(local)!r}, {str(tmp_path)!r}]; name = {name!r}\n" + IMPORT
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", program],
        env=environment(name),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def environment(name: str) -> dict[str, str]:
    """Values that the settings of a function accept."""
    numbers = {
        "shards": "1",
        "ticked_shards": "1",
        "horizon_s": "300",
        "retention_days": "30",
        "max_timeout_s": "105",
        "segments": "4",
    }
    variables = {v: numbers.get(field, "x") for field, v in SETTINGS[name].variables().items()}
    return {**variables, "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of just the lock file of one small package, and a handlers room."""
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "__init__.py").write_text("")
    (tmp_path / FUNCTIONS_LOCK).write_text(locked("itsdangerous"))
    return tmp_path


def locked(name: str) -> str:
    """The lines of `name` in the lock file of all."""
    lines = (ROOT / "requirements.lock").read_text().splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next((n for n in range(start + 1, len(lines)) if not lines[n][0].isspace()), len(lines))
    return "".join(lines[start:end])


def test_what_handlers_pin_for_themselves_comes_along(project: Path) -> None:
    assert not (bundle("arm64", "3.13", project) / "urllib3").exists()
    (project / HANDLERS_LOCK).write_text(locked("urllib3"))
    package = bundle("arm64", "3.13", project)
    assert (package / "urllib3").is_dir(), "a user's own pin comes along, though the runtime has one too"
    assert (package / "itsdangerous").is_dir()
    assert not list(package.glob("handlers/requirements*"))


def test_handlers_that_pin_another_version_are_told(project: Path) -> None:
    (project / HANDLERS_LOCK).write_text("itsdangerous==0.0.1 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(BundlingError, match=r"handlers/requirements\.lock"):
        bundle("arm64", "3.13", project)
    assert not list((project / "build").glob("wheels-*")), "a failed build leaves nothing that the next would trust"


def test_wheels_are_installed_once_for_a_lock_file(project: Path) -> None:
    first = bundle("arm64", "3.13", project)
    (kept,) = (project / "build").glob("wheels-*")
    (kept / "mark").write_text("still the same folder")
    assert (bundle("arm64", "3.13", project) / "mark").is_file()
    assert not (first / "mark").exists()
    assert not (bundle("x86_64", "3.13", project) / "mark").exists()
