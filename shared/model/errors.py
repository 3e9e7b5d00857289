"""The error tree. It never maps an error to HTTP: one place in functions/submit does that.

DuetimeError
├── InputError                   the caller's request is wrong; names the field                          400
│   ├── InvalidScheduleError     a schedule that cannot be read, or can never fire                       400
│   └── TooLargeError            over a stated limit in bytes                                            413
├── JobNotFoundError             no such job or run                                                      404
├── ConflictError                the job is not in a state that allows this                              409
├── PreconditionError            the job is not at the version that If-Match names                       412
├── IdempotencyMismatchError     the key was used with another body                                      422
├── IdempotencyInProgressError   the first call with this key has not answered yet                       409
├── UnavailableError             AWS cannot take it just now; the same again may work                    503
├── LeaseLostError               this attempt's lease was taken over: it writes nothing more             (inside)
└── SettingsError                a missing or bad environment variable                                   (cold start)
"""


class DuetimeError(Exception):
    """The root of all that Duetime raises on purpose."""


class InputError(DuetimeError):
    """A request that is wrong. `field` is the path in the request body (`retry.max_attempts`), query or header."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class InvalidScheduleError(InputError):
    """A schedule that cannot be read or can never fire."""


class TooLargeError(InputError):
    """A value over its limit in bytes."""


class JobNotFoundError(DuetimeError):
    """There is no job (or run) of this id."""


class ConflictError(DuetimeError):
    """The job's state does not allow this; the message says which state it is in."""


class PreconditionError(DuetimeError):
    """The job is at another version than the caller expects."""


class IdempotencyMismatchError(DuetimeError):
    """The same Idempotency-Key came with another body."""


class IdempotencyInProgressError(DuetimeError):
    """The first call with this Idempotency-Key is still going on; in `retry_after_s` it has answered or died."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnavailableError(DuetimeError):
    """AWS does not take it just now. It may have taken effect or not; the same again may work."""


class LeaseLostError(DuetimeError):
    """Another attempt has taken the run over; this one stops and writes nothing."""


class SettingsError(DuetimeError):
    """A missing or bad environment variable; the message names it."""
