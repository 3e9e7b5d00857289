"""What the local runtime needs on this machine, and where it looks for it."""

import os
from pathlib import Path

import pytest

from duetime.local.access import Access, create_access, open_access
from duetime.local.environment import check_node, last_lines, run
from duetime.local.errors import MissingToolError, SetUpError
from duetime.local.places import project_root

HERE = Path(__file__).resolve().parents[2]


def test_the_root_is_the_nearest_one_upwards(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "cdk.json").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert project_root(tmp_path / "a" / "b") == tmp_path


def test_somebody_elses_cdk_project_is_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").touch()
    assert project_root(tmp_path) == HERE


def test_node_must_be_there_and_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "node"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"node is not on the PATH: .*18 or newer"):
        check_node()
    node.write_text("#!/bin/sh\necho v16.20.2\n")
    node.chmod(0o755)
    with pytest.raises(MissingToolError, match=r"is version v16.20.2: .*18 or newer"):
        check_node()
    node.write_text("#!/bin/sh\necho v18.0.0\n")
    check_node()


def test_a_tool_that_fails_is_shown_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(SetUpError, match="sh -c echo reason; exit 3 failed:\nreason"):
        run(["sh", "-c", "echo reason; exit 3"], tmp_path)
    assert last_lines("1\n2\n3\n\n", 2) == "2\n3"


class _Iam:
    """The few calls of IAM that are made, as a fake: the real ones run in the deployed tests."""

    class exceptions:  # noqa: N801 — boto3 names it so
        class EntityAlreadyExistsException(Exception):  # noqa: N818
            pass

    def __init__(self) -> None:
        self.keys: dict[str, list[str]] = {}

    def create_user(self, UserName: str) -> None:  # noqa: N803
        if UserName in self.keys:
            raise self.exceptions.EntityAlreadyExistsException
        self.keys[UserName] = []

    def list_access_keys(self, UserName: str) -> dict[str, list[dict[str, str]]]:  # noqa: N803
        return {"AccessKeyMetadata": [{"AccessKeyId": key} for key in self.keys[UserName]]}

    def delete_access_key(self, UserName: str, AccessKeyId: str) -> None:  # noqa: N803
        self.keys[UserName].remove(AccessKeyId)

    def put_user_policy(self, **policy: str) -> None:
        return

    def create_access_key(self, UserName: str) -> dict[str, dict[str, str]]:  # noqa: N803
        self.keys[UserName].append(f"{UserName}-{len(self.keys[UserName])}")
        return {"AccessKey": {"AccessKeyId": self.keys[UserName][-1], "SecretAccessKey": "secret"}}


def test_the_keys_are_kept_for_this_person_only_and_replaced_when_made_again(tmp_path: Path) -> None:
    kept, iam = tmp_path / "credentials.json", _Iam()
    assert open_access(kept) is None
    made = create_access(iam, kept)
    assert open_access(kept) == made
    assert os.stat(kept).st_mode & 0o777 == 0o600
    create_access(iam, kept)
    assert [len(keys) for keys in iam.keys.values()] == [1, 1]
    kept.write_text('{"caller": 1}')
    assert open_access(kept) is None
    assert isinstance(made, Access)
