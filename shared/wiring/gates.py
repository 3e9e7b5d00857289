"""Builds what only jobs with parents, an overlap policy or a group need of the executor. It decides nothing."""

from collections.abc import Sequence
from datetime import timedelta

from shared.flows.dependencies import Parents, ParentsGate
from shared.flows.families import Waker
from shared.flows.gates import Gate
from shared.flows.groups import GroupGate
from shared.flows.overlap import OverlapGate
from shared.queue import JobQueue
from shared.store.children import Children
from shared.store.groups import Groups
from shared.store.jobs import Jobs
from shared.store.overlaps import Overlaps
from shared.store.run_history import RunHistory
from shared.store.run_requests import RunRequests
from shared.store.runs import Runs
from shared.store.table import Table


def build_gates(table: Table, jobs: Jobs, runs: Runs, retention: timedelta) -> Sequence[Gate]:
    """All gates, in the order in which a run passes them."""
    history = RunHistory(table)
    return (
        ParentsGate(Parents(jobs, runs, history)),
        OverlapGate(Overlaps(table, retention), runs, history, RunRequests(table, retention)),
        GroupGate(Groups(table), runs),
    )


def build_waker(table: Table, jobs: Jobs, queue: JobQueue) -> Waker:
    """Whoever wakes the children of a job that is over."""
    return Waker(jobs, Children(table), queue)
