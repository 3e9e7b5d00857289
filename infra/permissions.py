"""What each function may do, one action a row with its reason. It never holds a `*`; the stack turns it into roles.

A test holds this table against the calls that each function really makes: none missing, none spare.
"""

from dataclasses import dataclass
from typing import Literal

FunctionName = Literal["submit", "tick", "execute", "audit"]
Resource = Literal["table", "index", "jobs", "dead_letters"]


@dataclass(frozen=True)
class Grant:
    """IAM action `action` on `resource`, because of `why`."""

    action: str
    resource: Resource
    why: str


PERMISSIONS: dict[FunctionName, tuple[Grant, ...]] = {
    "submit": (
        Grant("dynamodb:GetItem", "table", "a job, its payload, a run; an idempotency record"),
        Grant("dynamodb:PutItem", "table", "a new job, its payload, its journal page; an idempotency record"),
        Grant("dynamodb:UpdateItem", "table", "cancel: the job, then its open runs; an idempotency record's answer"),
        Grant("dynamodb:DeleteItem", "table", "a settled journal page; an idempotency record whose call failed"),
        Grant("dynamodb:Query", "table", "the runs of a job"),
        Grant("sqs:SendMessage", "jobs", "an occurrence within the horizon is sent at once"),
    ),
    "tick": (
        Grant("dynamodb:GetItem", "table", "the shard's lease; journal recovery: the job and run of an entry"),
        Grant("dynamodb:PutItem", "table", "a journal page"),
        Grant("dynamodb:UpdateItem", "table", "take the shard's lease, advance its watermark"),
        Grant("dynamodb:DeleteItem", "table", "a settled journal page"),
        Grant("dynamodb:Query", "table", "the shard's journal pages"),
        Grant("dynamodb:Query", "index", "the due jobs of a bucket"),
        Grant("dynamodb:PartiQLUpdate", "table", "the claims, 25 to a request"),
        Grant("sqs:SendMessage", "jobs", "the claimed occurrences"),
    ),
    "execute": (
        Grant("dynamodb:GetItem", "table", "the job and its payload, after the start; a run that did not start"),
        Grant("dynamodb:PutItem", "table", "a run"),
        Grant("dynamodb:UpdateItem", "table", "start, heartbeat, finish of a run; the end of a one-off job"),
        Grant("dynamodb:DeleteItem", "table", "withdraw a start whose occurrence is void"),
        Grant("dynamodb:Query", "table", "the open runs of a job"),
        Grant("sqs:ReceiveMessage", "jobs", "Lambda polls the queue in the function's name"),
        Grant("sqs:DeleteMessage", "jobs", "Lambda removes what is done"),
        Grant("sqs:GetQueueAttributes", "jobs", "Lambda reads the queue's settings and depth"),
        Grant("sqs:ChangeMessageVisibility", "jobs", "the lease of a run, its renewal, the backoff before a retry"),
        Grant("sqs:SendMessage", "dead_letters", "a run whose last attempt failed, with its context"),
    ),
    "audit": (
        Grant("dynamodb:Scan", "table", "everything, in segments"),
        Grant("dynamodb:GetItem", "table", "the job and run of what it found, as they are now"),
        Grant("dynamodb:PutItem", "table", "a journal page before a repair"),
        Grant("dynamodb:UpdateItem", "table", "put a job back to the tick"),
        Grant("dynamodb:DeleteItem", "table", "a journal page left behind"),
        Grant("dynamodb:Query", "table", "journal pages, runs of a job"),
        Grant("sqs:SendMessage", "jobs", "what was claimed and lost is sent again"),
    ),
}
