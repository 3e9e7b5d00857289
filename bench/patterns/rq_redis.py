"""rq-scheduler on Redis: jobs that are due, moved from its sorted set to a queue. Prints one JSON line.

build/bench-venv/bin/python bench/patterns/rq_redis.py SOCKET JOBS
"""

import json
import resource
import sys
import time
from datetime import UTC, datetime, timedelta

from redis import Redis
from rq import Queue
from rq_scheduler import Scheduler

PAYLOAD = "x" * 300


def work(payload: str) -> None:
    pass


def spent() -> tuple[float, float]:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()


def main(socket: str, jobs: int) -> None:
    connection = Redis(unix_socket_path=socket)
    queue = Queue("jobs", connection=connection)
    scheduler = Scheduler(queue=queue, connection=connection)
    due = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=1)  # it wants UTC without saying so
    begun = spent()
    for _ in range(jobs):
        scheduler.enqueue_at(due, "bench.work", PAYLOAD)
    stored, before = spent(), connection.info("stats")["total_commands_processed"]
    scheduler.enqueue_jobs()
    ended, after = spent(), connection.info("stats")["total_commands_processed"]
    assert queue.count == jobs, queue.count
    print(
        json.dumps(
            {
                "put_s": stored[0] - begun[0],
                "user_s": ended[0] - stored[0],
                "wall_s": ended[1] - stored[1],
                "requests": after - before - 1,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
