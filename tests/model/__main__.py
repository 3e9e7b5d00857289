"""`python -m tests.model`: each configuration with its states and verdict; each weakened variant with its trace."""

import sys

from tests.model.configurations import CONFIGURATIONS
from tests.model.search import Verdict
from tests.model.weakened import WEAKENED

WIDTH = max(len(one.name) for one in (*CONFIGURATIONS, *WEAKENED))


def line(name: str, verdict: Verdict, said: str) -> str:
    return f"{name:{WIDTH}}  {verdict.states:9,} {verdict.steps:10,} {verdict.ends:6,} {verdict.seconds:6.1f}  {said}"


def main() -> int:
    wrong = 0
    states = steps = 0
    seconds = 0.0
    print(f"{'the protocol as it is':{WIDTH}}  {'states':>9} {'steps':>10} {'ends':>6} {'CPU s':>6}")
    for configuration in CONFIGURATIONS:
        verdict = configuration.search()
        states, steps, seconds = states + verdict.states, steps + verdict.steps, seconds + verdict.seconds
        wrong += verdict.violation is not None
        print(line(configuration.name, verdict, verdict.violation or "holds"), *verdict.trace, sep="\n    ", flush=True)
    print(f"{'together':{WIDTH}}  {states:9,} {steps:10,} {'':6} {seconds:6.1f}\n\nwith one safeguard less")
    for weak in WEAKENED:
        verdict = weak.search()
        caught = verdict.violation is not None and verdict.violation.startswith(weak.breaks)
        wrong += not caught
        said = ("" if caught else "NOT CAUGHT: ") + (verdict.violation or "holds")
        print(line(weak.name, verdict, said), *verdict.trace, sep="\n    ", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
