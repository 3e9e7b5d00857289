"""Which process of a function takes which call, or batch of a queue. It never changes what a function answers."""

import importlib
import logging
import threading
import time
from contextvars import ContextVar
from typing import Any

WARM = 2  # processes of a function that a queue feeds, kept ready; one more if several queues do
WORKERS = 16  # processes of one function; each takes some 100 MB, and a second or so of CPU to start
PATIENCE_S = 0.5  # when no process of a function has become free for so long, one more is started
IMPATIENCE_S = 5.0  # and when a call has waited for so long in all
LONGEST_WAIT_S = 10.0

logger = logging.getLogger("duetime.workers")
_feeding: ContextVar[dict[str, Any] | None] = ContextVar("duetime_feeding", default=None)  # the batch's mapping


def _ministack(name: str) -> Any:  # it has no types
    return importlib.import_module(f"ministack.{name}")


class Workers:
    """Hands the processes of the functions to their calls.

    ministack starts one more process whenever none is free, and lets that very call wait for it: a burst then starts
    dozens at once, each slowing the others. Here a call takes the first that becomes free, and one more is started
    beside only when they are all held for long: by work that waits, not by work that computes. The wait is bounded: a
    function that calls itself holds the process that it waits for.

    Where several queues feed a function, each is served as if it were alone, as on AWS: one queue's batches never hold
    the last process, so that another queue's first batch finds one at once.
    """

    def __init__(self, service: Any, runtime: Any) -> None:
        self._service, self._runtime = service, runtime
        self._free = threading.Condition()
        self._starting: set[str] = set()
        self._freed_at: dict[str, float] = {}  # by function name
        self._fed_by: dict[int, str] = {}  # a process in hand → the mapping whose batch it works on
        self._acquire, self._release = service.acquire_worker, service.release_worker
        service.acquire_worker, service.release_worker = self.acquire, self.release

    def acquire(self, name: str, config: dict[str, str], code: bytes, qualifier: str = "$LATEST") -> tuple[Any, str]:
        key = self._runtime._worker_key(name, config, qualifier)
        begun = time.monotonic()
        while (waited := time.monotonic() - begun) < LONGEST_WAIT_S:
            worker, reason = self._take_free(key, (name, config, code, qualifier))
            if worker is not None:
                return worker, reason
            quiet = time.monotonic() - max(self._freed_at.get(name, 0.0), begun)
            if self.running(key) < WORKERS and (quiet > PATIENCE_S or waited > IMPATIENCE_S):
                self._start_one_more(key, (name, config, code, qualifier))
            with self._free:
                self._free.wait(PATIENCE_S / 2)
        last: tuple[Any, str] = self._acquire(name, config, code, qualifier=qualifier)
        return last

    def release(self, worker: Any) -> None:
        self._release(worker)
        with self._free:
            if worker is not None:
                self._fed_by.pop(id(worker), None)
                self._freed_at[worker.func_name] = time.monotonic()
            self._free.notify_all()

    def running(self, key: str) -> int:
        """Processes of this function, free or not."""
        processes: list[object] = self._runtime._workers.get(key, [])
        return len(processes)

    def share(self, mapping: dict[str, Any], key: str) -> int:
        """Processes that the batches of `mapping` may hold: all but those of other queues, or one for their next."""
        ready = self.running(key) - (key in self._starting)
        others = [one for one in mappings_of(self._service, mapping["FunctionArn"]) if one["UUID"] != mapping["UUID"]]
        if not others:
            return ready
        going_on: int = sum(self._service._esm_inflight.get(one["UUID"], 0) for one in others)
        return max(1, ready - max(1, going_on))

    def _take_free(self, key: str, function: tuple[str, dict[str, str], bytes, str]) -> tuple[Any, str]:
        name, config, code, qualifier = function
        mapping = _feeding.get()
        with self._free:
            held = 0 if mapping is None else list(self._fed_by.values()).count(mapping["UUID"])
            if mapping is not None and held >= max(1, self.share(mapping, key)):  # it may be the very first process
                return None, "share"
            cap = max(1, self.running(key))
            worker, reason = self._acquire(name, config, code, qualifier=qualifier, max_concurrency=cap)
            if worker is not None and mapping is not None:
                self._fed_by[id(worker)] = mapping["UUID"]
            return worker, reason

    def _start_one_more(self, key: str, function: tuple[str, dict[str, str], bytes, str]) -> None:
        """One at a time for each function."""
        with self._free:
            if key in self._starting:
                return
            self._starting.add(key)
        threading.Thread(target=self._start, args=(key, function), daemon=True, name="duetime-worker").start()

    def _start(self, key: str, function: tuple[str, dict[str, str], bytes, str]) -> None:
        try:
            worker = self._take_new(function)
            try:
                self._runtime.ensure_spawned(worker)
            finally:
                self.release(worker)
        except (RuntimeError, OSError) as error:
            logger.info("a process of %s did not start: %s", function[0], error)
        finally:
            with self._free:
                self._starting.discard(key)
                self._free.notify_all()

    def _take_new(self, function: tuple[str, dict[str, str], bytes, str]) -> Any:
        """A process that is yet to start; those that are free stay so."""
        name, config, code, qualifier = function
        with self._free:
            taken = []
            while True:
                worker, reason = self._acquire(name, config, code, qualifier=qualifier)
                if reason == "spawn":
                    break
                taken.append(worker)
            for free in taken:
                self._release(free)
        return worker


def mappings_of(service: Any, function_arn: str) -> list[dict[str, Any]]:
    """The mappings that feed a function."""
    every = list(service._esms._data.values())
    return [one for one in every if one["FunctionArn"] == function_arn and one.get("Enabled", True)]


def bound_batches(service: Any, workers: Workers, ending: threading.Event) -> None:
    """Take a batch from a queue only when a process is there for it, or one to make the need of one more felt.

    A batch that waited here would be invisible in its queue, and lost to the others if this emulator died.
    """
    unbounded, run = service._sqs_esm_concurrency, service._run_sqs_batch

    def bounded(mapping: dict[str, Any], function: Any, config: dict[str, str], *queue: Any) -> int:
        if ending.is_set():
            return 0
        key = workers._runtime._worker_key(config["FunctionName"], config, config.get("Version", "$LATEST"))
        share = workers.share(mapping, key)
        most = share if workers.running(key) >= WORKERS else share + 1
        return min(int(unbounded(mapping, function, config, *queue)), most)

    def run_for(mapping: dict[str, Any], *batch: Any) -> None:
        token = _feeding.set(mapping)
        try:
            run(mapping, *batch)
        finally:
            _feeding.reset(token)

    service._sqs_esm_concurrency, service._run_sqs_batch = bounded, run_for


def warm() -> None:
    """Start the first processes of each function that a queue feeds, so that the first job waits for none."""
    service, runtime = _ministack("services.lambda_svc"), _ministack("core.lambda_runtime")
    for function in list(service._functions._data.values()):
        config = function.get("config") or {}
        queues = len(mappings_of(service, config.get("FunctionArn", "")))
        if queues and function.get("code_zip"):
            _start_processes(runtime, config, function["code_zip"], WARM + (queues > 1))


def _start_processes(runtime: Any, config: dict[str, str], code: bytes, wanted: int) -> None:
    key = runtime._worker_key(config["FunctionName"], config, config.get("Version", "$LATEST"))
    if len(runtime._workers.get(key, ())) >= wanted:
        return
    leased = [runtime.acquire_worker(config["FunctionName"], config, code)[0] for _ in range(wanted)]
    for worker in leased:
        try:
            runtime.ensure_spawned(worker)
        except (RuntimeError, OSError) as error:  # as when a deployment replaces the function meanwhile
            logger.info("a process of %s did not start: %s", config["FunctionName"], error)
        finally:
            runtime.release_worker(worker)
