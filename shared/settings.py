"""The settings of each function, read from the environment once, at cold start. It never hides a missing one.

The variable of field `horizon_s` is `DUETIME_HORIZON_S`; the stack asks `variables()` for the names.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from shared.model.errors import SettingsError
from shared.model.job import Priority

MAX_HORIZON_S = 840  # 900 s, the longest delay of an SQS message, less a minute between two ticks


def _text() -> Any:
    return field(metadata={})


def _whole(low: int, high: int) -> Any:
    return field(metadata={"low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class _Settings:
    @classmethod
    def variables(cls) -> dict[str, str]:
        """Field name → name of its environment variable."""
        return {f.name: f"DUETIME_{f.name.upper()}" for f in fields(cls)}

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Self:
        """Read all fields from `env` (default: the process's). Raises SettingsError naming the variable."""
        source = os.environ if env is None else env
        return cls(**{f.name: _read(source, cls.variables()[f.name], f.type, f.metadata) for f in fields(cls)})


def _read(source: Mapping[str, str], name: str, kind: object, limits: Mapping[str, int]) -> str | int:
    text = source.get(name, "").strip()
    if not text:
        raise SettingsError(f"environment variable {name} is missing")
    if kind is str:
        return text
    try:
        number = int(text)
    except ValueError:
        raise SettingsError(f"environment variable {name} must be a whole number, not {text!r}") from None
    if not limits["low"] <= number <= limits["high"]:
        raise SettingsError(f"environment variable {name} must be {limits['low']} to {limits['high']}, not {number}")
    return number


@dataclass(frozen=True, kw_only=True)
class _QueueSettings(_Settings):
    queue_url: str = _text()  # of jobs of normal priority
    high_queue_url: str = _text()
    low_queue_url: str = _text()

    @property
    def queue_urls(self) -> dict[Priority, str]:
        """The queue of each priority."""
        return {"high": self.high_queue_url, "normal": self.queue_url, "low": self.low_queue_url}


@dataclass(frozen=True, kw_only=True)
class SubmitSettings(_QueueSettings):
    """The API function."""

    table: str = _text()
    shards: int = _whole(1, 1024)  # shards that new jobs are spread over
    ticked_shards: int = _whole(1, 1024)  # all shards that are ticked: where jobs may be
    horizon_s: int = _whole(0, MAX_HORIZON_S)
    retention_days: int = _whole(1, 3650)
    max_timeout_s: int = _whole(1, 885)  # the longest timeout_s of a job: what the executor can hold


@dataclass(frozen=True, kw_only=True)
class TickSettings(_QueueSettings):
    """The tick function."""

    table: str = _text()
    shards: int = _whole(1, 1024)  # shards that the next occurrence of a claimed job is put into
    horizon_s: int = _whole(0, MAX_HORIZON_S)
    retention_days: int = _whole(1, 3650)


@dataclass(frozen=True, kw_only=True)
class ExecuteSettings(_QueueSettings):
    """The executor function."""

    table: str = _text()
    dead_letter_queue_url: str = _text()
    retention_days: int = _whole(1, 3650)


@dataclass(frozen=True, kw_only=True)
class AuditSettings(_QueueSettings):
    """The audit function."""

    table: str = _text()
    dead_letter_queue_url: str = _text()
    shards: int = _whole(1, 1024)  # all shards that are ticked
    horizon_s: int = _whole(0, MAX_HORIZON_S)
    retention_days: int = _whole(1, 3650)
    segments: int = _whole(1, 64)  # parallel segments of its scan
