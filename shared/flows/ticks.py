"""The ticks of several shards in one invocation, side by side. What one tick does is told in flows.tick."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from shared.flows.tick import Ticked, TickFlow


@dataclass(frozen=True, slots=True, kw_only=True)
class TickFailed:
    """A tick that ended in an error: what it had not done is the shard's next one's."""

    shard: int
    error: Exception


@dataclass(frozen=True, slots=True)
class TicksFlow:
    """Each shard has its own lease, work and end: a busy or failing one neither delays nor hides another."""

    ticker: TickFlow

    def run(self, shards: Sequence[int], now: datetime, stop_at: datetime) -> list[Ticked | TickFailed]:
        """One tick of each of `shards` at `now`, in their order; see TickFlow.run."""
        with ThreadPoolExecutor(len(shards)) as pool:
            return list(pool.map(lambda shard: self._tick(shard, now, stop_at), shards))

    def _tick(self, shard: int, now: datetime, stop_at: datetime) -> Ticked | TickFailed:
        try:
            return self.ticker.run(shard, now, stop_at)
        except Exception as error:  # noqa: BLE001 - the others go on; the function fails once all are through
            return TickFailed(shard=shard, error=error)
