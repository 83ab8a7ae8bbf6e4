"""`ctx.state`, `set_metadata`, `patched`, `info`: what others see of a workflow, and what it knows of itself."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from msgspec import Raw

from holdfast import WorkflowContext, workflow
from holdfast.model import commands as c
from holdfast.model import events as e
from tests.replay.driving import Driven, completed, result_of, signalled
from tests.replay.recording import machine_for, replayed


@dataclass
class Stage:
    name: str


def test_state_is_one_change_for_each_turn():
    """The last value counts; what is taken away is named."""

    @workflow
    async def staged(ctx: WorkflowContext) -> dict[str, object]:
        ctx.state["stage"] = "first"
        ctx.state["stage"] = Stage("second")
        ctx.state.update(progress=1, note=None)
        await ctx.task("t")
        del ctx.state["note"]
        assert Stage("second") == ctx.state["stage"]
        assert "stage" in ctx.state
        assert 2 == len(ctx.state)
        return {key: str(value) for key, value in ctx.state.items()}

    driven = Driven(staged)
    first = driven.start().commands
    assert (
        c.ChangeState(values={"stage": Raw(b'{"name":"second"}'), "progress": Raw(b"1"), "note": Raw(b"null")}) in first
    )
    last = driven.turn(completed())
    assert c.ChangeState(removed=("note",)) in last.commands
    assert {"stage": "Stage(name='second')", "progress": "1"} == result_of(last)
    driven.check()


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("", 1, "InvalidRequest"),
        ("x" * 256, 1, "InvalidRequest"),
        (5, 1, "InvalidRequest"),
        ("ok", object(), "PayloadNotEncodable"),
    ],
)
def test_state_refuses_what_it_cannot_keep(key, value, kind):
    """And keeps what it had."""

    @workflow
    async def wrong(ctx: WorkflowContext) -> str:
        ctx.state["kept"] = 1
        try:
            ctx.state[key] = value
        except Exception as error:
            assert ["kept"] == list(ctx.state)
            return type(error).__name__
        return "taken"

    driven = Driven(wrong)
    assert kind == result_of(driven.start())
    driven.check()


def test_taking_away_what_is_not_there_is_a_key_error():
    """As in any mapping, and nothing is recorded."""

    @workflow
    async def wrong(ctx: WorkflowContext) -> str:
        try:
            del ctx.state["missing"]
        except KeyError:
            return ctx.state.get("missing", "default")
        return "gone"

    driven = Driven(wrong)
    turn = driven.start()
    assert "default" == result_of(turn)
    assert 1 == len(turn.commands)
    driven.check()


def test_state_that_the_code_shows_differently_now_is_no_mismatch():
    """It is an observation: replay does not compare it."""

    @workflow
    async def before(ctx: WorkflowContext) -> None:
        ctx.state["old"] = 1
        await ctx.task("t")

    @workflow
    async def after(ctx: WorkflowContext) -> None:
        await ctx.task("t")

    driven = Driven(before)
    driven.start()
    replayed(after, driven.history)


def test_metadata_is_set_and_taken_away():
    """`ctx.info.metadata` stays what it was at the start."""

    @workflow
    async def named(ctx: WorkflowContext) -> list[dict[str, str]]:
        ctx.set_metadata({"step-no": "1"}, customer="c1", old=None)
        await ctx.task("t")
        ctx.set_metadata(customer="c2")
        return [dict(ctx.metadata), dict(ctx.info.metadata)]

    driven = Driven(named, metadata={"old": "x", "kept": "y"})
    change = driven.start().commands[-1]
    assert c.ChangeMetadata(values={"step-no": "1", "customer": "c1"}, removed=("old",)) == change
    last = driven.turn(completed())
    assert c.ChangeMetadata(values={"customer": "c2"}) in last.commands
    assert [{"kept": "y", "step-no": "1", "customer": "c2"}, {"old": "x", "kept": "y"}] == result_of(last)
    driven.check()


@pytest.mark.parametrize("bad", [{"key": 5}, {"": "text"}, {5: "text"}, {"key": "\ud800"}])
def test_metadata_is_text_to_text(bad):
    """All or nothing is set."""

    @workflow
    async def wrong(ctx: WorkflowContext) -> list[object]:
        try:
            ctx.set_metadata({"good": "1", **bad})
        except Exception as error:
            return [type(error).__name__, dict(ctx.metadata)]
        return []

    driven = Driven(wrong)
    turn = driven.start()
    assert ["InvalidRequest", {}] == result_of(turn)
    assert 1 == len(turn.commands)


# --- changes of code --------------------------------------------------------------------------------------------------


@workflow
async def old_code(ctx: WorkflowContext) -> str:
    await ctx.task("a")
    await ctx.task("b")
    return "old"


@workflow
async def patched_code(ctx: WorkflowContext) -> str:
    await ctx.task("a")
    if ctx.patched("new-b"):
        await ctx.task("new b")
    else:
        await ctx.task("b")
    return "new" if ctx.patched("new-b") else "old"


@workflow
async def deprecated_code(ctx: WorkflowContext) -> str:
    await ctx.task("a")
    ctx.deprecate_patch("new-b")
    await ctx.task("new b")
    return "new"


def test_a_new_execution_goes_the_new_way():
    """The mark is in its history, and the code after the patch replays it."""
    driven = Driven(patched_code)
    driven.start()
    mark, scheduled = driven.turn(completed(1)).commands
    assert isinstance(mark, c.MarkPatch)
    assert ("new-b", True) == (mark.patch_id, "test_context_state.py" in mark.line)
    assert isinstance(scheduled, c.ScheduleTask)
    assert "new b" == scheduled.kind
    driven.check()
    replayed(deprecated_code, driven.history).close()


def test_an_execution_from_before_goes_the_old_way():
    """For the whole of its life; the code before the patch is what it replays."""
    driven = Driven(old_code)
    driven.start()
    driven.turn(completed(1))
    machine = machine_for(patched_code)
    machine.replay(driven.history)
    machine.feed(e.HistoryEvent(len(driven.history) + 1, 99_000_000, completed(2)))
    (end,) = machine.turn().commands
    assert isinstance(end, c.CompleteWorkflow)
    assert b'"old"' == bytes(end.result)


def test_an_execution_that_had_not_come_to_the_change_goes_the_new_way():
    """It is new to it."""
    driven = Driven(old_code)
    driven.start()
    machine = machine_for(patched_code)
    machine.replay(driven.history)
    machine.feed(e.HistoryEvent(len(driven.history) + 1, 99_000_000, completed(1)))
    assert [c.MarkPatch, c.ScheduleTask] == [type(command) for command in machine.turn().commands]


@pytest.mark.parametrize("bad", ["", "x" * 256, 5])
def test_a_patch_needs_a_name(bad):
    """Of 1 to 255 bytes."""

    @workflow
    async def wrong(ctx: WorkflowContext) -> str:
        try:
            ctx.patched(bad)
        except Exception as error:
            return type(error).__name__
        return "taken"

    assert "InvalidRequest" == result_of(Driven(wrong).start())


# --- what it knows of itself ------------------------------------------------------------------------------------------


def test_info_says_where_it_comes_from():
    """Parent, depth, the run before, and when its time is up."""

    @workflow
    async def child(ctx: WorkflowContext) -> list[object]:
        info = ctx.info
        return [info.parent_execution_id, info.depth, info.continued_from, info.expires_at, info.workflow_execution_id]

    driven = Driven(child, parent_execution_id="p", depth=3, continued_from="before", expires_at=5_000_000)
    assert ["p", 3, "before", "1970-01-01T00:00:05Z", "execution"] == result_of(driven.start())
    driven.check()
    alone = result_of(Driven(child).start())
    assert [None, 0, None, None, "execution"] == alone
    assert datetime.fromtimestamp(5, UTC).isoformat() == "1970-01-01T00:00:05+00:00"


def test_random_comes_from_the_seed_where_there_is_one():
    """A fork draws what the execution it was taken from would have drawn."""

    @workflow
    async def draw(ctx: WorkflowContext) -> list[object]:
        return [ctx.random.random(), str(ctx.uuid4())]

    own = result_of(Driven(draw).start())
    assert own == result_of(Driven(draw, seed="execution").start())
    assert own != result_of(Driven(draw, seed="another").start())


def test_a_cancel_request_can_be_seen():
    """By code that goes on in spite of it."""
    from asyncio import CancelledError

    @workflow
    async def stubborn(ctx: WorkflowContext) -> list[object]:
        seen: list[object] = [ctx.cancel_requested, ctx.cancel_reason]
        try:
            await ctx.wait_for_signal("never")
        except CancelledError:
            seen += [ctx.cancel_requested, ctx.cancel_reason]
        await ctx.wait_for_signal("end")
        return seen

    driven = Driven(stubborn)
    driven.start()
    driven.turn(e.CancelRequested(reason="enough"))
    assert [False, "", True, "enough"] == result_of(driven.turn(signalled("end")))
    driven.check()


async def test_state_metadata_and_patches_are_recorded_by_the_engine(engine):
    """As events, which the history shows."""

    @workflow
    async def recorded(ctx: WorkflowContext) -> bool:
        ctx.state["stage"] = "begun"
        ctx.set_metadata(stage="begun")
        return ctx.patched("p")

    running = await engine(workflows=[recorded])
    handle = await running.client.start_workflow(recorded)
    assert await handle.result(timeout=10) is True
    history = await handle.history()
    bodies = {event.type: event.body for event in history}
    assert {"stage": "begun"} == {
        key: json.loads(bytes(value)) for key, value in bodies["STATE_CHANGED"].values.items()
    }
    assert {"stage": "begun"} == bodies["METADATA_CHANGED"].values
    assert "p" == bodies["PATCH_MARKED"].patch_id
    replayed(recorded, history, handle.id).close()
