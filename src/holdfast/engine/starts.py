"""Starts and signals: what is done with a request before it is submitted.

Large payloads are logged, and a start is stamped with the span of its caller where traces are on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.config import Limits
from holdfast.contract.executions import (
    SignalResponse,
    SignalWithStart,
    SignalWithStartResponse,
    SignalWorkflow,
    StartAnswer,
    StartWorkflow,
)
from holdfast.engine.api import Run, answers
from holdfast.engine.checks import warn_of_size
from holdfast.engine.executions.signal import Signal
from holdfast.engine.executions.signal_with_start import SignalWithStartWorkflow
from holdfast.engine.executions.start import Start
from holdfast.telemetry.traces import Tracing, stamped


class Starts:
    """`tracing` tells whether traces are on: that is decided after the engine is made."""

    def __init__(self, run: Run, limits: Limits, tracing: Callable[[], Tracing | None]) -> None:
        self._run = run
        self._limits = limits
        self._tracing = tracing

    @answers(StartWorkflow)
    def start(self, request: StartWorkflow, using: Any) -> Awaitable[StartAnswer]:
        warn_of_size(request.input, "input", self._limits)
        return self._run(Start(self._stamped(request)), using)

    @answers(SignalWorkflow)
    def signal(self, request: SignalWorkflow, using: Any) -> Awaitable[SignalResponse]:
        warn_of_size(request.signal_value, "signal_value", self._limits)
        return self._run(Signal(request), using)

    @answers(SignalWithStart)
    def signal_with_start(self, request: SignalWithStart, using: Any) -> Awaitable[SignalWithStartResponse]:
        warn_of_size(request.input, "input", self._limits)
        warn_of_size(request.signal_value, "signal_value", self._limits)
        return self._run(SignalWithStartWorkflow(self._stamped(request)), using)

    def _stamped(self, request: Any) -> Any:
        tracing = self._tracing()
        return request if tracing is None else stamped(request, tracing)
