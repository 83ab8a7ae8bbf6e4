"""OpenTelemetry traces: one trace per execution, the same on every node and after every restart.

Its ids follow from the execution's id, so nothing has to be carried along or stored: a task that runs on another
machine months later finds its trace by itself. The span of the execution is made when it closes, with the time it
began at; those of steps and of task attempts while they run, and they are the current ones for what runs inside.
Replay runs no bodies and closes nothing, so it leaves no span.

OpenTelemetry's API is all that is needed here, and only where traces are on; what becomes of the spans is the
application's business.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import structs

from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanContext, Tracer

TRACEPARENT: Final = "traceparent"
"""The tag of an execution that says which span has asked for it, as W3C writes it."""

CALLER: Final[ContextVar[str | None]] = ContextVar("holdfast_traceparent", default=None)
"""The `traceparent` that came with a request, set by the door it came through."""

_W3C: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_W3C_LENGTH: Final = 55
"""Later versions may say more after it."""

Request = TypeVar("Request", bound=Any)
Body = Callable[..., Any]
Attributes = dict[str, str | int | float | bool]


def trace_id(execution_id: str) -> str:
    """The id of an execution's trace, as backends show it: 32 hexadecimal digits."""
    return f"{_trace_number(execution_id):032x}"


def _trace_number(execution_id: str) -> int:
    # A digest, not the bits of the UUID: samplers take the lower bits for random, and some of those are not.
    return int.from_bytes(blake2b(execution_id.encode(), digest_size=16).digest()) or 1


def _span_number(*parts: object) -> int:
    return int.from_bytes(blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()) or 1


class Tracing:
    """Makes the spans of one engine or worker. `ratio` of all executions are traced; nodes agree on which."""

    def __init__(self, ratio: float = 1.0, provider: Any = None) -> None:
        if not 0.0 <= ratio <= 1.0:
            raise InvalidRequest(f"trace_ratio is between 0 and 1, not {ratio!r}", field="trace_ratio")
        try:
            from opentelemetry import context, propagate, trace  # noqa: F401, PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise InvalidRequest(
                f"traces need {error.name}: pip install 'holdfast[otel]', or leave TelemetryConfig.traces off",
                field="traces",
            ) from error
        self._api = trace
        self._empty = context.Context()
        self._bound = int(ratio * 2**64)
        self._provider = provider
        self._made: tuple[Any, Tracer] | None = None

    # --- ids ---

    def samples(self, execution_id: str) -> bool:
        return _trace_number(execution_id) & (2**64 - 1) < self._bound

    def execution_context(self, execution_id: str) -> SpanContext:
        """Where the span of an execution is, or will be."""
        return self._place(execution_id, _span_number(execution_id))

    def _place(self, execution_id: str, span: int) -> SpanContext:
        flags = self._api.TraceFlags(self._api.TraceFlags.SAMPLED if self.samples(execution_id) else 0)
        return self._api.SpanContext(_trace_number(execution_id), span, is_remote=True, trace_flags=flags)

    def _inside(self, execution_id: str) -> Context:
        span = self._api.NonRecordingSpan(self.execution_context(execution_id))
        return self._api.set_span_in_context(span, self._empty)

    @property
    def _tracer(self) -> Tracer:
        """Asked for late: applications set OpenTelemetry up when they like."""
        provider = self._provider or self._api.get_tracer_provider()
        if self._made is None or self._made[0] is not provider:
            tracer = provider.get_tracer("holdfast")
            if hasattr(tracer, "id_generator"):
                tracer.id_generator = _Ids(tracer.id_generator)
            self._made = (provider, tracer)
        return self._made[1]

    # --- who asked ---

    def caller(self) -> str | None:
        """The span that makes the present call: what came through a door, or else the current one."""
        given = CALLER.get()
        if given is not None and _W3C.fullmatch(given):
            return given[:_W3C_LENGTH]
        found = self._api.get_current_span().get_span_context()
        return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}" if found.is_valid else None

    def _links(self, metadata: Mapping[str, str] | None, parent_id: str | None) -> list[Link]:
        """To the span that asked for an execution, and to the execution that has it as a child."""
        places = [read_traceparent(metadata[TRACEPARENT], self._api)] if metadata and TRACEPARENT in metadata else []
        if parent_id is not None:
            places.append(self.execution_context(parent_id))
        return [self._api.Link(place) for place in places if place is not None]

    # --- spans ---

    def executed(
        self,
        execution_id: str,
        kind: str,
        *,
        status: str,
        began_at: int,
        ended_at: int,
        attributes: Attributes,
        metadata: Mapping[str, str] | None = None,
        parent_id: str | None = None,
    ) -> None:
        """An execution has closed. Times are microseconds."""
        if not self.samples(execution_id):
            return
        tracer, ids = self._tracer, (_trace_number(execution_id), _span_number(execution_id))
        # A tracer that can't be told its ids makes a span below the place where this one should be.
        chosen = hasattr(tracer, "id_generator")
        with _chosen(*ids):
            span = tracer.start_span(
                f"workflow {kind}",
                context=self._empty if chosen else self._inside(execution_id),
                links=self._links(metadata, parent_id),
                attributes={"holdfast.workflow_execution_id": execution_id, "holdfast.status": status, **attributes},
                start_time=began_at * 1000,
            )
        if status not in {"COMPLETED", "CONTINUED"}:
            span.set_status(self._api.StatusCode.ERROR, status.lower())
        span.end(ended_at * 1000)

    def task(self, body: Body, execution_id: str, task_no: int, attempt: int, attributes: Attributes) -> Body:
        """The body of one attempt, inside a span. The attempt before it, which may have run elsewhere, is linked."""
        places = [_span_number(execution_id, "task", task_no, number) for number in (attempt - 1, attempt)]
        links = [self._api.Link(self._place(execution_id, places[0]))] if attempt > 1 else []
        more: Attributes = {"holdfast.task_no": task_no, "holdfast.attempt": attempt}

        def begin() -> Span:
            with _chosen(_trace_number(execution_id), places[1]):
                return self._begin(f"task {attributes['holdfast.task']}", execution_id, attributes | more, links)

        return self._traced(body, begin)

    def step(self, body: Body, execution_id: str, step_no: int, attributes: Attributes) -> Body:
        """The body of a step, inside a span for every call of it: the next attempt is linked to the one before."""
        before: list[SpanContext] = []
        calls = 0

        def begin() -> Span:
            nonlocal calls
            calls += 1
            more: Attributes = {"holdfast.step_no": step_no, "holdfast.attempt": calls}
            links = [self._api.Link(place) for place in before]
            with _chosen(None, None):
                span = self._begin(f"step {attributes['holdfast.step']}", execution_id, attributes | more, links)
            before[:] = [span.get_span_context()]
            return span

        return self._traced(body, begin)

    def _begin(self, name: str, execution_id: str, attributes: Attributes, links: list[Link]) -> Span:
        return self._tracer.start_span(
            name,
            context=self._inside(execution_id),
            attributes={"holdfast.workflow_execution_id": execution_id, **attributes},
            links=links,
        )

    def _traced(self, body: Body, begin: Callable[[], Span]) -> Body:
        """The same body, async or not, with a span that is current while it runs."""
        if inspect.iscoroutinefunction(body):

            async def inside(*args: Any) -> Any:
                with self._current(begin()):
                    return await body(*args)

            return inside

        async def awaited(result: Coroutine[Any, Any, Any], span: Span) -> Any:
            with self._current(span):
                return await result

        def called(*args: Any) -> Any:
            span = begin()
            with self._current(span, end=False):
                result = body(*args)
            if asyncio.iscoroutine(result):
                # It is awaited in another context, and that is when the work is done.
                return awaited(result, span)
            span.end()
            return result

        return called

    @contextmanager
    def _current(self, span: Span, *, end: bool = True) -> Iterator[None]:
        try:
            with self._api.use_span(span):
                yield
        except BaseException as error:
            if not isinstance(error, Exception):
                # OpenTelemetry looks at exceptions only, and would take a cancelled body for a good one.
                span.set_status(self._api.StatusCode.ERROR, type(error).__name__)
            span.end()
            raise
        if end:
            span.end()


def stamped(request: Request, tracing: Tracing) -> Request:
    """A start request that says which span it came from, if there is one and it does not say so itself."""
    tags: dict[str, str] = request.metadata or {}
    caller = tracing.caller() if TRACEPARENT not in tags else None
    return request if caller is None else structs.replace(request, metadata={**tags, TRACEPARENT: caller})


def read_traceparent(text: str, api: Any) -> SpanContext | None:
    """A W3C trace context; None if it is not one."""
    found = _W3C.fullmatch(text)
    if found is None:
        return None
    trace, span, flags = (int(part, 16) for part in found.groups())
    place: SpanContext = api.SpanContext(trace, span, is_remote=True, trace_flags=api.TraceFlags(flags))
    return place if place.is_valid else None


_IDS: Final[ContextVar[tuple[int | None, int | None]]] = ContextVar("holdfast_ids", default=(None, None))


@contextmanager
def _chosen(trace: int | None, span: int | None) -> Iterator[None]:
    before = _IDS.set((trace, span))
    try:
        yield
    finally:
        _IDS.reset(before)


class _Ids:
    """The generator of our own tracer: gives the ids that were chosen for a span, else what the application's gives."""

    def __init__(self, others: Any) -> None:
        self._others = others

    def generate_trace_id(self) -> int:
        chosen = _IDS.get()[0]
        return chosen if chosen is not None else int(self._others.generate_trace_id())

    def generate_span_id(self) -> int:
        chosen = _IDS.get()[1]
        return chosen if chosen is not None else int(self._others.generate_span_id())

    def is_trace_id_random(self) -> bool:
        """A digest is as good as random."""
        return True
