"""The safeguards of a batch's common starts, reads and ends; see mutants."""

from tests.faults.mutant import Mutant

TOGETHER, FINISHES_TEST = "tests/flows/test_together.py", "tests/unit/test_finishes.py"
BATCHES, FLOWS, FINISHES, ATTEMPT, RUNS = (
    "shared/store/run_batches.py",
    "shared/flows/together.py",
    "shared/flows/finishes.py",
    "shared/flows/attempt.py",
    "shared/store/runs.py",
)

MUTANTS = (
    Mutant(
        "a batch's end is written by a running attempt only",
        BATCHES,
        """_MINE = '"status"=? AND """,
        """_MINE = '"sk"<>? AND """,
        (TOGETHER,),
    ),
    Mutant(
        "a batch's end is written by the latest attempt only",
        BATCHES,
        """AND "attempt"=? AND""",
        """AND "attempt">=? AND""",
        (TOGETHER,),
    ),
    Mutant(
        "a batch's end is written by its own attempt only",
        BATCHES,
        """AND "attempts"[{last}]."worker"=?'""",
        """AND "sk"<>?'""",
        (TOGETHER,),
    ),
    Mutant(
        "a child that is linked meanwhile is seen by a batch's end",
        BATCHES,
        """_NOT_AWAITED = '"has_children" IS MISSING'""",
        """_NOT_AWAITED = '"pk" IS NOT MISSING'""",
        (TOGETHER,),
    ),
    Mutant(
        "what a batch's request did not do is not done",
        BATCHES,
        '        return ["Error" not in response for response in answer["Responses"]]',
        '        return [True for response in answer["Responses"]]',
        (TOGETHER,),
    ),
    Mutant(
        "an end whose answer was lost is known by its attempt",
        RUNS,
        "            if there is None or not there.attempts or there.attempts[-1] != ended:\n",
        "            if there is None or ended:\n",
        (TOGETHER,),
    ),
    Mutant(
        "an end that another wrote is not taken for one's own",
        RUNS,
        "            if there is None or not there.attempts or there.attempts[-1] != ended:\n",
        "            if there is None:\n",
        (TOGETHER,),
    ),
    Mutant(
        "a start that may have been made is known by its worker",
        ATTEMPT,
        "self.workshop.runs.start(self.message, self.worker_id, self",
        "self.workshop.runs.start(self.message, self.workshop.worker_id(), self",
        (TOGETHER,),
    ),
    Mutant(
        "jobs are read after the starts",
        FLOWS,
        """    try:
        runs = workshop.batches.start(starts, now)
    except (ClientError, BotoCoreError) as error:
        workshop.problem(error)
        return
    for flow, run in zip(fresh, runs, strict=True):
        flow.started = run
    _read_jobs(workshop, [flow for flow in fresh if flow.started is not None])
""",
        """    _read_jobs(workshop, fresh)
    for flow, run in zip(fresh, workshop.batches.start(starts, now), strict=True):
        flow.started = run
""",
        (TOGETHER,),
    ),
    Mutant(
        "one statement for a run",
        FLOWS,
        "        first.setdefault((flow.message.job_id, flow.message.scheduled_for), flow)\n",
        "        first.setdefault(flow.worker_id, flow)\n",
        ("tests/flows/test_execute.py",),
    ),
    Mutant(
        "a slow run holds up no end of its batch",
        FINISHES,
        "            take(WINDOW.total_seconds())\n",
        "            take(WINDOW.total_seconds() * 1e6)\n",
        (FINISHES_TEST,),
    ),
    Mutant(
        "runs that are made one after the other hold up no end",
        FINISHES,
        "            if self.now() - since >= WINDOW:",
        "            if self.now() - since >= 10000 * WINDOW:",
        (FINISHES_TEST,),
    ),
)
