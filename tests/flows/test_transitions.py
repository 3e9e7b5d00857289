"""What the store lets start is what the transition table says, state by state."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.model.message import Message
from shared.model.run import RunStatus
from shared.rules.lifecycle import TRANSITIONS, Event
from shared.store.keys import run_key
from shared.store.runs import Runs, StartRefusedError
from shared.store.table import Table, text
from tests.support import calls
from tests.support.aws import Aws

DUE = datetime(2026, 11, 30, 12, tzinfo=UTC)
MESSAGE = Message(job_id="a", scheduled_for=DUE, revision=1, fence=1, lease_s=65)
BEGIN = (Event.START, Event.TAKE_OVER)


@pytest.mark.parametrize("status", RunStatus)
def test_a_run_starts_in_just_those_states_that_the_table_names(aws: Aws, status: RunStatus) -> None:
    runs = Runs(Table(aws.dynamodb, aws.table), timedelta(days=1))
    if status is not RunStatus.ENQUEUED:  # which has an item only where it waits
        runs.start(MESSAGE, "first", DUE)
        # Whatever its state: its lease is over and its wait too, so that only the state can refuse.
        item = aws.dynamodb.get_item(TableName=aws.table, Key=run_key("a", DUE))["Item"]
        with calls.unseen():
            aws.dynamodb.put_item(
                TableName=aws.table, Item={**item, "status": text(status), "retry_at": text("2026-11-30T12:00:00")}
            )
    now = DUE + timedelta(minutes=5)
    if any((status, event) in TRANSITIONS for event in BEGIN):
        assert runs.start(MESSAGE, "second", now).status is RunStatus.RUNNING
    else:
        with pytest.raises(StartRefusedError):
            runs.start(MESSAGE, "second", now)
