"""Why something does not happen."""

from __future__ import annotations

from holdfast.api.rest.calls import Call
from holdfast.contract.explanations import Explanations
from holdfast.errors import RouteNotFound
from holdfast.wire.rest import explanation_views as xv


def _of(call: Call) -> Explanations:
    if call.nouns.explanations is None:
        raise RouteNotFound
    return call.nouns.explanations


async def explain_workflow(call: Call) -> xv.ExplanationView:
    return xv.explanation_view(await _of(call).execution(call.org, call.execution_id))
