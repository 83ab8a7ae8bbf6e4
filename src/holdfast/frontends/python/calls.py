"""What others ask of a live workflow: signals to handlers, updates, queries.

Signals and updates are part of the history: they come at their place, and what their handlers do is recorded and
replayed like the rest of the program, as tasks of its loop. Queries are not: they look at a program between two turns,
must leave it as it is, and a program they did change is marked as spoiled, for the worker to throw away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    ControlFlow,
    InvalidRequest,
    NotFound,
    ProgramError,
    QueryFailed,
    QueryNotReadOnly,
    UnknownQuery,
)
from holdfast.frontends.python.failures import failure_of
from holdfast.frontends.python.handlers import OWN_QUERIES, Handler, Handlers
from holdfast.frontends.python.loop import foreign_wait
from holdfast.frontends.python.read_only import snapshot_of
from holdfast.model import events as e
from holdfast.model.payloads import decode, encode
from holdfast.model.values import NULL, Payload

if TYPE_CHECKING:
    from holdfast.frontends.python.program import PythonProgram


class Calls:
    """The handlers of one execution's instance. `running` counts signals and updates that have not finished."""

    __slots__ = ("_handlers", "_instance", "_program", "running")

    def __init__(self, program: PythonProgram, handlers: Handlers, instance: Any) -> None:
        self._program = program
        self._handlers = handlers
        self._instance = instance
        self.running = 0

    # --- signals ---

    def takes_signal(self, name: str) -> bool:
        return name in self._handlers.signals

    def signal(self, name: str, value: Payload, seq: int) -> None:
        handler = self._handlers.signals[name]
        try:
            arguments = self._arguments(handler, value, given=bytes(value) != bytes(NULL))
        except InvalidRequest as error:
            self._program.machine.refuse_signal(seq, str(error))
            return
        self._start(handler, self._run_signal(handler, arguments))

    async def _run_signal(self, handler: Handler, arguments: tuple[Any, ...]) -> None:
        try:
            await _called(handler, arguments)
        except (ControlFlow, GeneratorExit, KeyboardInterrupt):
            raise
        except asyncio.CancelledError:
            pass  # its own doing: nobody else can cancel a handler
        except BaseException as error:  # noqa: BLE001 - as in run: whatever it is, it fails the workflow
            self._program.fail(error)
        finally:
            self.running -= 1

    # --- updates ---

    def update(self, request: e.UpdateRequested) -> None:
        machine = self._program.machine
        try:
            handler = self._handlers.updates.get(request.update_name)
            if handler is None:
                raise NotFound(_unknown("update", request.update_name, self._handlers.updates))
            arguments = self._arguments(handler, request.input, given=bytes(request.input) != bytes(NULL))
            self._validate(handler, arguments)
        except (ControlFlow, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a validator raises is its refusal
            machine.reject_update(request.update_id, failure_of(error))
            return
        machine.accept_update(request.update_id)
        self._start(handler, self._run_update(handler, arguments, request.update_id))

    def _validate(self, handler: Handler, arguments: tuple[Any, ...]) -> None:
        validator = handler.validator
        if validator is None:
            return
        instance, *values = arguments
        context = [self._program.context] if validator.wants_context else []
        value = values[handler.wants_context :] if validator.takes_value else []
        try:
            self._frozen(lambda: validator.fn(instance, *context, *value))
        except QueryNotReadOnly as error:
            raise InvalidRequest(f"the validator of {handler} must only look: it asked for something") from error

    async def _run_update(self, handler: Handler, arguments: tuple[Any, ...], update_id: str) -> None:
        machine = self._program.machine
        try:
            result = encode(await _called(handler, arguments), field=f"result of {handler}")
        except (ControlFlow, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - fails this update, not the workflow
            at_fault = error if isinstance(error, ProgramError) else foreign_wait(error)
            if at_fault is not None:
                self._program.fail(at_fault)
            else:
                machine.fail_update(update_id, failure_of(error))
        else:
            machine.complete_update(update_id, result)
        finally:
            self.running -= 1

    def _start(self, handler: Handler, coroutine: Any) -> None:
        self.running += 1
        self._program.loop.create_task(coroutine, name=str(handler))

    # --- queries ---

    def query(self, name: str, value: Payload, *, given: bool) -> Any:
        """The answer, as the handler gives it."""
        handler = self._handlers.queries.get(name)
        if handler is None:
            raise UnknownQuery(_unknown("query", name, [*self._handlers.queries, *OWN_QUERIES]), query=name)
        arguments = self._arguments(handler, value, given=given)
        before = self._snapshot()
        try:
            answer = encode(self._frozen(lambda: handler.fn(*arguments)), field=f"answer of {handler}")
        except (QueryNotReadOnly, ControlFlow) as error:
            self._program.spoiled = True
            raise QueryNotReadOnly(
                f"{handler} tried to ask for something: a query only looks; do that in a signal or update handler",
                error_type="QueryNotReadOnly",
            ) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # even sys.exit(): it must not end the worker
            self._check_untouched(handler, before)
            kind = type(error).__name__
            raise QueryFailed(f"{handler} failed: {kind}: {error}", error_type=kind) from error
        self._check_untouched(handler, before)
        return answer

    def _snapshot(self) -> list[Any]:
        program = self._program
        return [program.loop.activity, *snapshot_of(self._instance, program.state)]

    def _check_untouched(self, handler: Handler, before: list[Any]) -> None:
        if self._snapshot() != before:
            self._program.spoiled = True
            raise QueryNotReadOnly(
                f"{handler} changed the workflow's data, which was thrown away: a query only looks; change data in "
                "a signal or update handler",
                error_type="QueryNotReadOnly",
            )

    # --- both ---

    def names(self) -> dict[str, list[str]]:
        return {
            "signals": sorted(self._handlers.signals),
            "queries": sorted([*self._handlers.queries, *OWN_QUERIES]),
            "updates": sorted(self._handlers.updates),
        }

    def _arguments(self, handler: Handler, value: Payload, *, given: bool) -> tuple[Any, ...]:
        """What the handler is called with; InvalidRequest if the value is not what it takes."""
        context = (self._program.context,) if handler.wants_context else ()
        if not handler.takes_value:
            if given:
                raise InvalidRequest(f"{handler} takes no value: send none", field="value")
            return (self._instance, *context)
        if handler.has_default and not given:
            return (self._instance, *context)
        return (self._instance, *context, decode(value, handler.value_type, field=str(handler)))

    def _frozen(self, reader: Callable[[], Any]) -> Any:
        machine = self._program.machine
        machine.frozen = True
        try:
            return self._program.loop.inside(reader)
        finally:
            machine.frozen = False


async def _called(handler: Handler, arguments: tuple[Any, ...]) -> Any:
    answer = handler.fn(*arguments)
    return await answer if handler.is_async else answer


def _unknown(role: str, name: str, known: Any) -> str:
    names = ", ".join(sorted(known)) or "none"
    return f"this workflow has no {role} {name!r}; it has: {names}"
