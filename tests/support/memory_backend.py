"""An AWS in this process's memory, for what must be run a hundred thousand times. moto and the emulator check it.

`pytest tests/flows --backend memory` runs the flows' tests on it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from shared.model.job import PRIORITIES
from tests.support.aws import MAX_RECEIVE_COUNT, VISIBILITY_TIMEOUT_S, Aws
from tests.support.memory_dynamodb import MemoryDynamoDB, MemoryTable
from tests.support.memory_sqs import MemoryQueue, MemorySqs

TABLE, DEAD_LETTERS = "duetime-memory", "https://sqs.test/dead-letters"
QUEUES = {priority: f"https://sqs.test/{priority}-jobs" for priority in PRIORITIES}
JOBS = QUEUES["normal"]


def create(now: Callable[[], datetime]) -> Aws:
    """A table and queues of their own, empty, on the clock `now`."""
    dead_letters = MemoryQueue(visibility_s=30)
    jobs = {
        url: MemoryQueue(VISIBILITY_TIMEOUT_S, timedelta(days=14), dead_letters, MAX_RECEIVE_COUNT)
        for url in QUEUES.values()
    }
    dynamodb: Any = MemoryDynamoDB(MemoryTable(now))
    sqs: Any = MemorySqs({**jobs, DEAD_LETTERS: dead_letters}, now)
    return Aws("memory", dynamodb, sqs, TABLE, dict(QUEUES), DEAD_LETTERS)
