"""PATCH: a new schedule counts from the change and voids what was claimed; all else holds from the next start on."""

from datetime import datetime
from typing import Any

import pytest

from shared.model.errors import ConflictError, InputError, JobNotFoundError, PreconditionError
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

# LONG = '"' + "x" * 600 + '"'


LONG = '"' + "x" * 600 + '"'


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    clock.set(at("12:00:30"))
    return World(aws, clock)


def times(world: World, job_id: str = "a") -> list[str]:
    return [f"{moment:%H:%M:%S}" for moment in world.target.slots(job_id)]


def item(world: World) -> dict[str, Any]:
    (found,) = world.items("job")
    return found


def test_a_new_schedule_counts_from_the_change_and_voids_what_was_claimed(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")  # 12:01 to 12:05 are claimed
    world.clock.set(at("12:02:10"))
    world.deliver()
    view = world.patch("a", cron="30 */2 * * * *")
    assert (view.job.revision, view.job.version, view.job.runs_claimed) == (2, 2, 3)
    assert (view.status, view.next_run_at) == ("scheduled", at("12:02:30"))
    world.pass_time(400, step_s=5)
    assert times(world) == ["12:01:00", "12:02:00", "12:02:30", "12:04:30", "12:06:30", "12:08:30"]
    assert world.statuses("a") == ["succeeded"] * 6
    assert world.audit().findings == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start_at", "2026-11-30T12:10:00Z"),
        ("end_at", "2026-11-30T13:00:00Z"),
        ("max_runs", 5),
        ("jitter_s", 3),
        ("dst_gap", "skip"),
        ("timezone", "Europe/Berlin"),
        ("every", "5m"),
        ("run_at", "2026-11-30T12:30:00Z"),
    ],
)
def test_each_of_these_is_a_change_of_when(world: World, field: str, value: Any) -> None:
    world.submit(job_id="a", cron="* * * * *")
    view = world.patch("a", **{field: value})
    assert (view.job.revision, view.job.version, view.job.changed_at) == (2, 2, at("12:00:30"))
    assert view.next_run_at is not None
    assert view.next_run_at > at("12:00:30")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("payload", {"b": 1}),
        ("name", "another"),
        ("group", "g"),
        ("tags", {"x": "y"}),
        ("retry", {"max_attempts": 7}),
        ("timeout_s", 5),
        ("deadline_s", 60),
        ("catch_up", "all"),
        ("priority", "high"),
    ],
)
def test_each_of_these_voids_nothing(world: World, field: str, value: Any) -> None:
    world.submit(job_id="a", cron="* * * * *")
    view = world.patch("a", **{field: value})
    assert (view.job.revision, view.job.version) == (1, 2)
    world.pass_time(200)
    assert times(world) == ["12:01:00", "12:02:00", "12:03:00"]


def test_payload_target_and_policies_hold_from_the_next_start_on(world: World) -> None:
    world.target.script = lambda call: failure() if call.payload == "1" else SUCCEED
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z", payload="1", max_attempts=5, base_s=30)
    world.clock.set(at("12:00:41"))
    world.deliver()
    world.patch("a", payload={"b": "x" * 600}, retry={"max_attempts": 2}, timeout_s=7)
    world.pass_time(60)
    (first, _), (second, _) = world.target.calls
    assert (first.payload, first.max_attempts, first.timeout_s) == ("1", 5, 60)
    assert (second.payload, second.max_attempts, second.timeout_s) == ('{"b":"' + "x" * 600 + '"}', 2, 7)
    assert world.show("a").status == "succeeded"


def test_a_payload_moves_out_of_the_job_and_back(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", payload=LONG)
    long_id = item(world)["payload_id"]["S"]
    world.patch("a", name="n")
    assert item(world)["payload_id"]["S"] == long_id
    world.patch("a", payload=1)
    assert "payload_id" not in item(world)
    assert item(world)["payload"]["S"] == "1"
    world.patch("a", payload="y" * 700)
    assert item(world)["payload_id"]["S"] != long_id
    assert "payload" not in item(world)
    world.pass_time(60)
    assert world.target.calls[0][0].payload == '"' + "y" * 700 + '"'
    world.clock.advance(2 * 86400)
    assert world.audit().swept == 1
    assert world.show("a").job.spec.payload == '"' + "y" * 700 + '"'


def test_null_gives_a_field_its_default_and_what_is_left_out_stays(world: World) -> None:
    world.submit(
        job_id="a", cron="* * * * *", name="n", group="g", tags={"x": "1", "y": "2"}, deadline_s=9, max_attempts=9
    )
    spec = world.patch(
        "a", name=None, deadline_s=None, tags={"x": None, "z": "3"}, retry={"max_attempts": None}
    ).job.spec
    assert (spec.name, spec.deadline_s, spec.retry.max_attempts) == (None, None, 3)
    assert (spec.tags, spec.group, spec.schedule.cron) == ({"y": "2", "z": "3"}, "g", "* * * * *")
    assert world.patch("a", tags=None).job.spec.tags == {}


def test_a_change_that_changes_nothing_leaves_the_version(world: World) -> None:
    world.submit(job_id="a", every="90s", name="n", payload="[1, 2]", tags={"x": "1"})
    before = item(world)
    view = world.patch("a", name="n", every="90s", tags={"x": "1"}, retry={}, max_runs=None, timeout_s=60)
    assert (view.job.version, view.job.revision) == (1, 1)
    assert item(world) == before


def test_every_goes_on_from_its_anchor_unless_the_period_changes(world: World) -> None:
    world.submit(job_id="a", every="90s")
    world.clock.set(at("12:01:10"))
    assert world.patch("a", jitter_s=0, max_runs=9).next_run_at == at("12:02:00")
    assert world.patch("a", every="2m").next_run_at == at("12:03:10")
    assert world.patch("a", start_at="2026-11-30T12:30:07Z").next_run_at == at("12:30:07")


def test_from_one_kind_of_schedule_to_another(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", max_runs=4, jitter_s=2)
    spec = world.patch("a", run_at="2026-11-30T12:10:00Z").job.spec.schedule
    assert (spec.cron, spec.max_runs, spec.jitter_s, spec.run_at) == (None, None, 0, at("12:10:00"))
    spec = world.patch("a", every="1h", max_runs=2).job.spec.schedule
    assert (spec.run_at, spec.every, spec.max_runs) == (None, "1h", 2)
    for bad in ({"every": None}, {"run_at": "2026-11-30T12:10:00Z", "cron": "* * * * *"}, {"cron": "0 0 30 2 *"}):
        with pytest.raises(InputError):
            world.patch("a", **bad)
    assert world.show("a").job.version == 3


def test_max_runs_counts_anew_from_a_new_schedule(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", max_runs=3)
    world.clock.set(at("12:02:10"))
    world.deliver()
    world.patch("a", max_runs=2)
    world.pass_time(600)
    assert times(world) == ["12:01:00", "12:02:00", "12:03:00", "12:04:00"]
    assert world.show("a").status == "completed"


def test_only_the_version_that_was_named_is_changed(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.patch("a", name="one", if_version=1)
    with pytest.raises(PreconditionError, match="version 2"):
        world.patch("a", name="two", if_version=1)
    with pytest.raises(PreconditionError):  # also where nothing would change
        world.patch("a", name="one", if_version=1)
    assert world.patch("a", name="two", if_version=2).job.version == 3


def test_what_cannot_be_changed(world: World) -> None:
    with pytest.raises(JobNotFoundError):
        world.patch("nobody", name="x")
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z")
    for field, value in (("job_id", "b"), ("depends_on", []), ("on_parent_failure", "run"), ("target", None)):
        with pytest.raises(InputError) as error:
            world.patch("a", **{field: value})
        assert error.value.field == field
    world.clock.set(at("12:00:41"))
    world.deliver()
    with pytest.raises(ConflictError, match="is over"):
        world.patch("a", name="x")
    world.submit(job_id="b", cron="* * * * *")
    world.cancel("b")
    with pytest.raises(ConflictError, match="is cancelled"):
        world.patch("b", name="x")


def test_a_running_attempt_goes_on_and_its_retry_is_void(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", base_s=20)

    def script(call: Any) -> Any:
        if len(world.target.calls) == 1:
            world.patch("a", cron="*/5 * * * *")
        return failure() if len(world.target.calls) == 1 else SUCCEED

    world.target.script = script
    world.clock.set(at("12:01:01"))
    world.deliver()
    assert world.statuses("a") == ["failed"]
    world.pass_time(300)
    assert times(world) == ["12:01:00", "12:05:00"]
    first = world.runs("a")[0]
    assert (first.status, first.reason, first.attempt) == ("cancelled", "rescheduled", 1)
    assert world.audit().findings == 0


def test_i1_what_was_due_before_the_change_and_not_started_is_recorded(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.clock.set(at("12:02:10"))  # no executor came
    world.patch("a", cron="0 * * * *")
    world.deliver()
    world.pass_time(120)
    assert world.target.calls == []
    assert [(run.scheduled_for, run.status, run.reason) for run in world.runs("a")] == [
        (at("12:01:00"), "skipped", "rescheduled"),
        (at("12:02:00"), "skipped", "rescheduled"),
    ]


def test_i1_what_no_tick_had_claimed_when_the_schedule_changed_is_recorded(world: World) -> None:
    world.submit(job_id="a", cron="*/10 * * * *")
    world.clock.set(at("13:15:00"))  # no tick came since 12:00, and nothing after 12:00 was claimed
    world.patch("a", cron="0 20 * * *")
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.reason) == ("skipped", "rescheduled")
    assert (run.scheduled_for, run.missed, run.missed_until) == (at("12:10:00"), 7, at("13:10:00"))
    assert world.target.calls == []


def test_i1_also_when_the_sends_of_the_change_are_lost(world: World) -> None:
    world.submit(job_id="a", cron="*/10 * * * *")
    world.clock.set(at("13:15:00"))
    with faults.crash(before="sqs:SendMessageBatch"):
        world.patch("a", cron="16 * * * *")
    world.pass_time(240)
    assert [(run.scheduled_for, run.status) for run in world.runs("a")] == [
        (at("12:10:00"), "skipped"),
        (at("13:16:00"), "succeeded"),
    ]
    assert world.items("claim#") == []


def test_i1_what_was_claimed_and_not_sent_before_a_change_is_recorded(world: World) -> None:
    """The tick that claimed it late has died before its send, and the user's change comes before the recovery."""
    world.submit(job_id="a", cron="*/10 * * * *")
    world.clock.set(at("12:11:00"))
    with faults.crash(before="sqs:SendMessageBatch"):
        world.tick()
    world.clock.set(at("12:11:20"))
    world.patch("a", cron="0 20 * * *")
    world.pass_time(300)
    (run,) = world.runs("a")
    assert (run.scheduled_for, run.status, run.reason) == (at("12:10:00"), "skipped", "rescheduled")
    assert world.items("claim#") == []


def test_a_one_off_moves_to_another_time(world: World) -> None:
    world.submit(job_id="a", run_at="2026-11-30T12:02:00Z")
    assert world.patch("a", run_at="2026-11-30T12:03:00Z").next_run_at == at("12:03:00")
    world.patch("a", run_at="2026-11-30T14:00:00Z")
    assert "due_key" in item(world)
    assert "ttl" not in item(world)
    view = world.patch("a", run_at="2026-11-30T12:01:00Z")
    assert (view.status, view.next_run_at) == ("enqueued", at("12:01:00"))
    assert "due_key" not in item(world)
    world.pass_time(400)
    assert times(world) == ["12:01:00"]
    assert world.show("a").status == "succeeded"
    assert [run.scheduled_for for run in world.runs("a")] == [at("12:01:00")]


def test_a_time_that_the_job_has_run_for_cannot_be_its_next(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.clock.set(at("12:01:10"))
    world.deliver()
    with pytest.raises(ConflictError, match="has run for 2026-11-30T12:01:00Z already"):
        world.patch("a", run_at="2026-11-30T12:01:00Z")


def test_a_paused_job_stays_paused_and_a_resume_goes_by_the_new_schedule(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *")
    world.pause("a")
    view = world.patch("a", cron="*/2 * * * *", catch_up="all")
    assert (view.status, view.next_run_at, view.job.revision) == ("paused", None, 3)
    assert "due_key" not in item(world)
    world.clock.set(at("12:04:10"))
    world.tick()
    world.deliver()
    assert world.target.calls == []
    world.resume("a")
    world.pass_time(120)
    assert times(world) == ["12:02:00", "12:04:00", "12:06:00"]


def test_a_paused_one_off_that_waits_for_its_retry_ends_when_it_gets_another_time(world: World) -> None:
    world.target.script = lambda call: failure() if call.attempt == 1 and len(world.target.calls) == 1 else SUCCEED
    world.submit(job_id="a", run_at="2026-11-30T12:00:40Z", base_s=20)
    world.clock.set(at("12:00:41"))
    world.deliver()
    world.pause("a")
    world.pass_time(60)  # its message is handed over to the resume
    world.patch("a", run_at="2026-11-30T12:10:00Z")
    (old,) = world.runs("a")
    assert (old.status, old.reason) == ("cancelled", "rescheduled")
    world.resume("a")
    world.pass_time(600)
    assert times(world) == ["12:00:40", "12:10:00"]
    assert world.show("a").status == "succeeded"
    assert world.audit().findings == 0


def test_a_group_moves_in_the_index_of_lists(world: World) -> None:
    world.submit(job_id="a", cron="* * * * *", group="one")
    assert item(world)["list_key"]["S"] == "group#one"
    place = item(world)["list_at"]
    world.patch("a", group="two")
    assert (item(world)["list_key"]["S"], item(world)["list_at"]) == ("group#two", place)
    world.patch("a", group=None)
    assert "list_key" not in item(world)
    assert "list_at" not in item(world)


def test_a_claim_beside_a_change_of_policy_is_kept(world: World) -> None:
    """The tick claims between the read and the write of the change."""
    world.submit(job_id="a", cron="*/10 * * * *")
    world.clock.set(at("12:05:30"))
    ticked = []

    def claim(call: Any) -> bool:
        if call.name == "dynamodb:UpdateItem" and not ticked:
            ticked.append(1)
            (done,) = world.tick()
            assert done.claimed.won == 1
        return False

    with faults.refusing(claim):
        view = world.patch("a", name="n")
    assert view.job.version == 2
    there = world.show("a").job
    assert (there.due_at, there.claimed_until, there.spec.name) == (at("12:20:00"), at("12:10:00"), "n")
    world.pass_time(300)
    assert times(world) == ["12:10:00"]


def test_a_claim_beside_a_change_of_when_is_seen_by_it(world: World) -> None:
    world.submit(job_id="a", cron="*/10 * * * *")
    world.clock.set(at("12:05:30"))
    ticked = []

    def claim(call: Any) -> bool:
        if faults.writes("job")(call) and not ticked:
            ticked.append(1)
            (done,) = world.tick()
            assert done.claimed.won == 1
        return False

    with faults.refusing(claim):
        view = world.patch("a", cron="8 * * * *")
    assert (view.job.version, view.job.revision) == (2, 2)
    world.pass_time(400)
    assert times(world) == ["12:08:00"]
    assert world.items("claim#") == []


def test_two_changes_at_once_both_hold(world: World) -> None:
    """The second one's write finds another version than the one that it was made of."""
    world.submit(job_id="a", cron="0 20 * * *")
    other = World(world.aws, world.clock)
    changed: list[int] = []

    def change(call: Any) -> bool:
        if faults.writes("job")(call) and not changed:
            changed.append(1)
            other.patch("a", name="other's")
        return False

    with faults.refusing(change):
        view = world.patch("a", deadline_s=9, payload="x" * 600)
    assert (view.job.version, view.job.spec.name, view.job.spec.deadline_s) == (3, "other's", 9)
    assert world.show("a").job.spec == view.job.spec


def test_a_job_that_others_change_all_the_time_is_a_conflict(world: World) -> None:
    world.submit(job_id="a", cron="0 20 * * *")
    other = World(world.aws, world.clock)
    busy: list[int] = []

    def change(call: Any) -> bool:
        if faults.writes("job")(call) and not busy:
            busy.append(1)
            other.patch("a", name=f"n{world.show('a').job.version}")
            busy.clear()
        return False

    with faults.refusing(change), pytest.raises(ConflictError, match="keeps being changed"):
        world.patch("a", deadline_s=9)
    assert world.show("a").job.spec.deadline_s is None
