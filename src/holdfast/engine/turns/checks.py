"""What a worker may ask of the world in a turn, checked before anything is changed.

A worker is not trusted to have checked it: a filter that can't be read, or a key that no store keeps, would otherwise
break the transaction of everybody who shares it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.engine.checks import check_timeout
from holdfast.errors import InvalidRequest
from holdfast.expressions import compile_filter
from holdfast.model import commands as c
from holdfast.model.messages import SubscriptionKind
from holdfast.model.shapes import check_shape
from holdfast.model.validation import check_name
from holdfast.model.values import DeliveryMode, IfRunning, ParentClose

_KINDS = frozenset(str(kind) for kind in SubscriptionKind)
_TOO_LARGE = 2**62
_DELIVERIES = frozenset(str(delivery) for delivery in DeliveryMode)
_PARENT_CLOSE = frozenset(str(parent_close_action) for parent_close_action in ParentClose)
_IF_RUNNING = frozenset(str(choice) for choice in IfRunning)


def refusal_of(turns: Iterable[c.Turn]) -> InvalidRequest | None:
    """The first reason why these turns can't be recorded, if there is one."""
    try:
        for turn in turns:
            for command in turn.commands:
                check = _CHECKS.get(type(command))
                if check is not None:
                    check(command)
    except InvalidRequest as refusal:
        return refusal
    return None


def _check_child(command: c.StartChild) -> None:
    _check_choice(command.on_parent_close, _PARENT_CLOSE, "on_parent_close")
    _check_choice(command.if_running, _IF_RUNNING, "if_running")


def _check_publish(command: c.Publish) -> None:
    check_name(command.key, "key")
    if command.correlation is not None:
        check_name(command.correlation, "correlation")
    check_timeout(command.expire_after_s, "expire_after")
    _check_choice(command.delivery, _DELIVERIES, "delivery")


def _check_broadcast(command: c.ThrowBroadcast) -> None:
    check_name(command.name, "name")


def _check_promise(command: c.CreatePromise) -> None:
    if command.event_key is not None:
        check_name(command.event_key, "event_key")
    check_shape(command.shape, "shape")


def _check_wait(command: c.StartWait) -> None:
    _check_choice(command.kind, _KINDS, "kind")
    check_name(command.key, "key")
    if command.correlation is not None:
        check_name(command.correlation, "correlation")
    if command.where is not None:
        compile_filter(command.where)
    for field in ("since_at", "after_event_id", "born"):
        if not 0 <= (getattr(command, field) or 0) < _TOO_LARGE:
            raise InvalidRequest(f"{field} must be a number from 0 to {_TOO_LARGE}", field=field)


def _check_choice(value: str, known: frozenset[str], field: str) -> None:
    if value not in known:
        raise InvalidRequest(f"{field} must be one of {', '.join(sorted(known))}, not {value!r:.50}", field=field)


_CHECKS: dict[type[Any], Callable[[Any], None]] = {
    c.StartChild: _check_child,
    c.StartWait: _check_wait,
    c.Publish: _check_publish,
    c.ThrowBroadcast: _check_broadcast,
    c.CreatePromise: _check_promise,
}
