"""Turns what a person types into what the API takes. It never judges what the API judges: schedules, names, limits."""

import json
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from duetime.client import JsonValue


class UsageError(Exception):
    """The command line cannot be read; the message names the option."""


PATHS = frozenset({"--state-dir"})
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SHORT = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
_LONGEST = timedelta(days=36_500)


def duration(text: str, option: str) -> timedelta:
    """`90` (seconds), `30s`, `5m`, `1h30m`, `2d`, `PT1H`. Raises UsageError naming the option."""
    plain = text.strip()
    found = re.fullmatch(r"()()()(\d+(?:\.\d+)?)", plain, re.ASCII) or _SHORT.fullmatch(plain) or _ISO.fullmatch(plain)
    if not found or not any(found.groups()):
        raise UsageError(f"{option} must be a duration such as 30s, 5m, 1h30m or PT1H, not {text!r}")
    seconds = sum(float(part or 0) * unit for part, unit in zip(found.groups(), _UNITS.values(), strict=True))
    if seconds > _LONGEST.total_seconds():
        raise UsageError(f"{option} must be at most 36500d, not {text!r}")
    return timedelta(seconds=seconds)


def whole_seconds(text: str, option: str) -> int:
    """A duration in whole seconds, for what the API counts in seconds."""
    seconds = duration(text, option).total_seconds()
    if seconds != int(seconds):
        raise UsageError(f"{option} must be whole seconds, not {text!r}")
    return int(seconds)


def moment(text: str, option: str, now: datetime) -> str:
    """A time for the API: RFC 3339 as it is, `now`, or from now on as `+2h` (before it as `-30m`)."""
    if text == "now":
        return now.isoformat()
    if text[:1] in {"+", "-"}:
        span = duration(text[1:], option)
        return (now + span if text[0] == "+" else now - span).isoformat()
    return text


def payload_text(text: str, option: str = "--payload") -> str:
    """The JSON text that `option` means: itself, the content of `@file`, or of the standard input for `-`."""
    if text == "-" or text.startswith("@"):
        text = _content(text.removeprefix("@"), option)
    _json(text, option)
    return text


def jobs_text(path: str) -> str:
    """The JSON list of jobs that a file holds (`-`: the standard input): a list, `{"jobs": […]}`, or one job a line."""
    text = _content(path, "FILE")
    if text.lstrip().startswith("["):
        _json(text, "FILE")
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(_is_json(line) for line in lines):
        return f"[{', '.join(lines)}]"
    whole = _json(text, "FILE")
    if isinstance(whole, dict) and list(whole) == ["jobs"]:
        return text.strip()[1:-1].partition(":")[2]
    return f"[{text}]"


def _content(path: str, option: str) -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8") if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = "the standard input is not UTF-8" if path == "-" else f"{path} cannot be read"
        raise UsageError(f"{option}: {what}: {error}") from None


def check_text(arguments: Sequence[str]) -> None:
    """Refuse arguments that are no UTF-8, all but paths. Raises UsageError naming the option or the argument."""
    before = ""
    for argument in arguments:
        option, assigned, _ = argument.partition("=") if argument.startswith("--") else (before, "", "")
        if option not in PATHS and not _is_text(argument):
            name = option if assigned or option.startswith("--") else "an argument"
            shown = argument.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            raise UsageError(f"{name} must be UTF-8 text, not '{shown}'")
        before = argument


def _is_text(argument: str) -> bool:
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def target(handler: str | None, text: str | None) -> dict[str, JsonValue]:
    """The target that `--handler` or `--target` means; exactly one of them."""
    if (handler is None) == (text is None):
        raise UsageError("give exactly one of --handler and --target")
    if text is None:
        return {"kind": "python", "handler": handler}
    value = _json(text, "--target")
    if not isinstance(value, dict):
        raise UsageError(f'--target must be a JSON object such as {{"kind": "python", "handler": "…"}}, not {text!r}')
    return value


def fields(text: str) -> dict[str, JsonValue]:
    """The fields of a job that `--fields` means: a JSON object, the content of `@file`, or of the input for `-`."""
    value = _json(payload_text(text, "--fields"), "--fields")
    if not isinstance(value, dict):
        raise UsageError(f'--fields must be a JSON object such as {{"max_runs": 5}}, not {text!r}')
    return value


def tags(given: Sequence[str]) -> dict[str, str]:
    """The tags that each `--tag` means."""
    found = dict(one.partition(":")[::2] for one in given)
    if len(found) < len(given):
        raise UsageError("--tag: a job has a tag of one name once")
    return found


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json(text: str, option: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = " (a text needs its quotes: '\"…\"')" if re.fullmatch(r"\w[\w .-]*", text) else ""
        raise UsageError(f"{option} must be JSON{hint}: {error}") from None
    return value
