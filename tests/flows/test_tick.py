"""The tick: what it claims after outages, with refused calls, bad items, and beside another tick."""

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.rules import plan
from shared.store import keys
from shared.store.table import Item
from tests.support import calls, faults
from tests.support.aws import Aws, messages_waiting
from tests.support.calls import Call, Observer
from tests.support.clocks import START, ManualClock
from tests.support.world import World

CLAIM = "dynamodb:BatchExecuteStatement"
NOON = START + timedelta(minutes=2)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def put(aws: Aws, item: dict[str, Any]) -> None:
    with calls.unseen():
        aws.dynamodb.put_item(TableName=aws.table, Item=item)


def change(world: World, job_id: str, **values: Any) -> None:
    """Overwrite attributes of a job's item."""
    (item,) = [item for item in world.items("job") if item["pk"]["S"] == f"job#{job_id}"]
    put(world.aws, item | values)


# C31


def test_c31_a_tick_while_another_is_at_it_leaves(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.ticker.shards.take(0, "another", clock.now(), 50)
    assert [ticked.held for ticked in world.tick()] == [True]
    clock.advance(50)
    assert [ticked.held for ticked in world.tick()] == [False]


@pytest.mark.parametrize("apart_s", [0, 90])
def test_c31_two_ticks_for_one_minute_send_once(aws: Aws, clock: ManualClock, apart_s: int) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:10:00Z")
    clock.set(at("12:06"))
    first = world.tick()[0]
    clock.advance(apart_s)
    second = world.tick()[0]
    assert (first.claimed.won, second.claimed.won) == (1, 0)
    assert second.epoch == first.epoch + 1
    assert messages_waiting(aws)["delayed"] == 1


# C33


def outage(aws: Aws, clock: ManualClock, until: datetime, **schedule: Any) -> World:
    """A job submitted at the start, no tick until `until`, then one and a delivery."""
    world = World(aws, clock)
    world.tick()
    world.submit(job_id="a", **schedule)
    world.deliver()
    clock.set(until)
    world.tick()
    world.deliver()
    return world


def test_c33_after_three_hours_one_run_stands_for_all_that_was_missed(aws: Aws, clock: ManualClock) -> None:
    # Submit enqueues 11:59 to 12:03; 12:04 to 14:58 are missed, 14:59 runs for them, 15:00 is on time.
    world = World(aws, clock)
    world.tick()
    world.submit(job_id="a", cron="* * * * *")
    clock.set(at("12:03:00"))
    world.deliver()
    clock.set(at("15:00:30"))
    world.tick()
    world.deliver()
    assert sorted(world.target.slots("a"))[-2:] == [at("14:59"), at("15:00")]
    (span,) = [run for run in world.runs("a") if run.status == "skipped"]
    assert (span.scheduled_for, span.missed, span.missed_until) == (at("12:04"), 175, at("14:58"))
    assert span.reason == "catch_up"
    assert world.show("a").next_run_at == at("15:01")


def test_c33_catch_up_all_runs_each(aws: Aws, clock: ManualClock) -> None:
    world = outage(aws, clock, at("15:00:30"), cron="*/10 * * * *", catch_up="all")
    expected = [at("12:00") + timedelta(minutes=10 * k) for k in range(19)]
    assert sorted(world.target.slots("a")) == expected
    assert set(world.statuses("a")) == {"succeeded"}


def test_c33_catch_up_skip_runs_none_and_records_them(aws: Aws, clock: ManualClock) -> None:
    world = outage(aws, clock, at("15:05"), cron="*/10 * * * *", catch_up="skip")
    assert world.target.slots("a") == [at("12:00")]  # enqueued by submit
    (span,) = [run for run in world.runs("a") if run.status == "skipped"]
    assert (span.scheduled_for, span.missed, span.missed_until) == (at("12:10"), 18, at("15:00"))
    assert world.show("a").next_run_at == at("15:10")


def test_c33_a_one_off_runs_late(aws: Aws, clock: ManualClock) -> None:
    world = outage(aws, clock, at("15:05"), run_at="2026-11-30T12:30:00Z")
    assert world.statuses("a") == ["succeeded"]


def test_c33_a_one_off_past_its_deadline_is_recorded_as_expired(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.tick()
    world.submit(job_id="a", run_at="2026-11-30T12:30:00Z", deadline_s=600)
    clock.set(at("15:05"))
    world.tick()
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.reason, world.target.calls) == ("skipped", "expired", [])


class _SlowEmptyQueries(Observer):
    """Every query of the index takes `seconds`; those of minutes without a job are answered here, which is quick."""

    order = calls.FAULTS

    def __init__(self, clock: ManualClock, seconds: float, minutes: set[str]) -> None:
        self.clock, self.seconds, self.minutes, self.made = clock, seconds, minutes, 0

    def answer(self, call: Call) -> dict[str, Any] | None:
        if call.params.get("IndexName") != keys.DUE_INDEX:
            return None
        self.made += 1
        self.clock.advance(self.seconds)
        minute = call.params["ExpressionAttributeValues"][":bucket"]["S"]
        return None if minute in self.minutes else {"Items": [], "Count": 0, "ScannedCount": 0}


def test_c33_after_a_long_outage_the_ticks_stop_in_time_and_arrive(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.tick()  # so that there is a watermark
    world.submit(job_id="a", cron="* * * * *", start_at="2026-11-30T12:30:00Z")
    world.submit(job_id="b", run_at="2026-12-01T00:00:30Z")
    clock.set(START + timedelta(days=1))
    slow = _SlowEmptyQueries(clock, 0.05, {"2026-11-30T12:30#0", "2026-12-01T00:00#0"})  # as long as 14 days of 3.6 ms
    lengths = []
    with calls.observing(slow):
        for _ in range(4):
            began = clock.now()
            (ticked,) = world.tick()
            lengths.append((clock.now() - began).total_seconds())
            clock.set(began + timedelta(seconds=60))
            if ticked.complete:
                break
    assert ticked.complete
    assert max(lengths) < 46
    assert slow.made > 1440
    world.deliver()
    assert world.statuses("b") == ["succeeded"]
    assert next(run.status for run in world.runs("a")) == "skipped"
    assert len(world.target.slots("a")) < 10
    assert world.show("a").next_run_at > clock.now()  # type: ignore[operator]


def test_catch_up_all_of_more_than_a_claim_takes_goes_on_although_the_index_lags(
    aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MAX_OCCURRENCES", 10)
    world = World(aws, clock, horizon_s=0)
    world.tick()
    world.submit(job_id="a", every="3m", catch_up="all")
    clock.set(START + timedelta(minutes=70))

    class Lagging(Observer):
        """The index still shows the job where it was when the tick began."""

        order = calls.FAULTS

        def answer(self, call: Call) -> dict[str, Any] | None:
            if call.params.get("IndexName") != keys.DUE_INDEX:
                return None
            first = call.params["ExpressionAttributeValues"][":bucket"]["S"] == "2026-11-30T12:01#0"
            return None if first else {"Items": [], "Count": 0, "ScannedCount": 0}

    with calls.observing(Lagging()):
        (first,) = world.tick()
    clock.advance(60)
    (second,) = world.tick()
    # 12:01 to 12:28; then the rest up to 13:07, in two claims: 12:31 to 12:58 and what is left
    assert (first.claimed.sent, second.claimed.sent) == (10, 13)


# C61


@pytest.mark.parametrize("ticks_late", [1, 8])
def test_c61_a_row_that_the_index_shows_late_is_found(aws: Aws, clock: ManualClock, ticks_late: int) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:05:00Z")

    class Blind(Observer):
        order = calls.FAULTS

        def answer(self, call: Call) -> dict[str, Any] | None:
            if call.params.get("IndexName") != keys.DUE_INDEX:
                return None
            return {"Items": [], "Count": 0, "ScannedCount": 0}

    assert world.show("a").status == "scheduled"  # the table is read, not the index
    clock.set(at("12:00"))
    with calls.observing(Blind()):
        for _ in range(ticks_late):
            world.tick()
            clock.advance(60)
    world.tick()
    world.deliver()
    clock.set(max(clock.now(), at("12:05")))
    world.deliver()
    assert world.target.slots("a") == [at("12:05")]


def test_c61_a_row_that_the_index_still_shows_after_a_cancel_is_not_claimed(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:05:00Z")
    clock.set(at("12:01"))
    with calls.unseen():
        stale = aws.dynamodb.query(
            TableName=aws.table,
            IndexName=keys.DUE_INDEX,
            KeyConditionExpression="#k = :k",
            ExpressionAttributeNames={"#k": keys.DUE_KEY},
            ExpressionAttributeValues={":k": {"S": "2026-11-30T12:05#0"}},
        )
    world.cancel("a")

    class Stale(Observer):
        order = calls.FAULTS

        def answer(self, call: Call) -> dict[str, Any] | None:
            values = call.params.get("ExpressionAttributeValues", {})
            if values.get(":bucket") != {"S": "2026-11-30T12:05#0"}:
                return None
            return {"Items": stale["Items"], "Count": 1, "ScannedCount": 1}

    with calls.observing(Stale()):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.lost) == (0, 1)
    assert messages_waiting(aws) == {"visible": 0, "delayed": 0, "flight": 0}


def test_empty_pages_of_a_query_are_read_through(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:05:00Z")
    clock.set(at("12:01"))

    class EmptyFirst(Observer):
        order = calls.FAULTS

        def answer(self, call: Call) -> dict[str, Any] | None:
            if call.params.get("IndexName") != keys.DUE_INDEX or "ExclusiveStartKey" in call.params:
                return None
            bucket = call.params["ExpressionAttributeValues"][":bucket"]
            key = {"pk": {"S": "job#0"}, "sk": {"S": "job"}, "due_key": bucket, "due_at": {"S": "2026"}}
            return {"Items": [], "Count": 0, "ScannedCount": 0, "LastEvaluatedKey": key}

    with calls.observing(EmptyFirst()):
        (ticked,) = world.tick()
    assert ticked.claimed.won == 1


# C62


def one_off_minutes(world: World, count: int) -> None:
    """Jobs `0` … due at 12:05:00, 12:06:00, … (submitted out of the horizon)."""
    for place in range(count):
        world.submit(job_id=str(place), run_at=f"2026-11-30T12:{5 + place:02}:00Z")


def refuse_statements(match: Callable[[str], bool], times: int, code: str = "ThrottlingError") -> Observer:
    """The first `times` statements about the jobs that match get an error each, inside a 200; the others run."""

    class Refusing(Observer):
        order = calls.FAULTS

        def __init__(self) -> None:
            self.left = times
            self.places: dict[int, list[int]] = {}

        def on_request(self, call: Call) -> None:
            if call.name != CLAIM:
                return
            hit: list[int] = []
            for place, statement in enumerate(call.params["Statements"]):
                pk = next(p["S"] for p in statement["Parameters"] if p.get("S", "").startswith("job#"))
                if self.left and match(pk.removeprefix("job#")):
                    self.left -= 1
                    hit.append(place)
            call.notes["refused"] = hit
            kept = [s for place, s in enumerate(call.params["Statements"]) if place not in hit]
            call.params["Statements"] = kept or call.params["Statements"][:1]
            call.notes["none"] = not kept

        def answer(self, call: Call) -> dict[str, Any] | None:
            if call.name == CLAIM and call.notes["none"]:
                return {"Responses": []}
            return None

        def on_answer(self, call: Call) -> None:
            if call.name == CLAIM and call.answer:
                for place in call.notes["refused"]:
                    call.answer["Responses"].insert(place, {"Error": {"Code": code, "Message": "made up"}})

    return Refusing()


def test_c62_refused_statements_are_tried_again(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    one_off_minutes(world, 3)
    clock.set(at("12:03"))
    with calls.observing(refuse_statements(lambda job_id: job_id == "1", 2)):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.left, ticked.complete) == (3, 0, True)
    assert 0 < world.pauses[0] < world.pauses[1]


def test_c62_a_statement_refused_for_good_holds_up_no_other_job(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    one_off_minutes(world, 3)
    clock.set(at("12:03"))
    with calls.observing(refuse_statements(lambda job_id: job_id == "0", 99, "ValidationError")):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.left, ticked.complete) == (2, 1, False)
    clock.advance(60)
    (after,) = world.tick()
    assert (after.claimed.won, after.complete) == (1, True)


def test_c62_a_whole_request_refused_in_the_middle_of_a_tick_loses_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    one_off_minutes(world, 3)
    clock.set(at("12:03"))
    seen: list[Call] = []

    def second_claim(call: Call) -> bool:
        if call.name == CLAIM:
            seen.append(call)
        return call.name == CLAIM and len(seen) == 2

    with faults.refusing(second_claim), pytest.raises(Exception, match="ProvisionedThroughput"):
        world.tick()
    world.pass_time(360)
    assert world.target.counts() == {"0": 1, "1": 1, "2": 1}
    assert world.items("claim#") == []


def test_c62_unprocessed_keys_are_asked_again(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.crash(before="sqs:SendMessageBatch"):
        world.submit(job_id="a", run_at="2026-11-30T12:00:00Z")

    class Unprocessed(Observer):
        order = calls.FAULTS
        asked = 0

        def answer(self, call: Call) -> dict[str, Any] | None:
            if call.name != "dynamodb:BatchGetItem":
                return None
            self.asked += 1
            if self.asked % 2 == 0:
                return None
            return {"Responses": {}, "UnprocessedKeys": call.params["RequestItems"]}

    clock.set(at("12:00"))
    with calls.observing(Unprocessed()):
        (ticked,) = world.tick()
    assert ticked.recovered == 1
    assert world.pauses == [0.1, 0.1]  # one of the jobs, one of the runs


# A bad item holds up nobody.


@pytest.mark.parametrize(
    "broken",
    [
        {"schedule": {"S": '{"cron":"not a schedule"}'}},
        {"schedule": {"S": '{"cron":"* * * * *","timezone":"Mars/Phobos"}'}},
        {"schedule": {"S": "{"}},
        {"schedule": {"S": '{"some_later_field":1}'}},
        {"due_at": {"S": "2026-11-30T12:05 noon"}},
        {"timeout_s": {"S": "sixty"}},
    ],
    ids=["cron", "zone", "json", "field", "due_at", "type"],
)
def test_a_job_that_cannot_be_planned_holds_up_no_other(
    aws: Aws, clock: ManualClock, broken: dict[str, dict[str, str]]
) -> None:
    world = World(aws, clock)
    world.submit(job_id="bad", cron="5 12 * * *")
    world.submit(job_id="good", cron="5 12 * * *")
    change(world, "bad", **broken)
    clock.set(at("12:03"))
    (ticked,) = world.tick()
    assert (ticked.unplannable, ticked.claimed.won, ticked.complete) == (("bad",), 1, True)
    clock.set(at("12:05"))
    world.deliver()
    assert world.target.counts() == {"good": 1}


@pytest.mark.parametrize("entries", [{"S": "[["}, {"B": b"no zlib"}, {"B": zlib.compress(b"[[")}])
def test_a_journal_page_that_cannot_be_read_stops_no_tick(aws: Aws, clock: ManualClock, entries: Item) -> None:
    world = World(aws, clock)
    page = {"written_at": {"S": "2026-11-30T11:00:00"}, "entries": entries}
    put(aws, {"pk": {"S": "shard#0"}, "sk": {"S": "claim#0000000001#x"}, **page})
    world.submit(job_id="good", run_at="2026-11-30T12:05:00Z")
    clock.set(at("12:03"))
    (ticked,) = world.tick()
    assert ticked.claimed.won == 1
    clock.set(at("12:30"))
    assert world.audit().unreadable == ("shard#0 claim#0000000001#x",)


def test_a_journaled_job_whose_schedule_went_bad_stops_no_tick(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.crash(before="sqs:SendMessageBatch"):
        world.submit(job_id="bad", cron="1 12 * * *")
    change(world, "bad", schedule={"S": '{"cron":"not a schedule"}'})
    world.submit(job_id="good", run_at="2026-11-30T12:05:00Z")
    clock.set(at("12:00:30"))
    (ticked,) = world.tick()
    assert (ticked.recovered, ticked.claimed.won) == (1, 1)
    assert world.items("claim#") == []


# Whole seconds


def sends(world: World, stop_after_s: float = 45) -> list[tuple[datetime, int]]:
    """When a tick makes its sends, and their delay; its pauses move the clock."""
    world.ticker = replace(world.ticker, pause=world.clock.advance)
    found: list[tuple[datetime, int]] = []

    class Sends(Observer):
        order = calls.LOG

        def on_answer(self, call: Call) -> None:
            if call.operation == "SendMessageBatch":
                found.extend((world.clock.now(), entry["DelaySeconds"]) for entry in call.params["Entries"])

    with calls.observing(Sends()):
        world.tick(stop_after_s)
    return found


def test_i3_a_quiet_tick_sends_just_after_a_whole_second(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:05:00Z")
    world.submit(job_id="b", run_at="2026-11-30T12:04:30Z")  # of another bucket: one wait is enough for both
    clock.set(at("12:01:10.7"))
    assert sends(world) == [(at("12:01:11"), 199), (at("12:01:11"), 229)]
    clock.set(at("12:04:59.9"))
    world.deliver()
    assert world.target.counts() == {"b": 1}
    clock.set(at("12:05:00"))
    world.deliver()
    assert world.target.counts() == {"a": 1, "b": 1}


def test_nothing_is_claimed_while_a_tick_waits(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:05:00Z")
    clock.set(at("12:01:10.7"))
    seen: list[tuple[int, bool]] = []

    def pause(_: float) -> None:
        seen.append((len(world.items(keys.CLAIM_PREFIX)), keys.DUE_KEY in world.items(keys.JOB)[0]))

    world.ticker = replace(world.ticker, pause=pause)
    world.tick()
    assert seen == [(0, True)]


@pytest.mark.parametrize(
    "busy",
    [("12:01:40", 1, 45), ("12:05:00", 3, 45), ("12:05:00", 1, 0.2)],
    ids=["due soon", "many jobs", "no time left"],
)
def test_what_a_tick_does_not_wait_for(
    aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, busy: tuple[str, int, float]
) -> None:
    due, jobs, stop_after_s = busy
    monkeypatch.setattr("shared.flows.tick.CALM_JOBS", 2)
    world = World(aws, clock)
    clock.set(at("11:50"))
    for _ in range(jobs):
        world.submit(run_at=f"2026-11-30T{due}Z")
    clock.set(at("12:01:10.7"))
    assert [moment for moment, _ in sends(world, stop_after_s)] == [at("12:01:10.7")] * jobs


def test_a_tick_waits_for_so_long_in_all(aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.flows.tick.WAITS_S", 0.5)
    monkeypatch.setattr("shared.flows.claims.PAGE_CLAIMS", 1)
    world = World(aws, clock)
    for tenth in (1, 2, 3, 9, 7):
        world.submit(run_at=f"2026-11-30T12:04:0{tenth}.{tenth}Z")
    clock.set(at("12:01:10"))
    moments = [moment for moment, _ in sends(world)]
    assert moments == [at(f"12:01:{text}") for text in ("10.1", "10.2", "10.3", "10.7", "10.7")]


# Many occurrences


def test_a_job_of_every_second_is_claimed_a_horizon_ahead(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", every="1s", start_at="2026-11-30T12:05:00Z")
    clock.set(at("12:03:00"))
    (ticked,) = world.tick()
    assert ticked.claimed.sent == 181  # 12:05:00 to 12:08:00
    clock.set(at("12:05:03"))
    world.deliver()
    assert sorted(world.target.slots("a")) == [at("12:05:00") + timedelta(seconds=k) for k in range(4)]


def test_many_jobs_are_claimed_in_pages_of_100_and_requests_of_25(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="j0", run_at="2026-11-30T12:05:00Z")
    (item,) = world.items("job")
    for place in range(1, 130):
        put(aws, item | {"pk": {"S": f"job#j{place}"}})
    clock.set(at("12:03"))
    with faults.logging() as log:
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.sent) == (130, 130)
    statements = [len(call.asked["Statements"]) for call in log.of(CLAIM)]
    assert statements == [25, 25, 25, 25, 25, 5]
    assert len(log.of(faults.writes("claim#"))) == 3  # two pages, one over the other, and its removal
    assert world.items("claim#") == []
    bodies = [
        json.loads(entry["MessageBody"]) for call in log.of("sqs:SendMessageBatch") for entry in call.asked["Entries"]
    ]
    assert len({body["job_id"] for body in bodies}) == 130


def test_max_runs_is_exact_across_claims(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="* * * * *", max_runs=8)
    world.pass_time(720, step_s=60)
    assert world.target.slots("a") == [at("11:59") + timedelta(minutes=k) for k in range(8)]
    assert world.show("a").status == "completed"
    assert "due_key" not in world.items("job")[0]  # I8


def test_end_at_is_the_last_moment(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="* * * * *", end_at="2026-11-30T12:06:00Z")
    world.pass_time(720, step_s=60)
    assert world.target.slots("a")[-1] == at("12:06")
    assert world.show("a").status == "completed"


# Shards


def test_a_job_goes_on_when_the_shards_grow(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    for _ in range(3):
        world.tick()  # so that the old shard's epoch is ahead of the new ones'
    world.submit(job_id="a", cron="*/5 * * * *")  # of shard 0, then of shard 1 of 2
    grown = World(aws, clock, shards=2)
    for _ in range(12):
        clock.advance(60)
        grown.tick()
        grown.deliver()
    assert grown.target.slots("a") == [at("12:00"), at("12:05"), at("12:10")]


def test_a_claim_by_the_audit_does_not_keep_the_shards_ticks_out(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock, shards=2)
    for _ in range(5):
        world.ticker.run(1, clock.now(), clock.now() + timedelta(seconds=45))
    world.submit(job_id="job", cron="30 * * * *")  # of shard 0
    clock.set(at("12:40"))
    assert world.audit().overdue == 1
    clock.set(at("13:27"))
    assert sum(ticked.claimed.won for ticked in world.tick()) == 1
