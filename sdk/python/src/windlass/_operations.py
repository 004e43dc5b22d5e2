"""The calls of operators: queues, holds, kinds and dead letters. Both clients use these."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from windlass._calls import API, Call, Response, encode, query
from windlass._duration import Duration
from windlass.models import Job, Page, optional_duration, time_to_api
from windlass.operating_models import (
    BulkResult,
    DeadLetterFilter,
    DeadLetterGroup,
    Hold,
    KindSettings,
    Queue,
    QueueOptions,
    Why,
)


def why(job_id: int) -> Call[Why]:
    return Call("GET", f"{API}/jobs/{job_id}/why", lambda response: Why.from_api(response.json()))


# --- Queues ------------------------------------------------------------------------------------------------------


def _queue(name: str, action: str, tenant: str | None, **parameters: Any) -> str:
    return query(f"{API}/queues/{quote(name, safe='')}{action}", {"tenant": tenant, **parameters})


def list_queues(tenant: str | None) -> Call[list[Queue]]:
    return Call(
        "GET",
        query(f"{API}/queues", {"tenant": tenant}),
        lambda response: [Queue.from_api(one) for one in response.json()["items"]],
    )


def set_queue(name: str, tenant: str | None, options: QueueOptions) -> Call[Mapping[str, Any]]:
    body = {
        "policy": options.get("policy"),
        "retention": options.get("retention"),
        "limits": options.get("limits"),
        "breaker": options.get("breaker"),
        "retryBudget": options.get("retry_budget"),
        "honorRetryAfter": options.get("honor_retry_after"),
        "maxHold": optional_duration(options.get("max_hold")),
        "rules": options.get("rules"),
    }
    return Call("PUT", _queue(name, "", tenant), _settings, encode(_given(body)))


def pause_queue(name: str, tenant: str | None) -> Call[int]:
    return Call("POST", _queue(name, "/pause", tenant), lambda response: int(response.json()["queues"]))


def resume_queue(name: str, tenant: str | None) -> Call[int]:
    return Call("POST", _queue(name, "/resume", tenant), lambda response: int(response.json()["queues"]))


def purge_queue(name: str, tenant: str | None) -> Call[int]:
    # Repeating it would cancel jobs that were stored in between.
    return Call(
        "POST", _queue(name, "/purge", tenant), lambda response: int(response.json()["cancelled"]), repeatable=False
    )


# --- Holds -------------------------------------------------------------------------------------------------------


def list_holds(tenant: str | None) -> Call[list[Hold]]:
    return Call(
        "GET",
        query(f"{API}/holds", {"tenant": tenant}),
        lambda response: [Hold.from_api(one) for one in response.json()["items"]],
    )


def place_hold(
    *,
    queue: str | None,
    key: str | None,
    duration: Duration | None,
    until: datetime | None,
    reason: str | None,
    tenant: str | None,
) -> Call[int]:
    body = {
        "queue": queue,
        "key": key,
        "for": optional_duration(duration),
        "until": time_to_api(until),
        "reason": reason,
        "tenantId": tenant,
    }
    return Call("PUT", f"{API}/holds", _held, encode(_given(body)))


def release_hold(*, queue: str | None, key: str | None, tenant: str | None) -> Call[int]:
    return Call("DELETE", query(f"{API}/holds", {"queue": queue, "key": key, "tenant": tenant}), _held)


# --- Kinds -------------------------------------------------------------------------------------------------------


def list_kinds() -> Call[list[KindSettings]]:
    return Call(
        "GET", f"{API}/kinds", lambda response: [KindSettings.from_api(one) for one in response.json()["items"]]
    )


def set_kind(name: str, policy: Any, rules: Any) -> Call[KindSettings]:
    body = _given({"policy": policy, "rules": rules})
    return Call(
        "PUT",
        f"{API}/kinds/{quote(name, safe='')}",
        lambda response: KindSettings.from_api(response.json()),
        encode(body),
    )


# --- Dead letters ------------------------------------------------------------------------------------------------


def _filter(given: DeadLetterFilter) -> dict[str, Any]:
    since = given.get("since")
    return _given(
        {
            "tenant": given.get("tenant"),
            "queue": given.get("queue"),
            "kind": given.get("kind"),
            "class": given.get("error_class"),
            "since": time_to_api(since) if isinstance(since, datetime) else since,
            "fingerprint": given.get("fingerprint"),
        }
    )


def list_dead_letters(limit: int | None, cursor: str | None, given: DeadLetterFilter) -> Call[Page[Job]]:
    return Call(
        "GET",
        query(f"{API}/dead-letters", {**_filter(given), "limit": limit, "cursor": cursor}),
        lambda response: Page.from_api(response.json(), Job.from_api),
    )


def dead_letter_groups(given: DeadLetterFilter) -> Call[list[DeadLetterGroup]]:
    return Call(
        "GET",
        query(f"{API}/dead-letters", {**_filter(given), "group": "true"}),
        lambda response: [DeadLetterGroup.from_api(one) for one in response.json()["items"]],
    )


def _which(ids: Iterable[int] | None, everything: bool, given: DeadLetterFilter) -> dict[str, Any]:
    if ids is not None:
        if given or everything:
            raise ValueError("give ids or a filter, not both")
        return {"ids": list(ids)}
    return {"filter": _filter(given), "all": True} if everything else {"filter": _filter(given)}


def replay_dead_letters(
    ids: Iterable[int] | None, everything: bool, rate: int | None, given: DeadLetterFilter
) -> Call[BulkResult]:
    body = {**_which(ids, everything, given), **_given({"rate": rate})}
    # No dead letter is sent twice: a repetition finds those that are left.
    return Call("POST", f"{API}/dead-letters/replay", _bulk, encode(body), repeatable=ids is not None)


def discard_dead_letters(
    ids: Iterable[int] | None, everything: bool, reason: str | None, given: DeadLetterFilter
) -> Call[BulkResult]:
    body = {**_which(ids, everything, given), **_given({"reason": reason})}
    return Call("POST", f"{API}/dead-letters/discard", _bulk, encode(body), repeatable=ids is not None)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _settings(response: Response) -> Mapping[str, Any]:
    settings: Mapping[str, Any] = response.json()["settings"]
    return settings


def _held(response: Response) -> int:
    return int(response.json()["held"])


def _bulk(response: Response) -> BulkResult:
    return BulkResult.from_api(response.json())
