"""Whether a failed run is tried again, and when. It never draws at random: the caller hands in the fraction."""

from collections.abc import Sequence
from math import exp, log

from shared.model.job import Retry
from shared.model.run import Outcome, Result

TIMED_OUT, LOST, FAILED = "timed_out", "lost", "failed"

LARGEST_GROWTH = 600  # e^600 is a float; beyond it, a tiny base_s can make the product one although the power is not


def backoff_s(retry: Retry, attempt: int, fraction: float) -> float:
    """Seconds from the failure of attempt `attempt` (1 is the first) to the next: exponential, capped, full jitter.

    `fraction` is 0 to 1. Source: "Exponential Backoff And Jitter", AWS Architecture Blog.
    """
    return fraction * ceiling_s(retry, attempt)


def ceiling_s(retry: Retry, attempt: int) -> float:
    """The longest `backoff_s`: min(max_s, base_s × factor^(attempt - 1)), without ever forming too large a power."""
    if retry.base_s <= 0 or retry.max_s <= 0:
        return 0.0
    growth = (attempt - 1) * log(retry.factor)
    if log(retry.base_s) + growth >= log(retry.max_s):
        return float(retry.max_s)
    if growth > LARGEST_GROWTH:
        return min(float(retry.max_s), exp(log(retry.base_s) + growth))
    return min(float(retry.max_s), retry.base_s * retry.factor ** (attempt - 1))


def is_last(retry: Retry, attempt: int) -> bool:
    """Whether attempt number `attempt` is the last that the policy allows."""
    return attempt >= retry.max_attempts


def kinds_of(result: Result) -> tuple[str, ...]:
    """What kinds of error ended an attempt, the narrowest first: `("KeyError", "LookupError", "Exception", "failed")`.

    A timeout is `timed_out` and a process that died `lost`; neither is `failed`, which every other failure is. None for
    what is no failure, unless the target names some.
    """
    match result.outcome:
        case Outcome.TIMED_OUT:
            return (*result.error_kinds, TIMED_OUT)
        case Outcome.LOST:
            return (*result.error_kinds, LOST)
        case Outcome.FAILED:
            return (*result.error_kinds, FAILED)
    return result.error_kinds


def is_worth_another(retry: Retry, kinds: Sequence[str]) -> bool:
    """Whether the policy tries again after an error of `kinds`: not if it gives one of them up; else if it retries on
    one of them, or names none.
    """
    if any(kind in retry.give_up_on for kind in kinds):
        return False
    return not retry.retry_on or any(kind in retry.retry_on for kind in kinds)
