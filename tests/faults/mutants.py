"""`python -m tests.faults.mutants`: each safeguard is deleted in a copy of the tree, and the fault tests must fail.

A mutant is a text of one file and what stands in its place; the text must be there once, so that no mutant is empty.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults import mutants_control, mutants_together
from tests.faults.mutant import Mutant

ROOT = Path(__file__).parent.parent.parent
COPIED = ("shared", "functions", "handlers", "tests", "pyproject.toml")
LIMIT_S = 600
EVERY_TEST_LIMIT_S = 1200


CRASHES, WOVEN = "tests/faults/test_crashes.py", "tests/faults/test_interleavings.py"
ANSWERS, OUTAGES = "tests/faults/test_answers.py", "tests/faults/test_outages.py"
SAFEGUARDS = "tests/faults/test_safeguards.py"
OVERLAP, GROUPS = "tests/flows/test_overlap.py", "tests/flows/test_group_limits.py"
FAMILY, BATCH = "tests/flows/test_dependencies.py", "tests/flows/test_api_batch.py"
CLAIMS, ENQUEUE, TICK = "shared/flows/claims.py", "shared/flows/enqueue.py", "shared/flows/tick.py"
SUBMIT, GATE, RULES = "shared/flows/submit.py", "shared/flows/dependencies.py", "shared/rules/dependencies.py"
ATTEMPT, EXECUTE, RECOVER = "shared/flows/attempt.py", "shared/flows/execute.py", "shared/flows/recover.py"
CONTROL, AUDIT = "shared/flows/control.py", "shared/flows/audit.py"
VOID_STARTS = "shared/rules/void_starts.py"
OVERLAP_GATE, GROUP_GATE = "shared/flows/overlap.py", "shared/flows/groups.py"
PLACES, GROUP_PLACES = "shared/store/overlaps.py", "shared/store/groups.py"
RUNS, JOBS, JOURNAL = "shared/store/runs.py", "shared/store/jobs.py", "shared/store/journal.py"
SLATE = "tests/flows/test_slate.py"

MUTANTS = (
    Mutant("a tick's journal page", JOURNAL, "        self.journal.write(self._page)\n", "", (CRASHES,)),
    Mutant(
        "a submit's journal page",
        ENQUEUE,
        "        self.journal.write(page)\n        try:\n",
        "        try:\n",
        (CRASHES,),
    ),
    Mutant(
        "a batch's journal pages",
        ENQUEUE,
        "        for page in pages:\n            self.journal.write(page)\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "settle only after the sends",
        CLAIMS,
        "        self.queue.send(sends)\n",
        "        slate.settle()\n        slate.close()\n        self.queue.send(sends)\n",
        (CRASHES,),
    ),
    Mutant(
        "only a settled page is written over",
        JOURNAL,
        "if self._page is not None and not self._settled:",
        "if self._page is None:",
        (SLATE,),
    ),
    Mutant(
        "only a settled page is removed",
        JOURNAL,
        "if self._page is not None and self._settled:",
        "if self._page is not None:",
        (SLATE,),
    ),
    Mutant(
        "no page is written over a later one",
        JOURNAL,
        "OR #number <= :number",
        "OR #number <> :number OR #number = :number",
        (SLATE,),
    ),
    Mutant(
        "a tick removes its last page",
        TICK,
        "        work.slate.close()\n",
        "",
        (SLATE, "tests/flows/test_tick.py"),
    ),
    Mutant(
        "every other tick looks at a drained minute",
        TICK,
        "(bucket.minute + lease.epoch) % 2 == 0",
        "bucket.minute % 2 == 0",
        ("tests/flows/test_tick_looks.py",),
    ),
    Mutant(
        "every tick looks at what is due now",
        TICK,
        " or now - 2 * keys.BUCKET < bucket <= now:",
        ":",
        ("tests/flows/test_tick_looks.py",),
    ),
    Mutant(
        "recovery sends before it removes",
        RECOVER,
        "            self.queue.send(again)\n            self.journal.settle(page)\n",
        "            self.journal.settle(page)\n            self.queue.send(again)\n",
        (CRASHES,),
    ),
    Mutant(
        "recovery only of what was claimed",
        RECOVER,
        "    return is_slot(job.spec.schedule, job.job_id, message.scheduled_for)",
        "    return True",
        (CRASHES,),
    ),
    Mutant(
        "the recovery of the journal",
        TICK,
        "recovered = self.recovery.run(shard, now, now + (stop_at - now) / 2)  # what is due needs its time, too",
        "recovered = 0",
        (CRASHES,),
    ),
    Mutant("the look-back", TICK, "LOOK_BACK = timedelta(minutes=10)", "LOOK_BACK = timedelta(0)", (ANSWERS,)),
    Mutant("the fence", JOBS, """ + ' AND "fence"<=?'""", """ + ' AND "fence"<>?'""", (SAFEGUARDS,)),
    Mutant(
        "the revision of a claim",
        JOBS,
        '            "revision": number(due.revision),\n        }\n        return',
        "        }\n        return",
        (SAFEGUARDS,),
    ),
    Mutant(
        "the due time of a claim",
        JOBS,
        '            keys.DUE_AT: text(sort_text(due.due_at)),\n            "revision"',
        '            "revision"',
        (SAFEGUARDS,),
    ),
    Mutant(
        "the status of a claim",
        JOBS,
        '            "status": text(JobStatus.SCHEDULED),\n            keys.DUE_AT',
        "            keys.DUE_AT",
        (SAFEGUARDS,),
    ),
    Mutant(
        "the start condition",
        RUNS,
        '_MAY_START = f"',
        '_MAY_START = f"attribute_exists(#pk) OR #retry_at <> :now OR #lease_expires_at <> :failed OR ',
        (WOVEN, ANSWERS),
    ),
    Mutant(
        "the end of a lease, never",
        RUNS,
        '_LEASE_OVER = "#status = :running AND #lease_expires_at < :now"',
        '_LEASE_OVER = "#status = :running AND #lease_expires_at < :running AND #lease_expires_at > :now"',
        (CRASHES,),
    ),
    Mutant(
        "the end of a lease, at once",
        RUNS,
        '_LEASE_OVER = "#status = :running AND #lease_expires_at < :now"',
        '_LEASE_OVER = "#status = :running AND #lease_expires_at <> :now"',
        (WOVEN,),
    ),
    Mutant(
        "an end is written by its own attempt only",
        RUNS,
        '_MINE = "#status = :running AND ',
        '_MINE = "#status = :running OR ',
        (WOVEN,),
    ),
    Mutant(
        "a lease before the call",
        ATTEMPT,
        "        self._hold(run, now, self.may_take_until)\n",
        "",
        (WOVEN,),
    ),
    Mutant(
        "the job's status and revision at the start",
        ATTEMPT,
        "        reason = void_reason(job, run, self.message)\n",
        "        reason = None\n",
        (CRASHES, WOVEN),
    ),
    Mutant(
        "the job's revision at the start",
        VOID_STARTS,
        "    return RESCHEDULED if job.revision != message.revision else None\n",
        "    return None\n",
        (CRASHES,),
    ),
    Mutant(
        "the count of attempts that crashed",
        ATTEMPT,
        "        if run.attempts_of_round > job.spec.retry.max_attempts:\n",
        "        if run.attempt > 99:\n",
        (CRASHES,),
    ),
    Mutant(
        "the runs that a cancel marks",
        CONTROL,
        "found = self.history.open(",
        "found = [] and (",
        (WOVEN,),
    ),
    Mutant(
        "never early",
        EXECUTE,
        "            if wait_s > 0:",
        "            if wait_s > 5:",
        (ANSWERS,),
    ),
    Mutant(
        "a message is hidden for one lease only",
        EXECUTE,
        "*((received, message.lease_s) for received, message in due)",
        "*((received, 720) for received, message in due)",
        (CRASHES,),
    ),
    Mutant("a child waits for its parents", GATE, "        if word is Word.WAIT:\n", "        if False:\n", (CRASHES,)),
    Mutant(
        "a child whose start died asks again",
        RULES,
        "attempt.outcome not in (None, Outcome.LOST) for",
        "attempt.outcome is not None for",
        (CRASHES,),
    ),
    Mutant(
        "a child that was called does not ask again",
        RULES,
        "attempt.outcome not in (None, Outcome.LOST) for",
        "attempt is None for",
        (FAMILY,),
    ),
    Mutant(
        "a parent without success skips its child",
        RULES,
        '    if on_parent_failure == "skip" and Standing.FAILED in found:\n',
        "    if not found:\n",
        (CRASHES,),
    ),
    Mutant(
        "a parent that cannot be read is not gone",
        GATE,
        "Standing.OPEN if job_id in unreadable else Standing.FAILED",
        "Standing.FAILED",
        (FAMILY,),
    ),
    Mutant(
        "who is submitted anew looks for itself once more",
        SUBMIT,
        "        if later.spec.depends_on and self.parents.waits_for_itself(later):\n",
        "        if not later:\n",
        (WOVEN,),
    ),
    Mutant(
        "the children of who is over are woken", ATTEMPT, "            self._wake()\n", "            pass\n", (FAMILY,)
    ),
    Mutant(
        "a parent's run is marked",
        "shared/flows/families.py",
        "        self.children.mark([(job_id, run_at) for job_id, run_at in moments if run_at <= now])\n",
        "",
        (FAMILY,),
    ),
    Mutant(
        "orphans within a batch",
        "shared/flows/batch.py",
        "            for generation in generations:\n                call.refuse_orphans()\n",
        "            for generation in generations:\n",
        (BATCH,),
    ),
    Mutant(
        "a page stays when an insert is not sure",
        "shared/flows/batch.py",
        "                    call.sure = call.sure and outcome is InsertOutcome.THROTTLED\n",
        "",
        (BATCH,),
    ),
    Mutant(
        "the place of a job as it was read",
        PLACES,
        '_AS_SEEN = "#writes = :seen"',
        '_AS_SEEN = "#writes >= :seen OR #writes < :seen"',
        (OVERLAP,),
    ),
    Mutant(
        "the first to write a place",
        PLACES,
        '_ABSENT = "attribute_not_exists(#pk)"',
        '_ABSENT = "attribute_not_exists(#pk) OR attribute_exists(#pk)"',
        (WOVEN,),
    ),
    Mutant(
        "a run that goes on makes void what others have read of the place",
        OVERLAP_GATE,
        "if decision.step is Step.GO or wanted != seen:",
        "if wanted != seen:",
        (OVERLAP,),
    ),
    Mutant(
        "the runs that began before the policy",
        OVERLAP_GATE,
        "        if seen.version == job.version:\n",
        "        if seen.version <= job.version:\n",
        (CRASHES,),
    ),
    Mutant(
        "the place through the wait for a retry",
        OVERLAP_GATE,
        "return run is not None and not is_over(run.status)",
        "return run is not None and run.status is RunStatus.RUNNING",
        (CRASHES,),
    ),
    Mutant(
        "a run that was replaced is not called again",
        OVERLAP_GATE,
        "        if run.cancel_requested:  # it",
        "        if run.cancel_requested and run.attempt > 99:  # it",
        (OVERLAP,),
    ),
    Mutant(
        "the limit of a group as it was read",
        GROUP_PLACES,
        '_LIMIT = "#max_running = :max"',
        '_LIMIT = "#max_running >= :max OR #max_running < :max"',
        (GROUPS,),
    ),
    Mutant(
        "room in a group",
        GROUP_PLACES,
        '_ROOM = "size(#holders) < :max"',
        '_ROOM = "size(#holders) < :max OR size(#holders) >= :max"',
        (WOVEN,),
    ),
    Mutant(
        "a place is given back by its own attempt only",
        GROUP_PLACES,
        '                "REMOVE #holders.#me",\n                _HELD_BY,\n',
        '                "REMOVE #holders.#me",\n                "#holders.#me.#worker <> :worker OR " + _HELD_BY,\n',
        (GROUPS,),
    ),
    Mutant(
        "an attempt is ended before its place is taken",
        GROUP_GATE,
        "            if run is not None:\n",
        "            if run is not None and run.attempt > 99:\n",
        (GROUPS,),
    ),
    Mutant(
        "only an attempt whose lease is over is ended",
        RUNS,
        "            },\n            _LEASE_OVER,\n        )",
        "            },\n            None,\n        )",
        (GROUPS,),
    ),
    Mutant(
        "a renewed lease keeps its place",
        "shared/rules/group_limits.py",
        "    return Standing.LIVE",
        "    return Standing.STALE",
        (CRASHES,),
    ),
    Mutant(
        "the places of the dead",
        GROUP_GATE,
        "        old = [one for one in there.holders if one.until < now or _name(one) == _name(me)]",
        "        old = [one for one in there.holders if _name(one) == _name(me)]",
        (GROUPS,),
    ),
    Mutant("refused entries are sent again", "shared/queue.py", "SEND_TRIES = 4", "SEND_TRIES = 0", (ANSWERS,)),
    Mutant(
        "the audit's unstarted runs",
        AUDIT,
        "            + self._send_unstarted([job for _, job in jobs], now)\n",
        "",
        (OUTAGES,),
    ),
    Mutant(
        "the audit's overdue jobs",
        AUDIT,
        "            + self._claim_overdue([item for item, job in jobs if is_overdue(job, now)], epochs, now)\n",
        "",
        (OUTAGES,),
    ),
    *mutants_control.MUTANTS,
    *mutants_together.MUTANTS,
)


def is_killed(mutant: Mutant | None, tests: tuple[str, ...], limit_s: float = LIMIT_S) -> tuple[bool, str]:
    """Whether `tests` fail in a copy of the tree with `mutant` in it, and which of them does."""
    with tempfile.TemporaryDirectory(prefix="duetime-mutant-") as directory:
        tree = Path(directory)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / name)
        if mutant is not None:
            mutant.apply(tree)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "not emulator", *tests]
        try:
            done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return mutant is None, f"no end within {limit_s:.0f} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))] or ["all pass"]
    return done.returncode == 1 and lines[0].startswith("FAILED"), lines[0]


def main(names: list[str]) -> int:
    """Try all mutants, or those whose safeguard holds one of `names`; how many survive."""
    chosen = [mutant for mutant in MUTANTS if not names or any(name in mutant.safeguard for name in names)]
    every_test = tuple(sorted({test for mutant in chosen for test in mutant.killed_by}))
    failed, line = is_killed(None, every_test, EVERY_TEST_LIMIT_S)
    if failed:
        print(f"the tests fail without any mutant: {line}")
        return 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        survivors = sum(pool.map(_survives, chosen))
    print(f"mutants: {len(chosen)}, survivors: {survivors}")
    return survivors


def _survives(mutant: Mutant) -> bool:
    began = time.monotonic()
    killed, line = is_killed(mutant, mutant.killed_by)
    seconds = time.monotonic() - began
    print(f"{'killed  ' if killed else 'SURVIVES'} {seconds:4.0f} s  {mutant.safeguard}: {line[:150]}", flush=True)
    return not killed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
