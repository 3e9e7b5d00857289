"""What a dispatched job takes with the ways in use, and with Duetime, in one run (figures: docs/performance.md).

    .venv/bin/python -m bench.patterns [--jobs 2000] [--runs 3]

Each is written compactly, without what would only add to it. Those on AWS share one local AWS, and take turns; those of
a single box have their real server, on a socket of its own, and are left out with a line where it is not installed.
CPU is the client's own, in its code (user), not the server's. A rate on the local AWS is a rate of the local AWS.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench import scale
from bench.counting import Counts, counted
from bench.measuring import Spent, measured
from bench.page import markdown, options, publish
from bench.patterns import servers
from bench.patterns.on_aws import Duetime, DuetimeRun, Dynein, Pattern, SingleWrites
from bench.stack import emulator_running, fresh
from shared.wiring import base
from tests.support.aws import Aws

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / "build" / "bench-venv" / "bin" / "python"
COUNTED = 200  # jobs of the pass that counts


@dataclass(frozen=True)
class Way:
    """One row: how it is made, and what it is called."""

    name: str
    make: Callable[[Aws, Callable[[datetime], None]], Pattern]


ON_AWS = [
    Way("**Duetime**, to the queue", lambda aws, _: Duetime(aws)),
    Way("(a) an `UpdateItem` and a `SendMessage` a job", lambda aws, _: SingleWrites(aws)),
    Way("(b) Dynein's: put; query; claim, send, delete", lambda aws, _: Dynein(aws)),
    Way("**Duetime**, to the run's end, with its history", DuetimeRun),
]
# By name, script, and where its server is.
ON_A_BOX: list[tuple[str, str, Callable[[], AbstractContextManager[str]]]] = [
    ("APScheduler 3, SQLite: to the run's end", "apscheduler_sqlite", TemporaryDirectory),
    ("rq-scheduler, Redis: to the queue", "rq_redis", servers.redis),
    ("procrastinate, PostgreSQL: to the run's end", "procrastinate_postgres", servers.postgresql),
]
HEAD = ["", "CPU a dispatched job", "× Duetime", "rate ÷ Duetime", "CPU a submit", "write units", "read units"]
HEAD += ["requests", "$ a million"]

# Call counts alone; the pages are AWS's guides.
COUNTED_ON_PAPER = [
    [
        "TTL and stream: one `PutItem`, DynamoDB removes it, the stream calls a function",
        "1",
        "1",
        "0.63, and the function",
        "“within a few days” after its time",
        "DynamoDB guide, “Using time to live (TTL)”: deletions take no write units; pricing: a function's reads of the"
        " stream are free",
    ],
    [
        "A schedule a job: one `CreateSchedule` (removed by `ActionAfterCompletion`), its target a queue",
        "1",
        "0",
        "1.00, and the target's 0.40",
        "60 s",
        "EventBridge Scheduler guide, “Schedule types”, “Quotas” (1,000 creations a second); its pricing",
    ],
]


def on_aws(jobs: int, runs: int) -> Iterator[list[str]]:
    """The rows of those on AWS."""
    puts: dict[str, list[Spent]] = {way.name: [] for way in ON_AWS}
    sends: dict[str, list[Spent]] = {way.name: [] for way in ON_AWS}
    counts: dict[str, Counts] = {}
    with emulator_running() as (server, clients):
        for way in ON_AWS * runs:
            with fresh(clients) as aws:
                server.set_time(None)
                pattern = way.make(aws, server.set_time)
                with measured() as put:
                    pattern.put(jobs)
                with measured() as sent:
                    assert pattern.dispatch() == jobs
                puts[way.name].append(put)
                sends[way.name].append(sent)
        for way in ON_AWS:
            server.set_time(None)
            counts[way.name] = _counts(way, clients, server.set_time)
    ours = sends[ON_AWS[0].name]
    for way in ON_AWS:
        name, count = way.name, counts[way.name]
        dollars = count.writes * scale.WRITE + count.reads * scale.READ + count.sqs * scale.SQS_REQUEST
        yield [
            name,
            *_speeds([one.user_s for one in sends[name]], [one.wall_s for one in sends[name]], ours, jobs),
            f"{median(one.user_s for one in puts[name]) / jobs * 1e3:.2f} ms",
            f"{count.writes / COUNTED:.2f}",
            f"{count.reads / COUNTED:.2f}",
            f"{count.requests.total() / COUNTED:.2f}",
            f"{dollars / COUNTED * 1e6:.2f}",
        ]


def _counts(way: Way, clients: base.Clients, let_it_be: Callable[[datetime], None]) -> Counts:
    counts = Counts()
    with fresh(clients) as aws:
        pattern = way.make(counted(aws, counts), let_it_be)
        pattern.put(COUNTED)
        pattern.dispatch()
    return counts


def on_a_box(jobs: int, runs: int, ours_ms: float) -> Iterator[list[str]]:
    """The rows of those on a box; `ours_ms` is Duetime's CPU a dispatched job."""
    for name, script, server in ON_A_BOX:
        found = []
        for _ in range(runs):
            try:
                with server() as place:
                    found.append(_run(script, place, jobs))
            except servers.MissingServerError as missing:
                print(f"left out: {name}: {missing}", flush=True)
                break
        else:
            cpu_ms = median(one["user_s"] for one in found) / jobs * 1e3
            put_ms = median(one["put_s"] for one in found) / jobs * 1e3
            commands = found[0].get("requests")
            requests = f"{commands / jobs:.0f} commands" if commands else ""
            yield [
                name,
                f"{cpu_ms:.2f} ms",
                f"{cpu_ms / ours_ms:.1f}",
                "",
                f"{put_ms:.2f} ms",
                "",
                "",
                requests,
                "",
            ]


def _run(script: str, place: str, jobs: int) -> dict[str, float]:
    command = [str(PYTHON), "-I", str(HERE / f"{script}.py"), place, str(jobs)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(said)  # type: ignore[no-any-return]


def _speeds(cpu: list[float], wall: list[float], ours: list[Spent], jobs: int) -> list[str]:
    by_cpu = median(one / other.user_s for one, other in zip(cpu, ours, strict=True))
    by_wall = median(other.wall_s / one for one, other in zip(wall, ours, strict=True))
    return [f"{median(cpu) / jobs * 1e3:.2f} ms", f"{by_cpu:.1f}", f"{by_wall:.2f}"]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    rows = list(on_aws(chosen.jobs, chosen.runs))
    print(markdown(HEAD, rows), flush=True)  # they took the longest
    rows += on_a_box(chosen.jobs, chosen.runs, float(rows[0][1].removesuffix(" ms")))
    paper_head = ["", "requests a job", "write units", "$ a million", "late by", "source"]
    tables = {
        "patterns": f"{chosen.jobs:,} jobs, medians of {chosen.runs}:\n\n{markdown(HEAD, rows)}",
        "paper": markdown(paper_head, COUNTED_ON_PAPER),
    }
    publish(tables, chosen.write)


if __name__ == "__main__":
    main()
