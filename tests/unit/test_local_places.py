"""What the local runtime needs on this machine, and where it looks for it."""

import os
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from duetime.local.access import ADMIN, CALLER, Access, create_access, open_access
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


def test_the_keys_are_kept_for_this_person_only_and_replaced_when_made_again(tmp_path: Path) -> None:
    kept = tmp_path / "credentials.json"
    assert open_access(kept) is None
    with mock_aws():
        iam = boto3.client("iam")
        made = create_access(iam, kept)
        assert open_access(kept) == made
        assert os.stat(kept).st_mode & 0o777 == 0o600
        again = create_access(iam, kept)
        users = [user["UserName"] for user in iam.list_users()["Users"]]
        keys = [iam.list_access_keys(UserName=name)["AccessKeyMetadata"] for name in sorted(users)]
    assert sorted(users) == [ADMIN, CALLER]
    assert [[key["AccessKeyId"] for key in of_one] for of_one in keys] == [
        [again.admin.access_key_id],
        [again.caller.access_key_id],
    ]
    kept.write_text('{"caller": 1}')
    assert open_access(kept) is None
    assert isinstance(made, Access)
