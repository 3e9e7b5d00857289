"""What can go wrong with a local Duetime, in words for the person at the keyboard. It never maps to exit codes.

LocalError
├── StateInUseError      another `duetime up` holds this state directory
├── PortInUseError       a port is taken by somebody else
├── MissingToolError     something that must be installed is not
├── SetUpError           a tool that sets things up failed; the message ends with what it said
└── EmulatorError        the local AWS does not come up, or has died
"""


class LocalError(Exception):
    """The root of what the local runtime raises on purpose."""


class StateInUseError(LocalError):
    """Another `duetime up` holds this state directory."""


class PortInUseError(LocalError):
    """A port is taken by somebody else; the message names the option that chooses another."""


class MissingToolError(LocalError):
    """A program that is needed cannot be found."""


class SetUpError(LocalError):
    """A tool that sets things up failed."""


class EmulatorError(LocalError):
    """The local AWS does not come up, or has died."""
