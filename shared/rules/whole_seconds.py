"""When messages are best sent: SQS delays by whole seconds from the send. It never waits or sends."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

AHEAD_S = 30  # what is due before waits for nothing: the waits of one tick must make nothing late
NEAR = 0.1  # of a second: what has just begun is taken as it is


def wait_s(dues: Iterable[datetime], now: datetime) -> float:
    """Seconds from `now`, under 1, until most of `dues` are whole seconds ahead; 0 where it is not worth a wait.

    A message of 12:05:00 that is sent at 12:00:10.7 comes at 12:05:00.7, one that is sent at 12:00:11 at 12:05:00.
    """
    moments = list(dues)
    if not moments or min(moments) < now + timedelta(seconds=AHEAD_S):
        return 0.0
    fraction, _ = Counter(moment.microsecond for moment in moments).most_common(1)[0]
    wait = (fraction - now.microsecond) % 1_000_000 / 1e6
    return wait if wait <= 1 - NEAR else 0.0
