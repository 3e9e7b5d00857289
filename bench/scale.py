"""The tables of docs/scale.md that are sums: limits, shards, dollars, by powers of ten. It measures nothing.

    .venv/bin/python -m bench.scale

What a run takes is from the code (tests/unit/test_scale.py holds the sizes to it) and from docs/performance.md; what
AWS allows and charges is from the pages that docs/scale.md names. A month has 30 days.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from bench.herd import DEFAULTS, JOURNAL_UNITS, TICK_EVERY_S, TICK_WORKS_S, Herd
from shared.flows.claims import PAGE_CLAIMS
from shared.queue import BATCH
from shared.store.jobs import STATEMENTS

MONTH_S = 30 * 86_400
KB, GB = 1024, 1024**3

# Of an ordinary job: 300 bytes of payload, a name, due once or by cron, one attempt
JOB_BYTES, INDEX_BYTES, RUN_BYTES = 660, 160, 271
PAGE_BYTES, PAGE_ENTRY_BYTES = 150, 20.2  # a journal page, and each of its jobs, compressed
STORED_BESIDES = 100  # what DynamoDB adds to each item and index entry it stores

# Client CPU here, docs/performance.md's machine; one Lambda vCPU (1,769 MB) is taken for as fast
VCPU_MB = 1_769
TICK_CPU_S, AUDIT_CPU_S = 0.00033, 0.0001  # a job, an item
AUDIT_WORKS_S = 280  # infra/audit.py: its timeout of 300 s; functions/audit/handler.py stops 20 s before

# Dollars, us-east-1, list
WRITE, READ = 0.625e-6, 0.125e-6
STORED_GB, RECOVERY_GB = 0.25, 0.20
INVOCATION, GB_S = 0.20e-6, 0.0000133334  # arm64
SQS_REQUEST, SCHEDULED, API_CALL, TRACE, LOG_GB = 0.40e-6, 1.00e-6, 1.00e-6, 5.00e-6, 0.50
ALARMS, METRICS = 16, 11
FIXED = ALARMS * 0.10 + METRICS * 0.30 + 1.00  # and the alarm topic's key

TICK_GB, EXECUTE_GB, SUBMIT_GB, AUDIT_GB = 1.0, 1.0, 0.5, 0.5
RUN_S = 0.1  # of a handler
QUEUES = 3
LOG_RUN, LOG_CALL = 620, 1_170  # bytes of a run's line; of an invocation's metrics and Lambda's own three lines
LOG_SHARD, LOG_IDLE = 105, 870  # of a shard more in a tick's line; of an invocation that has nothing to tell

SHARDS_PER_TICK = DEFAULTS.shards_per_tick
LOOKS = 10  # of an idle tick, into the index
IDLE_UNITS = 2 * WRITE + (LOOKS / 2 + 1) * READ  # dollars: its lease, its looks, and the journal's
WAITS_S, WORKS_S = 0.0045, 0.0034  # of a small request: for the answer, and itself with 1024 MB (2 ms of CPU here)

RATES = [1, 10, 100, 1_000, 10_000, 100_000]
COUNTS = [10**power for power in range(10)]


def claims_per_s() -> float:
    """Jobs a second that a tick claims and sends by itself, as the herd has it."""
    herd = Herd(jobs=0)
    sends, requests = PAGE_CLAIMS / BATCH, PAGE_CLAIMS / STATEMENTS
    page_s = herd.write_s + requests * herd.claim_s + sends * herd.send_s + PAGE_CLAIMS * herd.cpu_s
    return PAGE_CLAIMS / page_s


def shards_for(rate: float) -> int:
    """Shards whose ticks keep up with `rate` due a second."""
    return ceil(rate * TICK_EVERY_S / (TICK_WORKS_S * claims_per_s()))


def calls_for(shards: int) -> int:
    """Invocations of the tick function in a month."""
    return ceil(shards / SHARDS_PER_TICK) * MONTH_S // TICK_EVERY_S


def idle_s(shards: int) -> float:
    """How long an invocation takes for `shards` that find nothing: they wait side by side, on one processor."""
    return (LOOKS + 3) * (WAITS_S + shards * WORKS_S)


def batch_of(rate: float) -> float:
    """Messages of an invocation: alone up to 20 a second, full from 200 on."""
    return min(BATCH, max(1.0, rate / 20))


def batch_s(full: float) -> float:
    """How long an executor takes for a batch of `full`."""
    return 0.03 + 0.012 * full + RUN_S


@dataclass(frozen=True)
class Month:
    """What `rate` runs due a second take in a month; `recurring`: of jobs that were there already."""

    rate: float
    recurring: bool = False

    @property
    def runs(self) -> float:
        return self.rate * MONTH_S

    @property
    def shards(self) -> int:
        return shards_for(self.rate)

    @property
    def ticks(self) -> float:
        return self.shards * MONTH_S / TICK_EVERY_S

    @property
    def together(self) -> int:
        """Shards of an invocation."""
        return min(self.shards, SHARDS_PER_TICK)

    @property
    def invocations(self) -> float:
        return self.runs / batch_of(self.rate)

    @property
    def writes(self) -> float:
        """Units: 5 or 6 a run, its share of the journal (the last page removed), and 2 a tick for the lease."""
        in_tick = self.rate * TICK_EVERY_S / self.shards
        pages = ceil(in_tick / PAGE_CLAIMS)
        page_units = ceil((PAGE_BYTES + PAGE_ENTRY_BYTES * in_tick / pages) / KB)
        return self.runs * (5 if self.recurring else 6) + self.ticks * (2 + (pages + 1) * page_units)

    @property
    def reads(self) -> float:
        """Units: the job at each start, its place in the index, and 6 a tick that finds nothing."""
        return self.runs * (1 + INDEX_BYTES / (4 * KB) / 2) + self.ticks * (LOOKS / 2 + 1) + audit_reads(self.stored)

    @property
    def stored(self) -> float:
        """Items at any time: what 30 days of runs leave, each with its job if that was for once."""
        return self.runs * (1 if self.recurring else 2)

    @property
    def stored_gb(self) -> float:
        size = RUN_BYTES + STORED_BESIDES + (0 if self.recurring else JOB_BYTES + STORED_BESIDES)
        return self.runs * size / GB

    def dollars(self) -> dict[str, float]:
        """By line of the bill, free tiers left out."""
        batch = batch_of(self.rate)
        execute = self.invocations * (INVOCATION + EXECUTE_GB * batch_s(batch) * GB_S)
        calls = calls_for(self.shards)
        tick_s = calls * idle_s(self.together) + self.runs / claims_per_s() / self.together
        tick = calls * INVOCATION + tick_s * TICK_GB * GB_S
        audit = MONTH_S / 3600 * min(AUDIT_WORKS_S, self.stored / audited_a_second(AUDIT_GB)) * AUDIT_GB * GB_S
        sends = max(self.runs / BATCH, min(self.runs, self.ticks))
        polls = QUEUES * 5 * 3 * MONTH_S / 60  # five pollers of each mapping, 20 s each
        logs = self.runs * LOG_RUN + (self.invocations + calls) * LOG_CALL
        logs += calls * LOG_RUN + (self.ticks - calls) * LOG_SHARD
        return {
            "writes": self.writes * WRITE,
            "reads": self.reads * READ,
            "stored": self.stored_gb * (STORED_GB + RECOVERY_GB),
            "Lambda": execute + tick + audit,
            "SQS": (sends + 3 * self.invocations + polls) * SQS_REQUEST,
            "logs": logs / GB * LOG_GB,
            "traces": (traced(self.invocations) + traced(calls)) * TRACE,
            "ticks, alarms": calls * SCHEDULED + FIXED,
        }

    @property
    def submit(self) -> float:
        """Dollars for one-off jobs that are sent one a call."""
        return self.runs * (API_CALL + INVOCATION + SUBMIT_GB * 0.03 * GB_S)


def traced(invocations: float) -> float:
    """Traces of a function: one a second and 5 % of what is above."""
    first = min(invocations, MONTH_S)
    return first + (invocations - first) * 0.05


def audited_a_second(memory_gb: float) -> float:
    """Items; threads of one process share one vCPU."""
    return min(1.0, memory_gb * KB / VCPU_MB) / AUDIT_CPU_S


def audit_reads(items: float) -> float:
    """Read units of a month's audits, which stop when their time is over."""
    read = min(items, AUDIT_WORKS_S * audited_a_second(AUDIT_GB))
    return MONTH_S / 3600 * read * (JOB_BYTES + RUN_BYTES) / 2 / (4 * KB)


def dollars_table(recurring: bool) -> str:
    lines = list(Month(1).dollars())
    head = ["due a second", "shards", *lines, "a month", "a million runs"] + ([] if recurring else ["submits besides"])
    rows = []
    for rate in RATES:
        month = Month(rate, recurring)
        bill = month.dollars()
        total = sum(bill.values())
        cells = [f"{rate:,}", f"{month.shards}", *(_dollars(bill[line]) for line in lines), _dollars(total)]
        cells.append(_dollars(total / month.runs * 1e6))
        rows.append(cells if recurring else [*cells, _dollars(month.submit)])
    return _markdown(head, rows)


def idle_table() -> str:
    """A stack that nothing is due in, by shards: list price, and what the free tiers that do not end leave."""
    rows = []
    for shards in (1, 4, 16, 64, 256):
        ticks, calls = shards * MONTH_S / TICK_EVERY_S, calls_for(shards)
        store = ticks * IDLE_UNITS
        run_s = calls * idle_s(min(shards, SHARDS_PER_TICK)) * TICK_GB
        lambda_ = calls * INVOCATION + run_s * GB_S
        lambda_paid = max(0.0, calls - 1e6) * INVOCATION + max(0.0, run_s - 400_000) * GB_S
        polls = QUEUES * 5 * 3 * MONTH_S / 60
        logs = calls * LOG_IDLE / GB
        traces = traced(calls)
        alarms = ALARMS - (shards <= SHARDS_PER_TICK)  # ShardNotTicked is of several schedules
        fixed = FIXED - (ALARMS - alarms) * 0.10
        fixed_paid = max(0, alarms - 10) * 0.10 + max(0, METRICS - 10) * 0.30 + 1.00
        paid = store + lambda_paid + max(0.0, polls - 1e6) * SQS_REQUEST + max(0.0, logs - 5) * LOG_GB
        cells = [store, lambda_, calls * SCHEDULED, polls * SQS_REQUEST, logs * LOG_GB, fixed]
        sums = [sum(cells), paid + fixed_paid, traces * TRACE, max(0.0, traces - 1e5) * TRACE]
        rows.append([f"{shards}", *(_dollars(cell) for cell in [*cells, *sums])])
    head = ["shards", "table", "Lambda", "Scheduler", "polling", "logs", "alarms, metrics, key"]
    return _markdown([*head, "a month", "less free tiers", "traces besides", "less free tier"], rows)


def rates_table() -> str:
    """What one-off jobs at a steady rate ask of each part."""
    head = ["due a second", "writes a second, table", "of the index", "shards", "jobs in a bucket of a shard"]
    head += ["a tick works", "executions at once, runs of 0.1 s", "of 1 s", "messages in flight, 1 s"]
    rows = []
    for rate in RATES:
        shards, batch = shards_for(rate), batch_of(rate)
        works_s = rate * TICK_EVERY_S / shards / claims_per_s()
        slow = rate / batch * (batch_s(batch) - RUN_S + 1)
        cells = [_count(rate * (4 + JOURNAL_UNITS)), _count(rate * 2), f"{shards}", _count(rate * 60 / shards)]
        cells += [f"{works_s:.1f} s", _count(rate / batch * batch_s(batch)), _count(slow), _count(slow * batch)]
        rows.append([f"{rate:,}", *cells])
    return _markdown(head, rows)


def counts_table() -> str:
    """What jobs that wait ask, whenever they are due."""
    head = [
        "jobs",
        "stored",
        "$ a month",
        "an audit gets through",
        "$ a month, audits of all",
        "submitted, 500 a second",
    ]
    head += ["due a second, each once a month"]
    rows = []
    for count in COUNTS:
        size = count * (JOB_BYTES + INDEX_BYTES + 2 * STORED_BESIDES)
        all_audited = count * JOB_BYTES / (4 * KB) * MONTH_S / 3600 * READ
        share = min(1.0, AUDIT_WORKS_S * audited_a_second(AUDIT_GB) / count)
        cells = [_bytes(size), _dollars(size / GB * (STORED_GB + RECOVERY_GB)), f"{share:.2g}" if share < 1 else "all"]
        cells += [_dollars(all_audited), _duration(count / 500), _count(count / MONTH_S)]
        rows.append([f"{count:,}", *cells])
    return _markdown(head, rows)


def in_flight_table() -> str:
    """Runs a second that all fail, and so fill a queue: 120,000 ÷ the waits of one run, on average half the longest."""
    rows = []
    for attempts, base_s, factor, cap_s in [(3, 10, 2, 3600), (5, 10, 2, 3600), (3, 600, 2, 3600), (10, 10, 2, 3600)]:
        waits = sum(min(cap_s, base_s * factor**number) / 2 for number in range(attempts - 1))
        rows.append([f"{attempts}", f"{base_s} s", f"{factor}", f"{waits:,.0f} s", f"{120_000 / waits:,.0f} a second"])
    return _markdown(["max_attempts", "base_s", "factor", "waits, together", "fills a queue"], rows)


def tables() -> dict[str, str]:
    return {
        "Rates": rates_table(),
        "Counts": counts_table(),
        "In flight": in_flight_table(),
        "One-off": dollars_table(recurring=False),
        "Recurring": dollars_table(recurring=True),
        "Idle": idle_table(),
    }


def _dollars(amount: float) -> str:
    return f"{amount:,.2f}" if amount < 100 else f"{amount:,.0f}"


def _bytes(number: float) -> str:
    for size, name in ((GB, "GB"), (KB * KB, "MB"), (KB, "KB")):
        if number >= size:
            return f"{number / size:,.0f} {name}"
    return f"{number:.0f} bytes"


def _count(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{round(number):,}"


def _duration(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {name}"
    return f"{seconds:.2g} s"


def _markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    for title, text in tables().items():
        print(f"\n{title}\n\n{text}")


if __name__ == "__main__":
    main()
