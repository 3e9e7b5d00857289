"""Starts ministack on loopback, keeps its state, ends it cleanly. It never listens beyond 127.0.0.1.

Run by path in the emulator's own environment: `<env>/bin/python duetime/emulator/__main__.py --port N --state-dir D`.
It ends on SIGTERM, on SIGINT, and when its standard input closes: the process that started it is gone.
"""

import argparse
import asyncio
import fcntl
import importlib
import os
import shutil
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

HOST = "127.0.0.1"
EXIT_IN_USE = 3  # the state directory or the port belongs to another process
PREDECESSOR_S = 20  # an emulator whose parent was killed may still be saving its state


def _own_modules() -> tuple[ModuleType, ModuleType]:
    """Import our two modules, then take the product off the path again, so that nothing here can lean on it."""
    root = str(Path(__file__).resolve().parents[2])
    sys.path[0] = root
    try:
        return importlib.import_module("duetime.emulator.snapshots"), importlib.import_module("duetime.emulator.tuning")
    finally:
        sys.path.remove(root)


def _environment(port: int, state_dir: Path, enforce_iam: bool) -> None:
    """What ministack reads at import. Must come before the first import of it."""
    scratch = state_dir / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # the unpacked functions of the last start
    for directory in (scratch, state_dir / "saved", state_dir / "s3"):
        directory.mkdir(parents=True, exist_ok=True)
    os.environ.update(
        {
            "GATEWAY_PORT": str(port),
            "BIND_HOST": HOST,
            "AUTH": "true" if enforce_iam else "false",
            "PERSIST_STATE": "1",
            "STATE_DIR": str(state_dir / "saved"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(state_dir / "s3"),
            "IOT_MTLS_ENABLED": "0",  # or it would listen on all interfaces
            "SFTP_ENABLED": "0",
            "LAMBDA_EXECUTOR": "local",
            "DOCKER_HOST": f"unix://{scratch}/no-docker.sock",  # nothing is ever pulled or started in a container
            "TMPDIR": str(scratch),
            "AWS_CONFIG_FILE": os.devnull,  # functions must not see the person's own AWS profile
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    )
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        os.environ.pop(name, None)


def _lock(state_dir: Path) -> int:
    """Hold the state directory for this process's life. Two emulators on one state would overwrite each other's."""
    state_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + PREDECESSOR_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            if time.monotonic() > deadline:
                print(f"another emulator runs on the state directory {state_dir}", file=sys.stderr)
                raise SystemExit(EXIT_IN_USE) from None
            time.sleep(0.1)


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            print(f"port {port} cannot be opened: {error.strerror}", file=sys.stderr)
            raise SystemExit(EXIT_IN_USE) from None


async def _serve(port: int, snapshots: ModuleType, tuning: ModuleType) -> None:
    app: Any = importlib.import_module("ministack.app")
    serve = importlib.import_module("hypercorn.asyncio").serve
    config = importlib.import_module("hypercorn.config").Config()
    config.bind = [f"{HOST}:{port}"]
    config.keep_alive_timeout = 75
    config.backlog = 1024
    config.loglevel = os.environ["LOG_LEVEL"]

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    threading.Thread(target=_watch_parent, args=(loop, stop), daemon=True, name="duetime-parent").start()

    async def until_stopped() -> None:
        """The end of this process. It waits for nothing that a client could draw out: no connection, no thread."""
        await stop.wait()
        code = 1
        try:
            await loop.run_in_executor(ending, saver.pause)
            await loop.run_in_executor(ending, end_functions)
            saver.save_at_exit()
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)

    ending = ThreadPoolExecutor(1)  # the loop's own threads may all be held by long requests
    saver = snapshots.Saver(loop)
    app.save_all = saver.write  # should the server end by itself, this is its last act
    end_functions = tuning.start()
    saver.start()
    await serve(app.app, config, shutdown_trigger=until_stopped)


def _watch_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(stop.set)


def main() -> None:
    parser = argparse.ArgumentParser(prog="duetime-emulator")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--enforce-iam", action="store_true")
    arguments = parser.parse_args()
    state_dir = arguments.state_dir.resolve()
    lock = _lock(state_dir)
    _check_port(arguments.port)
    snapshots, tuning = _own_modules()
    _environment(arguments.port, state_dir, arguments.enforce_iam)
    snapshots.point_at_latest(state_dir / "saved")
    asyncio.run(_serve(arguments.port, snapshots, tuning))
    os.close(lock)


if __name__ == "__main__":
    main()
