"""Workflows written as classes: what they say about themselves, and what is refused when they are decorated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import wraps

import pytest

from holdfast import WorkflowContext, query, signal, update, workflow
from holdfast.errors import InvalidDefinition
from holdfast.frontends.python.definitions import workflow_definition
from holdfast.replay.registry import Registry
from tests.replay.driving import Driven, result_of


@dataclass
class Line:
    sku: str
    count: int = 1


def test_what_a_class_says_about_itself():
    """Kind, version, types, handlers: all from the class."""

    @workflow(kind="order", version="2", execution_timeout=60)
    class Order:
        def __init__(self, ctx: WorkflowContext) -> None:
            self.lines: list[Line] = []

        async def run(self, ctx: WorkflowContext, customer: str) -> int:
            return len(self.lines)

        @signal
        def add(self, line: Line) -> None: ...

        @signal(name="add-many")
        async def add_many(self, ctx: WorkflowContext, lines: list[Line] | None = None) -> None: ...

        @query
        def total(self) -> int:
            return len(self.lines)

        @update
        def change(self, line: Line) -> Order:
            return self

        @change.validator
        def check(self, line: Line) -> None: ...

    definition = workflow_definition(Order)

    assert definition is not None
    assert ("order", "2", 60.0, Order) == (
        definition.kind,
        definition.version,
        definition.execution_timeout_s,
        definition.cls,
    )
    assert (True, str, int, True) == (
        definition.takes_input,
        definition.input_type,
        definition.result_type,
        definition.init_takes_context,
    )
    handlers = definition.handlers
    assert [["add", "add-many"], ["total"], ["change"]] == [
        list(handlers.signals),
        list(handlers.queries),
        list(handlers.updates),
    ]
    many = handlers.signals["add-many"]
    assert (True, True, True, list[Line] | None) == (
        many.is_async,
        many.wants_context,
        many.has_default,
        many.value_type,
    )
    assert Order is handlers.updates["change"].result_type
    assert handlers.updates["change"].validator is not None
    assert (definition,) == Registry([Order, Order]).workflows


def test_kind_defaults_to_the_class_name():
    """As with functions."""

    @workflow
    class Parcel:
        async def run(self, ctx): ...

    definition = workflow_definition(Parcel)
    assert definition is not None
    assert "Parcel" == definition.kind
    assert Parcel().run.__name__ == "run"


class Base:
    @signal
    def stop(self) -> None:
        self.stopped = True

    @query
    def look(self) -> str:
        return "base"


def test_handlers_are_inherited_and_overridden():
    """Those of the bases count; an override needs its decorator again; None takes one away."""

    @workflow
    class Kept(Base):
        async def run(self, ctx): ...

        @query
        def look(self) -> str:
            return "kept"

    @workflow
    class Without(Kept):
        stop = None  # type: ignore[assignment]

    kept, without = workflow_definition(Kept), workflow_definition(Without)
    assert kept is not None
    assert without is not None
    assert ["stop"] == list(kept.handlers.signals)
    assert "kept" == kept.handlers.queries["look"].fn(None)
    assert [] == list(without.handlers.signals)
    assert without.fn is kept.fn


def test_a_subclass_without_the_decorator_is_no_workflow():
    """The decorated class itself is the definition."""

    @workflow
    class Decorated:
        async def run(self, ctx): ...

    class Sub(Decorated): ...

    assert workflow_definition(Sub) is None
    with pytest.raises(InvalidDefinition, match=r"Sub .* is not a workflow: decorate it with @workflow"):
        Registry([Sub])


def test_the_build_changes_with_the_source_of_class_and_bases():
    """So that a changed handler in a base is noticed."""

    class Short:
        @query
        def more(self) -> str:
            return "short"

    class Long:
        @query
        def more(self) -> str:
            return "longer"

    def made(base: type) -> str:
        @workflow
        class Made(base):  # type: ignore[misc]
            async def run(self, ctx): ...

        definition = workflow_definition(Made)
        assert definition is not None
        return definition.build

    assert made(Short) == made(Short)
    assert made(Short) != made(Long)


def refused(make, says):
    with pytest.raises(InvalidDefinition, match=says) as caught:
        make()
    return caught.value


def test_a_class_without_run_is_refused():
    """With its place and what to write."""

    def make():
        @workflow
        class Empty:
            def other(self): ...

    error = refused(make, r"Empty .* has no run method: write `async def run\(self, ctx\)`")
    assert "test_class_definitions.py" in str(error.details["place"])


def test_bad_runs_are_refused():
    """Static, without ctx, with two inputs, abstract, or a handler."""

    def static():
        @workflow
        class Bad:
            @staticmethod
            async def run(ctx): ...

    def lonely():
        @workflow
        class Bad:
            async def run(self): ...

    def two():
        @workflow
        class Bad:
            async def run(self, ctx, a, b): ...

    def handler():
        @workflow
        class Bad:
            @signal
            async def run(self, ctx): ...

    def abstract():
        @workflow
        class Bad(ABC):
            async def run(self, ctx):
                return self.missing()

            @abstractmethod
            def missing(self): ...

    def twice():
        @workflow
        @workflow
        class Bad:
            async def run(self, ctx): ...

    def method():
        class Bad:
            @workflow
            async def run(self, ctx): ...

    refused(static, "no plain method but a staticmethod")
    refused(lonely, r"has no ctx parameter: write `async def run\(self, ctx\)`")
    refused(two, r"takes more than one input \(a, b\)")
    refused(handler, "run that is a handler")
    refused(abstract, "is abstract and can't be made: implement missing")
    refused(twice, "already a workflow")
    refused(method, "is a method: put @workflow on its class")


def test_an_init_that_needs_more_than_ctx_is_refused():
    """Nobody could give it."""

    def make():
        @workflow
        class Bad:
            def __init__(self, ctx, address): ...

            async def run(self, ctx): ...

    refused(make, "needs address: an instance is made with ctx or with nothing")


def test_an_init_with_defaults_is_fine():
    """A dataclass, for example."""

    @workflow
    @dataclass
    class Fine:
        items: list[str] = field(default_factory=list)

        async def run(self, ctx) -> int:
            return len(self.items)

    driven = Driven(Fine)
    assert 0 == result_of(driven.start())


def test_bad_handlers_are_refused_where_they_stand():
    """Each names the place and the remedy."""

    def async_query():
        @query
        async def look(self): ...

    def generator():
        @signal
        def look(self):
            yield 1

    def two_values():
        @update
        def change(self, ctx, a, b): ...

    def no_self():
        @signal
        def change(): ...

    def rest():
        @signal
        def change(self, *values): ...

    def text():
        signal("name")  # type: ignore[call-overload]

    def bad_name():
        @query(name="")
        def look(self): ...

    def own_name():
        @query(name="__stack__")
        def look(self): ...

    def on_class():
        @signal
        class Wrong: ...

    def on_static():
        signal(staticmethod(print))

    def twice():
        @signal
        @query
        def look(self): ...

    refused(async_query, "a query only looks and can't wait; write `def`")
    refused(generator, "is a generator")
    refused(two_values, r"takes more than one value \(a, b\): it takes at most one; use a dataclass")
    refused(no_self, "has no self: it has to be a method")
    refused(rest, r"takes \*values")
    refused(text, r"the name is a keyword, @signal\(name='name'\)")
    refused(bad_name, "use 1 to 255 bytes of printable text")
    refused(own_name, "names that begin with __ are Holdfast's own")
    refused(on_class, "on the class .*Wrong: a function is needed")
    refused(on_static, "a function is needed")
    refused(twice, "already a handler")


def test_bad_validators_are_refused():
    """Async, second, of the handler's name, or with a value where there is none."""

    def asynchronous():
        @update
        def change(self, value): ...

        @change.validator
        async def check(self, value): ...

    def second():
        @update
        def change(self, value): ...

        @change.validator
        def check(self, value): ...

        @change.validator
        def check_again(self, value): ...

    def same_name():
        @update
        def change(self, value): ...

        @change.validator  # type: ignore[no-redef]
        def change(self, value): ...

    def value():
        @update
        def change(self): ...

        @change.validator
        def check(self, value): ...

    refused(asynchronous, "`async def` validator")
    refused(second, "is the second validator of update 'change'")
    refused(same_name, "would replace it: give it another name")
    refused(value, "takes a value, but update 'change' has none")


def test_handlers_that_only_the_class_shows_to_be_wrong():
    """Two of one name, an undecorated override, a wrapped one, an annotation that can't be resolved."""

    def two():
        @workflow
        class Bad:
            async def run(self, ctx): ...

            @signal(name="go")
            def first(self): ...

            @signal(name="go")
            def second(self): ...

    def override():
        @workflow
        class Bad(Base):
            async def run(self, ctx): ...

            def stop(self): ...

    def static():
        @workflow
        class Bad:
            async def run(self, ctx): ...

            @staticmethod
            @signal
            def stop(it): ...

    def wrapped():
        def noisy(fn):
            @wraps(fn)
            def inner(self):
                return fn(self)

            return inner

        @workflow
        class Bad:
            async def run(self, ctx): ...

            @noisy
            @signal
            def stop(self): ...

    def annotation():
        @workflow
        class Bad:
            async def run(self, ctx): ...

            @signal
            def stop(self, value: Nowhere): ...  # type: ignore[name-defined]  # noqa: F821

    refused(two, r"has two signal handlers named 'go': .*first.* and .*second.*; rename one")
    refused(override, "overrides the signal handler stop without being one itself: decorate it with @signal as well")
    refused(static, "as a staticmethod: make it a plain method")
    refused(wrapped, "put @signal on the outside")
    refused(annotation, "annotates the parameter value as 'Nowhere', which can't be resolved")


def test_ctx_is_known_by_its_name_or_its_annotation():
    """Whatever else a first parameter is, it is the value."""

    @workflow
    class Fine:
        async def run(self, ctx): ...

        @signal
        def by_name(self, ctx): ...

        @signal
        def by_annotation(self, context: WorkflowContext, value: int): ...

        @signal
        def a_value(self, value: int): ...

    definition = workflow_definition(Fine)
    assert definition is not None
    assert {"by_name": (True, False), "by_annotation": (True, True), "a_value": (False, True)} == {
        name: (found.wants_context, found.takes_value) for name, found in definition.handlers.signals.items()
    }


def test_a_signal_and_a_query_may_share_a_name():
    """They are different doors."""

    @workflow
    class Fine:
        async def run(self, ctx): ...

        @signal(name="lines")
        def set_lines(self, lines: list[Line]): ...

        @query(name="lines")
        def get_lines(self): ...

    definition = workflow_definition(Fine)
    assert definition is not None
    assert ["lines"] == list(definition.handlers.signals) == list(definition.handlers.queries)
