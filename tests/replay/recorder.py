"""Stores the histories of the corpus: `python -m tests.replay.recorder`.

One scene per file: it plays a workflow of the corpus on a real engine. A file that is there is never written again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast import Client, Engine, EngineConfig, StoreConfig, WorkerConfig
from holdfast.errors import HoldfastError
from holdfast.testing import export_history
from tests.conftest import until
from tests.replay import corpus

FOLDER = Path(__file__).parent / "histories"
ROOT = Path(__file__).parents[2]
QUICK = EngineConfig(store=StoreConfig(synchronous="normal"), worker=WorkerConfig(shutdown_grace_s=0.1))

Scene = Callable[[Client], Awaitable[str]]
"""Plays, and gives the id of the execution whose history is to be stored."""
SCENES: dict[str, Scene] = {}


def scene(play: Scene) -> Scene:
    SCENES[play.__name__] = play
    return play


async def played(handle: Any) -> str:
    """Wait for the end, whatever it is."""
    with suppress(HoldfastError):
        await handle.result(timeout=20)
    found: str = handle.id
    return found


async def at_rest(handle: Any, *names: str) -> None:
    """Wait until the workflow waits for something of one of these names."""

    async def waits() -> bool:
        found = await handle.describe()
        return found.status == "WAITING" and any(wait.name in names or not names for wait in found.waiting_for)

    await until(waits)


@scene
async def steps(client: Client) -> str:
    return await played(await client.start_workflow(corpus.steps, 5, metadata={"team": "blue"}))


@scene
async def tasks(client: Client) -> str:
    return await played(await client.start_workflow(corpus.tasks, 5))


@scene
async def timers(client: Client) -> str:
    return await played(await client.start_workflow(corpus.timers, 5))


@scene
async def signals(client: Client) -> str:
    handle = await client.start_workflow(corpus.signals, workflow_id="noted")
    for number in range(3):
        await handle.signal("note", f"early {number}")
    await at_rest(handle, "a")
    await handle.signal("b", 2)
    await handle.signal("a", 1)
    for text in ("late", "end"):
        await handle.signal("note", text, request_id=f"request {text}")
    return await played(handle)


@scene
async def together(client: Client) -> str:
    return await played(await client.start_workflow(corpus.together, 5))


@scene
async def cart(client: Client) -> str:
    handle = await client.start_workflow(corpus.Cart, 2)
    await handle.signal("put", "book")
    await handle.update("replace", "pen")
    for refused in ("", "bad"):
        with suppress(HoldfastError):
            await handle.update("replace", refused)
    with suppress(HoldfastError):
        await handle.update("unknown", 1)

    async def late() -> bool:
        return (await handle.describe()).metadata == {"stage": "late"}

    await until(late)
    await handle.signal("close")
    return await played(handle)


@scene
async def parent(client: Client) -> str:
    return await played(await client.start_workflow(corpus.parent))


@scene
async def child_with_a_signal(client: Client) -> str:
    """A child as it stands in its own history, with a signal from its parent."""
    await played(await client.start_workflow(corpus.parent))
    page = await client.list_workflows(kind="corpus.child", status="COMPLETED")
    for view in reversed(page.items):
        history = await client.history(view.workflow_execution_id)
        if any(event.type == "SIGNAL_RECEIVED" for event in history):
            return view.workflow_execution_id
    raise AssertionError("no child was signalled")


@scene
async def sender(client: Client) -> str:
    target = await client.start_workflow(corpus.child, "wait", workflow_id="target")
    found = await played(await client.start_workflow(corpus.sender, "target"))
    await played(target)
    return found


async def _again(client: Client) -> list[str]:
    """Signals that come together are one turn's: the first is read, the others move along."""
    handle = await client.start_workflow(corpus.again, 1, workflow_id="again")
    await at_rest(handle, "number")
    await asyncio.gather(*(handle.signal("number", number, request_id=f"n{number}") for number in range(4)))
    await until(lambda: _closed(client, handle.id))
    second = await client.find_workflow("again")
    return [handle.id, await played(second)]


async def _closed(client: Client, execution_id: str) -> bool:
    return not (await client.workflow(execution_id).status()).is_open


@scene
async def continued(client: Client) -> str:
    return (await _again(client))[0]


@scene
async def continued_with_signals(client: Client) -> str:
    """The run after, which begins with the signals that were not read before."""
    return (await _again(client))[1]


@scene
async def patched(client: Client) -> str:
    return await played(await client.start_workflow(corpus.patched))


@scene
async def cancelled(client: Client) -> str:
    handle = await client.start_workflow(corpus.cancelled)
    await at_rest(handle)
    await handle.cancel("enough")
    return await played(handle)


@scene
async def failed(client: Client) -> str:
    return await played(await client.start_workflow(corpus.failed))


@scene
async def terminated(client: Client) -> str:
    handle = await client.start_workflow(corpus.idle)
    await at_rest(handle, "go")
    await handle.terminate("no more")
    return await played(handle)


@scene
async def timed_out(client: Client) -> str:
    return await played(await client.start_workflow(corpus.idle, execution_timeout=0.05))


async def _reset(client: Client) -> list[str]:
    handle = await client.start_workflow(corpus.idle, workflow_id="again and again")
    await at_rest(handle, "go")
    history = await handle.history()
    point = next(event.seq for event in history if event.type == "TASK_COMPLETED")
    fresh = await handle.reset(to_event=point, reason="once more")
    await at_rest(fresh, "go")
    await fresh.signal("go", "at last")
    return [handle.id, await played(fresh)]


@scene
async def reset_from(client: Client) -> str:
    return (await _reset(client))[0]


@scene
async def reset(client: Client) -> str:
    return (await _reset(client))[1]


@scene
async def fork(client: Client) -> str:
    """A second execution with the past of another one, which goes on beside it."""
    handle = await client.start_workflow(corpus.idle, workflow_id="first of two")
    await at_rest(handle, "go")
    fresh = await handle.fork(len(await handle.history()), workflow_id="second of two")
    await fresh.signal("go", "both")
    await handle.signal("go", "both")
    await played(handle)
    return await played(fresh)


@scene
async def saga(client: Client) -> str:
    return await played(await client.start_workflow(corpus.trip))


@scene
async def promises(client: Client) -> str:
    handle = await client.start_workflow(corpus.promises, workflow_id="promising")
    await at_rest(handle, "kept")
    await client.resolve_promise(f"{handle.id}:early", "before it was awaited", idempotency_key="once")
    await client.resolve_promise_by_name("promising", "kept", 7)
    await client.reject_promise(f"{handle.id}:refused", "no")
    await client.publish_event("answered", {"by": "an event"})
    return await played(handle)


@scene
async def events(client: Client) -> str:
    await client.publish_event("early", {"number": 1})
    handle = await client.start_workflow(corpus.events, "key")
    await at_rest(handle, "key")
    for number in (1, 2, 3):
        await client.publish_event("key", {"number": number})
    await at_rest(handle, "letter")
    await client.send_message("letter", "key", "dear sir")
    return await played(handle)


@scene
async def broadcasts(client: Client) -> str:
    handle = await client.start_workflow(corpus.broadcasts)
    await at_rest(handle, "go")
    await client.broadcast("go")
    await at_rest(handle, "left", "right")
    await client.broadcast("right")
    return await played(handle)


@scene
async def waits(client: Client) -> str:
    return await played(await client.start_workflow(corpus.waits, start_at=datetime.now(UTC) + timedelta(seconds=0.02)))


@scene
async def named(client: Client) -> str:
    adopted = await client.start_workflow(corpus.child, "wait", workflow_id="there already")
    await at_rest(adopted, "go")
    return await played(await client.start_workflow(corpus.named, execution_timeout=60))


async def record(name: str) -> str:
    """Play a scene on an engine of its own; the history as text, without a trace of where it was played."""
    async with Engine("sqlite://", workflows=corpus.WORKFLOWS, tasks=corpus.TASKS, config=QUICK) as engine:
        execution_id = await SCENES[name](engine.client)
        events = await engine.client.history(execution_id)
        text = export_history(events, execution_id=execution_id).replace(f"{ROOT}/", "")
        return re.sub(r'"worker": "[^"]+"', '"worker": "worker-1"', text)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in SCENES:
        path = FOLDER / f"{name}.json"
        if path.exists():
            print(f"{name}: kept")
            continue
        text = asyncio.run(record(name))
        with path.open("x", encoding="utf-8") as file:  # never over another one
            file.write(text)
        print(f"{name}: stored")


if __name__ == "__main__":
    main()
