"""Where each millisecond of a run's lateness goes: claimed → due → visible → received → started → called.

    .venv/bin/python -m bench.stages [--rates 1 10 50] [--over 30]

The functions' own code in this process, on a local AWS with a real clock: one tick claims all, pollers ask the queue as
Lambda's do (two here, ten messages, long polls) and hand what they get to an executor with real handlers. Each moment
is from where it is written: the message's SentTimestamp and its delay, the moment the poller had it, the attempt's
started_at, the call of the target. docs/performance.md has the figures, and those of the deployed stack beside.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from statistics import quantiles
from typing import Any

from bench.page import markdown, options, publish
from bench.stack import Call, emulator_running, fresh, job, world_of, write_jobs
from shared.clock import SystemClock
from shared.flows.execute import Received
from shared.model.call import Call as TargetCall
from shared.model.run import Result
from shared.queue import message_of
from shared.targets.python import PythonTarget
from shared.targets.target import Signals
from shared.wiring import base
from tests.support.aws import Aws

AHEAD_S = 75  # of the first job: claimed before, with time to wait for whole seconds
LATEST_S = 120  # after the last due time: a machine that is busy with other work falls behind
POLLERS = 2
STEPS = ["rounding: due → visible", "visible → received", "received → started", "started → called", "due → called"]


class RealClock(SystemClock):
    """The machine's clock, where the harness has one that is moved by hand."""

    def set(self, moment: datetime) -> None:
        del moment


@dataclass
class Stages:
    """Moments by job, each from its own source."""

    target: PythonTarget
    received: dict[str, datetime] = field(default_factory=dict)
    visible: dict[str, datetime] = field(default_factory=dict)
    called: dict[str, datetime] = field(default_factory=dict)

    def call(self, call: TargetCall, signals: Signals) -> Result:
        self.called[call.job_id] = datetime.now(UTC)
        return self.target.call(call, signals)

    def take(self, batch: Sequence[Received], delays: dict[str, int]) -> None:
        now = datetime.now(UTC)
        for one in batch:
            job_id = message_of(one.body).job_id
            assert one.sent_at is not None
            self.received[job_id] = now
            self.visible[job_id] = one.sent_at + timedelta(seconds=delays[job_id])


def run(clients: base.Clients, rate: int, over_s: int) -> dict[str, list[float]]:
    """Milliseconds of each step, for `rate` jobs a second over `over_s` seconds."""
    jobs, kept = rate * over_s, list[Call]()
    with fresh(clients) as aws:
        first = (datetime.now(UTC) + timedelta(seconds=AHEAD_S)).replace(microsecond=0)
        dues = {n: first + timedelta(seconds=n // rate) for n in range(jobs)}
        write_jobs(aws, (job(n, due) for n, due in dues.items()))
        world = world_of(aws, kept=kept, clock=RealClock())
        world.ticker = replace(world.ticker, pause=time.sleep)
        target = PythonTarget(base.HANDLERS)
        target.load()
        stages = Stages(target)
        executor = world.new_executor(stages)
        assert world.tick()[0].claimed.sent == jobs
        delays = _delays(kept)
        ends = time.monotonic() + (dues[jobs - 1] - datetime.now(UTC)).total_seconds() + LATEST_S

        def poll() -> None:
            while len(stages.called) < jobs and time.monotonic() < ends:
                batch = _receive(aws)
                if batch:
                    stages.take(batch, delays)
                    _delete(aws, [one.received for one in executor.run(batch) if one.ended.done])

        pollers = [threading.Thread(target=poll) for _ in range(POLLERS)]
        for one in pollers:
            one.start()
        for one in pollers:
            one.join()
        target.close()
        started = {n: world.runs(job(n).job_id)[0].attempts[0].started_at for n in range(jobs)}
    found = defaultdict(list)
    for number, due in dues.items():
        job_id = job(number).job_id
        times = [due, stages.visible[job_id], stages.received[job_id], started[number], stages.called[job_id]]
        for step, begun, ended in zip(STEPS, [*times[:-1], due], [*times[1:], times[-1]], strict=True):
            found[step].append((ended - begun).total_seconds() * 1e3)
    return found


def _delays(kept: list[Call]) -> dict[str, int]:
    sends = [params["Entries"] for _, operation, params in kept if operation == "send_message_batch"]
    return {message_of(one["MessageBody"]).job_id: one["DelaySeconds"] for entries in sends for one in entries}


def _receive(aws: Aws) -> list[Received]:
    answer = aws.sqs.receive_message(
        QueueUrl=aws.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=2, MessageSystemAttributeNames=["All"]
    )
    return [
        Received.of(one["MessageId"], one["ReceiptHandle"], one["Body"], one["Attributes"], "normal")  # type: ignore[arg-type]
        for one in answer.get("Messages", [])
    ]


def _delete(aws: Aws, done: list[Received]) -> None:
    entries: Any = [{"Id": str(place), "ReceiptHandle": one.receipt} for place, one in enumerate(done)]
    if entries:
        aws.sqs.delete_message_batch(QueueUrl=aws.queue_url, Entries=entries)


def rows(rate: int, found: dict[str, list[float]]) -> list[list[str]]:
    """A row a step."""
    cells = []
    for step, times in found.items():
        hundredths = quantiles(times, n=100, method="inclusive")
        figures = [hundredths[49], hundredths[89], hundredths[98], max(times)]
        cells.append([f"{rate} a second", step, *(f"{one:.0f} ms" for one in figures)])
    return cells


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--over", type=int, default=30)
    chosen = parser.parse_args()
    lines = []
    with emulator_running() as (_, clients):
        for rate in chosen.rates:
            lines += rows(rate, run(clients, rate, chosen.over))
    publish({"stages": markdown(["jobs due", "step", "p50", "p90", "p99", "max"], lines)}, chosen.write)


if __name__ == "__main__":
    main()
