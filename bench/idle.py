"""What a stack costs a month while nothing is due, by shards and by `shards_per_tick`: sums at list price.

    .venv/bin/python -m bench.idle

Requests and units of an idle tick are the code's (tests/unit/test_scale.py holds them), what a request takes is assumed
(WAITS_S, WORKS_S), prices are bench.scale's. Alarms, custom metrics, the alarm topic's key and traces stand beside:
they do not grow with shards.
"""

from dataclasses import dataclass
from math import ceil

from bench import scale
from bench.page import markdown, options, publish

MINUTES = scale.MONTH_S / 60
POLLS = scale.QUEUES * 5 * 3 * MINUTES  # five pollers of each mapping, 20 s each


@dataclass(frozen=True)
class Idle:
    """Ticks of `shards` that find nothing, up to `together` in an invocation."""

    shards: int
    together: int = scale.SHARDS_PER_TICK

    @property
    def name(self) -> str:
        shards = f"{self.shards} shards" if self.shards > 1 else "1 shard"
        chosen = f", `shards_per_tick={self.together}`" if self.together != scale.SHARDS_PER_TICK else ""
        return shards + chosen

    def lines(self) -> list[float]:
        """Dollars a month: table, Lambda, Scheduler, polling, logs."""
        calls = ceil(self.shards / self.together) * MINUTES
        seconds = scale.idle_s(min(self.shards, self.together))
        return [
            self.shards * MINUTES * scale.IDLE_UNITS,
            calls * (scale.INVOCATION + seconds * scale.TICK_GB * scale.GB_S),
            calls * scale.SCHEDULED,
            POLLS * scale.SQS_REQUEST,
            calls * scale.LOG_IDLE / scale.GB * scale.LOG_GB,
        ]

    def row(self) -> list[str]:
        total = sum(self.lines())
        return [self.name, *(f"{one:.2f}" for one in self.lines()), f"{total:.2f}", f"{scale.FIXED:.2f}"]


ROWS = [Idle(1), Idle(4), Idle(16), Idle(16, 1), Idle(16, 8), Idle(64)]


def table() -> str:
    head = [
        "dollars a month",
        "table",
        "Lambda",
        "Scheduler",
        "polling",
        "logs",
        "together",
        "beside: alarms, metrics, key",
    ]
    return markdown(head, [one.row() for one in ROWS])


def main() -> None:
    publish({"idle": table()}, options(__doc__).parse_args().write)


if __name__ == "__main__":
    main()
