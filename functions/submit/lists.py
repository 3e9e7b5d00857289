"""The call that lists jobs: its query read strictly, a page of rows, a cursor. It never reads the table itself."""

from datetime import datetime
from typing import get_args

from functions.submit import documents
from functions.submit.calls import Reply, page_limit
from functions.submit.cursors import Cursors, not_ours
from functions.submit.request import JOB_ID_PATTERN, Request, is_job_id
from functions.submit.strict_json import show
from shared.flows.walks import PositionError
from shared.model.errors import InputError
from shared.rules.instants import read_instant
from shared.rules.listing import ListQuery, plan_list
from shared.wiring.api import Api

STATUSES: tuple[str, ...] = get_args(documents.JobStatusText)
GROUP_PATTERN = JOB_ID_PATTERN
MAX_TAGS = 20
MAX_TAG = 128 + 1 + 256  # name:value


def list_jobs(request: Request, api: Api, now: datetime) -> Reply:
    """Jobs that fit, page by page. A page may have fewer than asked for, even none, before the last."""
    sent = request.query_lists("tag", once=("status", "group", "from", "to", "limit", "cursor"))
    query, limit = read_list_query(sent), page_limit(_one(sent, "limit"))
    plan, cursor = plan_list(query), _one(sent, "cursor")
    cursors = Cursors(api.cursor_secret.get, ["jobs", plan.kind, *query.canonical])
    try:
        page = api.search.page(query, plan, cursors.open(cursor), limit, now)
    except PositionError:  # signed, and yet none of this list
        raise not_ours(cursor or "") from None
    return Reply(documents.job_page_document(page.jobs, cursors.seal(page.position)))


def read_list_query(sent: dict[str, list[str]]) -> ListQuery:
    """What the query's values ask for. Raises InputError."""
    status, group, tags = _one(sent, "status"), _one(sent, "group"), sent.get("tag", [])
    if status is not None and status not in STATUSES:
        raise InputError("status", f"must be one of {', '.join(STATUSES)}, not {show(status)}")
    if group is not None and not is_job_id(group):
        raise InputError("group", f"must be a group (letters, digits, _ . : -), not {show(group)}")
    if len(tags) > MAX_TAGS:
        raise InputError("tag", f"must be there at most {MAX_TAGS} times, not {len(tags)}")
    for tag in tags:
        if not 1 <= len(tag) <= MAX_TAG:
            raise InputError("tag", f"must be a tag's `name` or `name:value`, not {show(tag)}")
    due_from, due_to = _moment(sent, "from"), _moment(sent, "to")
    if due_from is not None and due_to is not None and due_from >= due_to:
        raise InputError("to", f"must be after from, and {show(sent['to'][0])} is not after {show(sent['from'][0])}")
    return ListQuery(status=status, group=group, tags=tuple(tags), due_from=due_from, due_to=due_to)


def _moment(sent: dict[str, list[str]], name: str) -> datetime | None:
    text = _one(sent, name)
    if text is None:
        return None
    try:
        return read_instant(text, name, error=InputError)
    except InputError as error:
        hint = " (in a query, + is written %2B)" if " " in text else ""
        raise InputError(name, error.message + hint) from None


def _one(sent: dict[str, list[str]], name: str) -> str | None:
    return sent[name][0] if name in sent else None
