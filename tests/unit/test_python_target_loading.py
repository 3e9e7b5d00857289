"""Loading the handlers: what goes wrong in one module is told in its own attempts, and the other modules work."""

import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.model.run import Outcome
from shared.targets import python
from shared.targets.target import Signals
from tests.support.python_targets import a_call, attempt, eventually, running, write_package, zygote_pid

ROOT = Path(__file__).parents[2]
GOOD = """
@handler("good")
def good(payload, run):
    return "good"
"""


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import no_such_module", "jobs.bad: ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "jobs.bad: ZeroDivisionError: division by zero"),
        ("def broken(:", "jobs.bad: SyntaxError: invalid syntax (bad.py, line 2)"),
        ("raise SystemExit(3)", "jobs.bad: SystemExit: 3"),
        ("import os; os._exit(3)", "jobs.bad: its import ended the process, which exited with code 3"),
        ("import os; os.kill(os.getpid(), 11)",
         "jobs.bad: its import ended the process, which was ended by signal SIGSEGV"),
        ("@handler('good')\ndef other(payload, run): pass",
         "jobs.good: ValueError: handler 'good' is defined twice: by jobs.bad.other and by jobs.good.good"),
        ("@handler('a b')\ndef other(payload, run): pass", "jobs.bad: ValueError: handler name 'a b' must be 1 to 128"),
        ("@handler('bad')\nasync def other(payload, run): pass",
         "jobs.bad: TypeError: handler 'bad' must be a plain function; jobs.bad.other is async or a generator"),
        ("@handler('bad')\ndef other(payload, run): yield",
         "jobs.bad: TypeError: handler 'bad' must be a plain function; jobs.bad.other is async or a generator"),
        ("@handler('bad')\ndef other(payload): pass", "jobs.bad: TypeError: handler 'bad' must take (payload, run)"),
        ("handler('bad')(5)", "jobs.bad: TypeError: handler 'bad' must be a function (payload, run), not int"),
    ],
)  # fmt: skip
def test_a_module_that_cannot_be_imported(tmp_path: Path, source: str, error: str) -> None:
    with running(
        write_package(tmp_path, {"bad": source, "good": GOOD, "other": GOOD.replace("good", "other")})
    ) as target:
        for _ in range(2):
            result = attempt(target, "bad")
            assert result.outcome is Outcome.FAILED
            assert (result.error or "").startswith(f"handler 'bad' is not loaded; could not be imported: {error}")
        assert attempt(target, "other").result == '"other"'


def test_a_module_that_fails_half_way_has_no_handlers(tmp_path: Path) -> None:
    """Whoever imported it: its error is its own."""
    modules = {"a": "from jobs import b", "b": f"{GOOD}\nraise OSError('half way')", "c": GOOD.replace("good", "c")}
    with running(write_package(tmp_path, modules)) as target:
        assert attempt(target, "good").error == (
            "handler 'good' is not loaded; could not be imported: "
            "jobs.a: OSError: half way; jobs.b: OSError: half way; known: c"
        )


def test_an_import_that_never_ends_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "LOAD_LIMIT_S", 3.0)
    with running(write_package(tmp_path, {"bad": "import time; time.sleep(600)", "good": GOOD})) as target:
        assert attempt(target, "good").result == '"good"'
        assert "jobs.bad: its import did not finish within 3 s" in (attempt(target, "bad").error or "")


def test_stop_while_handlers_are_being_loaded(tmp_path: Path) -> None:
    with running(write_package(tmp_path, {"slow": "import time; time.sleep(600)"})) as target:
        signals = Signals()
        threading.Timer(0.3, signals.stop.set).start()
        began = time.monotonic()
        assert target.call(a_call("slow"), signals).outcome is Outcome.CANCELLED
        assert time.monotonic() - began < 10


def test_loading_is_no_part_of_an_attempts_timeout(tmp_path: Path) -> None:
    with running(write_package(tmp_path, {"good": f"import time; time.sleep(0.6)\n{GOOD}"})) as target:
        assert attempt(target, "good", timeout_s=0.5).result == '"good"'


def test_a_broken_package_fails_every_attempt(tmp_path: Path) -> None:
    package = write_package(tmp_path, {"good": GOOD})
    (package / "__init__.py").write_text("raise RuntimeError('not configured')")
    with running(package) as target:
        assert attempt(target, "good").error == (
            "handler 'good' is not loaded; could not be imported: jobs: RuntimeError: not configured; known: none"
        )


def test_a_missing_directory_fails_every_attempt(tmp_path: Path) -> None:
    with running(tmp_path / "nowhere") as target:
        result = attempt(target, "good")
        assert result.outcome is Outcome.FAILED
        assert f"there is no handlers directory {tmp_path}/nowhere" in (result.error or "")


def test_a_package_of_the_same_name_elsewhere_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write_package(tmp_path / "other", {"good": GOOD})
    monkeypatch.syspath_prepend(str(other.parent))
    with running(write_package(tmp_path / "mine", {"good": GOOD})) as target:
        error = attempt(target, "good").error or ""
    assert f"jobs was imported from {other}/__init__.py" in error


def test_modules_in_folders_are_loaded(tmp_path: Path) -> None:
    with running(write_package(tmp_path, {"a/b/deep": GOOD, "a/__init__": "VALUE = 1"})) as target:
        assert attempt(target, "good").result == '"good"'


def test_handlers_import_what_the_executor_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "only_here.py").write_text("VALUE = 7")
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    source = "import only_here\n@handler('value')\ndef value(payload, run): return only_here.VALUE"
    with running(write_package(tmp_path, {"uses": source})) as target:
        assert attempt(target, "value").result == "7"


def test_a_module_that_failed_is_tried_again_and_attempts_going_on_are_not_disturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python, "RELOAD_AFTER_S", 0.0)
    sleeper = "import time\n@handler('sleep')\ndef sleep(payload, run):\n    time.sleep(1.5)\n    return 'slept'"
    flaky = f"if not __import__('os').path.exists({str(tmp_path / 'there')!r}): raise OSError('not yet')\n{GOOD}"
    with (
        running(write_package(tmp_path, {"flaky": flaky, "sleeper": sleeper})) as target,
        ThreadPoolExecutor(1) as pool,
    ):
        first = zygote_pid(target)
        going_on = pool.submit(attempt, target, "sleep")
        time.sleep(0.3)
        assert "OSError: not yet" in (attempt(target, "good").error or "")
        (tmp_path / "there").touch()
        assert attempt(target, "good").result == '"good"'
        assert zygote_pid(target) != first
        assert going_on.result(5).result == '"slept"'
        assert eventually(lambda: not Path(f"/proc/{first}").exists())


def test_a_crash_while_loading_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "RELOAD_AFTER_S", 0.0)
    flaky = f"import os\nif not os.path.exists({str(tmp_path / 'there')!r}): os._exit(1)\n{GOOD}"
    with running(write_package(tmp_path, {"flaky": flaky})) as target:
        assert "exited with code 1" in (attempt(target, "good").error or "")
        (tmp_path / "there").touch()
        assert attempt(target, "good").result == '"good"'


def test_ten_at_once_on_a_cold_start(tmp_path: Path) -> None:
    with (
        running(write_package(tmp_path, {"bad": "import os; os._exit(3)", "good": GOOD})) as target,
        ThreadPoolExecutor(10) as pool,
    ):
        results = list(pool.map(lambda n: attempt(target, "bad" if n % 2 else "good").outcome, range(10)))
    assert results == [Outcome.SUCCEEDED, Outcome.FAILED] * 5


def test_an_interpreter_that_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with running(write_package(tmp_path, {"good": GOOD})) as target:
        result = attempt(target, "good")
    assert result.outcome is Outcome.FAILED
    assert result.error == "the process that starts handlers exited with code 1 before it could load them"


def test_an_interpreter_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with running(write_package(tmp_path, {"good": GOOD})) as target:
        target.start()
        result = attempt(target, "good")
        assert result.outcome is Outcome.LOST
        assert "could not be started: [Errno 2]" in (result.error or "")
        monkeypatch.undo()
        assert attempt(target, "good").result == '"good"'


def test_no_room_for_a_process_is_that_attempts_outcome(tmp_path: Path) -> None:
    """As when memory or the number of processes is at its limit."""
    full = f"""
import os
fork = os.fork
def refuse():
    if os.path.exists({str(tmp_path / "full")!r}):
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()
os.fork = refuse
"""
    with running(write_package(tmp_path, {"full": full, "good": GOOD})) as target:
        zygote = zygote_pid(target)
        (tmp_path / "full").touch()
        result = attempt(target, "good")
        assert result.outcome is Outcome.LOST
        assert result.error == (
            "no process could be started: BlockingIOError: [Errno 11] Resource temporarily unavailable"
        )
        (tmp_path / "full").unlink()
        assert attempt(target, "good").result == '"good"'
        assert zygote_pid(target) == zygote


def test_it_works_where_main_is_a_runtimes_bootstrap_without_dev_shm(tmp_path: Path) -> None:
    """As on Lambda: `__main__` is somebody else's script, which must not run a second time."""
    package = write_package(tmp_path, {"good": GOOD})
    bootstrap = tmp_path / "bootstrap.py"
    bootstrap.write_text(
        textwrap.dedent(f"""
            import sys
            print("bootstrap")
            sys.path[:0] = [{str(ROOT)!r}]
            from pathlib import Path
            from tests.support.python_targets import attempt, running
            with running(Path({str(package)!r})) as target:
                print(attempt(target, "good").result)
            print(sorted(name for name in sys.modules if name.startswith(("multiprocessing", "jobs"))))
        """)
    )
    done = subprocess.run([sys.executable, str(bootstrap)], check=True, capture_output=True, timeout=60)
    assert done.stdout.decode().splitlines() == ["bootstrap", '"good"', "[]"]
