"""`python -m tests.faults`: everything is tried, on as many processes as there are cores, and counted.

`python -m tests.faults NAME` tells the history of one try again: `tick/cancel: A3 B2` or `one-off, near @ after 3`.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

os.environ |= {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "POWERTOOLS_METRICS_NAMESPACE": "Duetime",
    "POWERTOOLS_SERVICE_NAME": "duetime",
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",  # what was got round is no news here
}

from tests.faults import answers, crashes, interleaving, outages
from tests.faults.pairs import PAIRS
from tests.faults.scenarios import SCENARIOS

FIRSTS = 4  # parts into which the pairs of a scenario are cut
MOST_SECONDS = 16  # of a first crash point: the pairs grow with the square of a story's length


@dataclass
class Part:
    """What a part of the work found: how much of what was tried, the violations, the latest call by place of death."""

    what: str
    tried: int = 0
    violations: list[str] = field(default_factory=list)
    late_s: dict[str, float] = field(default_factory=dict)


def tried_crashes(name: str) -> Part:
    return _crashes("crash points", crashes.every_point(SCENARIOS[name]))


def tried_pairs(name: str, part: int) -> Part:
    return _crashes(
        "pairs of crash points", crashes.every_pair(SCENARIOS[name], part=(part, FIRSTS), most_seconds=MOST_SECONDS)
    )


def tried_interleavings(name: str) -> Part:
    part = Part("interleavings")
    for woven in interleaving.every_schedule(PAIRS[name]):
        _count(part, woven.name, woven.violations)
    return part


def tried_answers(name: str) -> Part:
    part = Part("faults of answers")
    for every in (answers.every_answer, answers.every_trouble):
        for struck in every(SCENARIOS[name]):
            _count(part, struck.name, struck.violations)
    return part


def tried_outages() -> Part:
    part = Part("outages")
    for weathered in outages.every_outage():
        _count(part, weathered.name, weathered.violations)
    return part


def _crashes(what: str, every: Iterator[crashes.Tried]) -> Part:
    part = Part(what)
    for tried in every:
        if tried.where:  # not the story without a crash
            _count(part, tried.name, tried.violations)
        if len(tried.where) == 1 and (not tried.name.startswith("the audit") or "audit:" in tried.where[0]):
            part.late_s[tried.where[0]] = max(part.late_s.get(tried.where[0], 0), tried.late_s)
    return part


def _count(part: Part, name: str, violations: tuple[object, ...]) -> None:
    part.tried += 1
    part.violations += [f"{name}: {violation}" for violation in violations]


def work() -> list[Callable[[], Part]]:
    """The longest parts first."""
    scenarios = sorted(SCENARIOS, key=lambda name: name != "a batch of mixed jobs")
    return [
        *(partial(tried_pairs, name, part) for name in SCENARIOS if SCENARIOS[name].pairs for part in range(FIRSTS)),
        *(partial(tried_crashes, name) for name in scenarios),
        *(partial(tried_interleavings, name) for name in PAIRS),
        *(partial(tried_answers, name) for name in answers.STORIES),
        tried_outages,
    ]


def everything() -> int:
    """Try it all; the number of violations."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    violations: list[str] = []
    late_s: dict[str, float] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(part) for part in work()]:
            found = future.result()
            counts[found.what] += found.tried
            violations += found.violations
            for step, seconds in found.late_s.items():
                late_s[step] = max(late_s.get(step, 0), seconds)
    print("Latest first call after its time, by the place of one crash (s, simulated clock):")
    for step, seconds in sorted(late_s.items(), key=lambda one: -one[1]):
        if seconds > 1:
            print(f"  {seconds:7.1f}  {step}")
    for violation in violations[:40]:
        print(violation)
    for what, tried in counts.items():
        print(f"{what} tried: {tried}")
    print(f"violations: {len(violations)}")
    print(f"{time.monotonic() - began:.0f} s on {os.cpu_count()} cores")
    return len(violations)


def replay(name: str) -> None:
    """Tell the history of one try, and what is wrong about it."""
    if ": " in name:
        history, tried = interleaving.replay(PAIRS, name)
        print(*tried.made, sep="\n")
        violations = tried.violations
    else:
        history, crashed = crashes.replay(name)
        violations = crashed.violations
    print(*history.events, *violations, sep="\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        replay(" ".join(sys.argv[1:]))
    else:
        sys.exit(1 if everything() else 0)
