"""The calls on groups: their limit set and shown. Nothing of a group is stored before it is given one."""

from datetime import datetime

from pydantic import ValidationError

from functions.submit.calls import Reply
from functions.submit.documents import GroupDocument
from functions.submit.errors import InvalidRequestError
from functions.submit.models import GroupBody
from functions.submit.plain_words import field_errors
from functions.submit.request import Request, is_job_id
from functions.submit.strict_json import show
from shared.flows.groups import GroupView
from shared.model.errors import InputError
from shared.wiring.api import Api


def limit_group(request: Request, api: Api, now: datetime) -> Reply:
    """Set or take away the limit of a group; it holds for every attempt that starts from now on."""
    request.query()
    group, sent = _group(request), request.body()
    try:
        body = GroupBody.model_validate(sent)
    except ValidationError as error:
        raise InvalidRequestError(field_errors(error, sent, GroupBody)) from None
    return Reply(_document(api.groups.limit(group, body.max_running, now)))


def show_group(request: Request, api: Api, now: datetime) -> Reply:
    """The limit of a group, and how many attempts have a place."""
    request.query()
    return Reply(_document(api.groups.show(_group(request), now)))


def _group(request: Request) -> str:
    group = request.path["group"]
    if not is_job_id(group):
        raise InputError("group", f"must be a group (letters, digits, _ . : -), not {show(group)}")
    return group


def _document(view: GroupView) -> GroupDocument:
    return {"group": view.group, "max_running": view.max_running, "running": view.running}
