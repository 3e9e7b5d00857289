"""The command on groups: their limit, set and shown. It never knows more of a group than the API tells."""

from typing import Annotated

import typer

from duetime.cli import jobs, reading, render
from duetime.client import DEFAULT_URL


def group(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The group, as its jobs name it.", show_default=False)],
    *,
    url: jobs.Url = DEFAULT_URL,
    max_running: Annotated[
        int | None, typer.Option(metavar="N", help="Let at most so many of its runs go on at a time.")
    ] = None,
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Let any number of them go on.")] = False,
    as_json: jobs.AsJson = False,
    sign: jobs.Sign = None,
) -> None:
    """Show a group, or limit how many of its runs go on at a time."""
    if not name:
        raise reading.UsageError("NAME must be a group, not an empty text")
    if max_running is not None and no_limit:
        raise reading.UsageError("give at most one of --max-running and --no-limit")
    with jobs.session(url, sign, as_json) as client:
        changes = max_running is not None or no_limit
        answer = client.limit_group(name, max_running) if changes else client.group(name)
    if as_json:
        jobs.print_json(answer)
    else:
        most = answer.get("max_running")
        how = "no limit" if most is None else f"at most {most} at a time, {answer.get('running')} going on"
        jobs.out.print(f"[bold]group {render.cell(answer.get('group'))}[/bold]  {how}", highlight=False)
