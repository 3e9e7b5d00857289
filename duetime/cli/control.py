"""The commands that change a job: pause, resume, update, trigger, redrive. They never decide what is allowed."""

from typing import Annotated

import typer

from duetime.cli import jobs, reading, render
from duetime.client import DEFAULT_URL, Document


def pause(
    job: jobs.JobId, *, url: jobs.Url = DEFAULT_URL, as_json: jobs.AsJson = False, sign: jobs.Sign = None
) -> None:
    """Pause a job: no run of its schedule starts until it is resumed."""
    with jobs.session(url, sign, as_json) as client:
        _tell("paused", job, client.pause(job), as_json)


def resume(
    job: jobs.JobId, *, url: jobs.Url = DEFAULT_URL, as_json: jobs.AsJson = False, sign: jobs.Sign = None
) -> None:
    """Resume a paused job; what it missed is made up for by its catch_up."""
    with jobs.session(url, sign, as_json) as client:
        _tell("resumed", job, client.resume(job), as_json)


def update(
    job: jobs.JobId,
    changes: Annotated[str, typer.Argument(metavar="JSON", help="The fields to change; @file, or - for the input.")],
    *,
    url: jobs.Url = DEFAULT_URL,
    if_version: Annotated[int | None, typer.Option(metavar="N", help="Only if the job is at this version.")] = None,
    as_json: jobs.AsJson = False,
    sign: jobs.Sign = None,
) -> None:
    """Change a job: '{"cron": "0 9 * * *", "payload": {"a": 1}}'. What is left out stays; null gives a default."""
    text = reading.payload_text(changes)
    with jobs.session(url, sign, as_json) as client:
        _tell("changed", job, client.update(job, text, if_version=if_version), as_json)


def trigger(
    job: jobs.JobId, *, url: jobs.Url = DEFAULT_URL, as_json: jobs.AsJson = False, sign: jobs.Sign = None
) -> None:
    """Run a job now, beside its schedule."""
    with jobs.session(url, sign, as_json) as client:
        run = client.trigger(job)
    if as_json:
        jobs.print_json(run)
    else:
        jobs.out.print(f"triggered {render.cell(job)} for {render.cell(run.get('scheduled_for'))}", highlight=False)


def redrive(
    job: jobs.JobId,
    *,
    url: jobs.Url = DEFAULT_URL,
    run: Annotated[str | None, typer.Option(metavar="TIME", help="Only the run of this time.")] = None,
    as_json: jobs.AsJson = False,
    sign: jobs.Sign = None,
) -> None:
    """Run a job's dead-lettered runs again, all of them or one (--run)."""
    with jobs.session(url, sign, as_json) as client:
        if run is not None:
            answer = client.redrive(job, run)
            times = [answer.get("scheduled_for")]
        else:
            answer = client.redrive_all(job)
            found = answer.get("redriven")
            times = list(found) if isinstance(found, list) else []
            while answer.get("more") and not as_json:
                answer = client.redrive_all(job)
                found = answer.get("redriven")
                times += found if isinstance(found, list) else []
    if as_json:
        jobs.print_json(answer)
        return
    for moment in times:
        jobs.out.print(f"redriven {render.cell(job)} for {render.cell(moment)}", highlight=False)
    if not times:
        jobs.out.print(f"job {render.cell(job)} has no dead-lettered run", highlight=False)


def _tell(what: str, job: str, answer: Document, as_json: bool) -> None:
    if as_json:
        jobs.print_json(answer)
        return
    after = f", next run {answer.get('next_run_at')}" if answer.get("next_run_at") else ""
    line = f"{what} {render.cell(job)}: version {answer.get('version')}, {answer.get('status')}{after}"
    jobs.out.print(line, highlight=False)
