"""Why something does not happen."""

from __future__ import annotations

from holdfast.contract.explanations import Explanations
from holdfast.errors import RouteNotFound
from holdfast.server.rest.calls import Call
from holdfast.transport.rest import explanation_views as xv


def _of(call: Call) -> Explanations:
    if call.engine_api.explanations is None:
        raise RouteNotFound
    return call.engine_api.explanations


async def explain_workflow(call: Call) -> xv.ExplanationView:
    return xv.explanation_view(await _of(call).execution(call.org, call.execution_id))


async def explain_event(call: Call) -> xv.EventExplanationView:
    return xv.event_explanation_view(await _of(call).event(call.org, call.number("event_id")))
