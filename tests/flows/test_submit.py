"""Submit: what is due within the horizon waits for no tick, and an id belongs to one job."""

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.flows.inspect import JobView
from shared.model.errors import ConflictError
from tests.support import calls, faults
from tests.support.aws import Aws, all_items, messages_waiting
from tests.support.clocks import START, ManualClock
from tests.support.world import World

JOB_WRITE = faults.writes("job")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def test_a_job_for_now_runs_without_a_tick(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    view = world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    assert (view.status, view.next_run_at) == ("enqueued", at("11:58"))
    world.deliver()
    assert world.statuses("a") == ["succeeded"]
    assert world.items("claim#") == []


def test_a_job_of_the_past_runs_at_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="1971-01-01T00:00:00Z")
    world.deliver()
    assert world.statuses("a") == ["succeeded"]


def test_a_job_beyond_the_horizon_waits_in_the_index(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    view = world.submit(job_id="a", run_at="2026-11-30T12:03:00.000001Z")
    assert (view.status, view.next_run_at) == ("scheduled", at("12:03:00.000001"))
    (item,) = all_items(aws)
    assert (item["due_key"]["S"], item["due_at"]["S"]) == ("2026-11-30T12:03#0", "2026-11-30T12:03:00.000001")
    assert messages_waiting(aws)["delayed"] == 0
    assert "ttl" not in item


def test_a_recurring_job_within_the_horizon_is_enqueued_as_far_as_that(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    view = world.submit(job_id="a", every="60s")
    assert (view.status, view.next_run_at) == ("scheduled", at("11:59"))
    assert messages_waiting(aws)["delayed"] == 5
    (item,) = all_items(aws)
    assert item["due_at"]["S"] == "2026-11-30T12:04:00"
    clock.set(at("12:00:30"))
    assert world.show("a").next_run_at == at("12:01")


def test_i8_a_claimed_one_off_is_not_in_the_index_and_expires(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock, retention_days=2)
    world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    (item,) = all_items(aws)
    assert "due_key" not in item
    assert int(item["ttl"]["N"]) == int((at("11:59") + timedelta(days=2)).timestamp())


# C35


def test_c35_a_new_cron_does_not_fire_at_its_creation(aws: Aws, clock: ManualClock) -> None:
    clock.set(at("23:55"))
    world = World(aws, clock)
    world.submit(job_id="midnight", cron="0 0 * * *")
    clock.advance(299)
    assert world.deliver() == []
    clock.advance(2)
    world.deliver()
    assert world.target.slots("midnight") == [datetime.fromisoformat("2026-12-01T00:00:00+00:00")]


def test_c35_a_cron_made_on_its_very_minute_fires_at_the_next(aws: Aws, clock: ManualClock) -> None:
    clock.set(at("12:00"))
    world = World(aws, clock)
    assert world.submit(job_id="a", cron="* * * * *").next_run_at == at("12:01")
    assert world.deliver() == []


# Crashes and lost answers


@pytest.mark.parametrize(
    ("crash", "stored"),
    [
        ({"before": faults.writes("claim#")}, False),
        ({"after": faults.writes("claim#")}, False),
        ({"before": JOB_WRITE}, False),
        ({"after": JOB_WRITE}, True),
        ({"before": "sqs:SendMessageBatch"}, True),
        ({"after": "sqs:SendMessageBatch"}, True),
        ({"after": faults.writes("claim#"), "nth": 2}, True),
    ],
    ids=["before page", "after page", "before job", "after job", "before send", "after send", "after settle"],
)
def test_c32_a_submit_that_dies_leaves_all_or_nothing(
    aws: Aws, clock: ManualClock, crash: dict[str, Any], stored: bool
) -> None:
    world = World(aws, clock)
    with faults.crash(**crash):
        world.submit(job_id="a", run_at="2026-11-30T12:01:00Z")
    world.pass_time(300, step_s=30)
    assert world.target.counts()["a"] == (1 if stored else 0)
    assert world.items("claim#") == []  # I6: the journal drains
    if stored:
        assert world.statuses("a") == ["succeeded"]
    else:
        assert all(item["pk"]["S"] == "shard#0" for item in all_items(aws))


def test_a_submit_whose_answer_was_lost_is_one_job_and_sent(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.answer_lost(aws, JOB_WRITE):
        view = world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    assert view.status == "enqueued"
    assert messages_waiting(aws)["delayed"] == 1


def test_a_second_submit_whose_answer_was_lost_is_one_job_and_sent(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:30:00Z")
    world.cancel("a")
    clock.advance(1)
    with faults.answer_lost(
        aws,
        lambda call: (
            call.operation == "PutItem"
            and call.params["Item"]["sk"]["S"] == "job"
            and ":revision" in call.params.get("ExpressionAttributeValues", {})
        ),
    ):
        view = world.submit(job_id="a", run_at="2026-11-30T11:59:00Z")
    assert view.job.revision == 3
    assert messages_waiting(aws)["delayed"] == 1


def test_a_queue_that_refuses_makes_the_job_late_and_not_lost(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.refusing("sqs:SendMessageBatch", code="ServiceUnavailable"):
        view = world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    assert view.status == "enqueued"
    world.pass_time(180, step_s=60)
    assert world.statuses("a") == ["succeeded"]


# One id


def submit_both(world: World, first: dict[str, Any], second: dict[str, Any]) -> list[JobView | Exception]:
    """The second submit comes in full between the first one's journal page and its job."""
    answers: list[JobView | Exception] = []

    def second_comes_in_between(call: faults.Call) -> bool:
        if JOB_WRITE(call) and not answers:
            answers.append(ConflictError("to be replaced"))
            world.clock.advance(0.001)
            answers[0] = world.submit(**second)
        return False

    with faults.refusing(second_comes_in_between):
        try:
            answers.append(world.submit(**first))
        except ConflictError as error:
            answers.append(error)
    return answers


@pytest.mark.parametrize("existed", [False, True], ids=["free id", "finished job"])
def test_two_submits_of_one_id_at_once_make_one_job(aws: Aws, clock: ManualClock, existed: bool) -> None:
    world = World(aws, clock)
    if existed:
        world.submit(job_id="a", run_at="2026-11-30T12:30:00Z")
        world.cancel("a")
    second, first = submit_both(
        world,
        {"job_id": "a", "run_at": "2026-11-30T12:00:00Z", "payload": '"first"'},
        {"job_id": "a", "run_at": "2026-11-30T12:01:00Z", "payload": '"second"'},
    )
    assert isinstance(second, JobView)
    assert isinstance(first, ConflictError)
    world.pass_time(300, step_s=30)
    assert [call.payload for call, _ in world.target.calls] == ['"second"']
    assert world.target.slots("a") == [at("12:01")]


def test_the_page_of_a_submit_that_lost_and_died_does_not_run_the_winner_at_its_time(
    aws: Aws, clock: ManualClock
) -> None:
    world = World(aws, clock)

    def winner_first(call: faults.Call) -> bool:
        if JOB_WRITE(call) and not done:
            done.append(True)
            world.submit(job_id="a", cron="5 12 * * *", payload='"winner"')
            raise faults.CrashError("the loser dies with its page written")
        return False

    done: list[bool] = []
    clock.set(at("12:01"))
    with pytest.raises(faults.CrashError), faults.refusing(winner_first):
        world.submit(job_id="a", cron="4 12 * * *", payload='"loser"')
    assert len(world.items("claim#")) == 1
    world.pass_time(360, step_s=30)
    assert world.target.slots("a") == [at("12:05")]
    assert world.items("claim#") == []


def test_many_submits_of_one_id_at_once_in_threads(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    answers: list[str] = []

    def submit(number: int) -> None:
        try:
            world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", payload=str(number))
            answers.append("stored")
        except ConflictError:
            answers.append("refused")

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers) == ["refused"] * 5 + ["stored"]
    world.deliver()
    assert world.target.counts() == {"a": 1}


def test_a_long_payload_is_apart_and_a_refused_submit_does_not_touch_it(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    mine = '"' + "é" * 300 + '"'
    world.submit(job_id="a", run_at="2026-11-30T12:00:00Z", payload=mine)
    clock.advance(1)
    with pytest.raises(ConflictError):
        world.submit(job_id="a", run_at="2026-11-30T12:00:00Z", payload='"' + "x" * 600 + '"')
    clock.set(at("12:00"))
    world.deliver()
    assert [call.payload for call, _ in world.target.calls] == [mine]
    clock.advance(2 * 86400)
    assert world.audit().swept == 1  # the refused one's
    assert len(world.items("payload#")) == 1


# C53, C55


def test_c53_entry_ids_are_places_not_job_ids(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.logging() as log:
        world.submit(job_id="a.b:" + "c" * 100, every="20s")
    sizes = [len(call.asked["Entries"]) for call in log.of("sqs:SendMessageBatch")]
    ids = [entry["Id"] for call in log.of("sqs:SendMessageBatch") for entry in call.asked["Entries"]]
    assert sizes == [10, 5]
    assert ids == [str(k) for k in range(10)] + [str(k) for k in range(5)]


def test_c55_a_message_has_no_payload(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.logging() as log:
        world.submit(job_id="j" * 128, run_at="2026-11-30T11:58:00Z", payload='"' + "é" * 100_000 + '"')
    (entry,) = log.of("sqs:SendMessageBatch")[0].asked["Entries"]
    assert len(entry["MessageBody"].encode()) < 400
    world.deliver()
    assert len(world.target.calls[0][0].payload) == 100_002


# C52


def test_c52_an_entry_that_was_refused_is_sent_again_and_the_others_are_not(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)

    class RefuseFourth(calls.Observer):
        order = calls.FAULTS
        made: list[list[str]]

        def __init__(self) -> None:
            self.made = []

        def on_request(self, call: calls.Call) -> None:
            if call.name != "sqs:SendMessageBatch":
                return
            self.made.append([entry["Id"] for entry in call.params["Entries"]])
            if len(self.made) == 1:
                call.notes["kept"] = True
                call.params["Entries"] = [e for e in call.params["Entries"] if e["Id"] not in ("3", "6")]

        def on_answer(self, call: calls.Call) -> None:
            if call.notes.get("kept") and call.answer:  # 3 in Failed, 6 in neither list
                error = {"Id": "3", "SenderFault": False, "Code": "InternalError"}
                call.answer["Failed"] = [error]

    refuse = RefuseFourth()
    with calls.observing(refuse):
        world.submit(job_id="a", every="30s")
    assert refuse.made == [[str(k) for k in range(10)], ["3", "6"]]
    assert messages_waiting(aws)["delayed"] == 10
    assert len(world.pauses) == 1
    assert world.items("claim#") == []


def test_c52_entries_that_are_refused_for_good_are_recovered(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    failed = {"Failed": [{"Id": "0", "SenderFault": False, "Code": "InternalError"}], "Successful": []}

    class RefuseAll(calls.Observer):
        order = calls.FAULTS

        def answer(self, call: calls.Call) -> dict[str, Any] | None:
            return dict(failed) if call.name == "sqs:SendMessageBatch" else None

    with calls.observing(RefuseAll()):
        world.submit(job_id="a", run_at="2026-11-30T12:02:00Z")
    assert len(world.items("claim#")) == 1
    world.pass_time(300, step_s=60)
    assert world.target.counts() == {"a": 1}
    assert world.target.calls[0][1] == START + timedelta(seconds=240)  # recovered ahead of its time: not late
