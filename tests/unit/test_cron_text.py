"""What a cron expression may say: which texts are taken, what they mean, and which are refused, in bounded time."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.model.errors import InvalidScheduleError
from shared.model.job import MAX_CRON
from shared.rules.cron import fire_times
from shared.rules.cron_text import read_cron

START = datetime(2026, 11, 1, tzinfo=UTC)  # a Sunday
BOUND_S = 0.05


def times(expr: str, count: int = 5, *, job_id: str | None = None, after: datetime = START) -> list[str]:
    return [f"{fire:%Y-%m-%dT%H:%M:%S}" for fire in fire_times(expr, "UTC", after, count, job_id=job_id)]


def days(expr: str, count: int) -> list[str]:
    return [text[5:10] for text in times(expr, count)]


@pytest.mark.parametrize(
    ("expr", "same_as"),
    [
        ("0 9 * JAN-MAR,Dec mon-FRI", "0 9 * 1-3,12 1-5"),
        ("0 0 * NOV-FEB *", "0 0 * 11,12,1,2 *"),
        ("0 0 * * FRI-MON", "0 0 * * 5,6,0,1"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * 6-7/1", "0 0 * * 0,6"),
        ("0 0 * * 7-2", "0 0 * * 0-2"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 0 28-3 * *", "0 0 28,29,30,31,1,2,3 * *"),
        ("0 20-4/3 * * *", "0 20,23,2 * * *"),
        ("50-10/7 * * * *", "50,57,4 * * * *"),
        ("0 0 3-3 * *", "0 0 3 * *"),
        ("0 0 3-3/2 * *", "0 0 3 * *"),
        ("0 0 * 5-5 *", "0 0 * 5 *"),
        ("05 09 * * *", "5 9 * * *"),
        ("*/90 * * * *", "0 * * * *"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 ? * MON", "0 0 * * 1"),
        ("  0   0\t* * *  ", "0 0 * * *"),
        ("0 0 0 * * *", "0 0 * * *"),
        ("0 0 0 * * * *", "0 0 * * *"),
        ("0 0 * * L5", "0 0 * * 5L"),
        ("0 0 * * FRIL", "0 0 * * 5L"),
        ("0 0 * * 7L", "0 0 * * 0L"),
        ("0 0 * * mon#2", "0 0 * * 1#2"),
        ("0 0 * * SUN#1,7#3", "0 0 * * 0#1,0#3"),
        ("0 0 lw * *", "0 0 LW * *"),
        ("@hourly", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@annually", "0 0 1 1 *"),
        ("cron(0 10 ? * 6L 2026-2199)", "0 0 10 * * FRIL 2026-2099"),
        ("cron(15 10 ? * MON-FRI *)", "15 10 * * 1-5"),
        ("cron(0/5 8-17 ? * 2-6 *)", "0/5 8-17 * * 1-5"),
        ("cron(0 9 ? * 2#1 *)", "0 9 * * MON#1"),
        ("cron(0 9 ? * 7-2 *)", "0 9 * * SAT,SUN,MON"),
        ("cron(0 9 ? * 1/2 *)", "0 9 * * 0/2"),
        ("cron(0 9 ? * L *)", "0 9 * * SAT"),
        ("CRON( 0 18 LW * ? * )", "0 18 LW * *"),
    ],
)
def test_two_ways_to_say_it(expr: str, same_as: str) -> None:
    assert times(expr, 40) == times(same_as, 40)


def test_day_words() -> None:
    assert days("0 0 L * *", 4) == ["11-30", "12-31", "01-31", "02-28"]
    assert days("0 0 15W * *", 4) == ["11-16", "12-15", "01-15", "02-15"]  # 15 November 2026 is a Sunday
    assert days("0 0 1W,L * *", 4) == ["11-02", "11-30", "12-01", "12-31"]
    assert days("0 0 * * MON#2,5L", 4) == ["11-09", "11-27", "12-14", "12-25"]
    assert days("0 0 13 * 5#1", 4) == ["11-06", "11-13", "12-04", "12-13"]  # both restricted: union


def test_31w_is_left_out_where_there_is_no_31st() -> None:
    assert days("0 0 31W * *", 4) == ["12-31", "01-29", "03-31", "05-31"]  # 31 January 2027 is a Sunday


def test_a_star_in_a_day_field_does_not_restrict_even_with_a_step() -> None:
    assert days("0 0 */10 * SUN", 4) == ["01-31", "02-21", "03-21", "04-11"]


def test_seconds_come_first_and_the_year_last() -> None:
    assert times("15,45 30 9 1 1 * 2027-2028") == [
        "2027-01-01T09:30:15",
        "2027-01-01T09:30:45",
        "2028-01-01T09:30:15",
        "2028-01-01T09:30:45",
    ]


def test_a_schedule_of_years_gone_by_has_ended() -> None:
    assert times("0 0 0 1 1 * 2020") == []


class TestHash:
    """`H`: spread by the job's id, stable for ever."""

    def test_is_stable(self) -> None:
        # These are kept by every later version: a job must not move in its hour because of a release.
        assert times("H H * * *", 1, job_id="job-1") == ["2026-11-01T15:51:00"]
        assert times("H H H * *", 1, job_id="report:daily") == ["2026-11-05T01:55:00"]
        assert times("H H * * *", 1) == ["2026-11-01T05:44:00"]  # without an id, a fixed seed

    def test_spreads_jobs_over_the_hour(self) -> None:
        minutes = [read_cron("H * * * *", f"job-{number}").minutes[0] for number in range(600)]
        assert set(minutes) == set(range(60))

    def test_fields_are_drawn_apart(self) -> None:
        drawn = [read_cron("H H H * * *", f"job-{number}") for number in range(200)]
        assert len({(fields.seconds, fields.minutes) for fields in drawn}) > 150

    @given(st.text("abc-:", min_size=1, max_size=20))
    def test_stays_in_its_range(self, job_id: str) -> None:
        assert 0 <= read_cron("H(0-29) * * * *", job_id).minutes[0] <= 29
        steps = read_cron("H/15 * * * *", job_id).minutes
        assert len(steps) == 4
        assert all(later - earlier == 15 for earlier, later in pairwise(steps))
        assert steps[0] < 15
        ranged = read_cron("H(30-59)/10 * * * *", job_id).minutes
        assert len(ranged) == 3
        assert min(ranged) >= 30
        day = [number for number, hit in enumerate(read_cron("0 0 H * *", job_id).days[0]) if hit]
        assert len(day) == 7, "the day is one that every month has"

    def test_may_stand_in_a_list(self) -> None:
        assert 30 in read_cron("H(0-9),30 * * * *", "a").minutes

    def test_thursday_has_no_hash(self) -> None:
        assert read_cron("0 0 * * THU", "a") is read_cron("0 0 * * thu", "b")


REFUSED = [
    *["@reboot", "@every 5m", "@", "R R * * *", "R(0-9) * * * *", "R/5 * * * *"],
    *["TZ=UTC 0 0 * * *", "CRON_TZ=Europe/Berlin 0 0 * * *", "TZ=0", "0 0 * * * UTC"],
    *["1,* * * * *", "*,1 * * * *", "*,* * * * *", "0 0 ?,1 * *", "0 0 1 * ?,2", "? * * * *", "* ? * * *", "* * * ? *"],
    *["1,,2 * * * *", ",1 * * * *", "1, * * * *", "1- * * * *", "-1 * * * *", "1-2-3 * * * *", "1/2/3 * * * *"],
    *[
        "*/0 * * * *",
        "5/0 * * * *",
        "1-5/0 * * * *",
        "H/0 * * * *",
        "*/-2 * * * *",
        "*/x * * * *",
        "*/ * * * *",
        "/5 * * * *",
    ],
    *[
        "60 * * * *",
        "0-60 * * * *",
        "* 24 * * *",
        "* 0-24 * * *",
        "0 0 0 * *",
        "0 0 32 * *",
        "0 0 0-5 * *",
        "0 0 * 0 *",
    ],
    *["0 0 * 13 *", "0 0 * * 8", "0 0 * * 0-8", "60 * * * * *", "0 0 0 1 1 * 1969", "0 0 0 1 1 * 2100"],
    *[
        "0 0 0 1 1 * 2030-2028",
        "0 0 0 1 1 * H",
        "0 0 * * 1#0",
        "0 0 * * 1#6",
        "0 0 * * 8#1",
        "0 0 * * #1",
        "0 0 * * 1#",
    ],
    *["0 0 0W * *", "0 0 32W * *", "0 0 W * *", "0 0 1-5W * *", "0 0 * * L", "0 0 * * 8L", "0 0 * * LW", "L * * * *"],
    *["0 0 * * Monday", "0 0 * January *", "0 0 * MON *", "0 0 * * JAN", "MON * * * *", "0 0 * * MON-", "0 0 * * xyz"],
    *[
        "H(5-1) * * * *",
        "H(0-99) * * * *",
        "H(-1-5) * * * *",
        "H( * * * *",
        "H() * * * *",
        "HH * * * *",
        "0 0 H(0-5) * *",
    ],
    *[
        "",
        " ",
        "\t",
        "*",
        "* *",
        "* * * *",
        "* * * * * * * *",
        "0 0 * * *\n",
        "0\n0 * * *",
        "0 0 * * *\x00",
        "0 0 * * *;ls",
    ],
    *[
        "５ 0 * * *",
        "0 0 * * ＭＯＮ",
        "0\u00a00 * * *",
        "０ 0 * * *",
        "１٢ * * * *",
        "\ud800 * * * *",
        "💥",
        "0.5 * * * *",
    ],
    *["+5 * * * *", "0x5 * * * *", "1e1 * * * *", "00005 * * * *", "5 5 5 5 5 5 5 5", "None", "0 0 * * 1 2 3 4 5"],
    *[
        "cron()",
        "cron(* * * * *)",
        "cron(0 10 * * * *)",
        "cron(0 10 ? * ? *)",
        "cron(0 10 ? * 0 *)",
        "cron(0 10 ? * 8 *)",
    ],
    *["cron(0 10 ? * 1 *", "cron 0 10 ? * 1 *", "cron((0 10 ? * 1 *))", "rate(5 minutes)", "at(2027-01-01T00:00:00)"],
    # never
    *[
        "0 0 30 2 *",
        "0 0 31 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 30,31 2 *",
        "0 0 31W 2 *",
        "0 0 0 29 2 * 2027",
        "0 0 31 2 */1",
    ],
    *["0 0 0 29 2 * 2100", "0 0 0 29 2 */7 2028", "0 0 0 * 2 1#5 2026-2043"],
]


@pytest.mark.parametrize("expr", REFUSED, ids=ascii)
def test_is_refused_with_the_field_named(expr: str) -> None:
    started = time.thread_time()
    with pytest.raises(InvalidScheduleError) as caught:
        fire_times(expr, "UTC", START, 1)
    assert time.thread_time() - started < BOUND_S
    assert caught.value.field == "cron"


@pytest.mark.parametrize(
    "expr", [None, 5, 5.0, True, b"* * * * *", ["* * * * *"], 10**5000], ids=lambda value: type(value).__name__
)
def test_what_is_not_text_is_refused(expr: object) -> None:
    with pytest.raises(InvalidScheduleError) as caught:
        read_cron(expr)
    assert caught.value.field == "cron"


@pytest.mark.parametrize(
    ("expr", "says"),
    [
        ("61 * * * *", "minute '61' is out of range; numbers 0-59 are right"),
        ("0 0 * 1-13 *", "month '1-13' is out of range; numbers 1-12 or JAN-DEC are right"),
        ("0 0 * * 1,9", "day of week '1,9' is out of range; numbers 0-6 or SUN-SAT are right"),
        ("1,* * * * *", "minute '1,*' lists a star among other values; write the star alone or the values alone"),
        ("* * * *", "has 4 fields"),
        ("0 0 30 2 *", "can never fire"),
        ("rate(5 minutes)", "put it into the field `every`"),
        ("CRON_TZ=UTC 0 0 * * *", "put the zone into the field `timezone`"),
    ],
)
def test_the_message_says_what_is_wrong_and_what_is_right(expr: str, says: str) -> None:
    with pytest.raises(InvalidScheduleError) as caught:
        read_cron(expr)
    assert says in caught.value.message


HOSTILE = [
    "9" * 100_000 + " * * * *",
    "1" * 900 + " * * * *",
    ",".join(["0"] * 5000) + " * * * *",
    ",".join(["0-59/1"] * 140) + " * * * *",
    ",".join(["59-58"] * 160) + " * * * *",
    ",".join(["H/1"] * 240) + " * * * *",
    ",".join(f"{low}-{high}" for low in range(10) for high in range(10)) + " * * * *",
    ",".join(f"{value}/1" for value in range(60)) + ",9/2" * 150 + " * * * *",
    ",".join(f"H({low}-59)/1" for low in range(58)) + " * * * *",
    ",".join(f"{low}-{low - 1}" for low in range(1, 60)) + " * * * *",
    "*/1," * 240 + "5 * * * *",
    "0 0 " + ",".join(f"{day}W" for day in range(1, 32)) + " 2 " + ",".join(f"{day}#5" for day in range(7)),
    "0 0 29 2 " + ",".join(["*/7"] * 200),
    "* " * 400,
    " " * 100_000,
    "(" * 900 + " * * * *",
    "cron(" * 190,
    "H(" * 400 + " * * * *",
    "1-" * 400 + "1 * * * *",
    "0 0 0 29 2 1 " + ",".join(str(year) for year in range(1970, 2100)),
    "* * * 29 2 */7",
]


@pytest.mark.parametrize("expr", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("zone", ["UTC", "Africa/Casablanca"])
def test_hostile_input_takes_bounded_time(expr: str, zone: str) -> None:
    fire_times("0 0 * * *", zone, START, 1)  # the list of zones is read once a process
    started = time.thread_time()
    with suppress(InvalidScheduleError):
        fire_times(expr, zone, START, 1)
    assert time.thread_time() - started < BOUND_S


def test_times_that_are_always_in_a_gap_are_found_out_in_bounded_time() -> None:
    every_second = ",".join(str(second) for second in range(60))
    expr = f"{every_second} 0-59 2 25-31 3 */7"  # the last Sunday of March
    started = time.thread_time()
    assert fire_times(expr, "Europe/Berlin", START, 1, dst_gap="skip") == []
    assert time.thread_time() - started < BOUND_S


def test_a_list_of_every_value_of_every_field_is_taken() -> None:
    spans = [range(60), range(60), range(24), range(1, 32), range(1, 13), range(7), range(2026, 2100)]
    expr = " ".join(",".join(str(value) for value in span) for span in spans)
    assert len(expr) <= MAX_CRON
    assert times(expr, 2) == ["2026-11-01T00:00:01", "2026-11-01T00:00:02"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text("0123456789*/-,#?LWHhl()RJANMONFRISUN ", max_size=9), min_size=4, max_size=8).map(" ".join))
def test_any_text_is_either_read_or_refused(expr: str) -> None:
    with suppress(InvalidScheduleError):
        found = fire_times(expr, "America/New_York", START, 2)
        assert found == sorted(set(found))
        assert all(fire > START for fire in found)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_no_text_raises_anything_else(expr: str) -> None:
    with suppress(InvalidScheduleError):
        read_cron(expr)
