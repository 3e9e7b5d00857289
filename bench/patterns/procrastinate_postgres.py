"""procrastinate on PostgreSQL: jobs that are due, fetched, run in this process, finished. Prints one JSON line.

build/bench-venv/bin/python bench/patterns/procrastinate_postgres.py SOCKET_DIRECTORY JOBS
"""

import asyncio
import json
import resource
import sys
import time
from datetime import UTC, datetime, timedelta

from procrastinate import App, PsycopgConnector

PAYLOAD = "x" * 300


def spent() -> tuple[float, float]:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()


async def main(socket: str, jobs: int) -> None:
    app = App(connector=PsycopgConnector(conninfo=f"host={socket} dbname=postgres user=postgres"))

    @app.task(name="work")
    async def work(payload: str) -> None:
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        due = datetime.now(UTC) - timedelta(seconds=1)
        begun = spent()
        for _ in range(jobs):
            await work.configure(schedule_at=due).defer_async(payload=PAYLOAD)
        stored = spent()
        await app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
        ended = spent()
        left = await app.connector.execute_query_one_async(
            "SELECT count(*) AS left FROM procrastinate_jobs WHERE status <> 'succeeded'"
        )
    assert left["left"] == 0, left
    print(json.dumps({"put_s": stored[0] - begun[0], "user_s": ended[0] - stored[0], "wall_s": ended[1] - stored[1]}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
