"""What every function is built with: AWS clients, names made at random, pauses. It knows no flow."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

T = TypeVar("T")

BATCH_THREADS = 10
HANDLERS = Path(__file__).parents[2] / "handlers"
HTTP_THREADS = 4
SEND_PAUSE = time.sleep


@dataclass(frozen=True)
class Clients:
    """The AWS clients of one process, safe for all its threads."""

    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"


def clients() -> Clients:
    """Clients that give up in time: a stuck call must not hold a tick or a lease.

    They leave out what costs a third of a call's CPU: the check of each parameter, which codecs have made (a wrong one
    is AWS's to refuse; the tests' clients check), and a user agent that is put together for each request.
    """
    config = Config(
        connect_timeout=2,
        read_timeout=10,
        retries={"mode": "standard", "max_attempts": 4},
        max_pool_connections=BATCH_THREADS + HTTP_THREADS,
        parameter_validation=False,
        user_agent="duetime",
    )
    return Clients(boto3.client("dynamodb", config=config), boto3.client("sqs", config=config))


def once(make: Callable[[], T]) -> Callable[[], T]:
    """Gives what `make` makes at the first call, the same to all threads. (functools.cache may make it twice.)"""
    lock, made = Lock(), list[T]()

    def get() -> T:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    return get


def token() -> str:
    """A new name: 32 hexadecimal digits."""
    return uuid4().hex


def environment_id() -> str:
    """This execution environment: its log stream's last part, so that a run leads to its log; else a new id."""
    stream = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME", "")
    return stream.rpartition("]")[2] or uuid4().hex
