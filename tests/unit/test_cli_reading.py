"""What a person types: durations, payloads, targets. Bad input names its option."""

from datetime import timedelta
from pathlib import Path

import pytest

from duetime.cli.reading import UsageError, duration, payload_text, target, whole_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("90", 90),
        ("1.5s", 1.5),
        ("5m", 300),
        ("1h30m", 5_400),
        ("2d", 172_800),
        ("PT1H", 3_600),
        ("P1DT2M3.5S", 86_523.5),
        (" 3s ", 3),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text, "--in") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "P", "PT", "5x", "-5s", "1m1h", "five", "٣s", "1e3", "nan", "1.5h", "5 s"])
def test_what_is_no_duration_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(UsageError, match="--in must be a duration"):
        duration(text, "--in")


def test_a_duration_has_an_upper_end() -> None:
    with pytest.raises(UsageError, match="at most 36500d"):
        duration("99999999999999999999d", "--in")


def test_timeouts_are_whole_seconds() -> None:
    assert whole_seconds("2m", "--timeout") == 120
    with pytest.raises(UsageError, match="--timeout must be whole seconds"):
        whole_seconds("1.5s", "--timeout")


def test_a_payload_is_passed_on_to_the_letter() -> None:
    text = '{"b": 30.40, "a": 1e400, "a": [ ]}'
    assert payload_text(text) == text


def test_a_payload_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "payload.json").write_text('{"größe": 1}', encoding="utf-8")
    assert payload_text(f"@{tmp_path / 'payload.json'}") == '{"größe": 1}'
    with pytest.raises(UsageError, match=r"--payload: .* cannot be read"):
        payload_text(f"@{tmp_path / 'none.json'}")


def test_a_bare_word_gets_a_hint_about_quotes() -> None:
    with pytest.raises(UsageError, match=r"--payload must be JSON .*quotes"):
        payload_text("hello")
    with pytest.raises(UsageError, match="--payload must be JSON: "):
        payload_text('{"a":')


def test_a_target_is_a_handler_or_json_and_never_both() -> None:
    assert target("demo.echo", None) == {"kind": "python", "handler": "demo.echo"}
    assert target(None, '{"kind": "python", "handler": "x"}') == {"kind": "python", "handler": "x"}
    for handler, text in [(None, None), ("a", "{}")]:
        with pytest.raises(UsageError, match="exactly one of --handler and --target"):
            target(handler, text)
    with pytest.raises(UsageError, match="--target must be a JSON object"):
        target(None, "[1]")
