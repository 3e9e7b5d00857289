"""How each item of the table is written and read: a contract with later versions. It never calls AWS.

Moments are texts that sort (`2026-11-29T12:00:05`), structures that nothing queries are one JSON text.
An attribute whose value is the default is left out, so that an ordinary job stays far below 1 KB.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from shared.model.instants import epoch_s, from_sort_text, sort_text
from shared.model.job import Due, Job, JobSpec, JobStatus, Retry, Schedule, Target
from shared.model.run import Attempt, Outcome, Run, RunStatus
from shared.store import keys
from shared.store.table import Item, number, text

PAYLOAD_INLINE_BYTES = 512  # a longer payload is an item of its own, so that status writes stay 1 write unit
KEPT_ATTEMPTS = 20

T = TypeVar("T")
_MOMENTS = ("run_at", "anchor", "start_at", "end_at")
_CLAIM_FIELDS = ("priority", "group")  # what stands beside the schedule in its text


def read_all(items: Iterable[Item], read: Callable[[Item], T]) -> tuple[list[T], list[Item]]:
    """What `read` makes of the items, and those items that it cannot read: one bad item must not hold up the others."""
    found: list[T] = []
    unreadable: list[Item] = []
    for item in items:
        try:
            found.append(read(item))
        except Exception:  # noqa: BLE001 - whatever is wrong about an item, it is that item's trouble alone
            unreadable.append(item)
    return found, unreadable


def is_expired(item: Item, now: datetime) -> bool:
    """Whether the item's TTL has passed: DynamoDB removes it within days, in no order."""
    return keys.TTL_ATTRIBUTE in item and int(item[keys.TTL_ATTRIBUTE]["N"]) < epoch_s(now)


def job_item(job: Job, shard: int, ttl: datetime | None = None) -> Item:
    """A job as its item; in the index of `shard` if it is scheduled and due. `ttl`: when the item may be removed."""
    spec = job.spec
    item: Item = {
        **keys.job_key(job.job_id),
        "status": text(job.status),
        "revision": number(job.revision),
        "version": number(job.version),
        "fence": number(job.fence),
        "created_at": text(sort_text(job.created_at)),
        "changed_at": text(sort_text(job.changed_at)),
        "schedule": text(_claim_text(spec)),
        "target": text(_json({"kind": spec.target.kind, **spec.target.params})),
        "timeout_s": number(spec.timeout_s),
        "runs_claimed": number(job.runs_claimed),
    }
    if job.due_at is not None:
        item[keys.DUE_AT] = text(sort_text(job.due_at))
        if job.status is JobStatus.SCHEDULED:
            item[keys.DUE_KEY] = text(keys.due_key(job.due_at, shard))
    if job.claimed_until is not None:
        item["claimed_until"] = text(sort_text(job.claimed_until))
    if job.payload_id is not None:
        item["payload_id"] = text(job.payload_id)
    else:
        item["payload"] = text(spec.payload)
    if spec.retry != Retry():
        item["retry"] = text(_json(_retry_dict(spec.retry)))
    if spec.tags:
        item["tags"] = {"M": {name: text(value) for name, value in spec.tags.items()}}
    if spec.deadline_s is not None:
        item["deadline_s"] = number(spec.deadline_s)
    if spec.overlap != "allow":
        item["overlap"] = text(spec.overlap)
    if spec.depends_on:
        item["depends_on"] = text(_json(spec.depends_on))
        item["on_parent_failure"] = text(spec.on_parent_failure)
    if job.has_children:
        item["has_children"] = {"BOOL": True}
    item |= {name: text(value) for name, value in (("name", spec.name), ("group", spec.group)) if value is not None}
    item |= {"first_revision": number(job.first_revision)} if job.first_revision != 1 else {}
    item |= _list_keys(job)
    if ttl is not None:
        item[keys.TTL_ATTRIBUTE] = number(epoch_s(ttl))
    return item


def _list_keys(job: Job) -> Item:
    """Where a job with a group stands in the index of lists."""
    group = job.spec.group
    if group is None:
        return {}
    at = keys.group_list_at(job.created_at, job.job_id)
    return {keys.LIST_KEY: text(keys.group_list_key(group)), keys.LIST_AT: text(at)}


def job_of(item: Item, payload: str | None = None) -> Job:
    """The job in `item`; `payload` is the text of its payload item, where it has one that was read."""
    kind, params = _target_of(item["target"]["S"])
    schedule, claim_fields = _claim_of(item["schedule"]["S"])
    spec = JobSpec(
        job_id=keys.job_id_of(item[keys.PK]["S"]),
        name=_text_of(item, "name"),
        group=_text_of(item, "group"),
        tags={name: value["S"] for name, value in item.get("tags", {"M": {}})["M"].items()},
        target=Target(kind=kind, params=params),
        payload=item["payload"]["S"] if "payload" in item else payload if payload is not None else "null",
        schedule=schedule,
        retry=_retry_of(item["retry"]["S"]) if "retry" in item else Retry(),
        timeout_s=int(item["timeout_s"]["N"]),
        deadline_s=int(item["deadline_s"]["N"]) if "deadline_s" in item else None,
        overlap=item["overlap"]["S"] if "overlap" in item else "allow",
        priority=claim_fields.get("priority", "normal"),
        depends_on=tuple(json.loads(item["depends_on"]["S"])) if "depends_on" in item else (),
        on_parent_failure=item["on_parent_failure"]["S"] if "on_parent_failure" in item else "skip",
    )
    return Job(
        job_id=keys.job_id_of(item[keys.PK]["S"]),
        spec=spec,
        status=JobStatus(item["status"]["S"]),
        due_at=_moment_of(item, keys.DUE_AT),
        revision=int(item["revision"]["N"]),
        version=int(item["version"]["N"]),
        fence=int(item["fence"]["N"]),
        created_at=from_sort_text(item["created_at"]["S"]),
        changed_at=from_sort_text(item["changed_at"]["S"]),
        runs_claimed=int(item["runs_claimed"]["N"]),
        claimed_until=_moment_of(item, "claimed_until"),
        payload_id=_text_of(item, "payload_id"),
        first_revision=int(item["first_revision"]["N"]) if "first_revision" in item else 1,
        has_children="has_children" in item,
    )


def payload_item(job_id: str, payload_id: str, payload: str, written_at: datetime) -> Item:
    """A payload too long to stand in the job. It has no TTL: the audit sweeps those that no job names."""
    return {
        **keys.payload_key(job_id, payload_id),
        "payload": text(payload),
        "written_at": text(sort_text(written_at)),
    }


def due_of(item: Item) -> Due:
    """What the index shows of a job (or the job's own item, which has all of that)."""
    schedule, claim_fields = _claim_of(item["schedule"]["S"])
    return Due(
        job_id=keys.job_id_of(item[keys.PK]["S"]),
        schedule=schedule,
        due_at=from_sort_text(item[keys.DUE_AT]["S"]),
        revision=int(item["revision"]["N"]),
        timeout_s=int(item["timeout_s"]["N"]),
        runs_claimed=int(item["runs_claimed"]["N"]),
        **claim_fields,
    )


def _claim_text(spec: JobSpec) -> str:
    """The schedule, and with it what else a claim needs: the index shows the one text, and its projection is fixed."""
    others = {"priority": spec.priority, "group": spec.group}
    chosen = {name: value for name, value in others.items() if value not in ("normal", None)}
    return _json({**json.loads(schedule_text(spec.schedule)), **chosen})


def _claim_of(text_: str) -> tuple[Schedule, dict[str, Any]]:
    """The reverse of `_claim_text`: the schedule, and the fields beside it."""
    fields: dict[str, Any] = json.loads(text_)
    beside = {name: fields.pop(name) for name in _CLAIM_FIELDS if name in fields}
    for name in _MOMENTS:
        if name in fields:
            fields[name] = from_sort_text(fields[name])
    return Schedule(**fields), beside


def schedule_text(schedule: Schedule) -> str:
    """A schedule as one JSON text; what has its default value is left out."""
    plain = Schedule()
    fields: dict[str, Any] = {}
    for name in Schedule.__dataclass_fields__:
        value = getattr(schedule, name)
        if value != getattr(plain, name):
            fields[name] = sort_text(value) if isinstance(value, datetime) else value
    return _json(fields)


def schedule_of(text_: str) -> Schedule:
    """The reverse of `schedule_text`; what else a claim needs is left out."""
    return _claim_of(text_)[0]


def run_of(item: Item) -> Run:
    """The run in `item`, with its attempts numbered."""
    latest = int(item["attempt"]["N"])
    stored = item["attempts"]["L"]
    first = latest - len(stored) + 1
    attempts = [_attempt_of(first + place, value["M"]) for place, value in enumerate(stored)]
    attempts[:-1] = [attempt if attempt.outcome else lost(attempt) for attempt in attempts[:-1]]
    return Run(
        job_id=keys.job_id_of(item[keys.PK]["S"]),
        scheduled_for=keys.scheduled_for_of(item[keys.SK]["S"]),
        status=RunStatus(item["status"]["S"]),
        revision=int(item["revision"]["N"]),
        attempt=latest,
        attempts=tuple(attempts),
        lease_expires_at=_moment_of(item, "lease_expires_at"),
        retry_at=_moment_of(item, "retry_at"),
        cancel_requested=_is_marked(item),
        reason=_text_of(item, "reason"),
        result=_text_of(item, "result"),
        missed=int(item["missed"]["N"]) if "missed" in item else None,
        missed_until=_moment_of(item, "missed_until"),
        waited="waited" in item,
        requested_at=_moment_of(item, "requested_at"),
        earlier_attempts=int(item["earlier_attempts"]["N"]) if "earlier_attempts" in item else 0,
        progress=_text_of(item, "progress"),
    )


def _is_marked(item: Item) -> bool:
    """Whether a cancel is asked for: by a job of a later revision than the run's, and not of one before it."""
    mark = item.get("cancel_requested")
    if mark is None:
        return False
    return "N" not in mark or int(mark["N"]) > int(item["revision"]["N"])  # release 0.1.0 wrote true, for any revision


def span_of(item: Item) -> tuple[datetime, datetime]:
    """The first and the last occurrence that the run in `item` stands for."""
    scheduled_for = keys.scheduled_for_of(item[keys.SK]["S"])
    return scheduled_for, _moment_of(item, "missed_until") or scheduled_for


def attempts_value(attempts: tuple[Attempt, ...]) -> dict[str, Any]:
    """The attempts as they stand in a run; only the last 20 are kept."""
    return {"L": [{"M": _attempt_value(attempt)} for attempt in attempts[-KEPT_ATTEMPTS:]]}


def _attempt_value(attempt: Attempt) -> Item:
    value: Item = {
        "worker": text(attempt.worker_id),
        "started": text(sort_text(attempt.started_at)),
        "lease": text(sort_text(attempt.lease_expires_at)),
    }
    if attempt.finished_at is not None:
        value["finished"] = text(sort_text(attempt.finished_at))
    if attempt.outcome is not None:
        value["outcome"] = text(attempt.outcome)
    if attempt.error is not None:
        value["error"] = text(attempt.error)
    if attempt.error_kind is not None:
        value["kind"] = text(attempt.error_kind)
    return value


def _attempt_of(number_: int, value: Item) -> Attempt:
    return Attempt(
        attempt=number_,
        worker_id=value["worker"]["S"],
        started_at=from_sort_text(value["started"]["S"]),
        lease_expires_at=from_sort_text(value["lease"]["S"]),
        finished_at=_moment_of(value, "finished"),
        outcome=Outcome(value["outcome"]["S"]) if "outcome" in value else None,
        error=_text_of(value, "error"),
        error_kind=_text_of(value, "kind"),
    )


def lost(attempt: Attempt) -> Attempt:
    """An attempt that another one followed although nobody wrote its end: its lease ran out."""
    return replace(
        attempt,
        finished_at=attempt.lease_expires_at,
        outcome=Outcome.LOST,
        error="the lease ran out before the attempt ended",
    )


def _retry_dict(retry: Retry) -> dict[str, object]:
    fields = {name: getattr(retry, name) for name in Retry.__dataclass_fields__}
    return {name: value for name, value in fields.items() if value != ()}


def _retry_of(text_: str) -> Retry:
    fields: dict[str, Any] = json.loads(text_)
    values: dict[str, Any] = {name: tuple(it) if isinstance(it, list) else it for name, it in fields.items()}
    return Retry(**values)


def _target_of(text_: str) -> tuple[str, dict[str, object]]:
    fields: dict[str, object] = json.loads(text_)
    return str(fields.pop("kind")), fields


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _text_of(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def _moment_of(item: Item, name: str) -> datetime | None:
    return from_sort_text(item[name]["S"]) if name in item else None
