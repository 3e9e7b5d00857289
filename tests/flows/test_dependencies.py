"""Jobs that depend on others: when a child runs, waits or is skipped, who is woken, and what no job may depend on."""

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.model.call import Call
from shared.model.errors import ConflictError, InputError, TooLargeError
from shared.model.run import Result
from shared.queue import message_of
from shared.store import keys
from tests.support import calls, faults
from tests.support.aws import Aws, messages_waiting
from tests.support.calls import Observer
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

ON_BOTH = pytest.mark.backends("moto", "emulator")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


def called(world: World) -> list[str]:
    return [call.job_id for call, _ in world.target.calls]


def in_s(world: World, seconds: float) -> str:
    return (world.clock.now() + timedelta(seconds=seconds)).isoformat()


class Meanwhile(Observer):
    """Has something done just before the first call that matches."""

    def __init__(self, match: Callable[[Any], bool], work: Callable[[], object]) -> None:
        self.match, self.work, self.is_done = match, work, False

    def answer(self, call: Any) -> None:
        if not self.is_done and self.match(call):
            self.is_done = True
            self.work()


def start_of(world: World, job_id: str) -> datetime:
    return next(moment for call, moment in world.target.calls if call.job_id == job_id)


@ON_BOTH
def test_a_child_runs_as_soon_as_its_parent_has_succeeded(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 100))
    view = world.submit(job_id="child", depends_on=("parent",))
    assert view.job.spec.schedule.run_at == world.clock.now()  # no schedule: as if it were due at once
    world.deliver()
    (run,) = world.runs("child")
    assert (run.status, run.reason, run.attempt) == ("enqueued", "depends_on", 0)
    assert world.show("child").status == "enqueued"
    world.clock.advance(100)
    world.deliver()
    assert called(world) == ["parent", "child"]
    assert world.statuses("child") == ["succeeded"]
    assert start_of(world, "child") == start_of(world, "parent")
    assert world.runs("child")[0].attempt == 1
    assert world.audit().findings == 0


def test_a_child_waits_for_its_own_time_too(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 5))
    world.submit(job_id="child", run_at=in_s(world, 60), depends_on=("parent",))
    world.pass_time(55, step_s=1)
    assert called(world) == ["parent"]
    world.pass_time(10, step_s=1)
    assert start_of(world, "child") - start_of(world, "parent") == timedelta(seconds=55)


def test_a_child_of_a_parent_that_is_over_already_runs_at_once(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 0))
    world.deliver()
    world.submit(job_id="child", depends_on=("parent",))
    world.deliver()
    assert called(world) == ["parent", "child"]
    assert world.items(keys.CHILD_PREFIX) == []  # nobody needs to wake it


def test_all_parents_must_have_succeeded(world: World) -> None:
    for place in range(3):
        world.submit(job_id=f"p{place}", run_at=in_s(world, 10 * place + 10))
    world.submit(job_id="child", depends_on=("p0", "p1", "p2"))
    for seconds, there in ((10, ["p0"]), (10, ["p0", "p1"]), (10, ["p0", "p1", "p2", "child"])):
        world.clock.advance(seconds)
        world.deliver()
        assert called(world) == there


def test_a_retrying_parent_is_waited_for(world: World) -> None:
    world.target.script = lambda call: failure() if call.job_id == "parent" and call.attempt < 3 else SUCCEED
    world.submit(job_id="parent", run_at=in_s(world, 0), base_s=10, factor=1)
    world.submit(job_id="child", depends_on=("parent",))
    world.pass_time(30, step_s=1)
    assert called(world) == ["parent", "parent", "parent", "child"]


@pytest.mark.parametrize(("policy", "status"), [("skip", "skipped"), ("run", "succeeded")])
@pytest.mark.parametrize("how", ["dead_lettered", "cancelled", "skipped", "gone"])
def test_a_parent_that_did_not_succeed(world: World, how: str, policy: str, status: str) -> None:
    world.target.script = lambda call: failure() if call.job_id == "parent" else SUCCEED
    more = {"deadline_s": 1} if how == "skipped" else {}
    world.submit(job_id="parent", run_at=in_s(world, 20), max_attempts=1, **more)
    world.submit(job_id="child", depends_on=("parent",), on_parent_failure=policy)
    world.deliver()
    assert world.statuses("child") == ["enqueued"]
    if how == "cancelled":
        world.cancel("parent")
    elif how == "gone":
        world.aws.dynamodb.delete_item(TableName=world.aws.table, Key=keys.job_key("parent"))
    world.clock.advance(25 if how == "skipped" else 20)
    world.deliver()
    if how != "gone":  # else nobody woke it, and its own message comes
        assert world.statuses("child") == [status]
    world.pass_time(5)
    (run,) = world.runs("child")
    assert (run.status, run.reason) == (status, "parent_failed" if policy == "skip" else None)
    assert world.target.counts()["child"] == (policy == "run")
    if how == "dead_lettered":
        assert world.statuses("parent") == ["dead_lettered"]


def test_a_failed_parent_skips_its_child_and_that_its_own_though_others_are_open(world: World) -> None:
    world.target.script = lambda call: failure() if call.job_id == "bad" else SUCCEED
    world.submit(job_id="bad", run_at=in_s(world, 5), max_attempts=1)
    world.submit(job_id="later", run_at=in_s(world, 100))
    world.submit(job_id="child", depends_on=("later", "bad"))
    world.submit(job_id="grandchild", depends_on=("child",))
    world.submit(job_id="anyway", depends_on=("child",), on_parent_failure="run")
    world.deliver()
    world.clock.advance(5)
    world.deliver()
    assert world.statuses("child") == world.statuses("grandchild") == ["skipped"]
    assert called(world) == ["bad", "anyway"]


def test_cancel_of_a_parent_wakes_its_children_at_once(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 1000))
    world.submit(job_id="child", depends_on=("parent",), on_parent_failure="run")
    world.deliver()
    world.cancel("parent")
    world.deliver()
    assert called(world) == ["child"]


@ON_BOTH
@pytest.mark.parametrize("fails", [False, True])
def test_a_child_that_is_linked_while_its_parent_runs_is_woken_all_the_same(world: World, fails: bool) -> None:
    """The executor has read the parent before anybody depended on it; the mark on its run tells it."""

    def script(call: Call) -> Result:
        if call.job_id == "parent":
            world.submit(job_id="child", depends_on=("parent",))
            world.executor.run(world.receive())  # the child's first look
            assert [run.reason for run in world.runs("child")] == ["depends_on"]
        return failure() if call.job_id == "parent" and fails else SUCCEED

    world.target.script = script
    world.submit(job_id="parent", run_at=in_s(world, 0), max_attempts=1)
    world.deliver()
    assert called(world) == (["parent"] if fails else ["parent", "child"])
    assert world.statuses("child") == ["skipped" if fails else "succeeded"]


def test_ordinary_jobs_read_and_write_nothing_more(world: World) -> None:
    with faults.logging() as log:
        world.submit(job_id="a", run_at=in_s(world, 0))
        world.deliver()
    assert [call.operation for call in log.seen if call.service == "dynamodb"] == [
        *("PutItem", "PutItem", "DeleteItem"),  # page, job, page
        *("UpdateItem", "GetItem", "UpdateItem"),  # start, job, end
    ]


@ON_BOTH
def test_a_woken_message_that_comes_too_soon_is_dropped_and_the_child_still_runs(world: World) -> None:
    world.submit(job_id="p0", run_at=in_s(world, 10))
    world.submit(job_id="p1", run_at=in_s(world, 40))
    world.submit(job_id="child", depends_on=("p0", "p1"))
    world.pass_time(20, step_s=1)
    waiting = messages_waiting(world.aws)
    assert waiting == {"visible": 0, "delayed": 1, "flight": 1}  # p1's and the child's own
    world.pass_time(25, step_s=1)
    assert called(world) == ["p0", "p1", "child"]


def test_a_parent_that_is_given_another_time_as_it_is_looked_at_has_not_failed(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 5))
    world.submit(job_id="child", depends_on=("parent",), run_at=in_s(world, 5))
    world.clock.advance(6)
    received = {message_of(one.body).job_id: one for one in world.receive()}

    def parent_runs_later() -> None:
        world.patch("parent", run_at=in_s(world, 60))
        world.acknowledge(world.new_executor().run([received["parent"]]))
        assert world.statuses("parent") == ["skipped"]

    reads_its_run = Meanwhile(
        lambda call: call.operation == "BatchGetItem" and "run#" in str(call.params), parent_runs_later
    )
    with calls.observing(reads_its_run):
        (handled,) = world.executor.run([received["child"]])
    assert handled.ended.outcome == "waiting"
    world.pass_time(90, step_s=5)
    assert called(world) == ["parent", "child"]


@pytest.mark.backends("memory")  # 2,000 seconds, one by one
def test_the_wait_of_a_child_grows_and_stays_below_its_limit(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 5000))
    world.submit(job_id="child", depends_on=("parent",))
    looks: list[float] = []
    for _ in range(2000):
        if batch := world.receive():
            world.acknowledge(world.executor.run(batch))
            looks.append(world.clock.now().timestamp())
        world.clock.advance(1)
    gaps = [later - earlier for earlier, later in itertools.pairwise(looks)]
    assert gaps[0] <= 2
    assert max(gaps) <= 301
    assert len(looks) < 25


def test_who_dies_between_start_and_gate_looks_again(world: World) -> None:
    """The next attempt of the round is number 2, and its parents are not done (I1)."""
    world.submit(job_id="parent", run_at=in_s(world, 200))
    world.submit(job_id="child", depends_on=("parent",))
    with faults.crash(before="dynamodb:BatchGetItem"):
        world.deliver()
    world.pass_time(190, step_s=5)
    assert called(world) == []
    (run,) = world.runs("child")
    assert (run.status, run.attempts[0].outcome) == ("enqueued", "lost")
    world.pass_time(30, step_s=5)
    assert called(world) == ["parent", "child"]


def test_once_its_handler_was_called_a_child_does_not_ask_again(world: World) -> None:
    world.target.script = lambda call: failure() if call.attempt == 1 and call.job_id == "child" else SUCCEED
    world.submit(job_id="parent", run_at=in_s(world, 0))
    world.submit(job_id="child", depends_on=("parent",))
    world.deliver()
    world.aws.dynamodb.delete_item(TableName=world.aws.table, Key=keys.job_key("parent"))
    world.pass_time(30)
    assert world.statuses("child") == ["succeeded"]


def test_a_trigger_waits_for_nobody(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 1000))
    world.submit(job_id="child", run_at=in_s(world, 500), depends_on=("parent",))
    world.trigger("child")
    world.clock.advance(1)
    world.deliver()
    assert called(world) == ["child"]


def test_a_parent_that_cannot_be_read_is_waited_for(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 0))
    world.deliver()
    world.submit(job_id="child", depends_on=("parent",))
    item = {**keys.job_key("parent"), "status": {"S": "what?"}}
    world.aws.dynamodb.put_item(TableName=world.aws.table, Item=item)
    world.deliver()
    assert [run.reason for run in world.runs("child")] == ["depends_on"]


def test_a_parent_that_was_made_recurring_counts_by_its_status(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 100))
    world.submit(job_id="child", depends_on=("parent",))
    world.patch("parent", every="60s", max_runs=2)
    world.pass_time(100, step_s=5)
    assert called(world) == ["parent"]
    world.pass_time(400, step_s=5)
    assert called(world) == ["parent", "parent", "child"]


def refused(world: World, job_id: str = "child", kind: type[InputError] = InputError, **spec: object) -> str:
    before = world.items()
    with pytest.raises(kind) as caught:
        world.submit(job_id=job_id, **spec)
    assert world.items() == before
    return f"{caught.value.field}: {caught.value.message}"


def test_parents_that_a_job_cannot_have(world: World) -> None:
    world.submit(job_id="once", run_at=in_s(world, 100))
    world.submit(job_id="often", every="60s")
    assert refused(world, depends_on=("once", "nobody")) == "depends_on[1]: there is no job 'nobody'"
    assert refused(world, depends_on=("often",)).startswith("depends_on[0]: job 'often' is recurring")
    assert refused(world, depends_on=("once", "child")) == "depends_on[1]: 'child' is the job itself"
    assert refused(world, depends_on=("once", "once")) == "depends_on[1]: names 'once' a second time"
    assert refused(world, every="60s", depends_on=("once",)).startswith("every: cannot go with depends_on")
    many = tuple(f"p{place}" for place in range(21))
    assert refused(world, depends_on=many) == "depends_on: must name at most 20 jobs, not 21"
    assert "may be gone at" in refused(world, run_at=in_s(world, 86400 * 31), depends_on=("once",))
    world.submit(job_id="child", run_at=in_s(world, 86400 * 30), depends_on=("once",))


def test_a_circle_by_an_old_id_is_refused(world: World) -> None:
    """`a` is over and submitted anew, on top of what waits for it."""
    world.submit(job_id="a", run_at=in_s(world, 0))
    world.deliver()
    world.submit(job_id="b", run_at=in_s(world, 500), depends_on=("a",))
    world.submit(job_id="c", run_at=in_s(world, 500), depends_on=("b",))
    world.submit(job_id="x", run_at=in_s(world, 500))
    assert refused(world, "a", depends_on=("x", "c")) == "depends_on[1]: 'c' waits for 'a' in its turn"
    world.pass_time(510)
    world.submit(job_id="a", depends_on=("c",))  # c is over by now
    world.deliver()
    assert called(world)[-1] == "a"


@ON_BOTH
def test_two_old_ids_submitted_at_once_on_each_other(world: World) -> None:
    """Each finds the other over; whoever is written last sees the circle and takes itself back."""
    for job_id in ("a", "b"):
        world.submit(job_id=job_id, run_at=in_s(world, 0))
    world.deliver()
    world.clock.advance(10)

    between = Meanwhile(
        faults.writes(keys.JOB), lambda: world.submit(job_id="b", run_at=in_s(world, 5), depends_on=("a",))
    )
    with calls.observing(between), pytest.raises(ConflictError, match="for itself"):
        world.submit(job_id="a", run_at=in_s(world, 5), depends_on=("b",))
    assert world.show("a").status == "cancelled"
    world.pass_time(300)
    assert world.statuses("b")[-1] == "skipped"


def test_more_ancestors_than_are_read_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.flows.dependencies.MAX_ANCESTORS", 5)
    world.submit(job_id="j0", run_at=in_s(world, 1000))
    for place in range(1, 6):
        world.submit(job_id=f"j{place}", run_at=in_s(world, 1000), depends_on=(f"j{place - 1}",))
    assert refused(world, "j6", TooLargeError, depends_on=("j5",)).startswith("depends_on: leads up to more than 5")
    world.cancel("j0")  # those that are over do not count
    world.submit(job_id="j6", run_at=in_s(world, 1000), depends_on=("j5",))


@pytest.mark.parametrize("point", ["BatchWriteItem", "BatchExecuteStatement"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_submit_that_dies_half_way_leaves_only_links(world: World, point: str, when: str) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 30))
    with faults.crash(**{when: f"dynamodb:{point}"}):
        world.submit(job_id="child", depends_on=("parent",))
    world.pass_time(60)
    assert called(world) == ["parent"]
    assert world.audit().findings == 0
    world.submit(job_id="child", depends_on=("parent",))
    world.deliver()
    assert called(world) == ["parent", "child"]


def test_many_children_are_woken_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.flows.families.WOKEN_A_PAGE", 3)
    monkeypatch.setattr("shared.flows.families.WOKEN_PAGES", 2)
    world.submit(job_id="parent", run_at=in_s(world, 100))
    for place in range(8):
        world.submit(job_id=f"c{place}", depends_on=("parent",))
    world.deliver()
    world.clock.advance(100)
    first = world.executor.run(world.receive())
    world.acknowledge(first)
    assert messages_waiting(world.aws)["visible"] >= 6
    world.pass_time(400)
    assert sorted(called(world)) == sorted(["parent", *(f"c{place}" for place in range(8))])


def test_who_cannot_be_woken_holds_up_nobody(world: World) -> None:
    world.submit(job_id="parent", run_at=in_s(world, 20))
    world.submit(job_id="child", depends_on=("parent",))
    world.pass_time(19, step_s=1)
    with faults.refusing(lambda call: call.operation == "Query"):
        world.pass_time(2, step_s=1)
    assert world.statuses("parent") == ["succeeded"]
    world.pass_time(40, step_s=1)
    assert world.statuses("child") == ["succeeded"]
