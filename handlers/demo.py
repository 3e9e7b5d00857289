"""Handlers to try the scheduler with. They never touch anything outside their own process."""

import os
import signal
import time
from typing import Any

from handlers import Run, handler

NAP_S = 0.2  # how soon demo.sleep sees that it is cancelled


@handler("demo.echo")
def echo(payload: object, run: Run) -> object:
    """Return the payload."""
    return payload


@handler("demo.sleep")
def sleep(payload: dict[str, float], run: Run) -> dict[str, float]:
    """Sleep for `s` seconds: `{"s": 1.5}`. Shows each whole second as progress, and wakes up when it is cancelled."""
    began = time.monotonic()
    while (slept := time.monotonic() - began) < payload["s"]:
        if run.cancelled():
            return {"slept_s": round(slept, 1)}
        if slept >= 1:
            run.progress({"slept_s": int(slept), "of_s": payload["s"]})
        time.sleep(min(NAP_S, payload["s"] - slept))
    return {"slept_s": payload["s"]}


@handler("demo.stubborn")
def stubborn(payload: dict[str, float], run: Run) -> dict[str, float]:
    """Sleep for `s` seconds and never ask whether it is cancelled: it is ended a heartbeat later."""
    time.sleep(payload["s"])
    return {"slept_s": payload["s"]}


@handler("demo.fail")
def fail(payload: object, run: Run) -> None:
    """Raise, with the text of `message` if there is one: `{"message": "no such customer"}`."""
    raise RuntimeError(_options(payload).get("message", "demo.fail was told to fail"))


@handler("demo.crash")
def crash(payload: object, run: Run) -> dict[str, int]:
    """End the whole process in the first `attempts` attempts (1 unless told): with exit code 1, or by `signal`.

    `{"attempts": 2, "signal": "SIGSEGV"}` crashes twice and then succeeds.
    """
    options = _options(payload)
    if run.attempt <= int(options.get("attempts", 1)):
        if "signal" in options:
            os.kill(os.getpid(), signal.Signals[options["signal"]])
            time.sleep(60)  # the signal arrives at its own time
        os._exit(1)
    return {"attempt": run.attempt}


def _options(payload: object) -> dict[str, Any]:
    """The payload if it is an object; any other one changes nothing."""
    return payload if isinstance(payload, dict) else {}
