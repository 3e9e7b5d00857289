"""What has to hold where nothing more will happen. It changes nothing."""

from tests.model.flows_claims import waits_for_resume
from tests.model.world import (
    CANCELLED,
    DEAD_LETTERED,
    OVER,
    OVERLAP,
    PARENT_FAILED,
    PAUSED,
    REASONS,
    REPLACED,
    SCHEDULED,
    SUCCEEDED,
    Job,
    World,
    is_covered,
)


def unfinished(world: World) -> str | None:
    """What is wrong when nothing more will happen; None if nothing is."""
    if world.journal:
        return "I6: the journal is not drained"
    for slot, run in enumerate(world.runs):
        if run and run.status not in OVER and not waits_for_resume(world.jobs[world.owner[slot]], run):
            return f"run {slot} is {run.status} for ever"
    for number, job in enumerate(world.jobs):
        wrong = _of_nothing(world, number) if job is None else _of_job(world, job)
        if wrong:
            return wrong
    return _promises(world)


def _of_nothing(world: World, number: int) -> str | None:
    lost = any(owner == number for owner, _ in world.accepted)
    return "a job that was accepted is not there" if lost else None


def _of_job(world: World, job: Job) -> str | None:
    if job.status == CANCELLED:
        return None
    for slot in sorted(world.owed | set(job.slots)):
        if world.owner[slot] != job.id:
            continue
        was_due = slot in world.owed and _is_left(job, slot) and not _is_left_to_a_resume(job, slot)
        if not is_covered(world, slot) and (_is_wanted(job, slot) or was_due):
            return f"I1: occurrence {slot} is lost"
        run = world.runs[slot]
        if run and run.reason == PARENT_FAILED and not any(_has_failed(world, parent) for parent in job.spec.parents):
            return f"depends_on: {slot} was skipped, and no parent has failed"
        if run is None or run.status in (SUCCEEDED, DEAD_LETTERED) or run.reason in REASONS:
            continue
        if _is_wanted(job, slot) and (job.id, job.by) in world.accepted:
            return f"I1: occurrence {slot} of a live job ended as {run.status}"
    if job.status == SCHEDULED and job.due is not None:
        return f"I8: occurrence {job.due} is left in the index"
    return _max_runs(world, job) or _overlap(world, job)


def _has_failed(world: World, parent: int) -> bool:
    job = world.jobs[parent]
    run = world.runs[job.slots[0]] if job else None
    return job is None or job.status == CANCELLED or run is None or run.status != SUCCEEDED or run.earlier > 0


def _is_wanted(job: Job, slot: int) -> bool:
    """Whether the job as it is now brings the occurrence."""
    if job.status != SCHEDULED or slot not in job.slots or not (job.spec.one_off or slot >= job.changed):
        return False
    return _is_left(job, slot)


def _is_left(job: Job, slot: int) -> bool:
    """Whether `max_runs` leaves room for the occurrence."""
    return job.due is not None or (job.claimed is not None and slot <= job.claimed)


def _is_left_to_a_resume(job: Job, slot: int) -> bool:
    if job.status != PAUSED:
        return False
    return job.spec.run_at == slot or slot >= job.changed or (job.due is not None and slot >= job.due)


def _max_runs(world: World, job: Job) -> str | None:
    """A job that may run so often has as many runs: those that it skipped since they were missed do not count."""
    runs = [world.runs[slot] for slot in job.slots]
    count = sum(run is not None and run.until < 0 for run in runs)
    most = job.spec.max_runs
    if most is None or count == most or job.status != SCHEDULED:
        return None
    is_short = count < most and any(slot > (job.claimed if job.claimed is not None else -1) for slot in job.slots)
    return f"max_runs: {count} runs instead of {most}" if count > most or is_short else None


def _overlap(world: World, job: Job) -> str | None:
    """What a policy leaves out is no more than it says: of two that queue none, of those that replace not the last."""
    runs = [(slot, run) for slot, run in enumerate(world.runs) if run and world.owner[slot] == job.id]
    left_out = [slot for slot, run in runs if run.reason in (OVERLAP, REPLACED)]
    if job.spec.overlap == "queue" and len(left_out) > max(0, len(runs) - 2):
        return f"overlap: {left_out} were left out, and only one has to wait"
    if job.spec.overlap == "replace" and runs and runs[-1][0] in left_out:
        return f"overlap: {left_out[-1]} was left out, and is the latest"
    if job.spec.overlap == "skip" and runs and len(left_out) == len(runs):
        return "overlap: all were left out"
    return None


def _promises(world: World) -> str | None:
    """What was answered happens or says why not, unless the job was cancelled."""
    job = world.jobs[0]
    for slot, number, by in sorted(world.promised):
        run = world.runs[slot]
        is_replaced = job is not None and job.by != by
        if by in world.ended or is_replaced or (run and run.asked and by not in run.asked.after):
            continue
        if run and run.reason in (OVERLAP, REPLACED):
            continue
        if run is None or run.status not in (SUCCEEDED, DEAD_LETTERED) or run.number <= number:
            return f"I1: a run of {slot} was granted and is {run.status if run else 'lost'}"
    is_one = sum(bool(spec.slots) for spec in world.changes) < 2  # which of two was the later one is not told
    for spec in world.changes if is_one and job and job.status != CANCELLED else ():
        held = job.slots == spec.slots if spec.slots else job.spec.policy == spec.policy
        if not held:
            return f"a change that was answered does not hold: {spec}"
    return None
