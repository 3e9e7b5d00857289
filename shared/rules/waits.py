"""When a message that waits is worn: SQS would soon take it away. It never sends it anew (flows.execute does)."""

from datetime import datetime, timedelta

# Half of what the queues allow (infra/queues.py): 1,000 receives before the dead-letter queue, 14 days in all.
WORN_RECEIVES = 500
WORN_AGE = timedelta(days=7)


def is_worn(receive_count: int, sent_at: datetime | None, now: datetime) -> bool:
    """Whether a message that is to be put back once more has to be sent anew instead. `sent_at` None: not known."""
    return receive_count >= WORN_RECEIVES or (sent_at is not None and now - sent_at > WORN_AGE)
