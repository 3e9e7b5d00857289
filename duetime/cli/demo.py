"""A first job before the person's eyes: due in ten seconds, through all its states. It never starts a system."""

from datetime import UTC, datetime, timedelta

from duetime.cli.exits import Exit
from duetime.cli.jobs import out, session
from duetime.cli.progress import lateness_s, runs_of, succeeded
from duetime.cli.render import job_table
from duetime.cli.watch import watch
from duetime.client import Submission

DUE_IN_S = 10


def demo(url: str) -> Exit:
    """Submit the demo job and follow it; answers how it ended."""
    due = datetime.now(UTC) + timedelta(seconds=DUE_IN_S)
    submission = Submission(
        target={"kind": "python", "handler": "demo.echo"},
        payload_json='{"hello": "from Duetime"}',
        name="demo",
        run_at=due,
    )
    with session(url) as client:
        out.print(f"\n[bold]a demo job, due in {DUE_IN_S} s[/bold]")
        job = client.submit(submission)
        job = watch(client, str(job["job_id"]), out)
        job_table(out, job)
        late = next((lateness_s(run) for run in runs_of(job)), None)
        if not succeeded(job) or late is None:
            return Exit.NOT_SUCCEEDED
        out.print(f"[green]it ran {late:.2f} s after its time[/green]", highlight=False)
        return Exit.OK
