"""The command that lists jobs: it asks for page after page until it has enough. It never filters by itself."""

import shlex
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from duetime.cli import jobs, reading, render
from duetime.cli.plain import visible
from duetime.client import DEFAULT_URL, Client, JobQuery, JsonValue

PAGE = 100  # the most that the API gives at once

Row = dict[str, JsonValue]


def list_jobs(
    *,
    url: jobs.Url = DEFAULT_URL,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Shown with this status; dead_lettered: with such a run.")
    ] = None,
    group: Annotated[str | None, typer.Option(metavar="NAME", help="Of this group.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME[:VALUE]", help="With this tag; given again, with all of them.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Whose next time is this or later: RFC 3339, now, +2h.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="Whose next time is before this.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="The most to show.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on where the last list ended.")] = None,
    as_json: jobs.AsJson = False,
    sign: jobs.Sign = None,
) -> None:
    """List jobs: a group's newest first, those of some hours by time, others in no order."""
    if limit < 1:
        raise reading.UsageError(f"--limit must be at least 1, not {limit}")
    now = datetime.now(UTC)
    query = JobQuery(
        status=status,
        group=group,
        tags=tag or (),
        due_from=None if from_ is None else reading.moment(from_, "--from", now),
        due_to=None if to is None else reading.moment(to, "--to", now),
    )
    with jobs.session(url, sign, as_json) as client:
        rows, following = _take(client, query, limit, cursor, show=not as_json)
    if as_json:
        sys.stdout.write(render.json_text({"jobs": list[JsonValue](rows), "cursor": following}) + "\n")
        return
    if not rows:
        jobs.out.print("no jobs", highlight=False)
    if following is not None:
        more = f"more: duetime list {_options(query)}--cursor {shlex.quote(following)}"
        jobs.err.print(visible(more), markup=False, highlight=False)


def _take(
    client: Client, query: JobQuery, limit: int, cursor: str | None, *, show: bool
) -> tuple[list[Row], str | None]:
    """Up to `limit` jobs, shown as they come, and the cursor to those after them; pages without any are passed."""
    taken: list[Row] = []
    while True:
        page = client.jobs_page(query, min(PAGE, limit - len(taken)), cursor)
        found = page.get("jobs")
        rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
        taken += rows
        for row in rows if show else ():
            render.list_row(jobs.out, row)
        following = page.get("cursor")
        cursor = following if isinstance(following, str) else None
        if cursor is None or len(taken) >= limit:
            return taken, cursor


def _options(query: JobQuery) -> str:
    """The query as it stood on the command line; times as they were worked out, since the cursor is of them."""
    said: list[tuple[str, object]] = [("--status", query.status), ("--group", query.group)]
    said += [("--tag", tag) for tag in query.tags]
    said += [("--from", query.due_from), ("--to", query.due_to)]
    return "".join(f"{option} {shlex.quote(str(value))} " for option, value in said if value is not None)
