"""The command `duetime`. It never shows a traceback for what a person can mend."""

import sys

import typer

from duetime.cli import jobs, system
from duetime.cli.exits import Exit
from duetime.cli.reading import UsageError

app = typer.Typer(
    name="duetime",
    help="A distributed job scheduler in your own AWS account, and the whole of it on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (system.up, system.down, jobs.submit, jobs.show, jobs.runs, jobs.cancel, jobs.preview):
    app.command()(command)


def main() -> None:
    """What `duetime` runs."""
    try:
        app()
    except UsageError as error:
        jobs.complain(str(error))
        sys.exit(Exit.USAGE)
    except BrokenPipeError:  # `duetime show … | head`
        sys.stderr.close()
        sys.exit(141)
