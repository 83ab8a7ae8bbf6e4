"""What `@workflow` and `@task` read from a function, and what they refuse."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import subprocess
import sys
import typing as t
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidDefinition, InvalidDuration
from holdfast.frontends.python.definitions import WorkflowDefinition, task, workflow, workflow_definition
from holdfast.model.durations import duration_s, task_timeouts
from holdfast.model.values import TEN_YEARS_S, RetryPolicy, TaskTimeouts
from holdfast.replay.definition import TaskDefinition, task_definition
from holdfast.replay.registry import Registry

if t.TYPE_CHECKING:

    class OnlyForCheckers: ...

    class TaskContext: ...

    class WorkflowContext: ...


@dataclasses.dataclass
class Order:
    number: int


class Context:
    __holdfast_task_context__ = True


def the_workflow(fn: t.Any) -> WorkflowDefinition:
    definition = workflow_definition(fn)
    assert definition is not None
    return definition


def the_task(fn: t.Any) -> TaskDefinition:
    definition = task_definition(fn)
    assert definition is not None
    return definition


# --- workflows ----------------------------------------------------------------------------------------------------


def test_a_workflow_stays_the_same_function():
    """The decorator returns the function itself, with the definition attached."""

    async def greet(ctx, name: str) -> str: ...

    assert workflow(greet) is greet
    assert the_workflow(greet).fn is greet


def test_kind_defaults_to_the_functions_name():
    """Without arguments the kind is the function's name and the version is 1."""

    @workflow
    async def greet(ctx): ...

    definition = the_workflow(greet)
    assert (definition.kind, definition.version) == ("greet", "1")


def test_kind_and_version_can_be_given():
    """`kind=` and `version=` are taken as they are, also for a lambda."""
    fn = workflow(kind="hello-world", version="2.1")(lambda ctx: None)

    definition = the_workflow(fn)
    assert (definition.kind, definition.version) == ("hello-world", "2.1")


def test_types_come_from_string_annotations():
    """Input and result types are resolved although this module's annotations are strings."""

    @workflow
    async def ship(ctx, order: Order) -> list[Order] | None: ...

    definition = the_workflow(ship)
    assert (definition.takes_input, definition.input_type) == (True, Order)
    assert definition.result_type == list[Order] | None


def test_types_may_be_local_to_the_decorating_function():
    """A class written beside the workflow inside a function is found."""

    class Local: ...

    @workflow(kind="x")
    async def ship(ctx, order: Local) -> Local: ...

    @workflow
    def ship_at_once(ctx, order: Local): ...

    assert the_workflow(ship).input_type is the_workflow(ship).result_type is Local
    assert the_workflow(ship_at_once).input_type is Local


def test_the_type_of_ctx_need_not_exist_at_run_time():
    """A context imported only for type checkers is fine: nobody needs its type."""

    @workflow
    async def ship(ctx: WorkflowContext, number: int) -> None: ...

    assert the_workflow(ship).input_type is int


def test_without_annotations_types_are_any():
    """A workflow without annotations takes and gives plain values."""

    @workflow
    def ship(ctx, order=None): ...

    definition = the_workflow(ship)
    assert (definition.input_type, definition.result_type) == (t.Any, t.Any)


def test_a_default_of_the_input_is_noticed():
    """`has_default` says whether the workflow can be started without input."""

    @workflow
    def one(ctx, order=None): ...

    @workflow
    def two(ctx, order): ...

    @workflow
    def three(ctx, *, debug=False): ...

    found = [(d.takes_input, d.has_default) for d in map(the_workflow, (one, two, three))]
    assert found == [(True, True), (True, False), (False, False)]


def test_async_and_plain_functions_are_told_apart():
    """`is_async` follows `async def`."""

    async def one(ctx): ...
    def two(ctx): ...

    assert [the_workflow(workflow(fn)).is_async for fn in (one, two)] == [True, False]


def no_parameters(): ...
def only_keyword(*, ctx): ...
def two_inputs(ctx, a, b): ...
def star(ctx, *args): ...
def double_star(ctx, **kwargs): ...
def keyword_needed(ctx, *, flag): ...
def forgot_ctx(name: str): ...
def forgot_ctx_evaluated(name): ...
def generator(ctx):
    yield 1


async def async_generator(ctx):
    yield 1


async def unresolvable(ctx, order: OnlyForCheckers): ...
async def unresolvable_result(ctx) -> OnlyForCheckers: ...
async def nonsense(ctx, order: 1 + None): ...  # type: ignore[valid-type]


forgot_ctx_evaluated.__annotations__["name"] = str


class Callable_:  # noqa: N801 - not the typing one
    def __call__(self, ctx): ...


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (no_parameters, "has no ctx parameter"),
        (only_keyword, "keyword-only parameter ctx without a default"),
        (two_inputs, r"takes more than one input \(a, b\).*use a dataclass"),
        (star, r"takes \*args"),
        (double_star, r"takes \*\*kwargs"),
        (keyword_needed, "keyword-only parameter flag without a default"),
        (forgot_ctx, "put ctx before it"),
        (forgot_ctx_evaluated, "put ctx before it"),
        (generator, "is a generator"),
        (async_generator, "is a generator"),
        (lambda ctx: None, "pass kind="),
        (unresolvable, "the parameter order as 'OnlyForCheckers'.*import the name at run time"),
        (unresolvable_result, "its result as 'OnlyForCheckers'"),
        (nonsense, "the parameter order as"),
        (Order, "has no run method"),
        ("name", r"@workflow\(kind='name'\)"),
        (5, "not callable"),
        (print, "write a `def` that calls it"),
        (functools.partial(star), "write a `def` that calls it"),
        (Callable_(), "write a `def` that calls it"),
    ],
)
def test_a_workflow_that_cannot_work_is_refused(fn, says):
    """Each way to write a workflow that could never run is refused with the cause and the next step."""
    with pytest.raises(InvalidDefinition, match=says):
        workflow(fn)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"version": 2}, "version='2'"),
        ({"version": ""}, "printable text"),
        ({"kind": "x" * 256}, "1 to 255 bytes"),
        ({"kind": "a\nb"}, "printable text"),
        ({"kind": 5}, "kind is text"),
    ],
)
def test_kind_and_version_are_short_printable_text(options, says):
    """Kind and version are names, not any value."""
    with pytest.raises(InvalidDefinition, match=says):
        workflow(**({"kind": "x"} | options))(lambda ctx: None)


def test_a_refusal_names_the_place():
    """The message and the details say where the refused function is written."""
    with pytest.raises(InvalidDefinition) as caught:
        workflow(two_inputs)

    assert caught.value.details["place"] == f"{__file__}:{two_inputs.__code__.co_firstlineno}"
    assert caught.value.details["place"] in caught.value.message


def test_a_function_is_decorated_once():
    """A second decoration would silently replace the first and is refused."""
    fn = workflow(kind="a")(lambda ctx: None)

    with pytest.raises(InvalidDefinition, match="already a workflow"):
        workflow(kind="b")(fn)
    with pytest.raises(InvalidDefinition, match="already a workflow"):
        task(kind="b")(fn)


def test_a_wrapper_around_a_workflow_is_refused():
    """functools.wraps copies the definition; the wrapper is not taken for the workflow."""

    @workflow
    def ship(ctx): ...

    @functools.wraps(ship)
    def wrapper(ctx): ...

    with pytest.raises(InvalidDefinition, match="put @workflow on the outside"):
        workflow_definition(wrapper)


def test_a_wrapper_below_the_decorator_is_fine():
    """A workflow may be wrapped first and decorated last; parameters and types are those of the inner function."""

    def logged(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            return fn(*args)

        return wrapper

    @workflow
    @logged
    def ship(ctx, order: Order) -> int: ...

    definition = the_workflow(ship)
    assert (definition.input_type, definition.result_type, definition.fn) == (Order, int, ship)


# --- builds -------------------------------------------------------------------------------------------------------


def made(source: str) -> str:
    scope: dict[str, t.Any] = {}
    exec(source, scope)
    return the_workflow(workflow(scope["fn"])).build


@pytest.mark.parametrize(
    "other",
    [
        "def fn(ctx):\n    return 2",
        "def fn(ctx):\n    return ctx.a",
        "def fn(ctx):\n    return [i for i in (1, 3)]",
        "def fn(ctx):\n    return ctx in {'a', 'b', 'd'}",
    ],
)
def test_another_body_is_another_build(other):
    """Without source text, a change in the code changes the build."""
    originals = [
        "def fn(ctx):\n    return 1",
        "def fn(ctx):\n    return ctx.b",
        "def fn(ctx):\n    return [i for i in (1, 2)]",
        "def fn(ctx):\n    return ctx in {'a', 'b', 'c'}",
    ]
    assert made(other) not in {made(original) for original in originals}


def test_another_source_text_is_another_build(tmp_path, monkeypatch):
    """With source text, the build is the text's: the same again when imported again, another when edited."""
    monkeypatch.syspath_prepend(tmp_path)
    builds = []
    for name, body in [("build_a", "return 1"), ("build_b", "return 1"), ("build_c", "return 2")]:
        (tmp_path / f"{name}.py").write_text(f"def fn(ctx):\n    {body}\n")
        builds.append(the_workflow(workflow(__import__(name).fn)).build)

    assert builds[0] == builds[1] != builds[2]


def test_a_build_is_the_same_in_every_process():
    """Neither hash order nor addresses leak into the build."""
    program = (
        "from holdfast.frontends.python.definitions import workflow\n"
        "@workflow\n"
        "def fn(ctx):\n"
        "    f = lambda: 1\n"
        "    return ctx in {'a', 'b', 'c', 'd', 'e'}, f\n"
        "print(fn.__holdfast_workflow__.build)"
    )

    def build(hash_seed: str) -> str:
        run = [sys.executable, "-c", program]
        return subprocess.run(run, env={"PYTHONHASHSEED": hash_seed}, check=True, capture_output=True, text=True).stdout

    assert len({build("1"), build("2"), build("3")}) == 1


# --- tasks --------------------------------------------------------------------------------------------------------


def test_a_task_knows_its_parameters_and_result():
    """Types of all parameters in order, how many are required, and the result type."""

    @task
    async def reply(text: str, order: Order, times: int = 1, rest=None) -> bool: ...

    definition = the_task(reply)
    assert definition.fn is reply
    assert (definition.kind, definition.is_async, definition.wants_context) == ("reply", True, False)
    assert definition.parameter_types == (str, Order, int, t.Any)
    assert (definition.required, definition.result_type) == (2, bool)


def test_a_task_without_options_leaves_them_open():
    """What the decorator does not say is left to the call and the defaults."""

    @task
    def reply(): ...

    definition = the_task(reply)
    assert (definition.queue, definition.retry, definition.timeouts) == (None, None, None)


def test_options_of_a_task_are_kept():
    """Queue, retry policy and time-outs end up in the definition; what is not given keeps its default."""
    policy = RetryPolicy(max_attempts=5)

    @task(kind="r", queue="gpu", retry=policy, start_to_close=dt.timedelta(minutes=2), heartbeat_timeout=5)
    def reply(): ...

    definition = the_task(reply)
    assert (definition.kind, definition.queue, definition.retry) == ("r", "gpu", policy)
    assert definition.timeouts == TaskTimeouts(start_to_close_s=120.0, schedule_to_close_s=None, heartbeat_s=5.0)


def by_marker(ctx: Context, x: int): ...
def by_name(ctx: TaskContext, x: int): ...
def by_dotted_name(ctx: holdfast.TaskContext, x: int): ...  # type: ignore[name-defined]  # noqa: F821 - on purpose
def evaluated(ctx, x: int): ...


evaluated.__annotations__["ctx"] = Context


@pytest.mark.parametrize("fn", [by_marker, by_name, by_dotted_name, evaluated])
def test_a_first_parameter_of_type_task_context_asks_for_it(fn):
    """The context is known by its class or, where that can't be resolved, by its name; it is no argument."""
    definition = the_task(task(fn))

    assert (definition.wants_context, definition.parameter_types, definition.required) == (True, (int,), 1)


def test_a_parameter_merely_called_ctx_is_an_argument():
    """Only the annotation asks for the context, never the name of the parameter."""
    assert the_task(task(kind="x")(lambda ctx: None)).wants_context is False


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: task(kind="x")(lambda *args: 0), r"takes \*args"),
        (lambda: task(kind="x")(lambda *, flag: 0), "flag without a default"),
        (lambda: task(lambda: 0), "pass kind="),
        (lambda: task(Order), "a function is needed"),
        (lambda: t.cast(t.Any, task)("name"), r"@task\(kind='name'\)"),
        (lambda: t.cast(t.Any, task)(kind="x", retry=3)(lambda: 0), "pass a RetryPolicy"),
        (lambda: task(kind="x", queue="")(lambda: 0), "queue=''"),
    ],
)
def test_a_task_that_cannot_work_is_refused(make: Callable[[], t.Any], says):
    """Each way to write a task that could never run is refused with the cause and the next step."""
    with pytest.raises(InvalidDefinition, match=says):
        make()


def test_a_time_limit_of_zero_is_refused():
    """No attempt could finish within no time."""
    with pytest.raises(InvalidDuration, match="start_to_close must be more than 0"):
        task(start_to_close=0)


def test_timeouts_replace_only_what_is_given():
    """A call's time-outs replace those of the definition one by one; without any the definition's stay."""
    base = TaskTimeouts(start_to_close_s=10.0, heartbeat_s=3.0)

    assert task_timeouts(base=base) is base
    assert task_timeouts(schedule_to_close=60, base=base) == TaskTimeouts(
        start_to_close_s=10.0, schedule_to_close_s=60.0, heartbeat_s=3.0
    )
    assert task_timeouts() is None


# --- durations ----------------------------------------------------------------------------------------------------


@given(st.floats(0, TEN_YEARS_S) | st.integers(0, int(TEN_YEARS_S)))
def test_every_duration_up_to_ten_years_is_taken(value):
    """Any number of seconds from 0 to ten years is taken as it is, as a float."""
    seconds = duration_s(value, "delay")

    assert (seconds, type(seconds)) == (value, float)


def test_a_timedelta_is_a_duration():
    """A timedelta counts with its microseconds."""
    assert duration_s(dt.timedelta(minutes=1, microseconds=1), "delay") == 60.000001


@pytest.mark.parametrize(
    "value",
    [-1, -0.001, float("nan"), float("inf"), TEN_YEARS_S + 1, 10**5000, dt.timedelta(days=-1), True, "5", None, 1j],
    ids=lambda value: str(type(value)),
)
def test_anything_else_is_no_duration(value):
    """What is no duration is refused with the field's name."""
    with pytest.raises(InvalidDuration, match="delay must") as caught:
        duration_s(value, "delay")

    assert caught.value.field == "delay"


# --- the registry -------------------------------------------------------------------------------------------------


@workflow(kind="ship")
def ship_1(ctx): ...


@workflow(kind="ship", version="2")
def ship_2(ctx): ...


@workflow(kind="ship", version="2")
def ship_2_again(ctx): ...


@task(kind="pack")
def pack(): ...


@task(kind="pack")
def pack_again(): ...


def test_definitions_are_found_by_kind_and_version():
    """A registry finds each version of a workflow and each task, and None for what it does not know."""
    registry = Registry([ship_1, ship_2], [pack])

    assert registry.workflow("ship", "1") is the_workflow(ship_1)
    assert registry.workflow("ship", "2") is the_workflow(ship_2)
    assert registry.workflow("ship", "3") is None
    assert registry.task("pack") is the_task(pack)
    assert registry.task("ship") is None


def test_a_registry_lists_what_it_knows_in_order():
    """Listing keeps the order of registration; the same function twice counts once."""
    registry = Registry([ship_2, ship_1, ship_2], [pack, pack])

    assert [definition.target for definition in registry.workflows] == [ship_2, ship_1]
    assert [definition.fn for definition in registry.tasks] == [pack]


@pytest.mark.parametrize(
    ("make", "pair", "called"),
    [
        (lambda: Registry([ship_1, ship_2, ship_2_again]), (ship_2, ship_2_again), "workflow 'ship' version '2'"),
        (lambda: Registry([], [pack, pack_again]), (pack, pack_again), "task 'pack'"),
    ],
)
def test_two_functions_of_the_same_kind_are_refused(make, pair, called):
    """Two functions can't share a kind; the message names both places."""
    with pytest.raises(InvalidDefinition, match=f"{called} is defined twice") as caught:
        make()

    assert all(f"{__file__}:{fn.__code__.co_firstlineno}" in caught.value.message for fn in pair)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Registry([no_parameters]), "decorate it with @workflow"),
        (lambda: Registry([], [no_parameters]), "decorate it with @task"),
        (lambda: Registry([pack]), r"is a task: pass it in tasks=\[...\]"),
        (lambda: Registry([], [ship_1]), r"is a workflow: pass it in workflows=\[...\]"),
        (lambda: Registry(t.cast(t.Any, ["ship"])), "'ship' is not a workflow"),
        (lambda: Registry([], t.cast(t.Any, [dt])), "is not a task"),
    ],
)
def test_only_decorated_functions_are_registered(make, says):
    """What is not decorated, or is the other of the two, is refused with what to do."""
    with pytest.raises(InvalidDefinition, match=says):
        make()


def test_anything_without_a_definition_has_none():
    """Looking for a definition on any object at all answers None."""
    for obj in (None, "ship", 5, print, Order, Order(1), pack):
        assert workflow_definition(obj) is None
    assert task_definition(ship_1) is None


def test_importing_loads_no_event_loop():
    """Definitions can be imported without asyncio, OpenSSL or pydantic."""
    program = (
        "import sys, holdfast.frontends.python.definitions\n"
        "print([m for m in ('asyncio', '_hashlib', 'pydantic', 'sqlite3') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"
