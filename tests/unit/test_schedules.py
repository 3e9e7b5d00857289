"""What a schedule may say, and its first slot (C29, C35)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.model.errors import InvalidScheduleError
from shared.model.instants import to_text
from shared.model.job import Schedule
from shared.rules.schedules import first_slot, next_slot, preview, read_schedule, slots

NOW = datetime(2026, 11, 29, 12, 0, 0, 250_000, tzinfo=UTC)
CRON = {"cron": "0 9 * * *"}


def read(now: datetime = NOW, **given: Any) -> Schedule:
    return read_schedule(now=now, **given)


def first(now: datetime = NOW, **given: Any) -> str:
    slot = first_slot(read(now, **given), "job-1", now)
    assert slot is not None
    return to_text(slot)


class TestFirstSlot:
    @pytest.mark.parametrize(
        ("given", "instant"),
        [
            ({"run_at": "2026-11-29T12:00:05Z"}, "2026-11-29T12:00:05Z"),
            ({"run_at": "2026-11-29T12:00:05.123456Z"}, "2026-11-29T12:00:05.123456Z"),
            ({"run_at": "2026-12-01T09:00:00", "timezone": "Asia/Tokyo"}, "2026-12-01T00:00:00Z"),
            ({"run_at": "at(2026-12-01T09:00:00)", "timezone": "Asia/Tokyo"}, "2026-12-01T00:00:00Z"),
            ({"run_at": "at(2026-12-01T09:00:00)"}, "2026-12-01T09:00:00Z"),
            ({"every": "90s"}, "2026-11-29T12:01:30Z"),
            ({"every": "1s"}, "2026-11-29T12:00:01Z"),
            ({"every": "rate(5 minutes)"}, "2026-11-29T12:05:00Z"),
            ({"every": "1h", "start_at": "2026-12-01T00:30:00Z"}, "2026-12-01T00:30:00Z"),
            ({"every": "1h", "start_at": "2026-11-29T10:10:10.5Z"}, "2026-11-29T12:10:10.5Z"),
            ({"every": "1h", "start_at": "1970-01-01T00:00:00Z"}, "2026-11-29T13:00:00Z"),
            ({"every": "1d", "start_at": "2026-12-01T09:00:00", "timezone": "Asia/Tokyo"}, "2026-12-01T00:00:00Z"),
            (CRON, "2026-11-30T09:00:00Z"),
            (CRON | {"timezone": "America/New_York"}, "2026-11-29T14:00:00Z"),
            (CRON | {"start_at": "2026-12-24T09:00:00Z"}, "2026-12-24T09:00:00Z"),
            (CRON | {"start_at": "2026-12-24T09:00:00.000001Z"}, "2026-12-25T09:00:00Z"),
            (CRON | {"end_at": "2026-11-30T09:00:00Z"}, "2026-11-30T09:00:00Z"),
            ({"cron": "cron(0 10 ? * 6L *)"}, "2026-12-25T10:00:00Z"),
        ],
    )
    def test_is(self, given: dict[str, Any], instant: str) -> None:
        assert first(**given) == instant

    def test_c35_a_new_cron_job_does_not_fire_at_its_creation(self) -> None:
        assert first(datetime(2026, 11, 28, 23, 55, tzinfo=UTC), cron="0 0 * * *") == "2026-11-29T00:00:00Z"
        assert first(datetime(2026, 11, 29, 12, 0, tzinfo=UTC), cron="* * * * *") == "2026-11-29T12:01:00Z"
        assert first(datetime(2026, 11, 29, 12, 0, 0, 1, tzinfo=UTC), cron="* * * * *") == "2026-11-29T12:01:00Z"

    def test_c29_a_moment_in_the_past_runs_at_once(self) -> None:
        for past in ("2026-11-29T11:59:00Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"):
            assert first(run_at=past) == past
        assert next_slot(read(run_at="2026-11-29T11:59:00Z"), "a", NOW) is None

    def test_c29_now_near_the_end_of_time_is_refused_and_does_not_break(self) -> None:
        late = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        for given in ({"cron": "* * * * *"}, {"every": "1s"}, {"every": "3653d"}):
            with pytest.raises(InvalidScheduleError):
                read(late, **given)


def test_every_keeps_its_anchor_and_does_not_drift() -> None:
    schedule = read(every="7m")
    assert schedule.anchor == NOW.replace(microsecond=0)
    late = NOW + timedelta(hours=3, seconds=17)
    slot = next_slot(schedule, "a", late)
    assert slot is not None
    assert slot > late
    assert (slot - NOW.replace(microsecond=0)) % timedelta(minutes=7) == timedelta(0)


def test_what_is_read_is_kept() -> None:
    schedule = read(
        cron="H 9 * * MON",
        timezone="Europe/Berlin",
        start_at="2027-01-01T00:00:00",
        end_at="2027-12-31T23:00:00Z",
        max_runs=5,
        jitter_s=600,
        dst_gap="skip",
        catch_up="all",
        job_id="a",
    )
    assert schedule == Schedule(
        cron="H 9 * * MON",
        timezone="Europe/Berlin",
        start_at=datetime(2026, 12, 31, 23, tzinfo=UTC),
        end_at=datetime(2027, 12, 31, 23, tzinfo=UTC),
        max_runs=5,
        jitter_s=600,
        dst_gap="skip",
        catch_up="all",
    )


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "run_at"),
    ({"timezone": "UTC"}, "run_at"),
    ({"run_at": "2026-12-01T09:00:00Z", "cron": "* * * * *"}, "cron"),
    ({"run_at": "2026-12-01T09:00:00Z", "every": "5m"}, "every"),
    ({"cron": "* * * * *", "every": "5m"}, "every"),
    ({"run_at": ""}, "run_at"),
    ({"cron": ""}, "cron"),
    ({"every": ""}, "every"),
    ({"run_at": "2026-12-01T09:00:00"}, "run_at"),
    ({"run_at": "at(tomorrow)"}, "run_at"),
    ({"run_at": "2036-12-01T09:00:00Z"}, "run_at"),
    ({"run_at": "2040-01-01T00:00:00Z"}, "run_at"),
    ({"run_at": "9999-12-31T23:59:59Z"}, "run_at"),
    ({"run_at": "1798711200000"}, "run_at"),
    ({"run_at": 1798711200}, "run_at"),
    ({"run_at": "cron(0 9 ? * 1 *)"}, "run_at"),
    ({"run_at": "2026-12-01T09:00:00Z", "start_at": "2026-12-01T00:00:00Z"}, "start_at"),
    ({"run_at": "2026-12-01T09:00:00Z", "end_at": "2026-12-02T00:00:00Z"}, "end_at"),
    ({"run_at": "2026-12-01T09:00:00Z", "max_runs": 1}, "max_runs"),
    ({"run_at": "2026-12-01T09:00:00Z", "jitter_s": 5}, "jitter_s"),
    ({"run_at": "2026-12-01T09:00:00Z", "timezone": "Mars/Phobos"}, "timezone"),
    (CRON | {"timezone": "localtime"}, "timezone"),
    (CRON | {"timezone": ""}, "timezone"),
    (CRON | {"timezone": 5}, "timezone"),
    ({"cron": "0 0 30 2 *"}, "cron"),
    ({"cron": "0 0 0 1 1 * 2020"}, "cron"),
    ({"cron": "0 0 0 1 1 * 2090"}, "cron"),
    ({"cron": "rate(5 minutes)"}, "cron"),
    ({"cron": 5}, "cron"),
    ({"cron": "30 2 25-31 3 */7", "timezone": "Europe/Berlin", "dst_gap": "skip"}, "cron"),
    ({"every": "cron(0 9 ? * 1 *)"}, "every"),
    ({"every": "0s"}, "every"),
    ({"every": 300}, "every"),
    (CRON | {"start_at": "2026-12-01"}, "start_at"),
    (CRON | {"start_at": "1969-12-31T23:59:59Z"}, "start_at"),
    (CRON | {"start_at": "2040-01-01T00:00:00Z"}, "start_at"),
    (CRON | {"start_at": "2027-03-28T02:30:00", "timezone": "Europe/Berlin"}, "start_at"),
    (CRON | {"end_at": "tomorrow"}, "end_at"),
    (CRON | {"end_at": "2026-11-29T12:00:00Z"}, "end_at"),
    (CRON | {"end_at": "2026-11-30T08:59:59.999999Z"}, "end_at"),
    (CRON | {"start_at": "2026-12-02T00:00:00Z", "end_at": "2026-12-01T00:00:00Z"}, "end_at"),
    (CRON | {"start_at": "2026-12-01T10:00:00Z", "end_at": "2026-12-01T20:00:00Z"}, "end_at"),
    ({"every": "1h", "end_at": "2026-11-29T12:30:00Z"}, "end_at"),
    *[(CRON | {"max_runs": value}, "max_runs") for value in (0, -1, True, 1.0, "5", 10**12, 10**5000, [])],
    *[(CRON | {"jitter_s": value}, "jitter_s") for value in (-1, 86_401, True, 1.5, "5", None, 10**5000)],
    ({"every": "5m", "jitter_s": 300}, "jitter_s"),
    *[(CRON | {"dst_gap": value}, "dst_gap") for value in ("", "both", None, 1, [])],
    *[(CRON | {"catch_up": value}, "catch_up") for value in ("", "none", None, 1, [])],
]


@pytest.mark.parametrize(("given", "field"), REFUSED, ids=range(len(REFUSED)))
def test_is_refused_with_the_field_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidScheduleError) as caught:
        read(**given)
    assert caught.value.field == field
    assert len(caught.value.message) < 250


class TestPreview:
    def test_a_time_in_a_gap_is_explained(self) -> None:
        schedule = read(cron="30 2 * * *", timezone="Europe/Berlin", start_at="2027-03-27T00:00:00Z")
        assert [(to_text(slot), note) for slot, note in preview(schedule, "a", NOW, 3)] == [
            ("2027-03-27T01:30:00Z", None),
            ("2027-03-28T01:00:00Z", "02:30 does not exist on this day; runs at 03:00 +02:00"),
            ("2027-03-29T00:30:00Z", None),
        ]

    def test_a_time_in_an_overlap_is_explained(self) -> None:
        schedule = read(cron="15 30 1 * * *", timezone="America/New_York", start_at="2027-11-07T00:00:00Z")
        assert [(to_text(slot), note) for slot, note in preview(schedule, "a", NOW, 2)] == [
            ("2027-11-07T05:30:15Z", "01:30:15 happens twice on this day; runs at the first, -04:00"),
            ("2027-11-08T06:30:15Z", None),
        ]

    def test_a_day_that_is_missing_is_named(self) -> None:
        before = datetime(2011, 12, 29, tzinfo=UTC)
        schedule = read(before, cron="0 6 * * *", timezone="Pacific/Apia", start_at="2011-12-30T00:00:00Z")
        assert preview(schedule, "a", before, 1) == [
            (
                datetime(2011, 12, 30, 10, tzinfo=UTC),
                "06:00 does not exist on 2011-12-30; runs at 2011-12-31 00:00 +14:00",
            )
        ]

    def test_jitter_keeps_the_note(self) -> None:
        schedule = read(cron="30 2 * * *", timezone="Europe/Berlin", start_at="2027-03-28T01:00:00Z", jitter_s=3600)
        for after in (NOW, datetime(2027, 3, 28, 1, 0, 0, 1, tzinfo=UTC)):
            (slot, note), *_ = preview(schedule, "a", after, 1)
            assert slot.date() == datetime(2027, 3, 28, tzinfo=UTC).date()
            assert note == "02:30 does not exist on this day; runs at 03:00 +02:00"

    def test_wildcard_times_need_no_note(self) -> None:
        schedule = read(cron="*/30 * * * *", timezone="America/New_York", start_at="2027-11-07T04:00:00Z")
        assert {note for _, note in preview(schedule, "a", NOW, 8)} == {None}

    def test_max_runs_and_end_at_limit_it(self) -> None:
        assert len(preview(read(every="1h", max_runs=3), "a", NOW, 10)) == 3
        assert len(preview(read(every="1h", end_at="2026-11-29T14:00:00Z"), "a", NOW, 10)) == 2
        assert preview(read(every="1h"), "a", NOW, 0) == []

    def test_a_one_off(self) -> None:
        ahead, past = read(run_at="2026-11-29T12:00:05Z"), read(run_at="2026-11-29T11:59:00Z")
        assert preview(ahead, "a", NOW, 5) == [(datetime(2026, 11, 29, 12, 0, 5, tzinfo=UTC), None)]
        assert preview(past, "a", NOW, 5) == [(datetime(2026, 11, 29, 11, 59, tzinfo=UTC), "in the past; runs at once")]


def test_a_stored_zone_that_the_database_has_lost_is_named() -> None:
    lost = Schedule(cron="0 9 * * *", timezone="Mars/Phobos")
    with pytest.raises(InvalidScheduleError) as caught:
        slots(lost, "a", NOW, NOW + timedelta(days=1), 5)
    assert caught.value.field == "timezone"
