"""The same table and queues on a running emulator. It neither starts nor stops one."""

import contextlib
from collections.abc import Iterator

from tests.support import aws
from tests.support.aws import Aws
from tests.support.emulator import Emulator


@contextlib.contextmanager
def running(emulator: Emulator) -> Iterator[Aws]:
    """A table and queues under new names, deleted at the end."""
    created = aws.create("emulator", emulator.client("dynamodb"), emulator.client("sqs"))
    try:
        yield created
    finally:
        aws.delete(created)
