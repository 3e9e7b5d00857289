"""Drives ministack's inner clocks and bounds what it would let grow. It never changes what a service answers."""

import importlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from duetime.emulator import iam, payloads, workers
from duetime.emulator.processes import Processes

SWEEP_S = 0.25  # how often schedules are looked at; ministack's own 10 s would make every tick late
WAKE_S = 0.1  # how often queues are looked at for messages whose delay has ended; ministack's own is 1 s
TRIM_S = 30.0
URL_PORT = "4566"  # in the URLs of queues, wherever the emulator listens
LOG_STREAMS = 100  # ministack opens one log stream an invocation
METRIC_POINTS = 5_000
WARM_S = 1.0
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
    workers.bound_batches(service, workers.Workers(service, runtime), _ending)
    wake = _ministack("core.concurrency").esm_wake
    _every(WAKE_S, wake.set, "duetime-wake")
    _every(WARM_S, workers.warm, "duetime-warm")
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


def _trim() -> None:
    for group in list(_ministack("services.cloudwatch_logs")._log_groups._data.values()):
        streams = group["streams"]
        for name in list(streams)[:-LOG_STREAMS]:
            streams.pop(name, None)
    for points in list(_ministack("services.cloudwatch")._metrics._data.values()):
        del points[:-METRIC_POINTS]
