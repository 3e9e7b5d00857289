"""The exit codes that scripts rely on (docs/cli.md). It never prints and never exits."""

from enum import IntEnum


class Exit(IntEnum):
    """What the command ended with."""

    OK = 0
    REFUSED = 1  # the API refused, or what was to be started could not be
    USAGE = 2  # the command line cannot be read
    UNREACHABLE = 3  # no answer of the API
    NOT_SUCCEEDED = 4  # the watched job ended, but did not succeed
    INTERRUPTED = 130  # Ctrl-C
