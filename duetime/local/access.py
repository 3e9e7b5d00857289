"""The IAM users of a local Duetime that enforces IAM: one may only call the API, one may do all. It prints no key."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from duetime.signing import Credentials

CALLER = "duetime-local-caller"
ADMIN = "duetime-local-admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Whom the local URL signs as, and who may look into the local AWS."""

    caller: Credentials
    admin: Credentials


def open_access(kept: Path) -> Access | None:
    """The users made before, as `create_access` kept them; None when there are none."""
    try:
        users = json.loads(kept.read_text())
        return Access(caller=Credentials(**users["caller"]), admin=Credentials(**users["admin"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def create_access(iam: Any, kept: Path) -> Access:  # boto3 makes its clients at run time
    """Make both users (anew, if they are there) and keep their keys in a file that only this person can read."""
    access = Access(
        caller=_user(iam, CALLER, "execute-api:Invoke", "arn:aws:execute-api:*:*:*"),
        admin=_user(iam, ADMIN, "*", "*"),
    )
    kept.touch(mode=0o600)
    kept.chmod(0o600)
    kept.write_text(json.dumps(asdict(access)))
    return access


def _user(iam: Any, name: str, action: str, resource: str) -> Credentials:
    try:
        iam.create_user(UserName=name)
    except iam.exceptions.EntityAlreadyExistsException:
        for key in iam.list_access_keys(UserName=name)["AccessKeyMetadata"]:
            iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="duetime-local", PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return Credentials(access_key_id=key["AccessKeyId"], secret_access_key=key["SecretAccessKey"])
