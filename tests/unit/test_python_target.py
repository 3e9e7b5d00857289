"""The python target: each way a handler can end is that attempt's outcome, and the batch goes on."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.model.call import Call
from shared.model.job import Target
from shared.model.run import Outcome, Result
from shared.targets.dispatch import Targets
from shared.targets.python import PythonTarget
from shared.targets.target import Signals
from tests.support.python_targets import SCHEDULED_FOR, a_call, attempt, running, write_package

DEMO = Path(__file__).parents[2] / "handlers"
SOURCE = """
import ctypes, os, signal, sys, time

@handler("tell")
def tell(payload, run: Run):
    return {"job_id": run.job_id, "scheduled_for": run.scheduled_for.isoformat(), "attempt": run.attempt,
            "max_attempts": run.max_attempts, "idempotency_key": run.idempotency_key, "remaining_s": run.remaining_s()}

@handler("end")
def end(payload, run):
    match payload["how"]:
        case "exit": os._exit(payload["code"])
        case "signal":
            os.kill(os.getpid(), payload["number"])
            time.sleep(30)
        case "segfault": ctypes.string_at(0)
        case "sys.exit": sys.exit(payload["code"])
        case "interrupt": raise KeyboardInterrupt
        case "memory": raise MemoryError
        case "recursion": return end(payload, run)
        case "stack":
            class Endless: pass
            Endless.__call__ = Endless()
            sys.setrecursionlimit(1 << 30)
            Endless()()
        case "exec": os.execv("/bin/false", ["false"])
        case "unreadable":
            class OddError(Exception):
                def __str__(self): raise RuntimeError("no")
            raise OddError
        case "raise": raise ValueError(payload["text"])

@handler("spin")
def spin(payload, run):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True: pass

@handler("type")
def kinds(payload, run):
    return [type(value).__name__ for value in payload]

@handler("return")
def give(payload, run):
    return eval(payload)

@handler("environment")
def environment(payload, run):
    return [os.environ.get(payload), os.getcwd(), sys.stdin.read()]
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonTarget]:
    with running(write_package(tmp_path_factory.mktemp("outcomes"), {"many": SOURCE})) as target:
        yield target


@pytest.fixture(scope="module")
def demo() -> Iterator[PythonTarget]:
    with running(DEMO) as target:
        yield target


def end(target: PythonTarget, how: str, **more: object) -> Result:
    return attempt(target, "end", json.dumps({"how": how, **more}))


def test_the_demo_handlers(demo: PythonTarget) -> None:
    assert attempt(demo, "demo.echo", '{"a": 30.40}') == Result(outcome=Outcome.SUCCEEDED, result='{"a":30.40}')
    assert attempt(demo, "demo.sleep", '{"s": 0.01}').result == '{"slept_s":0.01}'
    assert attempt(demo, "demo.fail").error == "RuntimeError: demo.fail was told to fail"
    assert attempt(demo, "demo.fail", '{"message": "no customer"}').error == "RuntimeError: no customer"
    assert attempt(demo, "demo.crash") == Result(
        outcome=Outcome.LOST, error="the process exited with code 1 before the handler returned"
    )
    assert attempt(demo, "demo.fail", "5").error == "RuntimeError: demo.fail was told to fail"
    assert attempt(demo, "demo.crash", attempt=2).result == '{"attempt":2}'
    twice = '{"attempts": 2, "signal": "SIGSEGV"}'
    assert "SIGSEGV" in (attempt(demo, "demo.crash", twice, attempt=2).error or "")
    assert attempt(demo, "demo.crash", twice, attempt=3).outcome is Outcome.SUCCEEDED


def test_a_handler_is_told_about_its_run(target: PythonTarget) -> None:
    told = json.loads(attempt(target, "tell", attempt=2, timeout_s=7).result or "")
    assert 6 < told.pop("remaining_s") <= 7
    assert told == {
        "job_id": "job-1",
        "scheduled_for": SCHEDULED_FOR.isoformat(),
        "attempt": 2,
        "max_attempts": 3,
        "idempotency_key": "job-1/2026-11-29T12:00:05Z",
    }


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"how": "exit", "code": 0}, "exited with code 0"),
        ({"how": "exit", "code": 41}, "exited with code 41"),
        ({"how": "signal", "number": 9}, "was ended by signal SIGKILL"),
        ({"how": "signal", "number": 15}, "was ended by signal SIGTERM"),
        ({"how": "signal", "number": 40}, "was ended by signal 40"),
        ({"how": "segfault"}, "was ended by signal SIGSEGV"),
        ({"how": "exec"}, "exited with code 1"),
    ],
)
def test_a_process_that_dies_is_a_lost_attempt(target: PythonTarget, how: dict[str, object], error: str) -> None:
    result = attempt(target, "end", json.dumps(how))
    assert result == Result(outcome=Outcome.LOST, error=f"the process {error} before the handler returned")
    assert attempt(target, "tell").outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"how": "raise", "text": "no such customer"}, "ValueError: no such customer"),
        ({"how": "raise", "text": ""}, "ValueError"),
        ({"how": "sys.exit", "code": 0}, "SystemExit: 0"),
        ({"how": "sys.exit", "code": 3}, "SystemExit: 3"),
        ({"how": "interrupt"}, "KeyboardInterrupt"),
        ({"how": "memory"}, "MemoryError"),
        ({"how": "recursion"}, "RecursionError: maximum recursion depth exceeded"),
        ({"how": "unreadable"}, "OddError: (it has no readable text)"),
    ],
)
def test_whatever_a_handler_raises_is_a_failed_attempt(
    target: PythonTarget, how: dict[str, object], error: str
) -> None:
    result = attempt(target, "end", json.dumps(how))
    assert (result.outcome, result.result) == (Outcome.FAILED, None)
    assert (result.error or "").startswith(error)


def test_recursion_to_death_ends_the_attempt(target: PythonTarget) -> None:
    """By a signal up to Python 3.11, by an exception after it."""
    result = end(target, "stack")
    assert result.outcome in (Outcome.LOST, Outcome.FAILED)
    assert any(how in (result.error or "") for how in ("SIGSEGV", "RecursionError"))


@pytest.mark.parametrize("text", ["x" * 5000, "é" * 400, "a" + "é" * 400, "\U0001f600" * 200, "\ud800 half", "a\0b"])
def test_an_error_takes_at_most_512_bytes_and_ends_with_a_whole_character(target: PythonTarget, text: str) -> None:
    error = end(target, "raise", text=text).error or ""
    assert error.startswith("ValueError: ")
    assert 0 < len(error.encode()) <= 512
    if len(text.encode(errors="replace")) > 500:
        assert error.endswith("…")
        assert len(error.encode()) > 505


def test_a_timeout_ends_a_handler_that_ignores_signals(target: PythonTarget) -> None:
    began = time.monotonic()
    result = attempt(target, "spin", timeout_s=0.3)
    assert result == Result(outcome=Outcome.TIMED_OUT, error="did not finish within 0.3 s")
    assert 0.3 <= time.monotonic() - began < 15


def test_stop_ends_the_attempt_promptly(target: PythonTarget) -> None:
    signals = Signals()
    threading.Timer(0.2, signals.stop.set).start()
    began = time.monotonic()
    assert target.call(a_call("spin"), signals).outcome is Outcome.CANCELLED
    assert 0.2 <= time.monotonic() - began < 15


def test_stopped_before_it_began_no_handler_is_called(target: PythonTarget, tmp_path: Path) -> None:
    """I5."""
    signals = Signals()
    signals.stop.set()
    trace = tmp_path / "called"
    payload = json.dumps(f"open({str(trace)!r}, 'w').write('x')")
    assert target.call(a_call("return", payload), signals).outcome is Outcome.CANCELLED
    assert not trace.exists()
    attempt(target, "return", payload)
    assert trace.exists()


def test_ten_at_once_each_with_its_own_end(target: PythonTarget) -> None:
    calls = [
        ("tell", "null", 20.0, Outcome.SUCCEEDED),
        ("end", '{"how": "exit", "code": 1}', 20.0, Outcome.LOST),
        ("end", '{"how": "segfault"}', 20.0, Outcome.LOST),
        ("spin", "null", 0.5, Outcome.TIMED_OUT),
        ("end", '{"how": "raise", "text": "x"}', 20.0, Outcome.FAILED),
    ] * 2
    with ThreadPoolExecutor(10) as pool:
        began = time.monotonic()
        ends = list(pool.map(lambda c: attempt(target, c[0], c[1], timeout_s=c[2]).outcome, calls))
    assert ends == [expected for *_, expected in calls]
    assert time.monotonic() - began < 15


def test_an_unknown_handler_is_named_with_the_known_ones(target: PythonTarget) -> None:
    result = attempt(target, "nope")
    assert result.outcome is Outcome.FAILED
    assert result.error == "handler 'nope' is not known; known: end, environment, return, spin, tell, type"


def test_a_target_without_a_handler_name_fails(target: PythonTarget) -> None:
    assert attempt(target, 5) == Result(outcome=Outcome.FAILED, error="target.handler must be a text, not 5")


def test_a_handler_sees_the_environment_and_an_empty_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETIME_TEST_VALUE", "as set")
    with running(write_package(tmp_path, {"many": SOURCE})) as target:
        assert json.loads(attempt(target, "environment", '"DUETIME_TEST_VALUE"').result or "") == [
            "as set",
            str(Path.cwd()),
            "",
        ]


def test_targets_go_by_their_kind(demo: PythonTarget) -> None:
    targets = Targets({"python": demo})
    assert targets.kinds == {"python"}
    assert targets.call(a_call("demo.echo", "1"), Signals()).result == "1"
    other = Call(
        job_id="j",
        scheduled_for=SCHEDULED_FOR,
        attempt=1,
        max_attempts=1,
        target=Target(kind="pigeon"),
        payload="null",
        timeout_s=1,
    )
    assert targets.call(other, Signals()) == Result(
        outcome=Outcome.FAILED, error="target kind 'pigeon' is not known; known: python"
    )
