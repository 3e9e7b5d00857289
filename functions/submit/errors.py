"""What can be wrong with a request as such, beside the tree in shared.model.errors. It never maps an error to HTTP.

DuetimeError
├── InputError                          (shared.model.errors)
│   └── InvalidRequestError             one or several fields of a request are wrong
├── RouteNotFoundError                  no such path
├── MethodNotAllowedError               the path is there, but not for this method
└── UnsupportedMediaTypeError           a body that does not say it is JSON
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.model.errors import DuetimeError, InputError


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong: `field` is its path (`retry.max_attempts`), `message` goes on from it in plain words."""

    field: str
    message: str


class InvalidRequestError(InputError):
    """All that is wrong with a request, in the order in which the request has it."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(errors[0].field, errors[0].message)
        self.errors = tuple(errors)


class RouteNotFoundError(DuetimeError):
    """The API has no such path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no {path!a} in this API")


class MethodNotAllowedError(DuetimeError):
    """The path knows only the methods `allowed`."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(f"{method} is not possible here, only {', '.join(allowed)}")
        self.allowed = tuple(allowed)


class UnsupportedMediaTypeError(DuetimeError):
    """The body's Content-Type is not JSON."""
