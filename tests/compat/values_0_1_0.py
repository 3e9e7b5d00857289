"""What the stored items of version 0.1.0 hold, as this version says it. Later versions may only add to it."""

from datetime import UTC, datetime

from shared.model.job import Due, Job, JobSpec, JobStatus, Retry, Schedule, Target
from shared.model.message import Message
from shared.model.run import Attempt, Outcome, Run, RunStatus
from shared.store.journal import Page
from shared.store.shards import ShardLease


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


JOBS = {
    "one-off": Job(
        job_id="4b5ab4fae9b54dbb9f8d3c0b9a3d2f10",
        spec=JobSpec(
            job_id="4b5ab4fae9b54dbb9f8d3c0b9a3d2f10",
            target=Target(kind="python", params={"handler": "demo.echo"}),
            payload='{"a":30.40}',
            schedule=Schedule(run_at=at("2026-11-30T12:05:00.25")),
        ),
        status=JobStatus.SCHEDULED,
        due_at=at("2026-11-30T12:05:00.25"),
        revision=1,
        version=1,
        fence=0,
        created_at=at("2026-11-30T11:58:00.123456"),
        changed_at=at("2026-11-30T11:58:00.123456"),
    ),
    "recurring, with everything": Job(
        job_id="billing.daily:7",
        spec=JobSpec(
            job_id="billing.daily:7",
            name="Tägliche Rechnung",
            group="billing",
            tags={"team": "money", "é": "ü"},
            target=Target(kind="python", params={"handler": "demo.echo"}),
            payload="null",
            schedule=Schedule(
                cron="0 9 * * MON-FRI",
                timezone="Europe/Berlin",
                start_at=at("2026-12-01T00:00:00"),
                end_at=at("2027-12-01T00:00:00"),
                max_runs=100,
                jitter_s=30,
                dst_gap="skip",
                catch_up="all",
            ),
            retry=Retry(max_attempts=5, base_s=1.5, factor=3, max_s=600),
            timeout_s=105,
            deadline_s=3600,
        ),
        status=JobStatus.SCHEDULED,
        due_at=at("2026-12-02T08:00:12"),
        revision=4,
        version=6,
        fence=1234,
        created_at=at("2026-11-30T11:58:00"),
        changed_at=at("2026-11-30T12:00:00"),
        runs_claimed=1,
        claimed_until=at("2026-12-01T08:00:07"),
        payload_id="0f9e8d7c6b5a49388776655443322110",
    ),
    "cancelled": Job(
        job_id="c",
        spec=JobSpec(
            job_id="c",
            target=Target(kind="python", params={"handler": "demo.echo"}),
            schedule=Schedule(every="90s", every_s=90, anchor=at("2026-11-30T11:58:00")),
        ),
        status=JobStatus.CANCELLED,
        due_at=None,
        revision=2,
        version=2,
        fence=0,
        created_at=at("2026-11-30T11:58:00"),
        changed_at=at("2026-11-30T11:59:00"),
        runs_claimed=3,
        claimed_until=at("2026-11-30T12:02:30"),
    ),
}
PAYLOADS = {"recurring, with everything": "null"}
DUES = {
    "recurring, with everything": Due(
        job_id="billing.daily:7",
        schedule=JOBS["recurring, with everything"].spec.schedule,
        due_at=at("2026-12-02T08:00:12"),
        revision=4,
        timeout_s=105,
        runs_claimed=1,
    )
}
_LOST = Attempt(
    attempt=1,
    worker_id="w#1",
    started_at=at("2026-11-30T12:05:00.31"),
    lease_expires_at=at("2026-11-30T12:06:05.31"),
    finished_at=at("2026-11-30T12:06:05.31"),
    outcome=Outcome.LOST,
    error="the lease ran out before the attempt ended",
)
RUNS = {
    "succeeded": Run(
        job_id="a",
        scheduled_for=at("2026-11-30T12:05:00.25"),
        status=RunStatus.SUCCEEDED,
        revision=1,
        attempt=2,
        attempts=(
            _LOST,
            Attempt(
                attempt=2,
                worker_id="w#2",
                started_at=at("2026-11-30T12:06:07"),
                lease_expires_at=at("2026-11-30T12:07:12"),
                finished_at=at("2026-11-30T12:06:08"),
                outcome=Outcome.SUCCEEDED,
            ),
        ),
        result='{"a":30.40}',
    ),
    "running, to be the last": Run(
        job_id="a",
        scheduled_for=at("2026-11-30T12:05:00"),
        status=RunStatus.RUNNING,
        revision=3,
        attempt=2,
        attempts=(
            _LOST,
            Attempt(
                attempt=2,
                worker_id="w#2",
                started_at=at("2026-11-30T12:06:07"),
                lease_expires_at=at("2026-11-30T12:07:12"),
            ),
        ),
        lease_expires_at=at("2026-11-30T12:07:12"),
        cancel_requested=True,
    ),
    "failed": Run(
        job_id="a",
        scheduled_for=at("2026-11-30T12:05:00"),
        status=RunStatus.FAILED,
        revision=1,
        attempt=1,
        attempts=(_LOST,),
        retry_at=at("2026-11-30T12:06:20.5"),
    ),
    "skipped": Run(
        job_id="a",
        scheduled_for=at("2026-11-30T12:05:00"),
        status=RunStatus.SKIPPED,
        revision=1,
        attempt=0,
        attempts=(),
        reason="catch_up",
        missed=175,
        missed_until=at("2026-11-30T14:59:00"),
    ),
}
PAGES = {
    "a tick's": Page(
        shard=3,
        name="0000001234#2026-11-30T12:05#3#0",
        written_at=at("2026-11-30T12:01:00.5"),
        messages=(
            Message(job_id="a", scheduled_for=at("2026-11-30T12:05:00"), revision=1, fence=1234, lease_s=65),
            Message(job_id="a", scheduled_for=at("2026-11-30T12:05:01.5"), revision=1, fence=1234, lease_s=65),
            Message(
                job_id="b",
                scheduled_for=at("2026-11-30T09:00:00"),
                revision=2,
                fence=1234,
                lease_s=35,
                skip="catch_up",
                missed=3,
                missed_until=at("2026-11-30T11:00:00"),
            ),
        ),
    )
}
LEASES = {
    "held": ShardLease(shard=3, epoch=1234, watermark=at("2026-11-30T12:05:00"), ticked_at=at("2026-11-30T12:00:02"))
}
MESSAGES = {
    "an occurrence": PAGES["a tick's"].messages[1],
    "a span": PAGES["a tick's"].messages[2],
}
