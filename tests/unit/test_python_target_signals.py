"""What passes between an executor and a handler that runs: a cancel one way, progress the other; and kinds of error."""

import errno
import json
import math
import os
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handlers import Run
from shared.model.run import Outcome, Result
from shared.targets.processes.signal_page import SignalPage
from shared.targets.python import PythonTarget
from shared.targets.target import Signals
from tests.support.python_targets import a_call, attempt, descendants, eventually, running, write_package, zygote_pid

DEMO = Path(__file__).parents[2] / "handlers"
SOURCE = """
import multiprocessing, os, subprocess, threading, time

class CardError(Exception):
    class Declined(Exception): pass

class Declined(CardError): pass

class Mixin: pass

class Mixed(Mixin, KeyError): pass

class Odd(Exception):
    __module__ = 5

def until(condition):
    limit = time.monotonic() + 20
    while not condition():
        if time.monotonic() > limit: raise AssertionError("it never came")
        time.sleep(0.01)

@handler("heed")
def heed(payload, run):
    run.progress("begun")
    until(run.cancelled)
    if payload: raise Declined(payload)
    return "heeded"

@handler("heed.in.fork")
def heed_in_fork(payload, run):
    run.progress("begun")
    if not os.fork():
        until(run.cancelled)
        os._exit(0)
    os.wait()
    return "heeded"

@handler("ask once")
def ask_once(payload, run):
    asked = run.cancelled()
    run.progress("begun")
    until(lambda: os.path.exists(payload))
    return asked

@handler("report")
def report(payload, run):
    for value in payload["values"]:
        run.progress(value)
    match payload["end"]:
        case "return": return "done"
        case "raise": raise ValueError
        case "exit": os._exit(0)
        case "kill": os.kill(os.getpid(), 9)
        case "close":
            os.closerange(0, 4096)
            run.progress("closed")
        case wait: until(lambda: os.path.exists(wait))

@handler("report.odd")
def report_odd(payload, run):
    try:
        run.progress(eval(payload))
    except ValueError as error:
        return str(error)

@handler("report.everywhere")
def report_everywhere(payload, run):
    def loop(letter):
        for n in range(2000): run.progress(letter * (n % 500))
    workers = [multiprocessing.get_context("fork").Process(target=loop, args=(letter,)) for letter in "abc"]
    workers += [threading.Thread(target=loop, args=(letter,)) for letter in "def"]
    for worker in workers: worker.start()
    for worker in workers: worker.join()

@handler("descriptors")
def descriptors(payload, run):
    run.progress(1)
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
    child = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, close_fds=False).stdout
    return [[os.readlink(link) for link in links if os.path.lexists(link)], child]

@handler("raise")
def throw(payload, run):
    class Local(LookupError): pass
    raise eval(payload, globals(), locals())
""".replace('"ask once"', '"ask.once"')


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonTarget]:
    with running(write_package(tmp_path_factory.mktemp("signals"), {"signals": SOURCE})) as target:
        target.load()  # or a cancel could come before the handler
        yield target


@contextmanager
def going_on(
    target: PythonTarget, handler: str, payload: object, **more: Any
) -> Iterator[tuple[Signals, "Future[Result]"]]:
    signals = Signals()
    with ThreadPoolExecutor(1) as pool:
        try:
            yield signals, pool.submit(target.call, a_call(handler, json.dumps(payload), **more), signals)
        finally:
            signals.stop.set()


# A cancel


@pytest.mark.parametrize("handler", ["heed", "heed.in.fork"])
def test_a_handler_is_told_that_its_run_is_cancelled(target: PythonTarget, handler: str) -> None:
    with going_on(target, handler, None) as (signals, result):
        assert eventually(lambda: signals.progress == '"begun"')
        signals.cancelled.set()
        assert result.result(20) == Result(outcome=Outcome.SUCCEEDED, result='"heeded"')
        assert signals.told


def test_a_handler_that_was_told_may_raise(target: PythonTarget) -> None:
    with going_on(target, "heed", "in the middle") as (signals, result):
        assert eventually(lambda: signals.progress == '"begun"')
        signals.cancelled.set()
        assert (result.result(20).outcome, result.result().error) == (Outcome.FAILED, "Declined: in the middle")
        assert signals.told


@pytest.mark.parametrize("cancel", [True, False])
def test_who_did_not_ask_again_was_not_told(target: PythonTarget, tmp_path: Path, cancel: bool) -> None:
    with going_on(target, "ask.once", str(tmp_path / "go")) as (signals, result):
        assert eventually(lambda: signals.progress == '"begun"')
        if cancel:
            signals.cancelled.set()
        (tmp_path / "go").touch()
        assert result.result(20).result == "false"
        assert not signals.told


@pytest.mark.parametrize("signal", ["stop", "cancelled"])
def test_i5_cancelled_before_it_began_no_handler_is_called(target: PythonTarget, tmp_path: Path, signal: str) -> None:
    signals = Signals()
    getattr(signals, signal).set()
    payload = json.dumps(f"open({str(tmp_path / 'called')!r}, 'w')")
    result = target.call(a_call("report.odd", payload), signals)
    assert result == Result(outcome=Outcome.CANCELLED, error="ended because the run was cancelled")
    assert not (tmp_path / "called").exists()


def test_the_demo_handlers_that_sleep() -> None:
    with running(DEMO) as demo:
        demo.load()
        with going_on(demo, "demo.sleep", {"s": 60}) as (signals, result):
            assert eventually(lambda: signals.progress == '{"slept_s":1,"of_s":60}')
            signals.cancelled.set()
            assert '"slept_s":1' in (result.result(20).result or "")
            assert signals.told
        with going_on(demo, "demo.stubborn", {"s": 1}) as (signals, result):
            assert eventually(lambda: descendants(zygote_pid(demo)) != [])
            signals.cancelled.set()
            assert result.result(20) == Result(outcome=Outcome.SUCCEEDED, result='{"slept_s":1}')
            assert (signals.told, signals.progress) == (False, None)


# Progress


def test_the_latest_progress_is_seen_while_the_handler_runs(target: PythonTarget, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    with going_on(target, "report", {"values": [1, {"b": [1, "é"], "a": None}], "end": go}) as (signals, result):
        assert eventually(lambda: signals.progress == '{"b":[1,"é"],"a":null}')
        assert not result.done()
        Path(go).touch()
        assert result.result(20).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        ("return", Outcome.SUCCEEDED),
        ("raise", Outcome.FAILED),
        ("exit", Outcome.LOST),
        ("kill", Outcome.LOST),
        ("/never", Outcome.TIMED_OUT),
    ],
)
def test_the_last_progress_is_there_however_the_attempt_ends(target: PythonTarget, end: str, outcome: Outcome) -> None:
    signals = Signals()
    payload = json.dumps({"values": list(range(1000)), "end": end})
    assert target.call(a_call("report", payload, timeout_s=0.5), signals).outcome is outcome
    assert signals.progress == "999"


def test_a_handler_that_closed_everything_still_reports(target: PythonTarget) -> None:
    signals = Signals()
    target.call(a_call("report", '{"values": [], "end": "close"}'), signals)
    assert signals.progress == '"closed"'


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("'x' * 510", None),
        ("'x' * 511", "the progress takes 513 bytes as JSON; at most 512 are kept"),
        ("'é' * 255", None),
        ("'é' * 256", "the progress takes 514 bytes as JSON; at most 512 are kept"),
        ("float('nan')", "the progress is not JSON"),
        ("{1, 2}", "the progress is not JSON"),
        ("{1: 0, '1': 0}", "the progress is not JSON"),
        ("'\\ud800'", "the progress holds half of a surrogate pair"),
        ("run", "the progress is not JSON"),
    ],
)
def test_progress_is_any_json_of_at_most_512_bytes(target: PythonTarget, value: str, error: str | None) -> None:
    signals = Signals()
    said = json.loads(target.call(a_call("report.odd", json.dumps(value)), signals).result or "")
    if error is None:
        assert (said, len((signals.progress or "").encode())) == (None, 512)
    else:
        assert error in said
        assert signals.progress is None


def test_progress_keeps_the_digits_of_the_payload(target: PythonTarget) -> None:
    signals = Signals()
    target.call(a_call("report", '{"values": [[30.40, 1.0]], "end": "return"}'), signals)
    assert signals.progress == "[30.40,1.0]"


def test_threads_and_forks_of_a_handler_may_all_report(target: PythonTarget) -> None:
    with going_on(target, "report.everywhere", None) as (signals, result):
        seen = set()
        while not result.done():
            seen.add(signals.progress)
        assert result.result().outcome is Outcome.SUCCEEDED
    texts = {json.loads(text) for text in seen | {signals.progress} if text}
    assert all(len(set(text)) < 2 for text in texts), "letters of two writers in one text"
    assert texts


# Descriptors


def test_neither_a_handler_nor_what_it_starts_gets_a_descriptor_of_the_signals(target: PythonTarget) -> None:
    with ThreadPoolExecutor(6) as pool:
        for result in pool.map(lambda _: attempt(target, "descriptors"), range(24)):
            own, childs = json.loads(result.result or "")
            assert [link for link in own if "proc" not in link] == []
            assert "duetime" not in childs
            assert "socket" not in childs


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[PythonTarget]:
    """A target of which nothing is left from attempts before."""
    with running(write_package(tmp_path, {"signals": SOURCE})) as target:
        yield target


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_an_attempt_that_is_given_up_before_its_call_is_told_leaves_no_descriptor(fresh: PythonTarget) -> None:
    pid = zygote_pid(fresh)
    zygote = fresh._zygote
    assert zygote is not None
    before = descriptors(pid), descriptors(os.getpid())
    for _ in range(5):
        with SignalPage() as page, zygote.begin(page.fd) as connection:
            connection.sendall(b"\0\0\1\0half a call")
        zygote.done()
    assert eventually(lambda: (descriptors(pid), descriptors(os.getpid())) == before)


def test_an_attempt_whose_descriptors_did_not_all_come_is_dropped(fresh: PythonTarget) -> None:
    """The kernel drops what a process has no room for."""
    pid = zygote_pid(fresh)
    zygote = fresh._zygote
    assert zygote is not None
    before = descriptors(pid)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        socket.send_fds(zygote._control, [b"a"], [theirs.fileno()])
        theirs.close()
        assert ours.recv(1) == b""  # as the executor sees it: not begun
    assert eventually(lambda: descriptors(pid) == before)
    assert zygote_pid(fresh) == pid


def test_no_descriptor_for_the_signals_is_a_lost_attempt(target: PythonTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", too_many)
    assert attempt(target, "report") == Result(
        outcome=Outcome.LOST, error="no process could be started: [Errno 24] Too many open files"
    )


def test_without_anonymous_memory_the_signals_go_through_a_file(
    target: PythonTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with going_on(target, "heed", None) as (signals, result):
        assert eventually(lambda: signals.progress == '"begun"')
        signals.cancelled.set()
        assert result.result(20).result == '"heeded"'
        assert signals.told


# Kinds of error


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        ("KeyError()", ["KeyError", "LookupError", "Exception"]),
        ("TimeoutError()", ["TimeoutError", "OSError", "Exception"]),
        ("SystemExit(3)", ["SystemExit"]),
        ("KeyboardInterrupt()", ["KeyboardInterrupt"]),
        ("Exception()", ["Exception"]),
        (
            "Declined()",
            ["jobs.signals.Declined", "Declined", "jobs.signals.CardError", "CardError", "Exception"],
        ),
        ("CardError.Declined()", ["jobs.signals.CardError.Declined", "Declined", "Exception"]),
        ("Mixed()", ["jobs.signals.Mixed", "Mixed", "KeyError", "LookupError", "Exception"]),
        ("Local()", ["jobs.signals.throw.<locals>.Local", "Local", "LookupError", "Exception"]),
        ("Odd()", ["Odd", "Exception"]),
        ("type('X' * 300, (Exception,), {})()", ["jobs.signals." + "X" * 115, "X" * 128, "Exception"]),
        ("1 / 0", ["ZeroDivisionError", "ArithmeticError", "Exception"]),
    ],
)
def test_an_error_has_the_names_of_its_classes(target: PythonTarget, error: str, kinds: list[str]) -> None:
    result = attempt(target, "raise", json.dumps(error))
    assert (result.outcome, list(result.error_kinds)) == (Outcome.FAILED, kinds)


@pytest.mark.parametrize("name", ["\ud800", "a\ud800b"])
def test_a_name_that_is_no_text_is_made_one(target: PythonTarget, name: str) -> None:
    error = f"type('E', (Exception,), {{'__module__': {name!r}}})()"
    result = attempt(target, "raise", json.dumps(error))
    assert result.error_kinds == (f"{name.replace(chr(0xD800), '?')}.E", "E", "Exception")


def test_kinds_have_a_limit(target: PythonTarget) -> None:
    deep = "__import__('functools').reduce(lambda base, n: type(f'E{n}', (base,), {}), range(100), Exception)()"
    result = attempt(target, "raise", json.dumps(deep))
    assert len(result.error_kinds) == 20
    assert result.error_kinds[1] == "E99"


def test_what_never_raised_has_no_kinds(target: PythonTarget) -> None:
    assert attempt(target, "nope").error_kinds == ()
    assert attempt(target, "report", '{"values": [], "end": "kill"}').error_kinds == ()
    assert attempt(target, "report", '{"values": [], "end": "return"}').error_kinds == ()


# A Run that a test of a user's made


def a_run(**more: Any) -> Run:
    due = datetime(2026, 11, 29, 12, tzinfo=UTC)
    return Run(job_id="j", scheduled_for=due, attempt=1, max_attempts=3, idempotency_key="k", **more)


def test_a_run_made_by_hand_is_never_cancelled_and_checks_its_progress() -> None:
    run = a_run()
    assert (run.cancelled(), run.progress({"a": 1})) == (False, None)
    with pytest.raises(ValueError, match="at most 512"):
        run.progress("x" * 600)
    assert " line=" not in repr(run)
    assert run == a_run(deadline=math.inf)


def test_a_run_made_by_hand_may_have_a_line() -> None:
    class Cancelled:
        def __init__(self) -> None:
            self.said: list[bytes] = []

        def is_cancelled(self) -> bool:
            return True

        def report(self, progress: bytes) -> None:
            self.said.append(progress)

    line = Cancelled()
    run = a_run(line=line)
    run.progress([1, 2.50])
    assert (run.cancelled(), line.said) == (True, [b"[1,2.5]"])


def test_progress_costs_little() -> None:
    """Microseconds, not milliseconds: so that it can be called for each row."""
    run, limit = a_run(), 5.0

    def spent(work: Callable[[], None]) -> float:
        began = os.times().user
        for _ in range(10_000):
            work()
        return os.times().user - began

    assert spent(lambda: run.progress({"rows": 5, "of": 100})) < limit


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "handlers.md").read_text()
    (source,) = re.findall(r"```python\n# handlers/imports.py\n(.*?)```", page, re.DOTALL)
    with running(write_package(tmp_path, {"imports": source})) as target:
        signals = Signals()
        result = target.call(a_call("imports.rows", '{"rows": 1}'), signals)
        assert (result.result, signals.progress) == ('{"rows":1,"complete":true}', '{"rows":1,"of":1}')
        with going_on(target, "imports.rows", {"rows": 1000}) as (signals, running_one):
            assert eventually(lambda: signals.progress is not None)
            signals.cancelled.set()
            assert '"complete":false' in (running_one.result(20).result or "")
        assert attempt(target, "imports.rows", '{"rows": -1}').error_kinds[1] == "BadFile"
