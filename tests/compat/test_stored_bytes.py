"""Stored bytes are a contract: what every released version has written is read by this one, and means the same.

A new release adds `items_<version>.json` and `values_<version>.py`; those of old ones never change.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from shared.queue import message_of, message_text
from shared.store.codec import due_of, job_item, job_of, run_of
from shared.store.journal import page_of
from shared.store.shards import _lease_of
from tests.compat import values_0_1_0 as v0_1_0
from tests.compat import values_0_2_0 as v0_2_0


def _stored(version: str) -> dict[str, dict[str, Any]]:
    """The items of one version; bytes are written as AWS writes them in JSON, in base 64."""

    def value(found: dict[str, Any]) -> dict[str, Any]:
        return {"B": base64.b64decode(found["B"])} if found.keys() == {"B"} else found

    return dict(json.loads((Path(__file__).parent / f"items_{version}.json").read_text(), object_hook=value))


ITEMS = _stored("0_1_0")
ITEMS_0_2_0 = _stored("0_2_0")


@pytest.mark.parametrize("name", v0_1_0.JOBS)
def test_jobs(name: str) -> None:
    assert job_of(ITEMS["jobs"][name], v0_1_0.PAYLOADS.get(name)) == v0_1_0.JOBS[name]


@pytest.mark.parametrize("name", v0_1_0.DUES)
def test_what_the_index_shows(name: str) -> None:
    assert due_of(ITEMS["jobs"][name]) == v0_1_0.DUES[name]


@pytest.mark.parametrize("name", v0_1_0.RUNS)
def test_runs(name: str) -> None:
    assert run_of(ITEMS["runs"][name]) == v0_1_0.RUNS[name]


@pytest.mark.parametrize("name", v0_1_0.PAGES)
def test_journal_pages(name: str) -> None:
    assert page_of(ITEMS["pages"][name]) == v0_1_0.PAGES[name]


@pytest.mark.parametrize("name", v0_2_0.PAGES)
def test_journal_pages_as_0_2_0_writes_them(name: str) -> None:
    assert page_of(ITEMS_0_2_0["pages"][name]) == v0_2_0.PAGES[name]


@pytest.mark.parametrize("name", v0_1_0.LEASES)
def test_shard_leases(name: str) -> None:
    assert _lease_of(3, ITEMS["leases"][name]) == v0_1_0.LEASES[name]


@pytest.mark.parametrize("name", v0_1_0.MESSAGES)
def test_messages(name: str) -> None:
    assert message_of(ITEMS["messages"][name]) == v0_1_0.MESSAGES[name]


def test_nothing_that_is_kept_is_untested() -> None:
    kinds = {
        "jobs": v0_1_0.JOBS,
        "runs": v0_1_0.RUNS,
        "pages": v0_1_0.PAGES,
        "leases": v0_1_0.LEASES,
        "messages": v0_1_0.MESSAGES,
    }
    assert {kind: set(items) for kind, items in ITEMS.items()} == {kind: set(names) for kind, names in kinds.items()}
    assert {kind: set(items) for kind, items in ITEMS_0_2_0.items()} == {"pages": v0_2_0.PAGES.keys()}


@pytest.mark.parametrize("name", v0_1_0.JOBS)
def test_this_version_still_writes_jobs_so(name: str) -> None:
    """While 0.1.0 is the version: a change of the bytes is a change of the contract, and wants to be noticed."""
    kept = {key: value for key, value in ITEMS["jobs"][name].items() if key != "ttl"}
    written = job_item(v0_1_0.JOBS[name], 3)
    group = v0_1_0.JOBS[name].spec.group
    if group is not None:  # stands with the schedule by now, for the tick
        assert json.loads(written["schedule"]["S"]) == {**json.loads(kept.pop("schedule")["S"]), "group": group}
        del written["schedule"]
        assert written.pop("list_key") == {"S": f"group#{group}"}  # the group's list
        assert written.pop("list_at") == {"S": f"{kept['created_at']['S']}#{v0_1_0.JOBS[name].job_id}"}
    assert written == kept


@pytest.mark.parametrize("name", v0_1_0.MESSAGES)
def test_this_version_still_writes_messages_so(name: str) -> None:
    assert message_text(v0_1_0.MESSAGES[name]) == ITEMS["messages"][name]
