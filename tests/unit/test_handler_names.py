"""Handler names are read from the sources: nothing is imported, and what submit accepts is what the executor knows."""

import json
import sys
from pathlib import Path

import pytest

from shared.targets.handler_api import Run, handler, registered
from shared.targets.names import HandlerSourceError, check_handler_name, handler_modules, handler_names
from tests.support.python_targets import SCHEDULED_FOR, attempt, running

DEMO = Path(__file__).parents[2] / "handlers"
IMPORT = "from handlers import handler\n"
F = "def f(payload, run): ..."
LITERAL = "jobs/module.py:2: write the name as a literal"


def write(directory: Path, **files: str) -> Path:
    package = directory / "jobs"
    for name, source in files.items():
        file = package / f"{name.replace('__in__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return package


def test_the_demo_names() -> None:
    assert handler_names(DEMO) == {"demo.echo", "demo.sleep", "demo.stubborn", "demo.fail", "demo.crash"}


@pytest.mark.parametrize(
    "source",
    [
        "from handlers import handler\n@handler('x')\ndef f(payload, run): ...",
        "from handlers import handler as job, Run\n@job('x')\ndef f(payload, run): ...",
        "from handlers import *\n@handler('x')\ndef f(payload, run): ...",
        "import handlers\n@handlers.handler('x')\ndef f(payload, run): ...",
        "import handlers as h\n@h.handler('x')\ndef f(payload, run): ...",
        "import handlers.demo\n@handlers.handler('x')\ndef f(payload, run): ...",
        "from shared.targets.handler_api import handler\n@handler('x')\ndef f(payload, run): ...",
        "from handlers import handler\n@handler(name='x')\ndef f(payload, run): ...",
        "from handlers import handler\nimport functools\n@functools.cache\n@handler('x')\ndef f(payload, run): ...",
        "from handlers import handler\ndef f(payload, run): ...\nhandler('x')(f)",
        "from handlers import handler\nif True:\n    @handler('x')\n    def f(payload, run): ...",
        "def g():\n    from handlers import handler\n    @handler('x')\n    def f(payload, run): ...\ng()",
        "import handlers\nclass C:\n    @staticmethod\n    @handlers.handler('x')\n    def f(payload, run): ...",
        "from handlers import handler\n@handler('''x''')\ndef f(payload, run): ...",
    ],
)
def test_a_name_is_found_however_the_decorator_was_imported(tmp_path: Path, source: str) -> None:
    package = write(tmp_path, __init__="", module=source)
    assert handler_names(package) == {"x"}
    with running(package) as target:  # and that is what the executor knows, the demo aside
        known = set((attempt(target, "?").error or "").partition("known: ")[2].split(", "))
    assert {name for name in known if not name.startswith("demo.")} == {"x"}


def test_names_within_the_package_itself_and_by_relative_imports(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        __init__="from handlers import handler\n@handler('top')\ndef f(payload, run): ...",
        a__in____init__="from .. import handler\n@handler('a')\ndef f(payload, run): ...",
        a__in__b="from .. import handler as h\n@h('a.b')\ndef f(payload, run): ...\nfrom . import deep",
        a__in__deep="from ... jobs import handler\n".replace("... jobs", "..")
        + "@handler('deep')\ndef f(payload, run): ...",
    )
    assert handler_names(package) == {"top", "a", "a.b", "deep"}


@pytest.mark.parametrize(
    "source",
    [
        "def handler(name): return lambda f: f\n@handler('x')\ndef f(payload, run): ...",
        "from aws_lambda import handler\n@handler('x')\ndef f(payload, run): ...",
        "# @handler('x')\n'''@handler('y')'''",
        "import other\n@other.handler('x')\ndef f(payload, run): ...",
        "",
    ],
)
def test_what_only_looks_like_it_is_none(tmp_path: Path, source: str) -> None:
    assert handler_names(write(tmp_path, module=source)) == frozenset()


def test_nothing_is_imported(tmp_path: Path) -> None:
    source = "raise SystemExit\nfrom handlers import handler\nimport no_such_module\n@handler('x')\ndef f(p, r): ..."
    before = set(sys.modules)
    assert handler_names(write(tmp_path, module=source)) == {"x"}
    assert {name for name in set(sys.modules) - before if name.startswith("jobs")} == set()


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def broken(:\n", "jobs/module.py:1: not valid Python: invalid syntax"),
        ("x = 1\n  y = 2\n", "jobs/module.py:2: not valid Python: unexpected indent"),
        ("x = 'a\0b'", "jobs/module.py:1: not valid Python: source code string cannot contain null bytes"),
        ("(" * 10_000, "jobs/module.py:1: not valid Python: too many nested parentheses"),
        (IMPORT + "@handler(NAME)\n" + F, LITERAL),
        (IMPORT + "@handler(f'x{1}')\n" + F, LITERAL),
        (IMPORT + "@handler()\n" + F, LITERAL),
        (IMPORT + "@handler(b'x')\n" + F, LITERAL),
        (IMPORT + "@handler('a b')\n" + F, "module.py:2: handler name 'a b' must be"),
        (IMPORT + "@handler('x')\n" + F + "\n@handler('x')\n" + F,
         "handler 'x' is defined twice: at jobs/module.py:2 and at jobs/module.py:4"),
    ],
)  # fmt: skip
def test_errors_name_the_file_and_line(tmp_path: Path, source: str, error: str) -> None:
    with pytest.raises(HandlerSourceError) as raised:
        handler_names(write(tmp_path, module=source))
    assert error in str(raised.value)


def test_a_name_used_in_two_files(tmp_path: Path) -> None:
    source = "from handlers import handler\n@handler('x')\ndef f(payload, run): ..."
    with pytest.raises(HandlerSourceError, match=r"twice: at jobs/a\.py:2 and at jobs/b\.py:2"):
        handler_names(write(tmp_path, a=source, b=source))


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    package = write(tmp_path, __init__="")
    source = "# coding: latin-1\nfrom handlers import handler\nTEXT = 'é'\n@handler('x')\ndef f(payload, run): ...\n"
    (package / "old.py").write_bytes(source.encode("latin-1"))
    assert handler_names(package) == {"x"}


def test_which_files_are_modules(tmp_path: Path) -> None:
    package = write(tmp_path, __init__="", a="", b__in____init__="", b__in__c="", d__in__e="")
    for odd in ("__pycache__/a.py", ".hidden/a.py", ".a.py", "notes.txt"):
        (package / odd).parent.mkdir(exist_ok=True)
        (package / odd).write_text("this is (no Python")
    assert list(handler_modules(package)) == ["jobs", "jobs.a", "jobs.b", "jobs.b.c", "jobs.d.e"]
    (package / "my-job.py").touch()
    with pytest.raises(HandlerSourceError, match=r"jobs/my-job\.py: 'my-job' cannot be imported"):
        handler_modules(package)


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(HandlerSourceError, match="there is no handlers directory"):
        handler_names(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["a", "A1", "demo.echo", "a:b-c_d.e", "0", "x" * 128])
def test_good_names(name: str) -> None:
    assert check_handler_name(name) == name


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "é", "a/b", "a\n", "x" * 129, None, 5, b"a"])
def test_bad_names(name: object) -> None:
    with pytest.raises(ValueError, match="must be 1 to 128 letters"):
        check_handler_name(name)


def test_the_decorator_leaves_the_function_as_it_is_and_a_run_can_be_made_for_a_test() -> None:
    def count(payload: list[int], run: Run) -> dict[str, int]:
        return {"count": len(payload), "attempt": run.attempt}

    assert handler("test.count")(count) is count
    assert registered()["test.count"] is count
    run = Run(job_id="j", scheduled_for=SCHEDULED_FOR, attempt=1, max_attempts=3, idempotency_key="j/2026")
    assert count([1, 2], run) == {"count": 2, "attempt": 1}
    assert run.remaining_s() == float("inf")
    with pytest.raises(ValueError, match=r"handler 'test\.count' is defined twice"):
        handler("test.count")(count)
    assert json.dumps(sorted(registered()))
