"""Every deploy-time choice: its context key, default, limits and meaning. It never touches a construct.

A value comes from `cdk deploy -c key=value`, or from `context` in cdk.json; the text and the JSON form mean the same.
"""

import difflib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields
from typing import Any, Self, cast

from shared.model.job import Priority
from shared.settings import MAX_HORIZON_S

LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731, 1827, 3653)  # of what CloudWatch Logs accepts
EXECUTOR_MARGIN_S = 15  # of the executor's time, kept to end a handler and to write its outcome


class OptionError(ValueError):
    """A context value that cannot be used; the message names its key and what would be right."""


def _whole(default: int | None, low: int, high: int, meaning: str) -> Any:
    shown = "unset" if default is None else str(default)
    metadata = {"limits": f"{low}–{high}", "default": shown, "meaning": meaning, "low": low, "high": high}
    return field(default=default, metadata=metadata)


def _one_of(default: str | int, choices: Collection[str | int], meaning: str) -> Any:
    limits = " | ".join(str(c) for c in choices)
    metadata = {"limits": limits, "default": str(default), "meaning": meaning, "choices": choices}
    return field(default=default, metadata=metadata)


def _text(default: str, pattern: str, limits: str, meaning: str) -> Any:
    metadata = {"limits": limits, "default": default or "unset", "meaning": meaning, "pattern": pattern}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The choices of one stack, checked. Each field is a context key of the same name."""

    stack_name: str = _text(
        "Duetime", r"[A-Za-z][A-Za-z0-9-]{0,63}", "a letter, then up to 63 letters, digits or -", "Name of the stack"
    )
    auth: str = _one_of(
        "iam", ("iam", "none"), "Who may call the API: signed IAM callers, or everybody who can reach it"
    )
    shards: int = _whole(1, 1, 256, "Shards that new jobs are spread over")
    ticked_shards: int = _whole(None, 1, 256, "Shards that are ticked; at least `shards`, which is also its default")
    shards_per_tick: int = _whole(
        4, 1, 10, "Shards that one schedule and one invocation tick, side by side; 1 gives each all of `tick_memory_mb`"
    )
    horizon_s: int = _whole(300, 0, MAX_HORIZON_S, "How far ahead of its due time a job may be claimed, in seconds")
    retention_days: int = _whole(30, 1, 3650, "Days that runs and finished jobs are kept")
    removal_policy: str = _one_of(
        "retain", ("retain", "destroy"), "What happens to table, logs and key when the stack is deleted"
    )
    architecture: str = _one_of("arm64", ("arm64", "x86_64"), "Processor of the functions")
    python_version: str = _one_of("3.13", ("3.11", "3.12", "3.13", "3.14"), "Python of the functions")
    submit_memory_mb: int = _whole(1024, 128, 10240, "Memory (and with it CPU) of the API function")
    tick_memory_mb: int = _whole(1024, 128, 10240, "Memory of the tick function")
    executor_memory_mb: int = _whole(1024, 256, 10240, "Memory of the executor, shared by the runs of a batch")
    audit_memory_mb: int = _whole(512, 128, 10240, "Memory of the audit function")
    executor_timeout_s: int = _whole(
        120, 30, 900, f"Timeout of the executor; a job's `timeout_s` may be up to {EXECUTOR_MARGIN_S} s less"
    )
    executor_concurrency: int = _whole(
        50, 2, 1000, "Batches (of up to 10 runs) of normal priority that execute at the same time"
    )
    executor_high_concurrency: int = _whole(50, 2, 1000, "The same of high priority, beside those")
    executor_low_concurrency: int = _whole(10, 2, 1000, "The same of low priority, beside those")
    submit_reserved_concurrency: int | None = _whole(None, 1, 1000, "Reserved concurrency of the API function")
    tick_reserved_concurrency: int | None = _whole(
        None, 1, 1000, "Reserved concurrency of the tick function; at least its schedules"
    )
    executor_reserved_concurrency: int | None = _whole(
        None, 6, 3000, "Reserved concurrency of the executor; at least the sum of its three concurrencies"
    )
    api_rate: int = _whole(500, 1, 10000, "Requests a second that the API lets through in the long run")
    api_burst: int = _whole(1000, 1, 5000, "Requests that the API lets through at once")
    audit_segments: int = _whole(4, 1, 64, "Parallel segments of the audit's scan")
    log_retention_days: int = _one_of(30, LOG_RETENTION_DAYS, "Days that logs are kept")
    # Not higher: Lambda takes metrics, which are log lines without a level, for INFO and would drop them.
    log_level: str = _one_of("INFO", ("DEBUG", "INFO"), "Least level that the functions log")
    tracing: str = _one_of("active", ("active", "off"), "X-Ray traces of the functions")
    alarm_email: str = _text(
        "", r"[^@\s]+@[^@\s]+\.[^@\s]+", "an e-mail address", "Address subscribed to the alarms (it must confirm once)"
    )
    alarm_message_age_s: int = _whole(
        1800, 60, 1209600, "Age of the oldest message in a job queue that raises its alarm"
    )
    alarm_key: str = _one_of(
        "kms", ("kms", "none"), "Encryption of the alarm topic: a KMS key of its own (1 USD a month), or SNS's own only"
    )

    @classmethod
    def read(cls, value_of: Callable[[str], object], keys: Collection[str] = ()) -> Self:
        """Take each key from `value_of` (None: not given) and check it; `keys`, all given, catch a misspelt one.

        Raises OptionError naming the key.
        """
        names = [f.name for f in fields(cls)]
        _refuse_misspelt(keys, names)
        given = {f.name: _checked(f.name, value_of(f.name), f.metadata) for f in fields(cls)}
        chosen = {name: value for name, value in given.items() if value is not None}
        chosen.setdefault("ticked_shards", chosen.get("shards", 1))
        options = cls(**cast("dict[str, Any]", chosen))
        options._check_together()
        return options

    @property
    def max_timeout_s(self) -> int:
        """The longest `timeout_s` that a job may ask for, in seconds."""
        return self.executor_timeout_s - EXECUTOR_MARGIN_S

    @property
    def ticks(self) -> list[list[int]]:
        """The ticked shards, by the schedule that they share."""
        shards, step = list(range(self.ticked_shards)), self.shards_per_tick
        return [shards[start : start + step] for start in range(0, len(shards), step)]

    @property
    def executor_concurrencies(self) -> dict[Priority, int]:
        """Batches of each priority that execute at the same time."""
        return {
            "high": self.executor_high_concurrency,
            "normal": self.executor_concurrency,
            "low": self.executor_low_concurrency,
        }

    def _check_together(self) -> None:
        if self.ticked_shards < self.shards:
            raise OptionError(
                f"context ticked_shards is {self.ticked_shards}, but must be at least shards ({self.shards}): "
                "jobs of a shard that is not ticked would never run"
            )
        reserved, needed = self.tick_reserved_concurrency, len(self.ticks)
        if reserved is not None and reserved < needed:
            raise OptionError(
                f"context tick_reserved_concurrency is {reserved}, but must be at least {needed}, the invocations that "
                "ticked_shards and shards_per_tick make a minute: busy ones last for most of it"
            )
        reserved, needed = self.executor_reserved_concurrency, sum(self.executor_concurrencies.values())
        if reserved is not None and reserved < needed:
            raise OptionError(
                f"context executor_reserved_concurrency is {reserved}, but must be at least {needed}, the sum of "
                "executor_high_concurrency, executor_concurrency and executor_low_concurrency: "
                "the queues would be throttled"
            )


def _refuse_misspelt(keys: Collection[str], names: list[str]) -> None:
    for key in keys:
        near = [] if key in names else difflib.get_close_matches(key, names, n=1, cutoff=0.8)
        if near:
            raise OptionError(f"context {key} is not known; did you mean {near[0]}?")


def _checked(key: str, value: object, rule: Any) -> str | int | None:
    if value is None:
        return None
    text = str(value).strip()
    if "choices" in rule:
        for choice in rule["choices"]:
            if text == str(choice):
                return cast("str | int", choice)
        raise OptionError(f"context {key} must be one of {rule['limits']}, not {text!r}")
    if "pattern" in rule:
        if not re.fullmatch(rule["pattern"], text):
            raise OptionError(f"context {key} must be {rule['limits']}, not {text!r}")
        return text
    if not re.fullmatch(r"[0-9]{1,9}", text) or not rule["low"] <= int(text) <= rule["high"]:
        raise OptionError(f"context {key} must be a whole number, {rule['limits']}, not {text!r}")
    return int(text)
