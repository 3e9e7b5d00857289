"""What the attempts of a batch ask of the table together: their starts, their jobs, their successes. It never insists.

Whatever goes wrong with a request for several is nobody's end: each attempt then asks for itself, as if it were alone.
"""

from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError

from shared.flows.attempt import AttemptFlow
from shared.flows.workshop import Workshop
from shared.store.run_batches import FirstStart


def start(workshop: Workshop, flows: Sequence[AttemptFlow]) -> None:
    """Start those that are most likely first attempts, in one request, and then read their jobs in one more.

    All starts before all reads, as I5 needs it of each:

        execute:  start a, b ─────────────── read a, b → b is cancelled: withdrawn
        cancel:               b: write job ── read its runs: one is running, and is told of
    """
    fresh = _one_of_each([flow for flow in flows if flow.is_fresh])
    if len(fresh) < 2:
        return
    now = workshop.clock.now()
    starts = [FirstStart(flow.message, flow.worker_id) for flow in fresh]
    try:
        runs = workshop.batches.start(starts, now)
    except (ClientError, BotoCoreError) as error:
        workshop.problem(error)
        return
    for flow, run in zip(fresh, runs, strict=True):
        flow.started = run
    _read_jobs(workshop, [flow for flow in fresh if flow.started is not None])


def _read_jobs(workshop: Workshop, flows: Sequence[AttemptFlow]) -> None:
    if len(flows) < 2:
        return
    try:
        jobs = workshop.jobs.get_some([flow.message.job_id for flow in flows])
    except (ClientError, BotoCoreError) as error:
        workshop.problem(error)
        return
    for flow in flows:
        flow.job = jobs.get(flow.message.job_id)


def succeed(workshop: Workshop, flows: Sequence[AttemptFlow]) -> list[bool]:
    """Write the successes that `flows` have handed in; which of them are known to be written."""
    alone = _one_of_each(flows)
    successes = [flow.handed_in for flow in alone if flow.handed_in is not None]
    try:
        written = workshop.batches.succeed(successes)
    except (ClientError, BotoCoreError) as error:
        workshop.problem(error)
        return [False for _ in flows]
    done = {flow.worker_id for flow, is_written in zip(alone, written, strict=True) if is_written}
    return [flow.worker_id in done for flow in flows]


def _one_of_each(flows: Sequence[AttemptFlow]) -> list[AttemptFlow]:
    """The first for each run: a request names an item once."""
    first: dict[object, AttemptFlow] = {}
    for flow in flows:
        first.setdefault((flow.message.job_id, flow.message.scheduled_for), flow)
    return list(first.values())
