"""The pictures and the tables of docs/scale.md that come from bench.herd. Nothing else writes docs/img.

.venv/bin/python -m bench.herd_pictures            writes docs/img/*.svg, prints the tables
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from bench.chart import Axis, Panel, Point, svg
from bench.herd import HEADER, Herd, claim, level, row, run

IMAGES = Path(__file__).parents[1] / "docs" / "img"
SIZES = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
SHARDS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
DEFAULT = Herd(jobs=100_000)
WIDE = replace(DEFAULT, shards=16, concurrency=1000)
MILLION = replace(WIDE, jobs=1_000_000)
# 200 pollers at least, 10 batches each, in an account that has the concurrency
PROVISIONED = replace(WIDE, concurrency=2000, first_batches=2000, account_concurrency=3000, first_environments=2000)
SETTINGS = {
    "as deployed: 1 shard, 50 batches": DEFAULT,
    "16 shards, 50 batches": replace(DEFAULT, shards=16),
    "16 shards, 1,000 batches": WIDE,
    "16 shards, provisioned mode (no option yet)": PROVISIONED,
}


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, picture in pictures():
        (IMAGES / name).write_text(picture)
    for title, herds in tables().items():
        print(f"\n{title}\n\n{table(herds)}")


def table(herds: Iterable[Herd]) -> str:
    return "\n".join([HEADER, *(row(run(herd)) for herd in herds)])


def tables() -> dict[str, list[Herd]]:
    """Herds by what is tried with them."""
    return {
        "The herd grows": [replace(DEFAULT, jobs=jobs) for jobs in (1_000, 10_000, 100_000)]
        + [replace(WIDE, jobs=jobs) for jobs in (10_000, 100_000, 1_000_000)]
        + [replace(PROVISIONED, jobs=1_000_000)],
        "Horizon": [replace(MILLION, shards=8, horizon_s=horizon) for horizon in (0, 60, 300, 600, 840)],
        "Shards": [replace(MILLION, shards=shards) for shards in (1, 4, 16, 64, 256)],
        "Concurrency": [replace(WIDE, concurrency=concurrency) for concurrency in (10, 50, 200, 1000)],
        "Length of a run": [replace(WIDE, run_s=seconds) for seconds in (0.1, 1, 10)],
    }


def pictures(*names: str) -> Iterator[tuple[str, str]]:
    """(file name, SVG) of those named, or of all."""
    drawn: dict[str, Callable[[], str]] = {
        "herd-lateness.svg": lambda: svg([_lateness(title, herd) for title, herd in SETTINGS.items()], columns=2),
        "herd-over-time.svg": lambda: svg(_over_time(), columns=2),
        "herd-last-claim.svg": lambda: svg([_last_claim()], columns=1),
    }
    for name in names or drawn:
        yield name, drawn[name]()


def _lateness(title: str, herd: Herd) -> Panel:
    lines: dict[str, list[Point]] = {"p50": [], "p99": [], "last": []}
    for jobs in SIZES:
        out = run(replace(herd, jobs=jobs))
        for name, late in zip(lines, (out.late_s(0.5), out.late_s(0.99), out.last_start_s), strict=True):
            lines[name].append((jobs, late))
    return Panel(title, Axis("jobs due at one second", 100, 1e6, log=True), Axis("late, s", 0.1, 1e4, log=True), lines)


def _over_time() -> list[Panel]:
    end = 250
    seconds = Axis("seconds after they were due", -10, end)
    waiting: dict[str, list[Point]] = {}
    at_once: dict[str, list[Point]] = {}
    for concurrency in (50, 200, 1000):
        out = run(replace(WIDE, concurrency=concurrency))
        waiting[f"concurrency {concurrency:,}"] = _steps(out.visible, out.taken, end)
        at_once[f"concurrency {concurrency:,}"] = _steps(out.began, out.ended, end)
    return [
        Panel("100,000 jobs, 16 shards: messages waiting", seconds, Axis("visible, not taken", 0, 100_000), waiting),
        Panel("and batches at once", seconds, Axis("batches", 0, 400), at_once),
    ]


def _steps(up: Mapping[int, int], down: Mapping[int, int], end: int) -> list[Point]:
    """How many there are, at each half second."""
    points: list[Point] = [(-10.0, 0.0)]
    changes = iter([*level(up, down), (end * 1000 + 1, 0)])
    at, count = next(changes)
    now = 0.0
    for half in range(-20, end * 2 + 1):
        while at <= half * 500:
            now = count
            at, count = next(changes)
        points.append((half / 2, now))
    return points


def _last_claim() -> Panel:
    lines = {
        f"horizon {horizon} s": [
            (float(shards), claim(replace(MILLION, shards=shards, horizon_s=horizon)).last_claim_s) for shards in SHARDS
        ]
        for horizon in (60, 300, 840)
    }
    y = Axis("seconds after they were due", -900, 4000)
    return Panel("Last claim of 1,000,000 jobs", Axis("shards", 1, 256, log=True), y, lines)


if __name__ == "__main__":
    main()
