"""The ways in use to run jobs on time with DynamoDB and SQS, as compact as they go, and Duetime. It measures nothing.

`SingleWrites`: an index by minute; for each due job one conditional UpdateItem, then one SendMessage.
`Dynein`: Airbnb's scheduler (github.com/airbnb/dynein, PartitionWorker and DynamoDBScheduleManager): jobs in partitions
by shard, sorted by time; put; query; for each due job SCHEDULED → ACQUIRED, send, delete. Here in one thread and
without its inbound queue and its recovery, which would only add to it.
`Duetime`: submit, tick. `DuetimeRun`: and the run, with its history, which the others do not have.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from bench.floor import EmptyTarget
from bench.stack import DUE, PAYLOAD, START, job, world_of
from shared.model.instants import sort_text
from shared.store import keys
from tests.support.aws import Aws

BEFORE = START - timedelta(seconds=600)  # DUE is beyond the horizon: a tick has it to claim
Item = Mapping[str, Any]
WAITS, TAKEN = {"S": "scheduled"}, {"S": "acquired"}


class Pattern(Protocol):
    """One way, over a table and queues of its own."""

    def put(self, jobs: int) -> None:
        """Store jobs that are due at DUE, one a call."""
        ...

    def dispatch(self) -> int:
        """Bring all that is due to the queue; how many."""
        ...


class SingleWrites:
    """(a)"""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def put(self, jobs: int) -> None:
        bucket = {"S": keys.due_key(DUE, 0)}
        for number in range(jobs):
            item = _item(f"job#{number:08d}", "job") | {"due_key": bucket, "due_at": {"S": sort_text(DUE)}}
            self._aws.dynamodb.put_item(TableName=self._aws.table, Item=item)

    def dispatch(self) -> int:
        done = 0
        condition, values = "due_key = :bucket AND due_at <= :now", {":bucket": keys.due_key(DUE, 0)}
        for item in _due(self._aws, condition, values | {":now": sort_text(DUE)}, IndexName=keys.DUE_INDEX):
            self._aws.dynamodb.update_item(
                TableName=self._aws.table,
                Key={"pk": item["pk"], "sk": item["sk"]},
                UpdateExpression="SET #status = :taken REMOVE due_key, due_at",
                ConditionExpression="#status = :waits",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={":taken": TAKEN, ":waits": WAITS},
            )
            _send(self._aws, item["pk"]["S"])
            done += 1
        return done


class Dynein:
    """(b)"""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def put(self, jobs: int) -> None:
        for number in range(jobs):
            item = _item("shard#0", f"{sort_text(DUE)}#{number:08d}")
            self._aws.dynamodb.put_item(TableName=self._aws.table, Item=item)

    def dispatch(self) -> int:
        done = 0
        names: Any = {"ExpressionAttributeNames": {"#status": "status"}}
        values = {":shard": "shard#0", ":now": sort_text(DUE) + "$", ":waits": WAITS["S"]}
        only = names | {"FilterExpression": "#status = :waits", "ConsistentRead": True}
        for item in _due(self._aws, "pk = :shard AND sk < :now", values, **only):
            key: Any = {"TableName": self._aws.table, "Key": {"pk": item["pk"], "sk": item["sk"]}, **names}
            self._aws.dynamodb.update_item(
                **key,
                UpdateExpression="SET #status = :taken",
                ConditionExpression="#status = :waits",
                ExpressionAttributeValues={":taken": TAKEN, ":waits": WAITS},
                ReturnValues="UPDATED_NEW",
            )
            _send(self._aws, item["payload"]["S"])
            self._aws.dynamodb.delete_item(
                **key, ConditionExpression="#status = :taken", ExpressionAttributeValues={":taken": TAKEN}
            )
            done += 1
        return done


class Duetime:
    """Ours, one shard, up to the queue."""

    def __init__(self, aws: Aws) -> None:
        self._world = world_of(aws)
        self._world.tick()  # a shard's first tick looks back further

    def put(self, jobs: int) -> None:
        for number in range(jobs):
            self._world.api.submit.submit(job(number).spec, BEFORE)

    def dispatch(self) -> int:
        return self._world.tick()[0].claimed.sent


class DuetimeRun(Duetime):
    """Ours, up to the end of each run. On Lambda its poller receives and deletes; here that is in it."""

    def __init__(self, aws: Aws, let_it_be: Callable[[datetime], None]) -> None:
        super().__init__(aws)
        self._aws, self._let_it_be = aws, let_it_be
        self._executor = self._world.new_executor(EmptyTarget())

    def dispatch(self) -> int:
        sent, done = super().dispatch(), 0
        self._let_it_be(DUE)
        self._world.clock.set(DUE)
        while batch := self._world.receive("normal"):
            handled = self._executor.run(batch)
            entries: Any = [{"Id": str(n), "ReceiptHandle": one.received.receipt} for n, one in enumerate(handled)]
            self._aws.sqs.delete_message_batch(QueueUrl=self._aws.queue_url, Entries=entries)
            done += sum(one.ended.outcome == "succeeded" for one in handled)
        assert done == sent
        return done


def _item(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}, "status": WAITS, "payload": {"S": PAYLOAD}}


def _due(aws: Aws, condition: str, values: Mapping[str, str], **more: Any) -> Iterator[Item]:
    texts = {name: {"S": value} for name, value in values.items()}
    start: dict[str, Any] = {}
    while True:
        page: Any = aws.dynamodb.query(
            TableName=aws.table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=texts,
            **more,
            **start,
        )
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _send(aws: Aws, body: str) -> None:
    aws.sqs.send_message(QueueUrl=aws.queue_url, MessageBody=body)
