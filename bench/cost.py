"""What each life of a job costs, from submit to its end: units, requests, dollars a million (docs/performance.md).

    .venv/bin/python -m bench.cost

Counted, not timed: on the local AWS, with jobs of 300 bytes of payload and full batches. Lambda's poller receives and
deletes ten messages a request; what a tick does although nothing is due is left out of the lives, and stands alone.
"""

from collections import Counter
from dataclasses import dataclass

from bench import scale
from bench.lives import LIVES, begin
from bench.page import markdown, options, publish
from bench.stack import emulator_running, fresh
from shared.wiring import base
from tests.support.emulator import Emulator

POLLER = 2  # requests of a batch: received and deleted


@dataclass(frozen=True)
class Cost:
    """Of one run: units, requests, dollars a million; the poller's requests included."""

    name: str
    writes: float
    reads: float
    dynamodb: float
    sqs: float
    by_operation: dict[str, float]

    @property
    def dollars(self) -> float:
        """Of units and SQS's requests. DynamoDB's are free."""
        return 1e6 * (self.writes * scale.WRITE + self.reads * scale.READ + self.sqs * scale.SQS_REQUEST)

    def row(self) -> list[str]:
        counts = [f"{self.writes:.2f}", f"{self.reads:.2f}", f"{self.dynamodb:.2f}", f"{self.sqs:.2f}"]
        return [self.name, *counts, f"{self.dollars:.2f}", f"{self.dollars + around():.2f}"]


def counted(server: Emulator, clients: base.Clients, name: str) -> Cost:
    """Live one life and count."""
    with fresh(clients) as aws:
        life = begin(server, aws)
        runs = LIVES[name](life)
        counts, polls = life.counts, life.batches * POLLER
    by_operation = {one: count / runs for one, count in counts.requests.items()}
    by_operation |= {"receive_message": life.batches / runs, "delete_message_batch": life.batches / runs}
    sqs = (counts.sqs + polls) / runs
    return Cost(name, counts.writes / runs, counts.reads / runs, counts.dynamodb / runs, sqs, by_operation)


def around() -> float:
    """Dollars a million runs besides, as docs/scale.md has them: Lambda in full batches of 0.1 s, ticks, logs."""
    execute = (scale.INVOCATION + scale.EXECUTE_GB * scale.batch_s(10) * scale.GB_S) / 10
    logs = (scale.LOG_RUN + scale.LOG_CALL / 10) / scale.GB * scale.LOG_GB
    return 1e6 * (execute + scale.TICK_GB * scale.GB_S / scale.claims_per_s() + logs)


HEAD = [
    "a run of",
    "write units",
    "read units",
    "DynamoDB requests",
    "SQS requests",
    "$ a million",
    "with Lambda, logs",
]
OTHERS = [["EventBridge Scheduler, one schedule a job, target not included", "", "", "", "", "1.00", ""]]


def steps(cost: Cost) -> str:
    """The requests of one run, by what they are for, from claim to finish."""
    of = Counter(cost.by_operation)
    rows = [
        ("journal, written and removed", of["put_item"] - 1 + of["delete_item"]),  # one put is the submit
        ("index page, claims", of["query"] + of["batch_execute_statement"]),
        ("send", of["send_message_batch"]),
        ("receive, hide, delete", of["receive_message"] * 2 + of["change_message_visibility_batch"]),
        ("start", of["batched start"] + of["start"]),
        ("read the job", of["batch_get_item"] + of["get_item"]),
        ("finish", of["batched end"] + of["end"]),
    ]
    rows.append(("**together**", sum(count for _, count in rows)))
    return markdown(["from claim to finish", "requests a job"], [[what, f"{count:.2f}"] for what, count in rows])


def main() -> None:
    chosen = options(__doc__).parse_args()
    with emulator_running() as (server, clients):
        costs = [counted(server, clients, name) for name in LIVES]
    tables = {
        "cost": markdown(HEAD, [*(cost.row() for cost in costs), *OTHERS]),
        "requests": steps(costs[0]),
    }
    publish(tables, chosen.write)


if __name__ == "__main__":
    main()
