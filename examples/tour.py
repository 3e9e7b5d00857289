"""A tour of what can be said about a job, through HTTP on a running Duetime. It prints what it did and what it saw.

    make up                                   # in another terminal, or: .venv/bin/duetime up --detach
    .venv/bin/python -m examples.tour         # all stops; or name some: … pause trigger

`--url` or DUETIME_URL names another Duetime; `--list` names the stops. The stops run side by side, each on jobs of its
own, and are told in order; where one sees something else than it should, it says so, and the exit code is 1.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from duetime.client import DEFAULT_URL, ApiError, Client

STOPS: dict[str, Callable[["Stop"], None]] = {}
SIDE_BY_SIDE = 6
ASKING = timedelta(seconds=2)  # the most between a start, as the history has it, and the place or the parents asked for
ECHO = {"kind": "python", "handler": "demo.echo"}
SLEEP = {"kind": "python", "handler": "demo.sleep"}
FAIL = {"kind": "python", "handler": "demo.fail"}
STUBBORN = {"kind": "python", "handler": "demo.stubborn"}

Document = dict[str, Any]


class UnexpectedError(Exception):
    """The tour saw something else than it should have."""


class Stop:
    """One stop of the tour: a client, names that nobody else uses, and what there is to tell."""

    def __init__(self, client: Client, name: str, tour: str) -> None:
        self.client = client
        self.name = name
        self.prefix = f"tour-{tour}-{name.replace('_', '-')}"
        self.told: list[str] = []

    def id(self, part: str = "job") -> str:
        return f"{self.prefix}-{part}"

    def say(self, text: str) -> None:
        self.told.append(text)

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Document:
        """One call of the API; told as it is."""
        text = None if body is None else json.dumps(body)
        answer = json.loads(self.client.call(method, path, text, headers).text)
        self.say(f"{method} {path}" + (f"  {_short(text)}" if text else ""))
        return answer if isinstance(answer, dict) else {}

    def refused(self, method: str, path: str, body: object = None, **headers: str) -> Document:
        """One call that the API must refuse; its status and its problem document."""
        text = None if body is None else json.dumps(body)
        self.say(f"{method} {path}" + (f"  {_short(text)}" if text else ""))
        try:
            self.client.call(method, path, text, headers)
        except ApiError as error:
            self.say(f"  → {error.status} {error.detail}")
            return {**error.problem, "status": error.status}
        raise UnexpectedError(f"{method} {path} should have been refused")

    def submit(self, part: str = "job", target: Document | None = None, **fields: object) -> str:
        """Submit a job of this stop; its id."""
        job_id = self.id(part)
        body = {"job_id": job_id, "target": target or ECHO, **fields}
        job = self.call("POST", "/v1/jobs", body)
        self.say(f"  → {job['status']}, next run {job['next_run_at']}")
        return job_id

    def job(self, job_id: str) -> Document:
        return dict(json.loads(self.client.get(job_id).text))

    def wait(self, what: str, found: Callable[[], Any], within_s: float = 60) -> Any:
        """The first true value of `found`."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if value := found():
                return value
            time.sleep(0.4)
        raise UnexpectedError(f"not within {within_s:g} s: {what}")

    def wait_for(self, job_id: str, *statuses: str, within_s: float = 60) -> Document:
        """The job once it shows one of `statuses`."""

        def arrived() -> Document | None:
            job = self.job(job_id)
            return job if job["status"] in statuses else None

        try:
            job: Document = self.wait(f"{job_id} is {' or '.join(statuses)}", arrived, within_s)
        except UnexpectedError as error:
            raise UnexpectedError(f"{error}; it is {self.job(job_id)}") from None
        self.say(f"  GET /v1/jobs/{job_id} → {job['status']}; {_runs(job)}")
        return job

    def pages(self, path: str) -> list[str]:
        """The ids of all pages of a list."""
        found: list[str] = []
        cursor, count = None, 0
        while cursor is not None or count == 0:
            page = json.loads(self.client.call("GET", path + (f"&cursor={cursor}" if cursor else "")).text)
            found += [job["job_id"] for job in page["jobs"]]
            cursor, count = page["cursor"], count + 1
        self.say(f"GET {path}  → {len(found)} jobs on {count} pages")
        return found

    def expect(self, what: str, is_so: bool) -> None:
        self.say(f"  {'✓' if is_so else '✗'} {what}")
        if not is_so:
            raise UnexpectedError(what)


def stop(function: Callable[[Stop], None]) -> Callable[[Stop], None]:
    """A stop of the tour, in the order of this file."""
    STOPS[function.__name__] = function
    return function


@stop
def pause_and_resume(at: Stop) -> None:
    """Pause a recurring job, resume it: nothing ran in between, and one late run makes up for what was missed."""
    job_id = at.submit(every="1s", catch_up="latest")
    at.wait("two runs", lambda: len(at.job(job_id)["runs"]) >= 2)
    paused = at.call("POST", f"/v1/jobs/{job_id}:pause")
    at.expect("the job is paused and has no next run", (paused["status"], paused["next_run_at"]) == ("paused", None))
    time.sleep(2)
    before = _called(at.job(job_id))
    time.sleep(4)
    at.expect("no run starts while it is paused", _called(at.job(job_id)) == before)
    again = at.call("POST", f"/v1/jobs/{job_id}:pause")
    at.expect("paused twice gives the same answer", again["version"] == paused["version"])
    resumed = at.call("POST", f"/v1/jobs/{job_id}:resume")
    at.expect("it goes on", resumed["status"] == "scheduled")
    at.wait("runs after the resume", lambda: _called(at.job(job_id)) > before)
    at.call("POST", f"/v1/jobs/{job_id}:cancel")


@stop
def trigger(at: Stop) -> None:
    """Run a job now, beside its schedule, even a paused one."""
    job_id = at.submit(cron="0 3 1 1 *", payload={"from": "the schedule"})
    next_run = at.job(job_id)["next_run_at"]
    run = at.call("POST", f"/v1/jobs/{job_id}:trigger")
    at.say(f"  → 202 {run['status']} for {run['scheduled_for']}")
    done = at.wait("the run", lambda: _over(at.job(job_id)))
    at.expect("it ran at once", done["runs"][0]["status"] == "succeeded")
    at.expect("the schedule is as it was", done["next_run_at"] == next_run)
    at.call("POST", f"/v1/jobs/{job_id}:cancel")
    problem = at.refused("POST", f"/v1/jobs/{job_id}:trigger")
    at.expect("a cancelled job cannot be triggered", problem["status"] == 409)


@stop
def change(at: Stop) -> None:
    """Change a job: a new time voids the old one, a new payload holds from the next run, If-Match guards it."""
    job_id = at.submit(run_at=_in(3600), payload={"n": 1}, tags={"team": "billing"})
    changed = at.call("PATCH", f"/v1/jobs/{job_id}", {"payload": {"n": 2}}, **{"If-Match": '"1"'})
    at.expect("version 2, the same time", (changed["version"], changed["payload"]) == (2, {"n": 2}))
    problem = at.refused("PATCH", f"/v1/jobs/{job_id}", {"name": "late"}, **{"If-Match": '"1"'})
    at.expect("an old version is refused with 412", problem["status"] == 412)
    problem = at.refused("PATCH", f"/v1/jobs/{job_id}", {"cron": "61 * * * *"})
    at.expect("a bad schedule is refused by its field", problem["errors"][0]["field"] == "cron")
    at.call("PATCH", f"/v1/jobs/{job_id}", {"run_at": _in(1)})
    done = at.wait_for(job_id, "succeeded")
    at.expect("it ran at the new time with the new payload", done["runs"][0]["result"] == {"n": 2})
    at.expect("what was left out has stayed", done["tags"] == {"team": "billing"})


@stop
def redrive(at: Stop) -> None:
    """A dead-lettered run again, its history kept; then all of a job's at once."""
    job_id = at.submit(
        target=FAIL, run_at=_in(0), retry={"max_attempts": 2, "base_s": 0}, payload={"message": "no luck"}
    )
    dead = at.wait_for(job_id, "dead_lettered")
    run = dead["runs"][0]
    at.expect("two attempts, then the dead-letter queue", _outcomes(run) == ["failed", "failed"])
    again = at.call("POST", f"/v1/jobs/{job_id}/runs/{run['scheduled_for']}:redrive")
    at.say(f"  → 202 {again['status']}")
    dead = at.wait(
        "two more attempts",
        lambda: _if(
            at.job(job_id), lambda job: len(job["runs"][0]["attempts"]) == 4 and job["status"] == "dead_lettered"
        ),
    )
    at.expect("attempts 1 to 4 in its history", [one["attempt"] for one in dead["runs"][0]["attempts"]] == [1, 2, 3, 4])
    every = at.call("POST", f"/v1/jobs/{job_id}:redrive")
    at.expect("all of the job's: one", (len(every["redriven"]), every["more"]) == (1, False))
    problem = at.refused("POST", f"/v1/jobs/{job_id}/runs/{_in(9999)}:redrive")
    at.expect("a run that is not there: 404", problem["status"] == 404)


@stop
def catch_up_and_bounds(at: Stop) -> None:
    """start_at, end_at, max_runs, jitter_s and H: exact bounds; a missed deadline is a run with a reason."""
    job_id = at.submit("three", every="1s", max_runs=3)
    done = at.wait_for(job_id, "completed")
    at.expect("max_runs: exactly three runs, though one claim took them all", len(done["runs"]) == 3)
    preview = at.call("POST", "/v1/preview", {"cron": "H H * * *", "job_id": at.id("h"), "count": 2, "jitter_s": 60})
    times = [one["utc"] for one in preview["times"]]
    again = at.call("POST", "/v1/preview", {"cron": "H H * * *", "job_id": at.id("h"), "count": 2, "jitter_s": 60})
    at.expect(f"H and jitter are stable for a job: {times}", times == [one["utc"] for one in again["times"]])
    expired = at.submit("expired", run_at=_in(-30), deadline_s=10)
    skipped = at.wait_for(expired, "skipped")
    at.expect("past its deadline: skipped, with the reason", skipped["runs"][0]["reason"] == "expired")
    gap = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "after": "2027-03-27T12:00:00Z", "count": 1}
    for dst_gap in ("run", "skip"):
        first = at.call("POST", "/v1/preview", {**gap, "dst_gap": dst_gap})["times"][0]
        at.say(f"  dst_gap {dst_gap}: {first['local']} {first['note'] or ''}")


@stop
def overlap(at: Stop) -> None:
    """What happens when a run is due while another is going on: skip, queue one, or replace it."""
    for policy in ("skip", "queue", "replace"):
        job_id = at.submit(policy, target=SLEEP, every="2s", max_runs=4, overlap=policy, payload={"s": 5}, timeout_s=60)
        limit = 150 if policy == "replace" else 60
        done = at.wait(f"the runs of {policy}", lambda job_id=job_id: _all_over(at.job(job_id), 4), limit)
        runs = done["runs"][::-1]
        at.say(
            f"  {policy}: "
            + ", ".join(f"{run['status']}" + (f" ({run['reason']})" if run["reason"] else "") for run in runs)
        )
        at.expect(f"{policy}: never two at once", _most_at_once(runs) == 1)
        skipped = [run for run in runs if run["status"] == "skipped"]
        at.expect(
            f"{policy}: what was skipped says so, and is counted",
            done["overlap_skipped"] == len(skipped) and all(run["reason"] == "overlap" for run in skipped),
        )


@stop
def cancel_a_running_run(at: Stop) -> None:
    """A handler sees the cancel at its next heartbeat; one that ignores it is stopped at the one after."""
    kind = at.submit("kind", target=SLEEP, run_at=_in(0), payload={"s": 90}, timeout_s=100)
    stubborn = at.submit("stubborn", target=STUBBORN, run_at=_in(0), payload={"s": 90}, timeout_s=100)
    for job_id in (kind, stubborn):
        at.wait_for(job_id, "running")
    shown = at.wait("progress", lambda: _if(at.job(kind), lambda job: job["runs"][0]["progress"] is not None), 60)
    at.say(f"  progress of the run that is going on: {shown['runs'][0]['progress']}")
    for job_id in (kind, stubborn):
        answer = at.call("POST", f"/v1/jobs/{job_id}:cancel")
        at.expect("the answer names the run that is going on", len(answer["running"]) == 1)
    for job_id in (kind, stubborn):
        done = at.wait("the end of the run", lambda job_id=job_id: _over(at.job(job_id)), 90)
        run = done["runs"][0]
        at.expect(
            f"{job_id}: cancelled in one attempt", (run["status"], _outcomes(run)) == ("cancelled", ["cancelled"])
        )


@stop
def retry_policy(at: Stop) -> None:
    """How often and after which errors; a timeout over the executor's limit is refused."""
    giving_up = at.submit(
        "give-up", target=FAIL, run_at=_in(0), retry={"max_attempts": 5, "base_s": 0, "give_up_on": ["RuntimeError"]}
    )
    dead = at.wait_for(giving_up, "dead_lettered")
    at.expect("give_up_on: one attempt", [one["error_kind"] for one in dead["runs"][0]["attempts"]] == ["RuntimeError"])
    once_more = at.submit(
        "retry-on", target=FAIL, run_at=_in(0), retry={"max_attempts": 2, "base_s": 0, "retry_on": ["RuntimeError"]}
    )
    dead = at.wait_for(once_more, "dead_lettered")
    at.expect("retry_on: both attempts", len(dead["runs"][0]["attempts"]) == 2)
    problem = at.refused("POST", "/v1/jobs", {"target": ECHO, "run_at": _in(60), "timeout_s": 100_000})
    at.expect("timeout_s over the executor's limit: 400 by its field", problem["errors"][0]["field"] == "timeout_s")


@stop
def priority(at: Stop) -> None:
    """A flood of low jobs does not delay a high one."""
    due = _in(8)
    low = [
        {"job_id": at.id(f"low-{n}"), "target": SLEEP, "run_at": due, "priority": "low", "payload": {"s": 1}}
        for n in range(60)
    ]
    at.call("POST", "/v1/jobs:batch", {"jobs": low})
    high = at.submit("high", run_at=due, priority="high")
    run = at.wait_for(high, "succeeded")["runs"][0]
    runs = at.wait("the flood's end", lambda: _runs_of([at.job(str(one["job_id"])) for one in low]), 240)
    later = sum(_began(other) > _began(run) for other in runs)
    at.say(f"  the high job started {_late_s(run):.2f} s after its time, before {later} of the 60 low ones")
    at.expect("high did not wait for the flood", later > 0)


@stop
def group_limit(at: Stop) -> None:
    """At most two runs of a group at a time, however many are due."""
    group = at.id("tenant")
    limit = at.call("PUT", f"/v1/groups/{group}", {"max_running": 2})
    at.expect("the limit is set", limit["max_running"] == 2)
    due = _in(2)
    jobs = [at.submit(f"{n}", target=SLEEP, run_at=due, group=group, payload={"s": 5}) for n in range(6)]
    done = [at.wait_for(job_id, "succeeded", within_s=120) for job_id in jobs]
    runs = [job["runs"][0] for job in done]
    at.expect(f"never more than two at once (most: {_most_at_once(runs)})", _most_at_once(runs) <= 2)
    at.say(f"  GET /v1/groups/{group} → {at.call('GET', f'/v1/groups/{group}')}")
    problem = at.refused("PUT", f"/v1/groups/{group}", {"max_running": 0})
    at.expect("0 is refused by its field", problem["errors"][0]["field"] == "max_running")


@stop
def depends_on(at: Stop) -> None:
    """A small DAG in one call: load after both extracts, report after load; a failed parent skips its child."""
    ids = {name: at.id(name) for name in ("orders", "customers", "load", "report")}
    jobs = [
        {"job_id": ids["report"], "target": ECHO, "depends_on": [ids["load"]]},
        {"job_id": ids["load"], "target": ECHO, "depends_on": [ids["orders"], ids["customers"]]},
        {"job_id": ids["orders"], "target": SLEEP, "run_at": _in(1), "payload": {"s": 2}},
        {"job_id": ids["customers"], "target": ECHO, "run_at": _in(1)},
    ]
    results = at.call("POST", "/v1/jobs:batch", {"jobs": jobs})["results"]
    at.expect("all four were taken, in any order", [one["status"] for one in results] == [201] * 4)
    done = {name: at.wait_for(job_id, "succeeded") for name, job_id in ids.items()}
    ends = [_ended(done[name]["runs"][0]) for name in ("orders", "customers")]
    at.expect("load began after both", _began(done["load"]["runs"][0]) + ASKING >= max(ends))
    at.expect("report began after load", _began(done["report"]["runs"][0]) + ASKING >= _ended(done["load"]["runs"][0]))
    bad = at.submit("bad", target=FAIL, run_at=_in(0), retry={"max_attempts": 1})
    child = at.submit("child", depends_on=[bad])
    anyway = at.submit("anyway", depends_on=[bad], on_parent_failure="run")
    skipped = at.wait_for(child, "skipped")
    at.expect("a dead-lettered parent: skipped, with the reason", skipped["runs"][0]["reason"] == "parent_failed")
    at.wait_for(anyway, "succeeded")
    problem = at.refused("POST", "/v1/jobs", {"target": ECHO, "depends_on": [at.id("nobody")]})
    at.expect("an unknown parent is refused by its field", problem["errors"][0]["field"] == "depends_on[0]")
    ring = [
        {"job_id": at.id("a"), "target": ECHO, "depends_on": [at.id("b")]},
        {"job_id": at.id("b"), "target": ECHO, "depends_on": [at.id("a")]},
    ]
    results = at.call("POST", "/v1/jobs:batch", {"jobs": ring})["results"]
    at.expect("a ring is refused", all(one["status"] >= 400 for one in results))


@stop
def bulk_and_lists(at: Stop) -> None:
    """A hundred jobs in one call, each judged alone; found again by group, tag, status and time, page by page."""
    group = at.id("bulk")
    jobs = [
        {"job_id": at.id(f"{n}"), "target": ECHO, "run_at": _in(7200 + n), "group": group, "tags": {"half": str(n % 2)}}
        for n in range(99)
    ]
    results = at.call("POST", "/v1/jobs:batch", {"jobs": [*jobs, {"target": ECHO, "run_at": "soon"}]})["results"]
    at.expect("99 taken, one refused by its field", [one["status"] for one in results] == [201] * 99 + [400])
    at.say(f"  → {results[-1]['problem']['detail']}")
    found = at.pages(f"/v1/jobs?group={group}&limit=20")
    at.expect("by group: each exactly once", sorted(found) == sorted(job["job_id"] for job in jobs))
    found = at.pages(f"/v1/jobs?group={group}&tag=half:1&limit=20")
    at.expect("by group and tag: 49", len(found) == 49)
    window = f"from={_in(7190)}&to={_in(7320)}"
    found = at.pages(f"/v1/jobs?status=scheduled&{window}&limit=50")
    at.expect("by time: all of them", {job["job_id"] for job in jobs} <= set(found))
    first = at.call("GET", f"/v1/jobs?group={group}&limit=20")
    problem = at.refused("GET", f"/v1/jobs?group={at.id('other')}&limit=20&cursor={first['cursor']}")
    at.expect("a cursor holds for its own query only", problem["errors"][0]["field"] == "cursor")
    for job in jobs:
        at.client.cancel(str(job["job_id"]))


@stop
def idempotent_submit(at: Stop) -> None:
    """The same key and body: the same answer, also for two calls at once. Another body: 422."""
    body = {"target": ECHO, "run_at": _in(3600), "payload": {"a": 1}}
    key = {"Idempotency-Key": at.id("key")}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: at.call("POST", "/v1/jobs", body, **key), range(4)))
    at.expect("four calls, one job", len({one["job_id"] for one in answers}) == 1)
    problem = at.refused("POST", "/v1/jobs", {**body, "payload": {"a": 2}}, **key)
    at.expect("another body: 422", problem["status"] == 422)
    at.call("POST", f"/v1/jobs/{answers[0]['job_id']}:cancel")


def _in(seconds: float) -> str:
    moment = (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)
    return moment.isoformat().replace("+00:00", "Z")


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:150]} … ({len(text):,} characters)"


def _if(job: Document, holds: Callable[[Document], bool]) -> Document | None:
    return job if job["runs"] and holds(job) else None


def _over(job: Document) -> Document | None:
    return _if(job, lambda job: _is_over(job["runs"][0]))


def _all_over(job: Document, count: int) -> Document | None:
    return _if(job, lambda job: len(job["runs"]) == count and all(_is_over(run) for run in job["runs"]))


def _runs_of(jobs: Sequence[Document]) -> list[Document] | None:
    """The one run of each job, once all have succeeded."""
    return [job["runs"][0] for job in jobs] if all(job["status"] == "succeeded" for job in jobs) else None


def _is_over(run: Document) -> bool:
    return run["status"] in ("succeeded", "dead_lettered", "cancelled", "skipped")


def _called(job: Document) -> int:
    return sum(bool(run["attempts"]) for run in job["runs"])


def _outcomes(run: Document) -> list[str]:
    return [attempt["outcome"] for attempt in run["attempts"]]


def _began(run: Document) -> datetime:
    return datetime.fromisoformat(run["attempts"][0]["started_at"])


def _ended(run: Document) -> datetime:
    return datetime.fromisoformat(run["attempts"][-1]["finished_at"])


def _late_s(run: Document) -> float:
    return (_began(run) - datetime.fromisoformat(run["scheduled_for"])).total_seconds()


def _most_at_once(runs: Sequence[Document]) -> int:
    """How many attempts were going on at the same time, at most.

    An attempt stands in the history from its start on, a moment before it asks for its place.
    """
    spans = [(one["started_at"], one["finished_at"]) for run in runs for one in run["attempts"] if one["finished_at"]]
    times = [(datetime.fromisoformat(begin) + ASKING, datetime.fromisoformat(end)) for begin, end in spans]
    return max((sum(begin <= moment < end for begin, end in times) for moment, _ in times), default=0)


def _runs(job: Document) -> str:
    shown = [
        f"{run['scheduled_for']} {run['status']}" + (f" ({run['reason']})" if run["reason"] else "")
        for run in job["runs"][:4]
    ]
    return "; ".join(shown) or "no run yet"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("stops", nargs="*", metavar="STOP", help="what to see; all if none is named")
    parser.add_argument("--url", default=os.environ.get("DUETIME_URL", DEFAULT_URL))
    parser.add_argument("--list", action="store_true", help="name the stops")
    chosen = parser.parse_args()
    unknown = set(chosen.stops) - set(STOPS)
    if unknown:
        parser.error(f"no such stop: {', '.join(sorted(unknown))}; there are {', '.join(STOPS)}")
    if chosen.list:
        for name, function in STOPS.items():
            print(f"{name:22} {function.__doc__}")
        return 0
    tour = uuid4().hex[:6]
    failed: list[str] = []
    with Client(chosen.url) as client, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        stops = [Stop(client, name, tour) for name in STOPS if not chosen.stops or name in chosen.stops]
        going = [(one, pool.submit(STOPS[one.name], one)) for one in stops]
        for number, (one, future) in enumerate(going, 1):
            error = future.exception()
            print(f"\n{number}. {one.name.replace('_', ' ')}: {STOPS[one.name].__doc__}")
            print("\n".join(f"   {line}" for line in one.told), flush=True)
            if error is not None:
                failed.append(one.name)
                why = str(error) if isinstance(error, UnexpectedError) else "".join(traceback.format_exception(error))
                print(f"   ✗ {why}", flush=True)
    print(
        f"\n{len(going) - len(failed)} of {len(going)} stops as they should be"
        + (f"; not {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
