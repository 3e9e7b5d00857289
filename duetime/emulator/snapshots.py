"""Saves ministack's whole state every few seconds, all services of one moment. It never leaves half a state behind.

ministack itself writes its state at a clean exit only, one file a service. Between two files the world goes on: a table
that knows of a claim, a queue that does not yet hold its message. So each save is a directory of its own, written from
the memory of one moment, and becomes the current one by the swap of a link:

    saved/latest -> snapshot-000042     the state to start from
    saved/lambda-blobs/                 the functions' code, by content
"""

import asyncio
import importlib
import json
import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

EVERY_S = 5.0
LONGEST_S = 60  # a save that takes longer is given up
LATEST = "latest"
PREFIX = "snapshot-"
FORMAT = "__ministack_format__"

logger = logging.getLogger("duetime.snapshots")
StateOf = Mapping[str, Callable[[], object]]


def _ministack(name: str) -> Any:  # it has no types
    return importlib.import_module(f"ministack.{name}")


def point_at_latest(saved: Path) -> None:
    """Make ministack load from the newest whole snapshot under `saved`, and from nothing if there is none."""
    _ministack("core.persistence").STATE_DIR = str((saved / LATEST).resolve())
    _ministack("services.lambda_svc").CODE_BLOB_DIR = str(saved / "lambda-blobs")


def write(saved: Path, services: StateOf) -> None:
    """Write the state of all `services` as a new snapshot under `saved` and make it the latest.

    Raises when any part cannot be written; the former latest then still stands.
    """
    persistence = _ministack("core.persistence")
    former = (saved / LATEST).resolve()
    number = int(former.name.removeprefix(PREFIX)) + 1 if former.name.startswith(PREFIX) else 1
    target = saved / f"{PREFIX}{number:06d}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, state_of in services.items():
        state = state_of()
        if state is None:  # its module did not load: what was saved before stays true
            continue
        # ministack's own save_state hides its errors, and encodes ten times slower
        document = {FORMAT: persistence._state_format_version(name), "payload": state}
        (target / f"{name}.json").write_text(json.dumps(document, default=persistence._json_default))
    _carry_over(former, target)
    link = saved / f".{LATEST}"
    link.unlink(missing_ok=True)
    link.symlink_to(target.name)
    link.replace(saved / LATEST)
    _forget(saved, keep={target.name, former.name})


def _carry_over(former: Path, target: Path) -> None:
    """Services not loaded in this run keep the state that they had."""
    for path in former.glob("*.json") if former.is_dir() else ():
        if not (target / path.name).exists():
            os.link(path, target / path.name)


def _forget(saved: Path, keep: Iterable[str]) -> None:
    for path in saved.glob(f"{PREFIX}*"):
        if path.name not in keep:
            shutil.rmtree(path, ignore_errors=True)


class Saver:
    """Saves every `EVERY_S` seconds from a forked copy of the process, so that serving goes on meanwhile.

    The fork happens on the event loop, between two requests, with the locks of the pollers held: a copy of one moment.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._saved = Path(os.environ["STATE_DIR"])
        self._paused = threading.Event()
        self._idle = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="duetime-saver").start()

    def pause(self) -> None:
        """No further save from now on; waits for one that is going on, so never call it on the event loop."""
        self._paused.set()
        with self._idle:
            return

    def write(self, services: StateOf) -> None:
        """Takes the place of ministack's own save."""
        write(self._saved, services)

    def save_at_exit(self) -> None:
        """The last save, in this process itself. Call it on the event loop: nothing is answered after it."""
        with _still():
            try:
                self.write(_ministack("app")._build_persistence_save_dict())
            except Exception:
                logger.exception("the state could not be saved at the end; that of a few seconds before is kept")
                raise

    def _run(self) -> None:
        while not self._paused.wait(EVERY_S):
            with self._idle:
                if self._paused.is_set():
                    return
                try:
                    self._save_once()
                except Exception:  # the next save must come, whatever befell this one
                    logger.exception("the state could not be saved")

    def _save_once(self) -> None:
        child = asyncio.run_coroutine_threadsafe(self._fork(), self._loop).result(LONGEST_S)
        deadline = time.monotonic() + LONGEST_S
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.05)
        if status:
            logger.error("the state could not be saved: the copy ended with status %s", status)

    async def _fork(self) -> int:
        services = _ministack("app")._build_persistence_save_dict()
        with _still():
            child = os.fork()
        if child:
            return child
        try:
            os.nice(5)
            os.closerange(3, 65_536)  # the copy must not keep the server's connections open
            _keep_code_blobs()
            write(self._saved, services)
        except BaseException:  # a forked copy must end here, and nowhere else
            logger.exception("the state could not be saved")
            os._exit(1)
        os._exit(0)


@contextmanager
def _still() -> Iterator[None]:
    """Nothing changes in queues and tables meanwhile; all else changes on the event loop alone."""
    with ExitStack() as held:
        for lock in (_ministack("services.sqs")._queues_lock, _ministack("services.dynamodb")._lock):
            held.enter_context(lock)
        yield


def _keep_code_blobs() -> None:
    """Code that only the former snapshot names must outlive the writing of the new one; a clean exit prunes it."""
    _ministack("services.lambda_svc")._prune_orphan_code_blobs = lambda referenced: None
