"""What a piece of work takes of this process: time and CPU; and what of several runs is quoted. It runs nothing."""

import gc
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median


@dataclass(slots=True)
class Spent:
    """Seconds of a block: on the wall, and of the CPU of all this process's threads, in its code and in the kernel."""

    wall_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0


@contextmanager
def measured() -> Iterator[Spent]:
    """Fills what it yields at the end of the block."""
    spent = Spent()
    gc.collect()
    wall, own = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    yield spent
    end = resource.getrusage(resource.RUSAGE_SELF)
    spent.wall_s = time.perf_counter() - wall
    spent.user_s, spent.system_s = end.ru_utime - own.ru_utime, end.ru_stime - own.ru_stime


def ratio(spent: Sequence[Spent], of: Sequence[Spent], by: Callable[[Spent], float]) -> float:
    """The median of `spent` ÷ `of`, pair by pair: the two of a pair ran one after the other."""
    return median(by(one) / by(other) for one, other in zip(spent, of, strict=True))


def machine() -> str:
    """One line: what the figures were measured on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {_processor()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
