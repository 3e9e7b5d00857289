"""The herd on paper: each job starts once, never early; more of anything makes nothing later; small cases by hand."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.chart import Axis, Panel, short, svg
from bench.herd import JOURNAL_UNITS, TICK_EVERY_S, TICK_WORKS_S, Herd, claim, level, run
from shared.flows.claims import PAGE_CLAIMS
from shared.queue import BATCH, MAX_DELAY_S
from shared.settings import MAX_HORIZON_S

ROOT = Path(__file__).parents[2]

# Every call takes a second or nothing, so that a hand can follow.
BY_HAND = Herd(
    jobs=20,
    horizon_s=0,
    concurrency=2,
    run_s=2,
    run_spread=0,
    tick_phase_s=10,
    warm=2,
    look_s=0,
    write_s=0,
    claim_s=1,
    send_s=0.5,
    cpu_s=0,
    batch_s=0,
    first_batches=1,
    more_batches_per_min=60,
)
HERDS = [
    Herd(jobs=1),
    Herd(jobs=1_234, concurrency=2),
    Herd(jobs=30_000, shards=7, horizon_s=0, concurrency=1000),
    Herd(jobs=60_000, shards=3, horizon_s=60, concurrency=200, run_s=0.05),
    Herd(jobs=60_000, horizon_s=840, run_s=0.01, table_units_per_s=4_000, concurrency=1000),
]


@pytest.mark.parametrize("herd", HERDS, ids=lambda herd: f"{herd.jobs} jobs, {herd.shards} shards")
def test_every_job_is_claimed_sent_taken_and_started_once(herd: Herd) -> None:
    out = run(herd)
    for what in (out.claimed, out.visible, out.taken, out.started):
        assert what.total() == herd.jobs
        assert min(what.values()) > 0
    assert out.began.total() == out.ended.total() >= herd.jobs / BATCH


@pytest.mark.parametrize("herd", HERDS, ids=lambda herd: f"{herd.jobs} jobs, {herd.shards} shards")
def test_nothing_is_taken_before_it_is_visible_nor_seen_early(herd: Herd) -> None:
    out = run(herd)
    assert min(out.visible) >= 0  # I3
    assert min(out.started) >= 0
    assert min(count for _, count in level(out.visible, out.taken)) >= 0
    assert min(count for _, count in level(out.taken, out.started)) >= 0
    assert out.most_batches <= herd.concurrency
    assert list(level(out.began, out.ended))[-1][1] == 0


def test_a_herd_after_its_time_by_hand() -> None:
    """Tick at 10; claimed by 11; sent by 11.5 and 12. One batch at 11.5, the second place opens a second later."""
    out = run(BY_HAND)
    assert out.claimed == {11_500: 10, 12_000: 10}
    assert out.visible == out.claimed
    assert out.started == {11_500: 10, 12_500: 10}
    assert out.ended == {13_500: 1, 14_500: 1}
    assert (out.late_s(0.5), out.late_s(0.51), out.last_start_s) == (11.5, 12.5, 12.5)
    assert (out.claimed_late, out.most_waiting, out.most_batches) == (20, 10, 2)
    assert (out.later_than(11.5), out.later_than(12.5)) == (10, 0)


def test_a_herd_ahead_of_its_time_by_hand() -> None:
    """Tick at -49.75 (horizon 60, phase 10.25): claimed by -48.75, so the first ten wait for 49 s, from -48.25 on."""
    out = run(replace(BY_HAND, horizon_s=60, tick_phase_s=10.25))
    assert out.claimed == {-48_250: 10, -47_750: 10}
    assert out.visible == {750: 10, 1_250: 10}
    assert out.started == {750: 10, 1_750: 10}
    assert (out.claimed_late, out.last_claim_s) == (0, -47.75)


def test_a_tick_begins_no_page_after_its_time() -> None:
    """A page takes 4 × 1 + 10 × 0.5 = 9 s, so five begin by 45 s; the sixth is the next tick's."""
    out = claim(replace(BY_HAND, jobs=6 * PAGE_CLAIMS, horizon_s=300, tick_phase_s=0))
    ends = sorted(out.claimed)[BATCH - 1 :: BATCH]
    assert ends == [-291_000, -282_000, -273_000, -264_000, -255_000, -231_000]


def test_the_table_and_the_index_slow_down_claims_that_would_be_faster() -> None:
    fast = Herd(jobs=10_000, shards=1, look_s=0, write_s=0, claim_s=0, send_s=0, cpu_s=0, tick_phase_s=0)
    assert claim(fast).last_claim_s == pytest.approx(-300 + 9.9)  # 1,000 a second; the last page is sent at its begin
    new_table = claim(replace(fast, shards=8, table_units_per_s=4_000)).last_claim_s
    assert new_table == pytest.approx(-300 + 9_600 * (1 + JOURNAL_UNITS) / 4_000, abs=0.2)


def test_more_shards_make_no_claim_later() -> None:
    """In a new table, with 4,000 units a second, the last doublings bring nothing: but no loss either."""
    for units in (40_000, 4_000):
        herd = Herd(jobs=200_000, tick_phase_s=20, table_units_per_s=units)
        outs = [claim(replace(herd, shards=shards)) for shards in (1, 2, 4, 8, 16, 32)]
        lasts = [round(out.last_claim_s) for out in outs]
        assert lasts == sorted(lasts, reverse=True)
        assert [out.claimed_late for out in outs] == sorted((out.claimed_late for out in outs), reverse=True)
        assert lasts[0] > lasts[1] > lasts[2]


def test_a_longer_horizon_and_more_concurrency_make_no_start_later() -> None:
    herd = Herd(jobs=50_000, tick_phase_s=20, run_spread=0, concurrency=1000)
    by_horizon = [round(run(replace(herd, horizon_s=horizon)).late_s(0.99)) for horizon in (0, 60, 120, 300, 840)]
    assert by_horizon == sorted(by_horizon, reverse=True)
    assert by_horizon[0] > by_horizon[1] > by_horizon[2]
    by_concurrency = [run(replace(herd, concurrency=most)).late_s(0.99) for most in (5, 20, 100, 1000)]
    assert by_concurrency == sorted(by_concurrency, reverse=True)
    assert by_concurrency[0] > 2 * by_concurrency[1]


def test_the_ramp_of_a_mapping_is_the_square_root_law_of_the_docs() -> None:
    """5 batches and 5 more a second: N jobs take about √(N × batch ÷ 25) seconds while the ramp lasts."""
    herd = Herd(jobs=100_000, shards=64, concurrency=1000, run_s=0.85, run_spread=0, warm=1000)
    assert run(herd).last_start_s == pytest.approx((100_000 * 1.0 / 25) ** 0.5, rel=0.05)


def test_one_seed_gives_one_result() -> None:
    herd = Herd(jobs=5_000, shards=4)
    assert run(herd) == run(herd)
    assert run(herd).started != run(replace(herd, seed=10)).started


def test_its_numbers_are_those_of_the_code() -> None:
    timeout = re.search(r"TICK_TIMEOUT_S = (\d+)", (ROOT / "infra/ticker.py").read_text())
    stop = re.search(r"STOP_BEFORE_S = (\d+)", (ROOT / "functions/tick/handler.py").read_text())
    batch = re.search(r"BATCH_SIZE = (\d+)", (ROOT / "infra/executor.py").read_text())
    assert timeout
    assert stop
    assert batch
    assert int(timeout[1]) - int(stop[1]) == TICK_WORKS_S
    assert int(batch[1]) == BATCH
    assert MAX_HORIZON_S + TICK_EVERY_S <= MAX_DELAY_S


def test_a_chart_is_svg_with_each_line_within_its_panel() -> None:
    x, y = Axis("jobs", 1, 1000, log=True), Axis("s", 0, 10)
    picture = svg([Panel("a < b", x, y, {"p50": [(1, 0), (1000, 10), (10_000, 99)]})], columns=1)
    root = ElementTree.fromstring(picture)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["a < b", "p50"]
    assert {"1", "10", "100", "1k", "0", "2", "8"} <= set(texts)
    assert 'd="M62 256L446 50L446 50"' in picture  # what is beyond an axis is put at its end
    assert [short(value) for value in (0.1, 10, 2e6)] == ["0.1", "10", "2M"]
