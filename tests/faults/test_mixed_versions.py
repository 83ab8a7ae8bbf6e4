"""This version and the one before it, at the same time: servers, remote workers, clients, engines on one database."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from holdfast import Client, WorkflowHandle, WorkflowStatus
from holdfast.model import events as e
from tests.conftest import STORE, OpenEngine, until
from tests.earlier_version import NOW, Tree, may_return, with_one_more_migration
from tests.faults import versions_app as app
from tests.faults.conftest import Process, Spawn, lines, sound_records, value_of

MODULE = "tests.faults.versions_app"
SHORT = {"lease_s": 1.0, "shutdown_grace_s": 2.0}
LONG = {"lease_s": 60.0, "shutdown_grace_s": 2.0}
BOTH = ("earlier", "now")
OTHER = {"earlier": "now", "now": "earlier"}
CROWD = 24
# SQLite's migrations do not say which older programs may go on: none of them may.
UPGRADES = ("now", "later", "later and compatible") if STORE == "postgres" else ("now", "later")
JOURNEYS = [f"journey-{number}" for number in range(6)]


class Running(NamedTuple):
    """A process, and what it said of itself."""

    process: Process
    facts: dict[str, Any]

    async def crowd(self) -> Any:
        """Let it ask for its crowd; what it prints when all have ended."""
        self.process.tell()
        return json.loads(await self.process.line())


class Run(Protocol):
    async def __call__(self, tree: Tree | str, role: str, **options: Any) -> Running:
        """A process of this version, once it is ready."""
        ...


@pytest.fixture
def trees(earlier: Tree) -> dict[str, Tree]:
    return {"earlier": earlier, "now": NOW}


@pytest.fixture
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables: the first version that comes makes them."""
    if STORE == "sqlite":
        yield f"sqlite:///{tmp_path / 'fresh.db'}"
    else:
        with request.getfixturevalue("postgres_databases").one() as url:
            yield url


@pytest.fixture
def run(spawn: Spawn, trees: dict[str, Tree], fresh_url: str, folder: Path) -> Run:
    async def start(tree: Tree | str, role: str, **options: Any) -> Running:
        tree = trees[tree] if isinstance(tree, str) else tree
        process = await spawn(role, env=tree.env, module=MODULE, **{"db": fresh_url, **options})
        facts = json.loads(await process.line())
        assert tree.has(facts["package"]), f"{tree.source} was asked for, {facts['package']} runs"
        return Running(process, facts)

    return start


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(app, "FOLDER", tmp_path)
    return tmp_path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def check_once(folder: Path) -> None:
    """Every body has come to its end once."""
    calls = Counter((line[0], line[1]) for line in lines(folder, "ledger"))
    assert [] == [call for call, count in calls.items() if count != 1]


async def check_histories(folder: Path, url: str, executions: int | None = None) -> None:
    """All are sound and completed, and every result in them is one that a body has really given."""
    given = {line[-1] for line in lines(folder, "ledger")}
    records = await sound_records(url)
    assert executions is None or executions == len(records)
    for record in records:
        assert isinstance(record.history[-1].body, e.WorkflowCompleted)
        for event in record.history:
            if isinstance(event.body, e.StepCompleted | e.TaskCompleted):
                assert value_of(event.body.result) in given


def executions_of(count: int) -> int:
    """How many a crowd makes: a family has two children."""
    kinds = [app.KINDS[number % len(app.KINDS)] for number in range(count)]
    return count + 2 * kinds.count(app.family)


def check_crowd(crowd: list[list[Any]], folder: Path) -> None:
    """Each has the result that its bodies gave."""
    given = {(line[0], line[1]): line[-1] for line in lines(folder, "ledger")}
    for key, _, result in crowd:
        match key.split("-")[0]:
            case "steps" | "chores":
                assert [given[key, number] for number in (1, 2, 3)] == result
            case "naps":
                assert [given[key, number] for number in (1, 2)] == result
            case "listens":
                assert [*BOTH, given[key, 1]] == result
            case "family":
                parts = [[given[f"{key}/{kind}", number] for number in (1, 2, 3)] for kind in ("steps", "chores")]
                assert parts == result
            case "asks":
                assert ["yes", given[key, 1]] == result


# --- servers, remote workers, clients ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("worker", BOTH)
@pytest.mark.parametrize("server", BOTH)
async def test_server_and_remote_worker_of_any_two_versions(
    run: Run, folder: Path, fresh_url: str, server: str, worker: str
):
    """Clients of both versions ask for the same; every workflow runs once, and both are told the same."""
    served = await run(server, "serve")
    worked, caller = await asyncio.gather(
        run(worker, "work", server=served.facts["grpc"]),
        run("earlier", "call", server=served.facts["http"], me="earlier", count=CROWD),
    )
    async with Client.connect(served.facts["http"]) as client:
        told = await asyncio.gather(caller.crowd(), app.ask_all(client, {"me": "now", "count": CROWD}))

    assert told[0] == told[1]
    check_crowd(told[0]["crowd"], folder)
    assert sorted(key for key, *_ in told[0]["crowd"] if key.startswith("steps")) == told[0]["listed"]
    assert ("WORKFLOW_STARTED", "WORKFLOW_COMPLETED") == (told[0]["history"][0], told[0]["history"][-1])
    assert [0, 0] == [await running.process.stop() for running in (worked, served)]
    check_once(folder)
    await check_histories(folder, fresh_url, executions_of(CROWD))


async def begin_journeys(client: Client, folder: Path) -> None:
    """Each waits for its first word, and its child has ended."""
    for key in JOURNEYS:
        await client.start_workflow(app.journey, key, workflow_id=key)
    await all_wait(client, folder, notes=4)


async def send_on(client: Client, folder: Path) -> None:
    """The first word: each goes on until it waits for the second."""
    for key in JOURNEYS:
        await (await client.find_workflow(key)).signal("go", "on")
    await all_wait(client, folder, notes=5)


async def all_wait(client: Client, folder: Path, notes: int) -> None:
    def noted() -> bool:
        return notes * len(JOURNEYS) == sum(line[0].startswith("journey") for line in lines(folder, "ledger"))

    await until(noted)
    for key in JOURNEYS:
        await until(partial(is_waiting, await client.find_workflow(key)))


async def is_waiting(handle: WorkflowHandle) -> bool:
    history = [event.body for event in await handle.history()]
    child_has_ended = any(isinstance(body, e.ChildCompleted) for body in history)
    return child_has_ended and await handle.status() is WorkflowStatus.WAITING


async def end_journeys(client: Client, folder: Path) -> None:
    """The second word, and the promise that the first worker made. What the code saw at first is what it saw on every
    replay, the promise's token with it."""
    handles = [await client.find_workflow(key) for key in JOURNEYS]
    tokens = [line[-2] for line in lines(folder, "ledger") if line[0] in JOURNEYS and line[1] == 1]
    for handle, token in zip(handles, tokens, strict=True):
        await handle.signal("go", "home")
        await client.complete_promise(token, "soon")
    results = [await handle.result(timeout=30) for handle in handles]
    given = {(line[0], line[1]): line[2:] for line in lines(folder, "ledger")}
    for key, (seen, noted, child, facts) in zip(JOURNEYS, results, strict=True):
        assert given[key, 1] == [*seen, noted[0]]
        assert [given[key, number] for number in (2, 3, 4)] == [[value] for value in noted[1:]]
        assert given[f"{key}/child", 1] + given[f"{key}/child", 2] == child
        assert [1, "new", ["on", "home"], "soon", "waits"] == facts


@pytest.mark.slow
@pytest.mark.parametrize("first", BOTH)
async def test_worker_is_replaced_by_the_other_version(run: Run, folder: Path, fresh_url: str, first: str):
    """Killed, then by the one before again, in order: executions are rebuilt from what the other version recorded, and
    only what ran at the kill is run again. The server is of the version of the first."""
    served = await run(first, "serve")
    grpc = served.facts["grpc"]
    async with Client.connect(served.facts["http"]) as client:
        killed = await run(first, "work", server=grpc, worker=SHORT)
        await begin_journeys(client, folder)
        held = [await client.start_workflow(kind, kind) for kind in ("long_step", "long_chore")]
        await until(lambda: len(lines(folder, "begun")) == 2)
        await killed.process.kill()

        successor = await run(OTHER[first], "work", server=grpc, worker=LONG)
        await until(lambda: len(lines(folder, "begun")) == 4)
        (folder / "gate").touch()
        for handle in held:
            await handle.result(timeout=30)
        await send_on(client, folder)
        assert 0 == await successor.process.stop()

        last = await run(first, "work", server=grpc, worker=LONG)
        await end_journeys(client, folder)
    assert [0, 0] == [await running.process.stop() for running in (last, served)]
    check_once(folder)
    await check_histories(folder, fresh_url, 2 * len(JOURNEYS) + 2)


@pytest.mark.slow
async def test_server_is_replaced_by_the_other_version(run: Run, trees: dict[str, Tree], folder: Path, fresh_url: str):
    """Forward, and back where the schema allows it. Workers of both versions stay and find the new server; what they
    run meanwhile goes on and is not run again."""
    ports = {"port": free_port(), "grpc_port": free_port()}
    back = "earlier" if may_return(trees["earlier"], NOW, STORE) else "now"
    served = await run("earlier", "serve", **ports)
    workers = await asyncio.gather(*(run(tree, "work", server=served.facts["grpc"], worker=LONG) for tree in BOTH))
    async with Client.connect(served.facts["http"]) as client:
        await begin_journeys(client, folder)
        chores = [(await client.start_workflow("long_chore", f"chore-{number}")).id for number in range(4)]
        await until(lambda: len(lines(folder, "begun")) == 4)
    assert 0 == await served.process.stop()

    served = await run("now", "serve", **ports)
    async with Client.connect(served.facts["http"]) as client:
        await send_on(client, folder)
    assert 0 == await served.process.stop()

    served = await run(back, "serve", **ports)
    async with Client.connect(served.facts["http"]) as client:
        (folder / "gate").touch()
        for execution_id in chores:
            await client.workflow(execution_id).result(timeout=30)
        await end_journeys(client, folder)
    assert [0, 0, 0] == [await running.process.stop() for running in (*workers, served)]
    assert 4 == len(lines(folder, "begun"))
    check_once(folder)
    await check_histories(folder, fresh_url, 2 * len(JOURNEYS) + 4)


class Load:
    """Callers that see one workflow after another through, until it is enough."""

    def __init__(self, client: Client, callers: int = 2) -> None:
        self._numbers = itertools.count()
        self._enough = False
        self._callers = [asyncio.ensure_future(self._call(client)) for _ in range(callers)]

    async def _call(self, client: Client) -> None:
        while not self._enough:
            number = next(self._numbers)
            results = await asyncio.gather(*(app.see_through(client, number, me) for me in BOTH))
            assert results[0] == results[1]

    async def end(self) -> int:
        """Let what was begun come to its end; how many there were."""
        self._enough = True
        await asyncio.gather(*self._callers)
        return next(self._numbers)


@pytest.mark.slow
async def test_versions_come_and_go_under_load(
    run: Run, trees: dict[str, Tree], folder: Path, fresh_url: str, engine: OpenEngine
):
    """Two servers and two workers, one of each version: one after another is killed or stopped, and is of the other
    version when it comes back."""
    apis = [{"port": free_port(), "grpc_port": free_port()} for _ in BOTH]
    way = "grpc://" + ",".join(f"127.0.0.1:{api['grpc_port']}" for api in apis)
    back = "earlier" if may_return(trees["earlier"], NOW, STORE) else "now"
    servers = [await run(tree, "serve", **api) for tree, api in zip(BOTH, apis, strict=True)]
    workers = await asyncio.gather(*(run(tree, "work", server=way, worker=SHORT) for tree in BOTH))
    load = Load((await engine(url=fresh_url)).client)

    await servers[0].process.kill()
    servers[0] = await run("now", "serve", **apis[0])
    await workers[1].process.kill()
    workers[1] = await run("earlier", "work", server=way, worker=SHORT)
    assert 0 == await servers[1].process.stop()
    servers[1] = await run(back, "serve", **apis[1])
    assert 0 == await workers[0].process.stop()
    workers[0] = await run("now", "work", server=way, worker=SHORT)

    count = await load.end()
    assert [0] * 4 == [await running.process.stop() for running in (*workers, *servers)]
    await check_histories(folder, fresh_url, executions_of(count))


# --- one database -----------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_engines_of_both_versions_share_a_database(run: Run, folder: Path, fresh_url: str, engine: OpenEngine):
    """The earlier one was there before, and goes on when this one has come. Both ask for the same hundred workflows
    and do the work together: each runs once, and both see the same results."""
    engines = [await run(tree, "engine", me=tree, count=100, worker={"task_slots": 2}) for tree in BOTH]
    caller = await engine(url=fresh_url)
    held = [await caller.client.start_workflow("long_chore", f"chore-{number}") for number in range(4)]
    begun = await until(lambda: found if len(found := lines(folder, "begun")) == 4 else None)
    assert sorted(2 * [one.process.pid for one in engines]) == sorted(pid for *_, pid in begun)
    (folder / "gate").touch()

    crowds = await asyncio.gather(*(one.crowd() for one in engines))

    assert crowds[0] == crowds[1]
    assert 100 == len({execution_id for _, execution_id, _ in crowds[0]})
    check_crowd(crowds[0], folder)
    for handle in held:
        await handle.result(timeout=20)
    assert [0, 0] == [await one.process.stop() for one in engines]
    check_once(folder)
    await check_histories(folder, fresh_url, executions_of(100) + 4)


@pytest.mark.slow
@pytest.mark.parametrize("upgrade", UPGRADES)
async def test_schema_decides_whether_the_earlier_version_may_return(
    run: Run, earlier: Tree, folder: Path, fresh_url: str, upgrade: str
):
    """Whatever a newer version does to the schema, the earlier one that runs goes on. Started again it works on if the
    schema is the one it knows, or says that it may; else it is refused, and the newer one has everything."""
    newer = (
        NOW
        if upgrade == "now"
        else with_one_more_migration(folder / "later", compatible=upgrade == "later and compatible")
    )
    options = {"me": "earlier", "count": 3}
    running = await run(earlier, "engine", **options)

    assert 0 == (await newer.holdfast("migrate", fresh_url))[0]
    crowd = await running.crowd()
    assert 0 == await running.process.stop()

    allowed = may_return(earlier, newer, STORE)
    if upgrade != "now":
        assert allowed == (STORE == "postgres" and upgrade == "later and compatible")
    if not allowed:
        code, text = await earlier.holdfast("server", "--db", fresh_url, "--port", "0", "--no-grpc")
        assert 3 == code
        assert "schema version" in text
        assert "upgrade this program" in text
    again = await run(earlier if allowed else newer, "engine", **options)
    assert crowd == await again.crowd()
    check_crowd(crowd, folder)
    check_once(folder)
