"""Idempotency keys: one table and one rule for everything that changes something and may be asked for twice.

A key belongs to an org. It is stored with the effect of its request, in the same transaction: there is no claim that
could be left behind, and a request that was refused leaves its key free. The same key with other content, or for
another operation, is refused. A key counts until its time to live has passed since the request was done; one that has
started an execution, not before that one has been closed for as long. Expiry only forgets the key: what was settled
stays settled.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, structs

from holdfast.contract.instants import micros
from holdfast.engine.operation import Operation
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import RequestMismatch
from holdfast.model.executions import RequestRow
from holdfast.model.values import MICRO
from holdfast.telemetry.traces import TRACEPARENT

_encode = msgspec.json.Encoder(order="deterministic").encode
_NOT_CONTENT = frozenset({"request_id", "ttl_s", "wait", "wait_for"})
_FIELDS: dict[type[Any], tuple[tuple[str, Any], ...]] = {}


def decide_once(operation: Operation[Any, Any], ws: Workspace) -> Any:
    """Answer a repeated request as the first time; remember the answer of a new one, for as long as its key counts."""
    request = operation.request
    key = (request.org, request.request_id)
    assert operation.ANSWER is not None, "only operations with an answer type take request ids"
    fingerprint = fingerprint_of(request, operation.KNOWN_AS)
    known = ws.get(RequestRow, key)
    if known is not None and counts(ws, known):
        if known.fingerprint != fingerprint:
            raise RequestMismatch(
                f"idempotency key {request.request_id!r} was used for another request: send a new one",
                request_id=request.request_id,
            )
        return _marked(_first_answer(known.answer, operation.ANSWER), new=False)
    answer = _marked(operation.decide(ws), new=True)
    _remember(ws, operation, answer, fingerprint)
    return answer


def _first_answer(stored: bytes, kind: type[Any]) -> Any:
    """What was answered first; payloads byte for byte."""
    answer = msgspec.json.decode(stored, type=kind)
    payloads = {field.name: field.encode_name for field in structs.fields(kind) if field.type is Any}
    if not payloads:
        return answer
    raw = msgspec.json.decode(stored, type=dict[str, Raw])
    return structs.replace(answer, **{name: raw[key] for name, key in payloads.items() if key in raw})


def _remember(ws: Workspace, operation: Operation[Any, Any], answer: Any, fingerprint: str) -> None:
    request = operation.request
    ttl_s = getattr(request, "ttl_s", None)
    ttl = int((ws.config.request_ttl_s if ttl_s is None else ttl_s) * MICRO)
    execution_id, subject = operation.subject(answer)
    ws.put(
        RequestRow(
            org=request.org,
            request_id=request.request_id,
            fingerprint=fingerprint,
            answer=msgspec.json.encode(answer),
            created_at=ws.now,
            ttl=ttl,
            expires_at=ws.now + ttl,
            execution_id=execution_id,
            subject=subject,
        )
    )


def fingerprint_of(request: Any, known_as: str = "") -> str:
    """What a request asks for. How long its key counts is not part of it, nor is the order of keys in a payload.

    Fields that have their default are left out, so that a field which a later version adds changes nothing. `known_as`
    stands in for the name of the request's type.
    """
    content: dict[str, Any] = {}
    for name, default in _content_fields(type(request)):
        value = getattr(request, name)
        if name == "metadata" and value and TRACEPARENT in value:
            # A repeat comes from another span; that makes it no other request.
            value = {key: tag for key, tag in value.items() if key != TRACEPARENT} or None
        if value != default:
            content[name] = _content(value)
    if "addressed_to" in content:
        content["workflow_execution_id"] = content.pop("addressed_to")
    remembered = getattr(request, "remembered", None)
    if remembered is not None:
        content = remembered(content)
    return sha256((known_as or type(request).__name__).encode() + _encode(content)).hexdigest()


def _content(value: Any) -> Any:
    """Instants are microseconds, as they are in the fingerprints of earlier versions."""
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    return micros(value) if isinstance(value, datetime) else value


def _content_fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Names and defaults. Asking msgspec for them takes longer than all the rest, so they are kept."""
    found = _FIELDS.get(kind)
    if found is None:
        fields = [field for field in structs.fields(kind) if field.name not in _NOT_CONTENT]
        found = _FIELDS[kind] = tuple((field.name, _default(field)) for field in fields)
    return found


def _default(field: structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def counts(ws: Workspace, known: RequestRow) -> bool:
    """Whether a key is still in use; `requests.forget` in the store removes no other."""
    if known.expires_at > ws.now:
        return True
    started = ws.loaded.executions.get(known.execution_id) if known.execution_id is not None else None
    if started is None:
        return False
    return started.closed_at is None or started.closed_at + known.ttl > ws.now


def _marked(answer: Any, *, new: bool) -> Any:
    """With what it says of the key, if it says that."""
    if not hasattr(answer, "idempotency_key_new"):
        return answer
    return structs.replace(answer, idempotency_key_used=True, idempotency_key_new=new)
