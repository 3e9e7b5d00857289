"""What attempts share with their batch: what they are made with, and what becomes of a message. It decides nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from shared.clock import Clock
from shared.flows.gates import Gates
from shared.queue import DeadLetterQueue
from shared.store.jobs import Jobs
from shared.store.run_batches import RunBatches
from shared.store.runs import Runs
from shared.targets.target import TargetCaller


@dataclass(frozen=True, slots=True)
class Workshop:
    """What attempts are made with."""

    jobs: Jobs
    runs: Runs
    batches: RunBatches
    dead_letters: DeadLetterQueue
    targets: TargetCaller
    gates: Gates
    wake: Callable[[str, datetime], None]  # has those look now that wait for the job of this id
    clock: Clock
    fraction: Callable[[], float]  # 0 to 1, a new one at each call: the jitter of a backoff
    worker_id: Callable[[], str]  # a new one at each call: names the environment and the attempt
    problem: Callable[[Exception], None]  # reports an AWS error that was got round


@dataclass(frozen=True, slots=True)
class Ended:
    """How the handling of a message ended.

    `done`: the message has served its purpose. Else it comes back, after `back_s` seconds (None: by itself).
    `outcome` and `late_s` (start less scheduled time, first attempts only) are for the metrics.
    """

    done: bool
    back_s: float | None = None
    outcome: str | None = None
    late_s: float | None = None
