"""An AWS inside this process: moto, made as strict about races as DynamoDB is. It never listens on a socket."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import moto
from moto.core.models import botocore_stubber

from tests.support import aws, calls
from tests.support.aws import REGION, Aws
from tests.support.calls import Call, Observer
from tests.support.moto_partiql import UpdatesByUpdateItem

_one_at_a_time = threading.RLock()


class EndlessWaitError(BaseException):
    """A long poll while the clock stands still would never end."""


class _NoLongPoll(Observer):
    def on_request(self, call: Call) -> None:
        if call.name == "sqs:ReceiveMessage" and call.params.get("WaitTimeSeconds"):
            raise EndlessWaitError("ReceiveMessage with WaitTimeSeconds on moto: the test's clock stands still")


def _serialise() -> None:
    """moto checks a condition and then writes, unguarded between threads; a table judges one write at a time."""
    process = botocore_stubber.process_request

    def one_at_a_time(request: Any) -> Any:
        with _one_at_a_time:
            return process(request)

    botocore_stubber.process_request = one_at_a_time  # type: ignore[method-assign]


_serialise()


@contextlib.contextmanager
def running() -> Iterator[Aws]:
    """A fresh moto with the table and the queues; all of it is gone at the end."""
    with moto.mock_aws():
        dynamodb = boto3.client("dynamodb", region_name=REGION)
        sqs = boto3.client("sqs", region_name=REGION)
        with calls.observing(UpdatesByUpdateItem(dynamodb)), calls.observing(_NoLongPoll()):
            yield aws.create("moto", dynamodb, sqs)
