"""The cases of cron-cases.json, as they are: right next times from an independent oracle."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from shared.model.errors import InvalidScheduleError
from shared.rules.cron import fire_times

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "cron-cases.json").read_text())
FIRING = [pytest.param(case, id=case["id"]) for case in CASES if not case.get("invalid")]
SKIPPING = [pytest.param(case, id=case["id"]) for case in CASES if "expected_dst_gap_skip" in case]
INVALID = [pytest.param(case, id=case["id"]) for case in CASES if case.get("invalid")]


def texts(moments: list[datetime]) -> list[str]:
    return [moment.isoformat() for moment in moments]


@pytest.mark.parametrize("case", FIRING)
def test_next_times_are_right(case: dict[str, Any]) -> None:
    start = datetime.fromisoformat(case["start"])
    assert texts(fire_times(case["expr"], case["tz"], start, 5)) == case["expected"]


@pytest.mark.parametrize("case", SKIPPING)
def test_next_times_with_gaps_left_out_are_right(case: dict[str, Any]) -> None:
    start = datetime.fromisoformat(case["start"])
    assert texts(fire_times(case["expr"], case["tz"], start, 5, dst_gap="skip")) == case["expected_dst_gap_skip"]


@pytest.mark.parametrize("case", INVALID)
def test_what_is_invalid_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidScheduleError) as caught:
        fire_times(case["expr"], case["tz"], datetime.fromisoformat(case["start"]), 5)
    assert caught.value.field == "cron"
    assert len(caught.value.message) < 200


def test_every_kind_of_case_is_there() -> None:
    assert (len(FIRING), len(SKIPPING), len(INVALID)) == (62, 7, 17)
