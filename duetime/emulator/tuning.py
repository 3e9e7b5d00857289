"""Drives ministack's inner clocks and bounds what it would let grow. It never changes what a service answers."""

import importlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from duetime.emulator import iam, payloads
from duetime.emulator.processes import Processes

SWEEP_S = 0.25  # how often schedules are looked at; ministack's own 10 s would make every tick late
WAKE_S = 0.1  # how often queues are looked at for messages whose delay has ended; ministack's own is 1 s
TRIM_S = 30.0
URL_PORT = "4566"  # in the URLs of queues, wherever the emulator listens
LOG_STREAMS = 100  # ministack opens one log stream an invocation
METRIC_POINTS = 5_000
WARM = 2  # processes of a function that a queue feeds, kept ready
WARM_S = 1.0
WORKERS = 16  # processes of one function; each takes some 100 MB, and a second or so of CPU to start
PATIENCE_S = 0.5  # when no process of a function has become free for so long, one more is started
IMPATIENCE_S = 5.0  # and when a call has waited for so long in all
LONGEST_WAIT_S = 10.0
FINISH_S = 3.0

logger = logging.getLogger("duetime.tuning")
_ending = threading.Event()


def _ministack(name: str) -> Any:  # it has no types
    return importlib.import_module(f"ministack.{name}")


def start() -> Callable[[], None]:
    """Set the clocks; start the threads that wake the pollers and trim what grows. Call before the server starts.

    Answers how to end the functions: call it when the server is to end.
    """
    _ministack("services.scheduler")._SCHEDULE_TICK_INTERVAL = SWEEP_S
    _ministack("services.eventbridge")._SCHEDULER_TICK_INTERVAL = SWEEP_S
    _fix_queue_urls(_ministack("services.sqs"))
    iam.as_on_aws()
    payloads.as_on_aws()
    service, runtime = _ministack("services.lambda_svc"), _ministack("core.lambda_runtime")
    processes = Processes(runtime)
    _Workers(service, runtime)
    _bound_batches(service, runtime)
    wake = _ministack("core.concurrency").esm_wake
    _every(WAKE_S, wake.set, "duetime-wake")
    _every(WARM_S, _warm, "duetime-warm")
    _every(TRIM_S, _trim, "duetime-trim")
    return lambda: _end_functions(service, processes)


def _fix_queue_urls(sqs: Any) -> None:
    """ministack finds a queue by its URL, port included: it must be the same after a start on another port."""
    sqs.DEFAULT_PORT = URL_PORT
    sqs._CANONICAL_NETLOC = f"{sqs.DEFAULT_HOST}:{URL_PORT}"


def _end_functions(service: Any, processes: Processes) -> None:
    """Let the batches that are going on finish for a moment, then end all function processes.

    What is cut off is taken up again after the next start, as after a crash.
    """
    _ending.set()
    deadline = time.monotonic() + FINISH_S
    while service._esm_inflight and time.monotonic() < deadline:
        time.sleep(0.05)
    processes.end()


def _every(period_s: float, act: Callable[[], None], name: str) -> None:
    def loop() -> None:
        while True:
            time.sleep(period_s)
            try:
                act()
            except Exception:  # a clock must not stop because one beat failed
                logger.exception("%s failed", name)

    threading.Thread(target=loop, daemon=True, name=name).start()


class _Workers:
    """Hands the processes of the functions to their calls.

    ministack starts one more process whenever none is free, and lets that very call wait for it: a burst then starts
    dozens at once, each slowing the others. Here a call takes the first that becomes free, and one more is started
    beside only when they are all held for long: by work that waits, not by work that computes. The wait is bounded: a
    function that calls itself holds the process that it waits for.
    """

    def __init__(self, service: Any, runtime: Any) -> None:
        self._runtime = runtime
        self._free = threading.Condition()
        self._starting: set[str] = set()
        self._freed_at: dict[str, float] = {}  # by function name
        self._acquire, self._release = service.acquire_worker, service.release_worker
        service.acquire_worker, service.release_worker = self.acquire, self.release

    def acquire(self, name: str, config: dict[str, str], code: bytes, qualifier: str = "$LATEST") -> tuple[Any, str]:
        key = self._runtime._worker_key(name, config, qualifier)
        begun = time.monotonic()
        while (waited := time.monotonic() - begun) < LONGEST_WAIT_S:
            running = len(self._runtime._workers.get(key, ()))
            worker, reason = self._acquire(name, config, code, qualifier=qualifier, max_concurrency=max(1, running))
            if worker is not None:
                return worker, reason
            quiet = time.monotonic() - max(self._freed_at.get(name, 0.0), begun)
            if running < WORKERS and (quiet > PATIENCE_S or waited > IMPATIENCE_S):
                self._start_one_more(key, (name, config, code, qualifier))
            with self._free:
                self._free.wait(PATIENCE_S / 2)
        last: tuple[Any, str] = self._acquire(name, config, code, qualifier=qualifier)
        return last

    def release(self, worker: Any) -> None:
        self._release(worker)
        with self._free:
            if worker is not None:
                self._freed_at[worker.func_name] = time.monotonic()
            self._free.notify_all()

    def _start_one_more(self, key: str, function: tuple[str, dict[str, str], bytes, str]) -> None:
        """One at a time for each function."""
        with self._free:
            if key in self._starting:
                return
            self._starting.add(key)
        threading.Thread(target=self._start, args=(key, function), daemon=True, name="duetime-worker").start()

    def _start(self, key: str, function: tuple[str, dict[str, str], bytes, str]) -> None:
        name, config, code, qualifier = function
        try:
            worker, _ = self._acquire(name, config, code, qualifier=qualifier)
            try:
                self._runtime.ensure_spawned(worker)
            finally:
                self.release(worker)
        except (RuntimeError, OSError) as error:
            logger.info("a process of %s did not start: %s", name, error)
        finally:
            with self._free:
                self._starting.discard(key)


def _bound_batches(service: Any, runtime: Any) -> None:
    """Take a batch from a queue only when a process is there for it, or one to make the need of one more felt.

    A batch that waited here would be invisible in its queue, and lost to the others if this emulator died.
    """
    unbounded = service._sqs_esm_concurrency

    def bounded(mapping: dict[str, Any], function: Any, config: dict[str, str], *queue: Any) -> int:
        if _ending.is_set():
            return 0
        key = runtime._worker_key(config["FunctionName"], config, config.get("Version", "$LATEST"))
        running = len(runtime._workers.get(key, ()))
        return min(int(unbounded(mapping, function, config, *queue)), running + 1, WORKERS)

    service._sqs_esm_concurrency = bounded


def _warm() -> None:
    """Start the first processes of each function that a queue feeds, so that the first job waits for none."""
    service, runtime = _ministack("services.lambda_svc"), _ministack("core.lambda_runtime")
    fed = {mapping["FunctionArn"] for mapping in list(service._esms._data.values()) if mapping.get("Enabled", True)}
    for function in list(service._functions._data.values()):
        config = function.get("config") or {}
        if config.get("FunctionArn") in fed and function.get("code_zip"):
            _start_processes(runtime, config, function["code_zip"])


def _start_processes(runtime: Any, config: dict[str, str], code: bytes) -> None:
    key = runtime._worker_key(config["FunctionName"], config, config.get("Version", "$LATEST"))
    if len(runtime._workers.get(key, ())) >= WARM:
        return
    leased = [runtime.acquire_worker(config["FunctionName"], config, code)[0] for _ in range(WARM)]
    for worker in leased:
        try:
            runtime.ensure_spawned(worker)
        except (RuntimeError, OSError) as error:  # as when a deployment replaces the function meanwhile
            logger.info("a process of %s did not start: %s", config["FunctionName"], error)
        finally:
            runtime.release_worker(worker)


def _trim() -> None:
    for group in list(_ministack("services.cloudwatch_logs")._log_groups._data.values()):
        streams = group["streams"]
        for name in list(streams)[:-LOG_STREAMS]:
            streams.pop(name, None)
    for points in list(_ministack("services.cloudwatch")._metrics._data.values()):
        del points[:-METRIC_POINTS]
