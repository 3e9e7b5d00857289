"""How long a failed run waits for its next attempt. It never draws at random: the caller hands in the fraction."""

from math import exp, log

from shared.model.job import Retry

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
