"""Explanations, made from the other operations of the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.contract.explanations import EventExplanation, ExplainEvent
from holdfast.contract.operation import Api
from holdfast.engine.api import answers
from holdfast.explaining.events import explain_event


class Explanations:
    """`api` gives the engine's own: it is asked like by any caller."""

    def __init__(self, api: Callable[[], Api]) -> None:
        self._api = api

    @answers(ExplainEvent)
    def event(self, request: ExplainEvent) -> Awaitable[EventExplanation]:
        return explain_event(self._api(), request.org, request.event_id)
