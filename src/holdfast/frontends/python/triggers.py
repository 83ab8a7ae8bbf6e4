"""`EventTrigger`: what a workflow says about the events that start it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.frontends.python.introspection import invalid
from holdfast.model.validation import check_name

MOST_TRIGGERS = 100


@dataclass(frozen=True, slots=True)
class EventTrigger:
    """Events of a key start this workflow, with the event's data as its input, if they satisfy `where`.

    It runs on `queue`, or on the first queue of the worker that has registered it.
    """

    key: str
    where: str | None = None
    queue: str | None = field(default=None, kw_only=True)

    def check(self) -> None:
        """Refuse a key that nothing can be published under, and a filter that can't be read."""
        check_name(self.key, "start_on")
        if self.queue is not None:
            check_name(self.queue, "queue")
        if self.where is not None:
            from holdfast.expressions import compile_filter  # noqa: PLC0415 - most workflows have no filter

            compile_filter(self.where)


StartOn = str | EventTrigger | Iterable[str | EventTrigger]


def triggers_of(target: Any, start_on: StartOn | None) -> tuple[EventTrigger, ...]:
    """What was given as `start_on=`, checked; each key once."""
    if start_on is None:
        return ()
    given: list[Any] = [start_on] if isinstance(start_on, str | EventTrigger) else _several(target, start_on)
    found: dict[str, EventTrigger] = {}
    for one in given:
        trigger = EventTrigger(one) if isinstance(one, str) else one
        if not isinstance(trigger, EventTrigger):
            raise invalid(target, f"start_on takes event keys and holdfast.On(...), not {one!r:.50}")
        try:
            trigger.check()
        except HoldfastError as error:
            raise invalid(target, f"start_on={trigger.key!r:.50}: {error}") from error
        if trigger.key in found:
            raise invalid(target, f"start_on names {trigger.key!r} twice: join the conditions with ||")
        found[trigger.key] = trigger
    if len(found) > MOST_TRIGGERS:
        raise invalid(target, f"start_on names {len(found)} keys, the most are {MOST_TRIGGERS}")
    return tuple(found.values())


def _several(target: Any, start_on: Any) -> list[Any]:
    if not isinstance(start_on, Iterable):
        raise invalid(target, f"start_on takes event keys and holdfast.On(...), not {start_on!r:.50}")
    return list(start_on)
