"""While jobs come, change and go: each that is there and fits throughout is in exactly one page of a list.

Random stories on the table in memory, held against what showing every job would tell. Reads are short here, so that
pages, reads and the ends of parts fall everywhere.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.submit.cursors import Cursors
from shared.flows import walks
from shared.model.errors import ConflictError, JobNotFoundError
from shared.model.job import JobStatus
from shared.model.run import RunStatus
from shared.rules.listing import ListKind, ListQuery, is_in_window, is_of_group_and_tags, plan_list
from shared.store import keys
from tests.support import memory_backend
from tests.support.clocks import START, ManualClock
from tests.support.world import SUCCEED, World, failure

FROM, TO = START + timedelta(minutes=10), START + timedelta(minutes=40)
QUERIES = [
    ListQuery(),
    ListQuery(tags=("t",)),
    ListQuery(status="scheduled"),
    ListQuery(status="cancelled"),
    ListQuery(status="succeeded"),
    ListQuery(due_from=FROM),
    ListQuery(group="g"),
    ListQuery(group="g", tags=("t:1",)),
    ListQuery(group="g", status="scheduled", due_from=FROM, due_to=TO),
    ListQuery(status="dead_lettered"),
    ListQuery(status="dead_lettered", group="g"),
    ListQuery(due_from=FROM, due_to=TO),
    ListQuery(due_from=FROM, due_to=TO, tags=("t",)),
]


@pytest.fixture(autouse=True)
def _short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "SCAN_READS", (2, 3, 4, 4, 4, 4))
    monkeypatch.setattr(walks, "INDEX_READ", 3)
    monkeypatch.setattr(keys, "DEAD_PARTS", 2)


class Story:
    """A deployment whose jobs come and go."""

    def __init__(self, shards: int) -> None:
        self.clock = ManualClock()
        self.world = World(memory_backend.create(self.clock.now), self.clock, shards=shards)
        self.made = 0

    def job_ids(self) -> list[str]:
        return [keys.job_id_of(item[keys.PK]["S"]) for item in self.world.items("job") if item[keys.SK]["S"] == "job"]

    def submit(self, draw: Callable[[Any], Any]) -> None:
        self.made += 1
        when: dict[str, Any] = draw(
            st.sampled_from(
                [
                    {"every": "7m"},
                    {"every": "1h"},
                    {"every": "1s", "max_runs": 2},
                    {"every": "1s", "max_runs": 9},
                    {"run_at": "2026-11-30T11:58:00Z"},
                    {"run_at": "2026-11-30T12:10:00Z"},
                    {"run_at": "2026-11-30T12:20:00Z"},
                    {"run_at": "2026-11-30T12:20:30Z"},
                    {"run_at": "2026-11-30T12:37:59.999Z"},
                    {"run_at": "2026-11-30T13:20:00Z"},
                ]
            )
        )
        tags = draw(st.sampled_from([{}, {"t": "1"}, {"t": "2"}]))
        # Names in no order, so that a new job may stand anywhere.
        job_id = f"{draw(st.integers(0, 99)):02}-{self.made}"
        group = draw(st.sampled_from(["g", "g", "h", None]))
        self.world.submit(job_id=job_id, group=group, tags=tags, max_attempts=1, **when)

    def populate(self, draw: Callable[[Any], Any]) -> None:
        """Some jobs, of which some have run, well or not."""
        for _ in range(draw(st.integers(8, 25))):
            self.submit(draw)
        failing = draw(st.integers(0, 3))
        self.world.target.script = lambda call: failure() if int(call.job_id[:2]) % 3 < failing else SUCCEED
        self.clock.advance(draw(st.sampled_from([0, 5])))
        self.world.deliver()
        for _ in range(draw(st.integers(0, 5))):
            self.change(draw)

    def change(self, draw: Callable[[Any], Any]) -> None:
        """One thing that can happen beside a list."""
        kind = draw(st.sampled_from(["submit", "submit", "cancel", "delete", "deliver", "fail", "redrive", "time"]))
        there = self.job_ids()
        if kind == "submit" or not there:
            self.submit(draw)
            return
        job_id = draw(st.sampled_from(there))
        if kind == "delete":  # as its TTL would, with all that is its own
            table = self.world.aws.dynamodb
            for item in self.world.items():
                if item[keys.PK]["S"] == keys.job_pk(job_id):
                    table.delete_item(TableName=self.world.aws.table, Key={k: item[k] for k in (keys.PK, keys.SK)})
        elif kind == "time":
            self.clock.advance(draw(st.sampled_from([0.5, 30, 200])))
            self.world.tick()
        elif kind in ("deliver", "fail"):
            self.world.target.script = lambda call: failure() if kind == "fail" else SUCCEED
            self.world.deliver()
        else:
            now = self.clock.now()
            try:
                if kind == "cancel":
                    self.world.api.control.cancel(job_id, now)
                else:
                    self.world.api.again.redrive_all(job_id, now)
            except (ConflictError, JobNotFoundError):
                return

    def fitting(self, query: ListQuery) -> set[str]:
        """The jobs that fit now, each judged by all that is shown of it."""
        return {job_id for job_id in self.job_ids() if self._fits(query, job_id)}

    def _fits(self, query: ListQuery, job_id: str) -> bool:
        shown = self.world.show(job_id)
        if not (is_of_group_and_tags(query, shown.job.spec) and is_in_window(query, shown.next_run_at)):
            return False
        if query.status == "dead_lettered":
            return any(run.status is RunStatus.DEAD_LETTERED for run in self.world.runs(job_id))
        if plan_list(query).kind is ListKind.DUE and not (
            shown.job.status is JobStatus.SCHEDULED and is_in_window(query, shown.job.due_at)
        ):
            return False  # what is claimed ahead is not promised there
        return query.status in (None, shown.status)

    def due_at(self, job_id: str) -> datetime | None:
        return self.world.show(job_id).job.due_at


def pages(story: Story, query: ListQuery, limits: Iterator[int]) -> Iterator[list[str]]:
    plan = plan_list(query)
    cursors = Cursors(story.world.api.cursor_secret.get, [plan.kind, *query.canonical])
    cursor: str | None = None
    while True:
        page = story.world.api.search.page(query, plan, cursors.open(cursor), next(limits), story.clock.now())
        yield [one.job.job_id for one in page.jobs]
        cursor = cursors.seal(page.position)
        if cursor is None:
            return


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: "+".join(map(str, filter(None, query.canonical))))
@given(data=st.data(), shards=st.sampled_from([1, 3]))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_each_job_that_fits_throughout_is_listed_once(data: st.DataObject, query: ListQuery, shards: int) -> None:
    story = Story(shards)
    story.populate(data.draw)
    limits = iter(lambda: data.draw(st.integers(1, 5)), 0)
    throughout = ever = story.fitting(query)
    seen: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for number, page in enumerate(pages(story, query, limits)):
        assert number < 400
        now = story.fitting(query)
        assert set(page) <= now  # nothing has happened since it was read
        seen.update(page)
        for _ in range(data.draw(st.integers(0, 3)) if number < 30 else 0):
            before = {job_id: story.due_at(job_id) for job_id in story.job_ids()}
            story.change(data.draw)
            moved.update(j for j in story.job_ids() if j in before and before[j] != story.due_at(j))
            fitting = story.fitting(query)
            throughout, ever = throughout & fitting, ever | fitting
    assert set(seen) <= ever
    assert throughout <= set(seen)
    if plan_list(query).kind is ListKind.DUE:
        assert all(count <= 1 + moved[job_id] for job_id, count in seen.items())
    else:
        assert all(count == 1 for count in seen.values())
