"""Reads the length of time between two runs. It never takes months or years, whose length varies, nor fractions."""

import re
from typing import Final

from shared.model.errors import InputError, InvalidScheduleError
from shared.rules.aws_forms import aws_rate

MAX_DURATION_S: Final = 3653 * 86400  # ten years

_SHORT = re.compile(r"(?:(\d{1,9})w)?(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)
_ISO = re.compile(r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?", re.ASCII)


def read_duration(text: object, field: str, *, error: type[InputError] = InvalidScheduleError) -> int:
    """The seconds of `30s`, `5m`, `1h30m`, `1d`, ISO 8601 `PT1H`, `P1D`, `P2W` or AWS `rate(5 minutes)`.

    At least 1 second, at most 10 years. Raises `error` of `field` and nothing else.
    """
    if not isinstance(text, str):
        raise error(field, f"must be a duration as text, such as 5m or PT1H, not {type(text).__name__}")
    seconds = _seconds(text.strip(" "))
    if seconds is None:
        raise error(
            field,
            f"{text!r:.40} is not a duration; write whole numbers such as 30s, 5m, 1h30m, 1d, PT1H or rate(5 minutes)",
        )
    if not 1 <= seconds <= MAX_DURATION_S:
        raise error(
            field, f"{text!r:.40} is out of range; 1 second to 10 years ({MAX_DURATION_S // 86400} days) are right"
        )
    return seconds


def _seconds(text: str) -> int | None:
    if (rate := aws_rate(text)) is not None:
        return rate
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (weeks * 7 + days) * 86400 + hours * 3600 + minutes * 60 + seconds
