"""The command `duetime`. It never shows a traceback for what a person can mend."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from duetime.cli import control, groups, jobs, lists, system
from duetime.cli.exits import Exit
from duetime.cli.reading import UsageError, check_text

app = typer.Typer(
    name="duetime",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"duetime {version('duetime')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(help="Where the API is; may also follow the command.")] = None,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A distributed job scheduler in your own AWS account, and the whole of it on this machine."""
    context.obj = url


for command in (
    system.up,
    system.down,
    jobs.submit,
    jobs.batch,
    jobs.show,
    jobs.runs,
    jobs.cancel,
    control.pause,
    control.resume,
    control.update,
    control.trigger,
    control.redrive,
    jobs.preview,
    groups.group,
):
    app.command()(command)
app.command("list")(lists.list_jobs)


def main() -> None:
    """What `duetime` runs."""
    try:
        check_text(sys.argv[1:])
        app()
    except UsageError as error:
        jobs.complain(str(error))
        sys.exit(Exit.USAGE)
    except BrokenPipeError:  # `duetime show … | head`
        sys.stderr.close()
        sys.exit(141)
