"""How long a message waits that is put back, and when it is worn: SQS would soon take it away. It never sends it."""

from datetime import datetime, timedelta

from shared.rules.sharding import stable_hash

# Half of what the queues allow (infra/queues.py): 1,000 receives before the dead-letter queue, 14 days in all.
WORN_RECEIVES = 500
WORN_AGE = timedelta(days=7)
FIRST_WAIT_S = 1.0


def is_worn(receive_count: int, sent_at: datetime | None, now: datetime) -> bool:
    """Whether a message that is to be put back once more has to be sent anew instead. `sent_at` None: not known."""
    return receive_count >= WORN_RECEIVES or (sent_at is not None and now - sent_at > WORN_AGE)


def look_again_s(receive_count: int, longest_s: float, name: str) -> float:
    """Seconds until a run that may not begin yet looks again: at least 1, twice as long each time, up to `longest_s`.

    Those that wait for the same thing are spread by their `name` over the second half of it.
    """
    longest = min(longest_s, FIRST_WAIT_S * 2.0 ** min(receive_count - 1, 20))
    spread = stable_hash(f"{name}/{receive_count}") / 2**64
    return max(FIRST_WAIT_S, longest * (1 + spread) / 2)
