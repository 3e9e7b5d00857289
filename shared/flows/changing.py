"""How a user's word becomes a job's next version: read → decide → journal → write → send. It never decides itself."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from shared.flows.claims import claimed_at_once, over_at
from shared.flows.enqueue import Enqueuer
from shared.model.errors import ConflictError, JobNotFoundError
from shared.model.job import Job
from shared.model.message import Message
from shared.rules.changes import dropped
from shared.rules.sharding import shard_of
from shared.store.jobs import JobChangedError, Jobs

TRIES = 8


@dataclass(frozen=True, slots=True)
class Changer:
    """Changes jobs; what a change of when makes due within `horizon_s` is enqueued by it."""

    jobs: Jobs
    enqueuer: Enqueuer
    horizon_s: int

    def run(self, job_id: str, decide: Callable[[Job], Job | None], now: datetime) -> Job:
        """Write what `decide` makes of the job (None: leave it), which may be asked again; the job as it then is.

        Raises JobNotFoundError, and ConflictError when others change it all the time.
        """
        for _ in range(TRIES):
            job = self.jobs.get(job_id)
            if job is None:
                raise JobNotFoundError(f"there is no job {job_id!r}")
            wanted = decide(job)
            if wanted is None:
                return job
            try:
                return self._write(job, wanted, now)
            except JobChangedError:
                continue
        raise ConflictError(f"job {job_id!r} keeps being changed by others; try again")

    def _write(self, seen: Job, wanted: Job, now: datetime) -> Job:
        if wanted.revision == seen.revision:
            self.jobs.change(seen, wanted, now, when=False)
            return wanted
        claimed, messages = claimed_at_once(wanted, now, self.horizon_s, dropped(seen, wanted.spec, now))
        ttl = over_at(claimed, now, self.jobs.retention)

        def write() -> tuple[Message, ...]:
            self.jobs.change(seen, claimed, now, when=True, ttl=ttl)
            return messages

        if messages:
            self.enqueuer.run(shard_of(seen.job_id, self.jobs.shards), messages, write)
        else:
            write()
        return claimed
