"""Every context key: its default, its limits, and an error that names it."""

from dataclasses import fields
from pathlib import Path

import pytest

from infra.options import OptionError, Options

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy.md"


def read(**given: object) -> Options:
    return Options.read(given.get, given.keys())


def test_nothing_given_is_the_defaults() -> None:
    options = read()
    assert options == Options(ticked_shards=1)
    assert (options.auth, options.shards, options.horizon_s, options.python_version) == ("iam", 1, 300, "3.13")
    assert (options.architecture, options.removal_policy) == ("arm64", "retain")


def test_text_from_the_command_line_and_json_from_cdk_json_mean_the_same() -> None:
    assert read(shards="4", horizon_s="0", log_retention_days="7") == read(shards=4, horizon_s=0, log_retention_days=7)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stack_name", "1st"),
        ("stack_name", ""),
        ("auth", "open"),
        ("shards", 0),
        ("shards", 257),
        ("shards", "four"),
        ("shards", True),
        ("shards", 1.5),
        ("shards", -1),
        ("ticked_shards", 257),
        ("shards_per_tick", 0),
        ("shards_per_tick", 11),
        ("horizon_s", 841),
        ("horizon_s", -1),
        ("retention_days", 0),
        ("removal_policy", "keep"),
        ("architecture", "arm"),
        ("python_version", "3.10"),
        ("executor_memory_mb", 64),
        ("submit_memory_mb", 10241),
        ("executor_timeout_s", 901),
        ("executor_timeout_s", 29),
        ("executor_concurrency", 1),
        ("executor_high_concurrency", 1001),
        ("executor_low_concurrency", 1),
        ("log_retention_days", 2),
        ("log_level", "WARNING"),
        ("tracing", "on"),
        ("alarm_email", "nobody"),
        ("alarm_message_age_s", 0),
        ("alarm_key", "aws"),
        ("api_rate", 0),
        ("api_burst", 5001),
        ("audit_segments", 65),
    ],
)
def test_a_bad_value_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(OptionError, match=rf"^context {key} must be .+, not '{value}'$"):
        read(**{key: value})


@pytest.mark.parametrize("shards", [1, 2, 7, 256])
def test_all_shards_are_ticked_unless_more_are_asked_for(shards: int) -> None:
    assert read(shards=shards).ticked_shards == shards
    assert read(shards=1, ticked_shards=shards).ticked_shards == shards


def test_fewer_ticked_shards_than_written_ones_are_refused() -> None:
    with pytest.raises(OptionError, match="context ticked_shards is 3, but must be at least shards"):
        read(shards=4, ticked_shards=3)


def test_a_reserve_smaller_than_the_mappings_would_throttle_the_queues() -> None:
    with pytest.raises(OptionError, match="context executor_reserved_concurrency is 109, but must be at least 110"):
        read(executor_reserved_concurrency=109)
    assert read(executor_reserved_concurrency=110).executor_reserved_concurrency == 110
    few = {"executor_high_concurrency": 2, "executor_concurrency": 3, "executor_low_concurrency": 4}
    assert read(**few, executor_reserved_concurrency=9).executor_reserved_concurrency == 9
    for key, value in few.items():
        with pytest.raises(OptionError, match="but must be at least 10"):
            read(**{**few, key: value + 1}, executor_reserved_concurrency=9)


def test_a_reserve_smaller_than_the_ticks_of_a_minute_would_throttle_them() -> None:
    assert read(shards=16, tick_reserved_concurrency=4).ticks[-1] == [12, 13, 14, 15]
    with pytest.raises(OptionError, match="context tick_reserved_concurrency is 4, but must be at least 5"):
        read(shards=17, tick_reserved_concurrency=4)
    with pytest.raises(OptionError, match="context tick_reserved_concurrency is 4, but must be at least 16"):
        read(shards=16, shards_per_tick=1, tick_reserved_concurrency=4)


def test_a_misspelt_key_is_refused_and_a_strange_one_is_not_ours() -> None:
    with pytest.raises(OptionError, match="context shard is not known; did you mean shards"):
        read(shard=4)
    read(**{"@aws-cdk/core:target-partitions": ["aws"], "cli-telemetry": False, "team": "blue"})


def test_a_job_may_take_what_the_executor_can_hold() -> None:
    assert read().max_timeout_s == 105
    assert read(executor_timeout_s=900).max_timeout_s == 885


@pytest.mark.parametrize("option", fields(Options), ids=lambda f: f.name)
def test_the_deployment_page_lists_it(option: object) -> None:
    name, about = option.name, option.metadata  # type: ignore[attr-defined]
    limits = about["limits"].replace("|", "\\|")
    row = f"| `{name}` | {about['default']} | {limits} | {about['meaning']} |"
    assert row in DEPLOY.read_text().splitlines()
