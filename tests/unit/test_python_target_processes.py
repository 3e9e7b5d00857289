"""The processes behind the python target: whatever a handler does to them, all end, and nothing is left over."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.model.run import Outcome
from shared.targets.python import PythonTarget
from shared.targets.target import Signals
from tests.support.python_targets import (
    a_call,
    attempt,
    descendants,
    eventually,
    is_alive,
    running,
    write_package,
    zygote_pid,
)

ROOT = Path(__file__).parents[2]
SOURCE = '''
import ctypes, os, signal, subprocess, sys, threading, time

@handler("echo")
def echo(payload, run):
    return payload

@handler("pids")
def pids(payload, run):
    return [os.getpid(), os.getppid(), os.getpgid(0)]

def note(directory, name, pid):
    with open(f"{directory}/{name}.new", "w") as file:
        file.write(str(pid))
    os.rename(f"{directory}/{name}.new", f"{directory}/{name}")

@handler("family")
def family(payload, run):
    """Start processes in four ways, then return or wait."""
    where = payload["where"]
    note(where, "handler", os.getpid())
    note(where, "child", subprocess.Popen(["sleep", "600"]).pid)
    note(where, "session", subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
    if not (pid := os.fork()):
        time.sleep(600)
    note(where, "fork", pid)
    if not (pid := os.fork()):  # a daemon, with every descriptor of the handler still open
        os.setsid()
        if not os.fork():
            note(where, "daemon", os.getpid())
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        os._exit(0)
    os.waitpid(pid, 0)
    while not os.path.exists(f"{where}/daemon"):
        time.sleep(0.01)
    if payload["wait"]:
        time.sleep(600)
    return "done"

@handler("close")
def close(payload, run):
    os.closerange(0, 4096)
    return "closed"

@handler("close and die")
def close_and_raise(payload, run):
    os.closerange(0, 4096)
    raise ValueError("closed")

@handler("twice")
def twice(payload, run):
    if os.fork():
        time.sleep(0.3)
        return "the handler"
    return "its fork"

@handler("twice.raise")
def twice_raise(payload, run):
    if os.fork():
        time.sleep(0.3)
        return "the handler"
    raise ValueError("its fork")

@handler("print")
def show(payload, run):
    print("printed by print")
    sys.stdout.write("without a line's end")
    os.write(1, b"written to 1\\\\n")
    subprocess.run(["echo", "from a program"])
    ctypes.CDLL(None).puts(b"put by C")
    return sys.stdin.read()

@handler("flood")
def flood(payload, run):
    for _ in range(64):
        os.write(1, b"x" * 65535 + b"\\\\n")
    return "flooded"

@handler("thread")
def thread(payload, run):
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "returned"

@handler("zygote")
def zygote(payload, run):
    os.kill(os.getppid(), payload)
    time.sleep(600)

@handler("group")
def group(payload, run):
    os.kill(0, 9)
    time.sleep(600)

@handler("descriptors")
def descriptors(payload, run):
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
    return [os.readlink(link) for link in links if os.path.lexists(link)]

@handler("random")
def numbers(payload, run):
    import random
    return random.random()
'''.replace('"close and die"', '"close.raise"').replace("\\\\n", "\\n")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[PythonTarget]:
    with running(write_package(tmp_path, {"processes": SOURCE})) as target:
        yield target


def pids_in(directory: Path) -> dict[str, int]:
    return {file.name: int(file.read_text()) for file in directory.iterdir()}


def test_each_attempt_is_a_process_in_a_group_of_its_own(target: PythonTarget) -> None:
    zygote = zygote_pid(target)
    first, second = (json.loads(attempt(target, "pids").result or "") for _ in range(2))
    assert first[0] != second[0]
    assert first == [first[0], zygote, first[0]]
    assert os.getpid() != zygote


@pytest.mark.parametrize("ending", ["timeout", "stop", "return"])
def test_what_a_handler_started_ends_with_it(target: PythonTarget, tmp_path: Path, ending: str) -> None:
    where = tmp_path / "pids"
    where.mkdir()
    payload = json.dumps({"where": str(where), "wait": ending != "return"})
    signals = Signals()
    if ending == "stop":
        threading.Thread(target=lambda: eventually((where / "daemon").exists) and signals.stop.set()).start()
    began = time.monotonic()
    outcome = target.call(a_call("family", payload, timeout_s=3 if ending == "timeout" else 30), signals).outcome
    assert outcome is {"timeout": Outcome.TIMED_OUT, "stop": Outcome.CANCELLED, "return": Outcome.SUCCEEDED}[ending]
    assert time.monotonic() - began < 10
    pids = pids_in(where)
    assert set(pids) == {"handler", "child", "session", "fork", "daemon"}
    assert eventually(lambda: not any(map(is_alive, pids.values()))), {n: is_alive(p) for n, p in pids.items()}
    assert eventually(lambda: descendants(zygote_pid(target)) == [])  # no zombies either


@pytest.mark.parametrize(
    ("handler", "outcome", "result"),
    [
        ("close", Outcome.SUCCEEDED, '"closed"'),
        ("close.raise", Outcome.FAILED, None),
        ("twice", Outcome.SUCCEEDED, '"the handler"'),
        ("twice.raise", Outcome.SUCCEEDED, '"the handler"'),
        ("thread", Outcome.SUCCEEDED, '"returned"'),
        ("group", Outcome.LOST, None),
    ],
)
def test_odd_handlers_end_properly(target: PythonTarget, handler: str, outcome: Outcome, result: str | None) -> None:
    target.load()
    began = time.monotonic()
    ended = attempt(target, handler)
    assert (ended.outcome, ended.result) == (outcome, result)
    assert time.monotonic() - began < 10
    assert attempt(target, "echo", "1").result == "1"


def test_a_handler_gets_no_descriptor_of_the_machinery(target: PythonTarget) -> None:
    """Nothing that it leaves behind can keep a conversation open."""
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: attempt(target, "descriptors"), range(8)):
            assert [d for d in json.loads(result.result or "") if d.startswith("socket:")] == []


def test_random_numbers_differ_between_attempts(target: PythonTarget) -> None:
    assert attempt(target, "random").result != attempt(target, "random").result


def test_output_goes_to_standard_error_and_never_to_standard_output(tmp_path: Path) -> None:
    """Under the local AWS, standard output is the protocol with the function's process."""
    package = write_package(tmp_path, {"processes": SOURCE})
    program = f"""
        import sys
        sys.path[:0] = [{str(ROOT)!r}]
        from pathlib import Path
        from tests.support.python_targets import attempt, running
        with running(Path({str(package)!r})) as target:
            assert attempt(target, "print").result == '""'
            assert attempt(target, "flood").result == '"flooded"'
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        input=b"not for handlers",
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b""), done.stderr[-2000:]
    lines = done.stderr.split(b"\n")
    assert {b"printed by print", b"from a program", b"put by C"} <= set(lines)
    assert b"written to 1" in done.stderr
    assert b"without a line's end" in done.stderr
    assert lines.count(b"x" * 65535) == 64


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_zygote_that_is_killed_costs_its_attempts_and_is_replaced(
    target: PythonTarget, signal_number: signal.Signals
) -> None:
    first = zygote_pid(target)
    began = time.monotonic()
    result = attempt(target, "zygote", str(int(signal_number)))
    assert result.outcome is Outcome.LOST
    assert (
        result.error == f"the process that starts handlers was ended by signal {signal_number.name} during the attempt"
    )
    assert time.monotonic() - began < 10
    assert attempt(target, "echo", "1").result == "1"
    assert zygote_pid(target) != first


def test_a_zygote_killed_between_attempts_costs_nothing(target: PythonTarget) -> None:
    os.kill(zygote_pid(target), signal.SIGKILL)
    with ThreadPoolExecutor(10) as pool:
        assert {r.result for r in pool.map(lambda _: attempt(target, "echo", "1"), range(10))} == {"1"}


def test_with_the_zygote_go_all_its_processes(target: PythonTarget, tmp_path: Path) -> None:
    where = tmp_path / "pids"
    where.mkdir()
    with ThreadPoolExecutor(1) as pool:
        going_on = pool.submit(attempt, target, "family", json.dumps({"where": str(where), "wait": True}))
        assert eventually((where / "daemon").exists)
        os.kill(zygote_pid(target), signal.SIGKILL)
        assert going_on.result(5).outcome is Outcome.LOST
    pids = pids_in(where)
    assert eventually(lambda: not any(is_alive(pids[name]) for name in ("handler", "child", "fork")))
    for name in ("session", "daemon"):  # sessions of their own, and their keeper was shot: beyond reach
        os.kill(pids[name], signal.SIGKILL)


def test_a_zygote_that_hangs_is_replaced(target: PythonTarget) -> None:
    result = attempt(target, "zygote", str(int(signal.SIGSTOP)), timeout_s=0.5)
    assert result.outcome is Outcome.LOST
    assert "did not respond" in (result.error or "")
    assert attempt(target, "echo", "1").result == "1"


@pytest.mark.parametrize("ending", ["kill", "close"])
def test_no_process_outlives_the_executor(tmp_path: Path, ending: str) -> None:
    package = write_package(tmp_path, {"processes": SOURCE})
    where = tmp_path / "pids"
    where.mkdir()
    program = f"""
        import sys, threading
        sys.path[:0] = [{str(ROOT)!r}]
        from pathlib import Path
        from shared.targets.python import PythonTarget
        from tests.support.python_targets import attempt, zygote_pid
        target = PythonTarget(Path({str(package)!r}))
        payload = {json.dumps({"where": str(where), "wait": True})!r}
        threading.Thread(target=attempt, args=(target, "family", payload), daemon=True).start()
        print(zygote_pid(target), flush=True)
        sys.stdin.read()
    """
    executor = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert executor.stdin is not None
    assert executor.stdout is not None
    with executor.stdin, executor.stdout:
        zygote = int(executor.stdout.readline())
        assert eventually((where / "daemon").exists)
        if ending == "kill":
            executor.kill()
        else:
            executor.stdin.close()
        executor.wait(10)
    assert eventually(lambda: not is_alive(zygote))
    assert eventually(lambda: not any(map(is_alive, pids_in(where).values())))


def test_the_executor_may_end_while_handlers_are_being_imported(tmp_path: Path) -> None:
    package = write_package(tmp_path, {"slow": f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"})  # fmt: skip  # noqa: E501
    program = f"""
        import sys
        sys.path[:0] = [{str(ROOT)!r}]
        from pathlib import Path
        from shared.targets.python import PythonTarget
        PythonTarget(Path({str(package)!r})).load()
    """
    executor = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)])
    assert eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    zygote = int((tmp_path / "pid").read_text())
    assert is_alive(zygote)
    executor.kill()
    executor.wait()
    assert eventually(lambda: not is_alive(zygote))


def test_closing_ends_everything(tmp_path: Path) -> None:
    with running(write_package(tmp_path, {"processes": SOURCE})) as target:
        zygote = zygote_pid(target)
        with ThreadPoolExecutor(1) as pool:
            going_on = pool.submit(attempt, target, "zygote", "0")
            assert eventually(lambda: descendants(zygote) != [])
            target.close()
            assert going_on.result(5).outcome is Outcome.LOST
        assert eventually(lambda: not is_alive(zygote))


def test_500_attempts_leave_no_descriptor_no_thread_and_no_process(target: PythonTarget) -> None:
    target.load()

    def state() -> tuple[int, int, int, int]:
        zygote = zygote_pid(target)
        ours, theirs = (len(os.listdir(f"/proc/{pid}/fd")) for pid in (os.getpid(), zygote))
        return ours, theirs, threading.active_count(), len(descendants(zygote))

    attempt(target, "echo")
    before = state()
    kinds = ["echo"] * 8 + ["close", "group"]
    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(lambda n: attempt(target, kinds[n % 10]).outcome, range(480)))
        outcomes += list(pool.map(lambda _: attempt(target, "thread", timeout_s=5).outcome, range(20)))
    assert outcomes.count(Outcome.SUCCEEDED) == 452
    assert outcomes.count(Outcome.LOST) == 48
    assert eventually(lambda: all(now <= then for now, then in zip(state(), before, strict=True))), (state(), before)
