"""Groups as they are named and shown. Nothing of a group is stored before it is given a limit."""

from datetime import datetime

from functions.submit.calls import Reply
from functions.submit.documents import GroupDocument
from functions.submit.request import Request, is_job_id
from functions.submit.strict_json import show
from shared.flows.groups import GroupView
from shared.model.errors import InputError
from shared.wiring.api import Api


def show_group(request: Request, api: Api, now: datetime) -> Reply:
    """The limit of a group, and how many attempts have a place."""
    request.query()
    return Reply(group_document(api.groups.show(group_of(request), now)))


def group_of(request: Request) -> str:
    """The group in the path. Raises InputError."""
    group = request.path["group"]
    if not is_job_id(group):
        raise InputError("group", f"must be a group (letters, digits, _ . : -), not {show(group)}")
    return group


def group_document(view: GroupView) -> GroupDocument:
    """A group as it is shown."""
    return {"group": view.group, "max_running": view.max_running, "running": view.running}
