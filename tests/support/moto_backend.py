"""An AWS inside this process: moto, made as strict about races as DynamoDB is. It never listens on a socket."""

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import moto
from moto.core.models import botocore_stubber

from tests.support import aws, calls
from tests.support.aws import REGION, Aws
from tests.support.moto_partiql import UpdatesByUpdateItem

_one_at_a_time = threading.RLock()


def _serialise() -> None:
    """moto checks a condition and then writes, unguarded between threads; a table judges one write at a time."""
    process = botocore_stubber.process_request

    def one_at_a_time(request: Any) -> Any:
        with _one_at_a_time:
            return process(request)

    botocore_stubber.process_request = one_at_a_time  # type: ignore[method-assign]


_serialise()


@functools.cache
def _client(service: str) -> Any:
    """Making a client takes longer than most tests."""
    session: Any = boto3.Session(region_name=REGION)
    return session.client(service)


@contextlib.contextmanager
def running() -> Iterator[Aws]:
    """A fresh moto with the table and the queues; all of it is gone at the end."""
    with moto.mock_aws():
        dynamodb, sqs = _client("dynamodb"), _client("sqs")
        with calls.observing(UpdatesByUpdateItem(dynamodb)):
            yield aws.create("moto", dynamodb, sqs)
