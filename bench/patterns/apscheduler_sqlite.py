"""APScheduler 3 with its SQLAlchemy job store on SQLite: jobs that are due, run in this process. Prints one JSON line.

build/bench-venv/bin/python bench/patterns/apscheduler_sqlite.py DIRECTORY JOBS
"""

import json
import resource
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

PAYLOAD = "x" * 300
done = threading.Semaphore(0)


def work(payload: str) -> None:
    done.release()


def spent() -> tuple[float, float]:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()


def main(directory: str, jobs: int) -> None:
    store = SQLAlchemyJobStore(f"sqlite:///{Path(directory, 'jobs.sqlite')}")
    options = {"misfire_grace_time": None, "max_instances": 1}
    scheduler = BackgroundScheduler(jobstores={"default": store}, job_defaults=options)
    scheduler.start(paused=True)
    due = datetime.now(UTC) - timedelta(seconds=1)
    begun = spent()
    for number in range(jobs):
        scheduler.add_job(work, "date", run_date=due, args=[PAYLOAD], id=f"job-{number}")
    stored = spent()
    scheduler.resume()
    for _ in range(jobs):
        done.acquire()
    while scheduler.get_jobs():
        time.sleep(0.01)
    ended = spent()
    scheduler.shutdown()
    print(json.dumps({"put_s": stored[0] - begun[0], "user_s": ended[0] - stored[0], "wall_s": ended[1] - stored[1]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
