"""The safeguards of what users say about a schedule, and those of answers that are lost on the way; see mutants."""

from tests.faults.mutant import Mutant

CRASHES, WOVEN = "tests/faults/test_crashes.py", "tests/faults/test_interleavings.py"
PAUSE, CHANGE, TRIGGER, REDRIVE = (f"tests/flows/test_{name}.py" for name in ("pause", "change", "trigger", "redrive"))
LOST, LOST_CHANGES = "tests/flows/test_lost_answers.py", "tests/flows/test_lost_changes.py"
SAME_ID, LETTERS, RULES = (
    "tests/flows/test_same_id_at_once.py",
    "tests/flows/test_letters.py",
    "tests/unit/test_changes.py",
)
CHANGES, AGAIN, CONTROL, CHANGING = (
    "shared/rules/changes.py",
    "shared/flows/again.py",
    "shared/flows/control.py",
    "shared/flows/changing.py",
)
ATTEMPT, RECOVER, ENQUEUE, SUBMIT = (f"shared/flows/{name}.py" for name in ("attempt", "recover", "enqueue", "submit"))
VOID_STARTS = "shared/rules/void_starts.py"
CLAIMS, AUDIT, SWEEP = "shared/flows/claims.py", "shared/flows/audit.py", "shared/flows/letters.py"
JOBS, RUNS, REQUESTS = "shared/store/jobs.py", "shared/store/runs.py", "shared/store/run_requests.py"

MUTANTS = (
    # a job's next version
    Mutant(
        "a change is made of the version that was read",
        JOBS,
        '_UNCHANGED = "#version = :version AND #revision = :revision"',
        '_UNCHANGED = "#version >= :version AND #revision = :revision"',
        (CHANGE,),
    ),
    Mutant(
        "a change of when is made of what was claimed",
        JOBS,
        '_NOT_CLAIMED = "#due_at = :due_at"',
        '_NOT_CLAIMED = "#due_at >= :due_at"',
        (PAUSE,),
    ),
    Mutant(
        "a change of policy leaves alone what claims write",
        JOBS,
        "differ | _OF_CLAIMS if when else differ - _OF_CLAIMS",
        "differ | _OF_CLAIMS",
        (CHANGE,),
    ),
    Mutant(
        "a change that may have been written leaves its page",
        JOBS,
        "sure = there is None or there.version < job.version",
        "sure = True",
        (LOST_CHANGES,),
    ),
    Mutant(
        "only a sure refusal settles the page",
        ENQUEUE,
        "            if refused.sure:\n",
        "            if refused:\n",
        (LOST_CHANGES,),
    ),
    Mutant(
        "a change is known again", JOBS, "if there is None or not _is_change(there, job):", "if True:", (LOST_CHANGES,)
    ),
    Mutant(
        "a submit is known again", JOBS, "            if not is_same(job, there):\n", "            if True:\n", (LOST,)
    ),
    Mutant(
        "a submit is known again under a change",
        JOBS,
        "    return there.spec == job.spec or there.version > job.version\n",
        "    return there.spec == job.spec\n",
        (LOST_CHANGES,),
    ),
    Mutant(
        "a run of the job before has the new one's time",
        SUBMIT,
        "        if self._began_before(later) or (",
        "        if (",
        (SAME_ID, WOVEN),
    ),
    Mutant(
        "a run of the job before goes on after all",
        SUBMIT,
        "(there.status is not JobStatus.CANCELLED and self._goes_on(later))",
        "False",
        (SAME_ID,),
    ),
    # claims and attempts whose answer is lost
    Mutant(
        "an overtaken claim leaves its page",
        CLAIMS,
        "sure = sure and outcome is not ClaimOutcome.OVERTAKEN",
        "sure = sure and outcome is not ClaimOutcome.WON",
        (LOST,),
    ),
    Mutant(
        "a claim under a change is not sure",
        JOBS,
        '    if "revision" in there and int(there["revision"]["N"]) > claim.due.revision:\n',
        '    if "revision" not in there:\n',
        (PAUSE,),
    ),
    Mutant(
        "an attempt's writes name its worker",
        RUNS,
        "AND #attempts[{last}].#worker = :worker",
        "AND #attempts[{last}].#worker <> :running AND #worker <> :worker",
        (LOST,),
    ),
    # what is void, what comes again
    Mutant(
        "what no tick had claimed before a pause comes with the resume",
        CHANGES,
        "        since = min(since, job.due_at - _INSTANT)\n",
        "        since = max(since, job.created_at)\n",
        (CRASHES, RULES),
    ),
    Mutant(
        "what a pause made void does not count",
        CHANGES,
        "runs_claimed=max(0, job.runs_claimed - void)",
        "runs_claimed=max(void - void, job.runs_claimed)",
        (CRASHES, RULES),
    ),
    Mutant(
        "a change counts from the last one on",
        CHANGES,
        "    return max(now, job.changed_at)\n",
        "    return now\n",
        (PAUSE,),
    ),
    Mutant(
        "what a new schedule takes away is recorded",
        CHANGING,
        "self.horizon_s, dropped(seen, wanted.spec, now))",
        "self.horizon_s)",
        (CRASHES,),
    ),
    Mutant(
        "and recorded by recovery",
        RECOVER,
        "    if message.skip is not None and message.scheduled_for <= job.changed_at:  #",
        "    if message.skip is not None and message.scheduled_for > message.scheduled_for:  #",
        (CHANGE,),
    ),
    Mutant(
        "what was due before a change and never sent is recorded",
        RECOVER,
        "        return _is_owed_a_record(job, message.scheduled_for)\n",
        "        return False\n",
        (PAUSE,),
    ),
    Mutant(
        "a skip waits for a void start",
        ATTEMPT,
        "        if there is None or is_over(there.status):\n",
        "        if there is None or there:\n",
        (PAUSE, WOVEN),
    ),
    Mutant(
        "a span takes the place of a single record",
        RUNS,
        '            condition, values = f"{_ABSENT} OR ({_SHORTER})", {":skipped": item["status"]}\n',
        "",
        (PAUSE,),
    ),
    Mutant(
        "a void start of a recurring job leaves nothing",
        ATTEMPT,
        "(run.attempt == 1 or is_recurring)",
        "(run.attempt == 1 or is_recurring is None)",
        (PAUSE,),
    ),
    Mutant(
        "a paused one-off's run is kept for the resume",
        VOID_STARTS,
        "        return job.spec.schedule.run_at == scheduled_for\n    return may_come_again",
        "        return False\n    return may_come_again",
        (PAUSE, CRASHES),
    ),
    Mutant(
        "a paused job stays",
        CLAIMS,
        "    if job.due_at is not None or job.status is JobStatus.PAUSED:\n",
        "    if job.due_at is not None:\n",
        (PAUSE,),
    ),
    Mutant(
        "the audit leaves alone what waits for a resume",
        AUDIT,
        "if run.job_id in jobs and not _is_paused(jobs[run.job_id], run)",
        "if run.job_id in jobs",
        (PAUSE,),
    ),
    Mutant(
        "the waiting run of a paused one-off ends with its time",
        CONTROL,
        "            self.requests.cancel(run, job.revision, RESCHEDULED, now)\n",
        "            pass\n",
        (CHANGE,),
    ),
    Mutant(
        "why a run did not start under a pause",
        VOID_STARTS,
        "    if job.status is JobStatus.PAUSED:\n        return PAUSED\n",
        "",
        (PAUSE,),
    ),
    # runs that were asked for
    Mutant(
        "a run that was asked for stands beside the schedule",
        VOID_STARTS,
        "    if run.requested_at is not None:\n        return CANCELLED if",
        "    if run.requested_at is not None and run.attempt > 99:\n        return CANCELLED if",
        (TRIGGER, CRASHES),
    ),
    Mutant(
        "a run that was asked of an earlier job",
        VOID_STARTS,
        "return CANCELLED if run.revision < job.first_revision else None",
        "return CANCELLED if run.revision < 0 else None",
        (TRIGGER, WOVEN),
    ),
    Mutant(
        "no redrive of an earlier job's run",
        AGAIN,
        "        if run.revision < job.first_revision:\n",
        "        if run.revision < 0:\n",
        (REDRIVE,),
    ),
    Mutant(
        "a run that was asked for is its own claim",
        RECOVER,
        "(run is not None and run.requested_at is not None) or ",
        "",
        (TRIGGER, CRASHES),
    ),
    Mutant(
        "a trigger makes no run twice",
        REQUESTS,
        "            self.table.put(item, _ABSENT)\n",
        "            self.table.put(item)\n",
        (LOST_CHANGES,),
    ),
    Mutant(
        "a redrive of the attempts that were seen",
        REQUESTS,
        '_AS_SEEN = "#status = :seen AND #attempt = :attempt"',
        '_AS_SEEN = "#status = :seen AND #attempt >= :attempt"',
        (REDRIVE,),
    ),
    Mutant(
        "a redrive of what is dead-lettered",
        REQUESTS,
        '_AS_SEEN = "#status = :seen AND #attempt = :attempt"',
        '_AS_SEEN = "#status <> :now AND #attempt = :attempt AND :seen <> :now"',
        (LOST_CHANGES, WOVEN),
    ),
    Mutant(
        "each round has its own attempts",
        ATTEMPT,
        "        if run.attempts_of_round > job.spec.retry.max_attempts:\n",
        "        if run.attempt > job.spec.retry.max_attempts:\n",
        (REDRIVE,),
    ),
    Mutant(
        "an AWS error is no attempt of one that was asked for",
        ATTEMPT,
        "            if run.requested_at is not None and run.attempts_of_round == 1:\n",
        "            if run.requested_at is not None and run.attempts_of_round == 99:\n",
        (TRIGGER,),
    ),
    Mutant(
        "a job stays as long as its redriven run",
        AGAIN,
        "        self.jobs.keep(job.job_id, now + self.jobs.retention)",
        "        now.isoformat()",
        (REDRIVE,),
    ),
    Mutant(
        "a letter of attempts after the redrive stays",
        SWEEP,
        "told.last_attempt <= run.earlier_attempts",
        "told.last_attempt <= run.attempt",
        (LETTERS,),
    ),
)
