"""Progress that a handler reports: shown while it runs, kept when it is over, and free for who reports none."""

from datetime import timedelta

import pytest

from shared.model.run import Outcome, Result, RunStatus
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import START, ManualClock
from tests.support.http import Http
from tests.support.long_runs import STOPPED, LongRun
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

ON_RUN = faults.writes("run#")
LEASES = [50, 100]  # timeouts: of a run whose lease holds to its end, and of one that renews it


def submitted(aws: Aws, clock: ManualClock, timeout_s: int = 50, **more: int) -> World:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", timeout_s=timeout_s, **more)
    return world


def progress(world: World) -> str | None:
    return world.runs("a")[0].progress


@pytest.mark.parametrize("timeout_s", LEASES)
def test_progress_is_shown_from_the_next_heartbeat_on(aws: Aws, clock: ManualClock, timeout_s: int) -> None:
    world = submitted(aws, clock, timeout_s)

    def handler(run: LongRun) -> None:
        seen = []
        for number in range(1, 4):
            run.signals.progress = f'{{"rows":{number}}}'
            seen.append(progress(world))
            run.beat()
        seen.append(progress(world))
        assert seen == [None, '{"rows":1}', '{"rows":2}', '{"rows":3}']

    LongRun(world, handler).make()
    (run,) = world.runs("a")
    assert (run.status, run.progress) == ("succeeded", '{"rows":3}')


@pytest.mark.parametrize("timeout_s", LEASES)
def test_only_what_is_new_is_written_and_with_the_renewal_where_there_is_one(
    aws: Aws, clock: ManualClock, timeout_s: int
) -> None:
    world = submitted(aws, clock, timeout_s)

    def handler(run: LongRun) -> None:
        for text in ("1", "1", "2", "2"):
            run.signals.progress = text
            run.beat(10)

    with faults.logging() as log:
        LongRun(world, handler).make()
    beats = [call for call in log.seen if "run#" in str(call.asked.get("Key"))][1:-1]
    shown = [call.asked.get("ExpressionAttributeValues", {}).get(":progress", {}).get("S") for call in beats]
    assert shown == ["1", None, "2", None]
    renews = timeout_s == 100
    reads = "UpdateItem" if renews else "GetItem"
    assert [call.operation for call in beats] == ["UpdateItem", reads, "UpdateItem", reads]
    leases = [":lease" in call.asked.get("ExpressionAttributeValues", {}) for call in beats]
    assert leases == [renews] * 4


ENDS = {
    "succeeded": (SUCCEED, RunStatus.SUCCEEDED),
    "failed": (failure(), RunStatus.FAILED),
    "dead_lettered": (failure(), RunStatus.DEAD_LETTERED),
    "cancelled": (STOPPED, RunStatus.CANCELLED),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_last_progress_is_written_with_the_end(aws: Aws, clock: ManualClock, end: str) -> None:
    result, status = ENDS[end]
    world = submitted(aws, clock, max_attempts=1 if end == "dead_lettered" else 3)

    def handler(run: LongRun) -> Result:
        run.signals.progress = '"half"'
        run.beat()
        run.signals.progress = '"nearly all"'
        return result

    with faults.logging() as log:
        LongRun(world, handler).make()
    assert len(log.of(ON_RUN)) == 3  # start, heartbeat, end
    (run,) = world.runs("a")
    assert (run.status, run.progress) == (status, '"nearly all"')


@pytest.mark.parametrize("text", [None, "1"], ids=["never", "written by a heartbeat"])
def test_an_end_without_news_is_written_as_ever(aws: Aws, clock: ManualClock, text: str | None) -> None:
    world = submitted(aws, clock)

    def handler(run: LongRun) -> None:
        run.signals.progress = text
        run.beat()

    with faults.logging() as log:
        LongRun(world, handler).make()
    end = log.of(ON_RUN)[-1].asked
    assert end["UpdateExpression"] == (
        "SET #result = :result, #status = :status, #attempt = :attempt, #attempts = :attempts, #ttl = :ttl"
        " REMOVE #lease_expires_at"
    )
    assert ":progress" not in end["ExpressionAttributeValues"]


def test_the_next_attempt_shows_the_last_progress_until_it_has_its_own(aws: Aws, clock: ManualClock) -> None:
    world = submitted(aws, clock, base_s=1)

    def first(run: LongRun) -> Result:
        run.signals.progress = "1"
        return failure()

    def second(run: LongRun) -> Result:
        run.beat()
        assert progress(world) == "1"
        run.signals.progress = "2"
        return SUCCEED

    for handler in (first, second):
        LongRun(world, handler).make()
        clock.advance(2)
    assert progress(world) == "2"


def test_i2_an_attempt_that_lost_its_lease_shows_nothing(aws: Aws, clock: ManualClock) -> None:
    world = submitted(aws, clock)

    def handler(run: LongRun) -> Result:
        clock.advance(1000)
        world.deliver()
        run.signals.progress = '"of the old one"'
        run.beat(0)
        assert run.is_stopped
        return STOPPED

    LongRun(world, handler).make()
    assert progress(world) is None


def test_a_heartbeat_whose_answer_was_lost_is_made_again(aws: Aws, clock: ManualClock) -> None:
    world = submitted(aws, clock, 100)

    def handler(run: LongRun) -> None:
        run.signals.progress = "1"
        with faults.answer_lost(aws, ON_RUN):
            run.beat()
        assert not run.is_stopped

    LongRun(world, handler).make()
    (run,) = world.runs("a")
    assert (run.status, run.progress) == ("succeeded", "1")
    assert run.attempts[0].lease_expires_at == START + timedelta(seconds=20 + 65)


def test_the_runs_document_shows_progress_as_json(
    aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = submitted(aws, clock)
    http = Http(monkeypatch, world.api)

    def handler(run: LongRun) -> None:
        run.signals.progress = '{"rows":30.40}'
        run.beat()
        answer = http.get("/v1/jobs/a")
        assert (answer.document["status"], '"progress":{"rows":30.40}' in answer.text) == ("running", True)

    LongRun(world, handler).make()
    assert '"progress":{"rows":30.40}' in http.get("/v1/jobs/a/runs/2026-11-30T11:58:00Z").text


def test_the_longest_progress_costs_one_write_unit_more_at_most(aws: Aws, clock: ManualClock) -> None:
    """Of who reports it: an item of more than 1 KB."""
    world = submitted(aws, clock)

    def handler(run: LongRun) -> None:
        run.signals.progress = '"' + "é" * 255 + '"'

    LongRun(world, handler).make()
    (run,) = world.items("run#")
    size = sum(len(name) + len(str(value)) for name, value in run.items())
    assert size < 2048
    assert world.runs("a")[0].progress == '"' + "é" * 255 + '"'


def test_a_timeout_keeps_what_was_reported(aws: Aws, clock: ManualClock) -> None:
    world = submitted(aws, clock, max_attempts=1)

    def handler(run: LongRun) -> Result:
        run.signals.progress = "[1,2]"
        return Result(outcome=Outcome.TIMED_OUT, error="did not finish within 50 s")

    LongRun(world, handler).make()
    (run,) = world.runs("a")
    assert (run.status, run.progress, run.attempts[0].outcome) == ("dead_lettered", "[1,2]", "timed_out")
