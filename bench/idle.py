"""What a stack costs a month while nothing is due, and what would lower it: sums at list price. It measures nothing.

    .venv/bin/python -m bench.idle

Requests and units of an idle tick are the code's (tests/unit/test_scale.py holds them), its seconds are assumed, prices
are bench.scale's. Alarms, custom metrics, the alarm topic's key and traces stand beside: they do not grow with shards.
"""

from dataclasses import dataclass

from bench import scale
from bench.page import markdown, options, publish

MINUTES = scale.MONTH_S / 60
POLLS = scale.QUEUES * 5 * 3 * MINUTES  # five pollers of each mapping, 20 s each


@dataclass(frozen=True, kw_only=True)
class Idle:
    """Ticks that find nothing: `invocations` a minute, each of `seconds`; `reads`, `writes` units of one shard's."""

    name: str
    shards: int
    invocations: int
    seconds: float
    reads: float = 9
    writes: float = 2

    def lines(self) -> list[float]:
        """Dollars a month: table, Lambda, Scheduler, polling, logs."""
        ticks, calls = self.shards * MINUTES, self.invocations * MINUTES
        return [
            ticks * (self.writes * scale.WRITE + self.reads * scale.READ),
            calls * (scale.INVOCATION + self.seconds * scale.TICK_GB * scale.GB_S),
            calls * scale.SCHEDULED,
            POLLS * scale.SQS_REQUEST,
            (ticks * scale.LOG_RUN + calls * scale.LOG_CALL) / scale.GB * scale.LOG_GB,
        ]

    def row(self) -> list[str]:
        total = sum(self.lines())
        return [self.name, *(f"{one:.2f}" for one in self.lines()), f"{total:.2f}", f"{scale.FIXED:.2f}"]


NOW = [
    Idle(name=f"{n} shards, as it is" if n > 1 else "1 shard", shards=n, invocations=n, seconds=0.15) for n in (1, 16)
]
CHEAPER = [
    Idle(name="16: one invocation ticks all of them, side by side", shards=16, invocations=1, seconds=0.6),
    Idle(name="16: and a bucket is read 6 times, not 16", shards=16, invocations=1, seconds=0.3, reads=4),
]


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
    return markdown(head, [one.row() for one in [*NOW, *CHEAPER]])


def main() -> None:
    publish({"idle": table()}, options(__doc__).parse_args().write)


if __name__ == "__main__":
    main()
