"""Settings come whole from the environment, and a missing or bad variable is named."""

import pytest

from shared.model.errors import SettingsError
from shared.settings import AuditSettings, ExecuteSettings, SubmitSettings, TickSettings

KINDS = [SubmitSettings, TickSettings, ExecuteSettings, AuditSettings]
VALUES = {
    "DUETIME_TABLE": "jobs",
    "DUETIME_QUEUE_URL": "https://queue",
    "DUETIME_HIGH_QUEUE_URL": "https://high",
    "DUETIME_LOW_QUEUE_URL": "https://low",
    "DUETIME_DEAD_LETTER_QUEUE_URL": "https://letters",
    "DUETIME_SHARDS": "4",
    "DUETIME_TICKED_SHARDS": "4",
    "DUETIME_HORIZON_S": " 300 ",
    "DUETIME_RETENTION_DAYS": "30",
    "DUETIME_MAX_TIMEOUT_S": "105",
    "DUETIME_SEGMENTS": "4",
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_read(kind: type[SubmitSettings]) -> None:
    read = kind.from_env(VALUES)
    assert read.table == "jobs"
    assert read.retention_days == 30
    assert read.queue_urls == {"high": "https://high", "normal": "https://queue", "low": "https://low"}
    assert set(kind.variables().values()) <= set(VALUES)


@pytest.mark.parametrize("kind", KINDS)
def test_each_missing_or_empty_one_is_named(kind: type[SubmitSettings]) -> None:
    for name in kind.variables().values():
        for env in ({k: v for k, v in VALUES.items() if k != name}, VALUES | {name: "  "}):
            with pytest.raises(SettingsError, match=f"{name} is missing"):
                kind.from_env(env)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DUETIME_SHARDS", "many", "must be a whole number, not 'many'"),
        ("DUETIME_SHARDS", "0", "must be 1 to 1024, not 0"),
        ("DUETIME_SHARDS", "4.0", "must be a whole number"),
        ("DUETIME_HORIZON_S", "841", "must be 0 to 840, not 841"),
        ("DUETIME_HORIZON_S", "-1", "must be 0 to 840"),
        ("DUETIME_RETENTION_DAYS", "0", "must be 1 to 3650"),
        ("DUETIME_MAX_TIMEOUT_S", "886", "must be 1 to 885"),
    ],
)
def test_a_bad_one_is_named_with_what_would_be_right(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} {message}"):
        SubmitSettings.from_env(VALUES | {name: value})


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)
    assert TickSettings.from_env().horizon_s == 300
