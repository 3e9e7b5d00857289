"""What each function may do, one action a row with its reason. It never holds a `*`; the stack turns it into roles.

Tests hold it against the roles, and against the calls that each function really makes: none missing, none spare.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

FunctionName = Literal["submit", "tick", "execute", "audit"]
Resource = Literal["table", "index", "lists", "jobs", "dead_letters"]  # `jobs`: the queues of all priorities
Arns = Mapping[Resource, Sequence[str]]


@dataclass(frozen=True)
class Grant:
    """IAM action `action` on `resource`, because of `why`."""

    action: str
    resource: Resource
    why: str


PERMISSIONS: dict[FunctionName, tuple[Grant, ...]] = {
    "submit": (
        Grant("dynamodb:GetItem", "table", "a job, its payload, a run; an Idempotency-Key; the cursors' secret"),
        Grant("dynamodb:BatchGetItem", "table", "shards' ticks; the jobs of a list, a job's parents; their runs"),
        Grant("dynamodb:Query", "table", "the runs of a job"),
        Grant("dynamodb:Query", "index", "a list of the jobs that are due in some hours"),
        Grant("dynamodb:Query", "lists", "a list of the jobs of a group, or with a dead-lettered run"),
        Grant("dynamodb:Scan", "table", "a list that no index has"),
        Grant("dynamodb:PutItem", "table", "a new job, payload, journal page, Idempotency-Key; the cursors' secret"),
        Grant("dynamodb:PartiQLUpdate", "table", "a parent says that others depend on it, and so does its run"),
        Grant("dynamodb:PartiQLInsert", "table", "new jobs of a batch, 25 to a request"),
        Grant("dynamodb:BatchWriteItem", "table", "the payloads of a batch; links from parents to their children"),
        Grant("dynamodb:UpdateItem", "table", "cancel: the job, then its open runs; the answer to an Idempotency-Key"),
        Grant("dynamodb:DeleteItem", "table", "a settled journal page; an Idempotency-Key whose call was refused"),
        Grant("sqs:SendMessage", "jobs", "an occurrence within the horizon is sent at once"),
    ),
    "tick": (
        Grant("dynamodb:UpdateItem", "table", "take the shard's lease, give it back with the watermark"),
        Grant("dynamodb:Query", "table", "the shard's journal pages"),
        Grant("dynamodb:Query", "index", "the due jobs of a bucket"),
        Grant("dynamodb:BatchGetItem", "table", "journal recovery: the jobs and runs of a page"),
        Grant("dynamodb:PutItem", "table", "a journal page, before the claims"),
        Grant("dynamodb:PartiQLUpdate", "table", "the claims, 25 to a request"),
        Grant("dynamodb:DeleteItem", "table", "a settled journal page, after the sends"),
        Grant("sqs:SendMessage", "jobs", "the claimed occurrences"),
    ),
    "execute": (
        Grant("dynamodb:PartiQLInsert", "table", "the first starts of a batch's runs, in one request"),
        Grant("dynamodb:PartiQLUpdate", "table", "the successes of a batch's runs that end together"),
        Grant("dynamodb:UpdateItem", "table", "start, renewal and end of a run; a place of its group"),
        Grant("dynamodb:GetItem", "table", "the job and its payload, after the start; a run whose lease was lost"),
        Grant("dynamodb:BatchGetItem", "table", "a batch's jobs; a job's parents and children; places of its group"),
        Grant("dynamodb:Query", "table", "the links to a job's children; its runs, where `overlap` was changed"),
        Grant("dynamodb:PutItem", "table", "the record of an occurrence that is skipped; who has the place of a job"),
        Grant("dynamodb:DeleteItem", "table", "withdraw a start that is void and may come again"),
        Grant("sqs:ReceiveMessage", "jobs", "Lambda polls the queues in the function's name"),
        Grant("sqs:DeleteMessage", "jobs", "Lambda removes what is done"),
        Grant("sqs:GetQueueAttributes", "jobs", "Lambda reads the queues' settings and depth"),
        Grant("sqs:ChangeMessageVisibility", "jobs", "the lease of a run, its renewal, the backoff before a retry"),
        Grant("sqs:SendMessage", "jobs", "a message that SQS would soon drop, anew; a job's children, to wake them"),
        Grant("sqs:SendMessage", "dead_letters", "a run whose last attempt failed, with its context"),
    ),
    "audit": (
        Grant("dynamodb:Scan", "table", "everything, in segments"),
        Grant("dynamodb:BatchGetItem", "table", "the shards' leases; jobs and runs of what it found"),
        Grant("dynamodb:Query", "table", "the runs of a job's claimed occurrences"),
        Grant("dynamodb:PutItem", "table", "a journal page, before it claims what is overdue"),
        Grant("dynamodb:PartiQLUpdate", "table", "claim what is overdue"),
        Grant("dynamodb:DeleteItem", "table", "a journal page left behind; a payload that no job names"),
        Grant("sqs:SendMessage", "jobs", "what was claimed and lost is sent again"),
        Grant("sqs:ReceiveMessage", "dead_letters", "after a redrive: which letters are of runs that began again"),
        Grant("sqs:DeleteMessage", "dead_letters", "those letters: nobody has to look at them any more"),
        Grant("sqs:ChangeMessageVisibility", "dead_letters", "the others are there again at once"),
    ),
}
