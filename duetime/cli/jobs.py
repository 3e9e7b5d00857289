"""The commands that talk to the API. They never know more of a job than the API tells."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from duetime.cli import reading, render
from duetime.cli.exits import Exit
from duetime.cli.plain import visible
from duetime.cli.progress import OVER, succeeded
from duetime.cli.watch import watch
from duetime.client import DEFAULT_URL, ApiError, Client, Document, JsonValue, Submission, UnreachableError
from duetime.signing import NoCredentialsError


def _url(context: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """`--url` may also stand before the command; the one after it wins, then that, then the environment."""
    before = context.find_root().obj
    source = context.get_parameter_source(param.name or "")
    given_after = source is not None and source.name == "COMMANDLINE"
    return before if isinstance(before, str) and not given_after else value


def _job_id(value: str) -> str:
    if not value:
        raise reading.UsageError("JOB must be a job's id, not an empty text")
    return value


Url = Annotated[str, typer.Option(envvar="DUETIME_URL", callback=_url, help="Where the API is.")]
Sign = Annotated[
    bool | None,
    typer.Option("--sign/--no-sign", help="Sign with AWS credentials (default: for API Gateway addresses)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's own document and nothing else.")]
Watch = Annotated[bool, typer.Option("--watch", help="Follow the job until it is over.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", callback=_job_id, help="The job's id.", show_default=False)]
Cron = Annotated[str | None, typer.Option(metavar="EXPR", help="Recurring: a cron expression, read in --timezone.")]
Every = Annotated[str | None, typer.Option(metavar="DURATION", help="Recurring: 30s, 5m, PT1H.")]
At = Annotated[
    str | None, typer.Option(metavar="TIME", help="Once: RFC 3339, or a local time with --timezone; or now.")
]
Timezone = Annotated[str | None, typer.Option(metavar="ZONE", help="IANA name, such as Europe/Berlin.")]

out = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160, emoji=False)
err = Console(stderr=True, soft_wrap=True, emoji=False)


def submit(
    *,
    url: Url = DEFAULT_URL,
    handler: Annotated[str | None, typer.Option(metavar="NAME", help="A function of handlers/.")] = None,
    target: Annotated[str | None, typer.Option(metavar="JSON", help="The whole target, as JSON.")] = None,
    at: At = None,
    in_: Annotated[str | None, typer.Option("--in", metavar="DURATION", help="Once, after 10s, 5m, PT1H.")] = None,
    cron: Cron = None,
    every: Every = None,
    timezone: Timezone = None,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="What the function gets; @file, or - for the standard input.")
    ] = None,
    job_id: Annotated[str | None, typer.Option(metavar="ID", help="An id of your own choice.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    group: Annotated[str | None, typer.Option(metavar="NAME", help="Whose job it is: see `duetime group`.")] = None,
    overlap: Annotated[
        str | None, typer.Option(metavar="POLICY", help="While another run is not over: allow, skip, queue, replace.")
    ] = None,
    depends_on: Annotated[
        list[str] | None,
        typer.Option(metavar="JOB", help="Once this job has succeeded; may be given again. Needs no time."),
    ] = None,
    on_parent_failure: Annotated[
        str | None, typer.Option(metavar="skip|run", help="What becomes of it when such a job does not succeed.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option(metavar="high|normal|low", help="The queue and the executors that it has.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME:VALUE", help="A tag to find it by; may be given again.")
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(metavar="JSON", help='Any other field of a job: {"max_runs": 5}; @file, or - for the input.'),
    ] = None,
    max_attempts: Annotated[int | None, typer.Option(help="How often a run is tried in all.")] = None,
    timeout: Annotated[str | None, typer.Option(metavar="DURATION", help="How long one attempt may take.")] = None,
    idempotency_key: Annotated[str | None, typer.Option(metavar="KEY", help="Makes it safe to send again.")] = None,
    follow: Watch = False,
    as_json: AsJson = False,
    sign: Sign = None,
) -> None:
    """Submit a job: once (--at, --in), recurring (--cron, --every), or after others (--depends-on)."""
    times = {"--at": at, "--in": in_, "--cron": cron, "--every": every}
    if not depends_on or any(value is not None for value in times.values()):
        _exactly_one(times)
    now = datetime.now(UTC)
    submission = Submission(
        target=reading.target(handler, target),
        payload_json=None if payload is None else reading.payload_text(payload),
        run_at=_run_at(at, in_, now),
        cron=cron,
        every=every,
        timezone=timezone,
        job_id=job_id,
        name=name,
        group=group,
        overlap=overlap,
        max_attempts=max_attempts,
        timeout_s=None if timeout is None else reading.whole_seconds(timeout, "--timeout"),
        depends_on=depends_on or (),
        on_parent_failure=on_parent_failure,
        priority=priority,
        tags=reading.tags(tag or ()),
        others={} if fields is None else reading.fields(fields),
    )
    try:
        submission.to_json()
    except ValueError as error:
        raise reading.UsageError(f"--fields: {error}") from None
    with session(url, sign, as_json) as client:
        job = client.submit(submission, idempotency_key=idempotency_key)
        _show(client, job, follow, as_json, headline="submitted")


def batch(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A JSON list of jobs, or one a line; - for the input.")],
    *,
    url: Url = DEFAULT_URL,
    idempotency_key: Annotated[str | None, typer.Option(metavar="KEY", help="Makes it safe to send again.")] = None,
    as_json: AsJson = False,
    sign: Sign = None,
) -> None:
    """Submit up to 100 jobs in one call, each judged alone; they may depend on each other in any order."""
    with session(url, sign, as_json) as client:
        answer = client.submit_batch(reading.jobs_text(file), idempotency_key=idempotency_key)
        if as_json:
            print_json(answer)
            refused = render.refused_of(answer)
        else:
            refused = render.results_list(out, answer)
    if refused:
        complain(f"{refused} of the jobs {'was' if refused == 1 else 'were'} not taken")
        raise typer.Exit(Exit.REFUSED)


def show(job: JobId, url: Url = DEFAULT_URL, follow: Watch = False, as_json: AsJson = False, sign: Sign = None) -> None:
    """Show a job, its status and its latest runs."""
    with session(url, sign, as_json) as client:
        _show(client, client.get(job), follow, as_json)


def runs(
    job: JobId,
    *,
    url: Url = DEFAULT_URL,
    cursor: Annotated[str | None, typer.Option(help="Go on where the last page ended.")] = None,
    as_json: AsJson = False,
    sign: Sign = None,
) -> None:
    """Show a job's runs, newest first, with their attempts (the last 20 of each)."""
    with session(url, sign, as_json) as client:
        page = client.runs(job, cursor)
        if as_json:
            print_json(page)
            return
        render.runs_list(out, page)
        following = page.get("cursor")
        if isinstance(following, str):
            more = f"more: duetime runs {shlex.quote(job)} --cursor {shlex.quote(following)}"
            err.print(visible(more), markup=False, highlight=False)


def cancel(job: JobId, *, url: Url = DEFAULT_URL, as_json: AsJson = False, sign: Sign = None) -> None:
    """Cancel a job. No attempt starts after this has answered."""
    with session(url, sign, as_json) as client:
        answer = client.cancel(job)
        status = str(answer.get("status"))
        over = status in OVER - {"cancelled"}
        if as_json:
            print_json(answer)
        elif not over:
            out.print(f"{render.coloured('cancelled')} {render.cell(job)}", highlight=False)
            if answer.get("running"):
                out.print("an attempt was already going on; it may still end, and none follows", highlight=False)
    if over:
        complain(visible(f"not cancelled: job {job} is over, its status is {status}"))
        raise typer.Exit(Exit.REFUSED)


def preview(
    *,
    url: Url = DEFAULT_URL,
    at: At = None,
    cron: Cron = None,
    every: Every = None,
    timezone: Timezone = None,
    count: Annotated[int | None, typer.Option(help="How many times to show.")] = None,
    after: Annotated[str | None, typer.Option(metavar="TIME", help="Times after this one; default: now.")] = None,
    as_json: AsJson = False,
    sign: Sign = None,
) -> None:
    """Show when a schedule would fire."""
    _exactly_one({"--at": at, "--cron": cron, "--every": every})
    given: dict[str, JsonValue] = {
        "run_at": datetime.now(UTC).isoformat() if at == "now" else at,
        "cron": cron,
        "every": every,
        "timezone": timezone,
        "count": count,
        "after": datetime.now(UTC).isoformat() if after == "now" else after,
    }
    with session(url, sign, as_json) as client:
        document = client.preview({key: value for key, value in given.items() if value is not None})
        if as_json:
            print_json(document)
        else:
            render.preview_list(out, document)


@contextmanager
def session(url: str, sign: bool | None = None, as_json: bool = False) -> Iterator[Client]:
    """A client, and what its errors mean to the shell."""
    try:
        with Client(url, sign=sign) as client:
            yield client
    except ApiError as error:
        if as_json:
            print_json(error.problem)
        complain(visible(str(error)))
        raise typer.Exit(Exit.REFUSED) from None
    except (UnreachableError, NoCredentialsError) as error:
        complain(visible(str(error)))
        if isinstance(error, UnreachableError) and url == DEFAULT_URL:
            err.print("is it running? `duetime up` starts it", markup=False)
        raise typer.Exit(Exit.UNREACHABLE) from None


def complain(message: str) -> None:
    """One error on the standard error, whatever it holds; only its own line feeds break it."""
    err.print(f"duetime: {visible(message, keep=chr(10)).rstrip()}", style="red", markup=False, highlight=False)


def print_json(document: Document) -> None:
    """The API's answer to the letter."""
    sys.stdout.write(document.text.rstrip("\n") + "\n")


def _show(client: Client, job: Document, follow: bool, as_json: bool, headline: str = "") -> None:
    if follow:
        if headline and not as_json:
            out.print(f"{headline} {render.cell(job.get('job_id'))}", highlight=False)
        job = watch(client, str(job.get("job_id")), err if as_json else out)
    if as_json:
        print_json(job)
    else:
        render.job_table(out, job)
    if follow and not succeeded(job):
        raise typer.Exit(Exit.NOT_SUCCEEDED)


def _exactly_one(options: dict[str, str | None]) -> None:
    if sum(value is not None for value in options.values()) != 1:
        *most, last = options
        raise reading.UsageError(f"give exactly one of {', '.join(most)} and {last}")


def _run_at(at: str | None, in_: str | None, now: datetime) -> datetime | str | None:
    if in_ is not None:
        return now + reading.duration(in_, "--in")
    return now if at == "now" else at
