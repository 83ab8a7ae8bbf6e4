"""A worker that is elsewhere: it does whatever one in the engine's process does, and survives a bad network."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from holdfast import (
    Engine,
    RetryPolicy,
    TaskContext,
    WorkerConfig,
    WorkflowContext,
    WorkflowHandle,
    query,
    signal,
    task,
    update,
    workflow,
)
from holdfast.assembly import RemoteWorker
from holdfast.errors import Forbidden, InvalidServer, NoWorker, PromiseNotFound, ServerUnreachable, Unauthenticated
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.server.grpc.settings import GrpcSettings
from tests.conftest import OpenEngine, until
from tests.grpc_server import BRIEF, make_key, open_server
from tests.tcp_proxy import TcpProxy
from verification.invariants import check, read

QUICK = WorkerConfig(lease_s=2.0, shutdown_grace_s=0.5)


@task
async def double(number: int) -> int:
    return 2 * number


@task
def plain(ctx: TaskContext, number: int) -> int:
    ctx.heartbeat({"at": number}, progress=0.5)
    return number + 1


@task(retry=RetryPolicy(initial_interval_s=0.01))
async def fails_once(ctx: TaskContext) -> int:
    if ctx.info.attempt == 1:
        raise ValueError("once")
    return ctx.info.attempt


@task
async def large(size: int) -> str:
    return "x" * size


TOKENS: list[str] = []


@task
async def by_others(ctx: TaskContext) -> str:
    TOKENS.append(ctx.complete_later())
    return ""


async def step(number: int) -> int:
    return number + 10


@workflow
async def everything(ctx: WorkflowContext, number: int) -> list[Any]:
    child = await ctx.child(doubles, number)
    stepped = await ctx.run(step, number)
    await ctx.sleep(0.01)
    both = await asyncio.gather(ctx.task(double, number), ctx.task(plain, number))
    return [child, stepped, *both, await ctx.task(fails_once)]


@workflow
async def doubles(ctx: WorkflowContext, number: int) -> int:
    return await ctx.task(double, number)


@workflow
async def many(ctx: WorkflowContext, count: int) -> int:
    total = 0
    for number in range(count):
        total += await ctx.task(double, number)
        total += await ctx.run(step, number)
    return total


@workflow
async def makes_large(ctx: WorkflowContext, size: int) -> int:
    return len(await ctx.task(large, size))


@workflow
async def waits_for_others(ctx: WorkflowContext) -> str:
    return await ctx.task(by_others)


@workflow
async def approval(ctx: WorkflowContext) -> str:
    promise = ctx.promise("ok", str)
    await ctx.run(TOKENS.append, promise.token)
    return await promise


@workflow
class Counter:
    def __init__(self) -> None:
        self.count = 0

    async def run(self, ctx: WorkflowContext) -> int:
        await ctx.wait_until(lambda: self.count >= 10)
        return self.count

    @signal
    def add(self, number: int) -> None:
        self.count += number

    @query
    def shown(self) -> int:
        return self.count

    @update
    def raised(self, number: int) -> int:
        self.count += number
        return self.count


WORKFLOWS: list[Any] = [everything, doubles, many, makes_large, waits_for_others, approval, Counter]
TASKS: list[Any] = [double, plain, fails_once, large, by_others]


@asynccontextmanager
async def remote(server: str, **options: Any) -> AsyncIterator[RemoteWorker]:
    async with RemoteWorker(server, **{"workflows": WORKFLOWS, "tasks": TASKS, "config": QUICK, **options}) as worker:
        yield worker


@asynccontextmanager
async def serving(engine: Engine, **options: Any) -> AsyncIterator[Any]:
    server = await open_server(engine, **options)
    try:
        yield server
    finally:
        await server.stop()


async def sound(engine: Engine) -> None:
    assert [] == [str(violation) for violation in check(await read(engine.storage))]


async def test_remote_worker_does_what_a_local_one_does(engine: OpenEngine):
    """Children, steps, timers, tasks in threads, heartbeats and retries."""
    api = await engine()
    async with serving(api) as server, remote(server.url):
        handle = await api.client.start_workflow("everything", 3)

        assert [6, 13, 6, 4, 2] == await handle.result(timeout=10)
    await sound(api)


async def test_queries_and_updates_reach_a_remote_worker(engine: OpenEngine):
    """The program lives over there; whoever asks does not notice."""
    api = await engine()
    async with serving(api) as server:
        async with remote(server.url):
            handle = await api.client.start_workflow("Counter")
            await handle.signal("add", 2)

            assert 5 == await handle.update("raised", 3)
            assert 5 == await handle.query("shown")
        with pytest.raises(NoWorker):
            await handle.query("shown")


async def test_tokens_of_a_remote_worker_are_good(engine: OpenEngine):
    """A promise and a task are settled by the tokens that the worker has handed out, though it has no secret."""
    api = await engine()
    TOKENS.clear()
    async with serving(api) as server, remote(server.url):
        for kind in ("approval", "waits_for_others"):
            handle = await api.client.start_workflow(kind)
            token = await until(lambda: TOKENS and TOKENS.pop())
            # An async body has its token before the server knows of it.
            await until(partial(_settled, api, token))
            assert "yes" == await handle.result(timeout=10)


async def _settled(api: Engine, token: str) -> bool:
    try:
        await api.client.complete_promise(token, "yes")
    except PromiseNotFound:
        return False
    return True


async def test_payload_larger_than_a_message_comes_in_parts(engine: OpenEngine):
    """A result of 9 MiB goes through a door that takes messages of 1 MiB, there and back."""
    api = await engine()
    settings = GrpcSettings(port=0, max_message_bytes=1024 * 1024)
    async with serving(api, settings=settings) as server, remote(server.url):
        handle = await api.client.start_workflow("makes_large", 9 * 1024 * 1024)
        assert 9 * 1024 * 1024 == await handle.result(timeout=20)


async def test_result_beyond_every_limit_fails_the_task(engine: OpenEngine):
    """The workflow is told; the stream and the other work go on."""
    api = await engine()
    settings = GrpcSettings(port=0, max_message_bytes=100_000, max_whole_bytes=300_000)
    async with serving(api, settings=settings) as server, remote(server.url):
        handle = await api.client.start_workflow("makes_large", 400_000)
        with pytest.raises(Exception, match="the server takes"):
            await handle.result(timeout=10)
        assert 4 == await (await api.client.start_workflow("doubles", 2)).result(timeout=10)


async def test_long_history_is_read_page_by_page(engine: OpenEngine):
    """A second worker rebuilds a program whose history is longer than a page."""
    api = await engine()
    async with serving(api) as server:
        async with remote(server.url):
            handle = await api.client.start_workflow("Counter")
            for _ in range(1_100):
                await handle.signal("add", 0)
        async with remote(server.url):
            await handle.signal("add", 10)
            assert 10 == await handle.result(timeout=20)


async def test_broken_connection_costs_nothing(engine: OpenEngine):
    """Cut again and again in the middle of the work: every workflow ends, nothing is recorded twice, one session."""
    api = await engine()
    async with serving(api) as server, TcpProxy(server.port) as proxy:
        async with remote(f"grpc://127.0.0.1:{proxy.port}") as worker:
            session = worker.session
            handles = [await api.client.start_workflow("many", 15) for _ in range(10)]

            async def cut() -> None:
                for _ in range(12):
                    await asyncio.sleep(0.07)
                    proxy.cut()

            cutting = asyncio.ensure_future(cut())
            expected = sum(2 * number + number + 10 for number in range(15))
            assert [expected] * 10 == [await handle.result(timeout=30) for handle in handles]
            await cutting
            assert session == worker.session
        assert proxy.connections > 2
    await sound(api)


async def test_connection_that_says_nothing_is_given_up(engine: OpenEngine):
    """Nothing comes through and nobody says so: the worker notices by its heartbeats and opens another stream."""
    api = await engine()
    async with (
        serving(api) as server,
        TcpProxy(server.port) as proxy,
        remote(f"grpc://127.0.0.1:{proxy.port}") as worker,
    ):
        before = proxy.connections
        proxy.hold()
        await until(lambda: proxy.connections > before or not worker.connected)
        proxy.resume()
        handle = await api.client.start_workflow("doubles", 4)
        assert 8 == await handle.result(timeout=20)


async def test_paused_worker_takes_nothing_new(engine: OpenEngine):
    """New work waits, also across a broken connection, until the worker is let on."""
    api = await engine()
    async with (
        serving(api) as server,
        TcpProxy(server.port) as proxy,
        remote(f"grpc://127.0.0.1:{proxy.port}") as worker,
    ):
        await worker.pause()
        before = proxy.connections
        proxy.cut()
        await until(lambda: proxy.connections > before and worker.connected)
        handle = await api.client.start_workflow("doubles", 4)
        async with remote(server.url, workflows=[doubles], tasks=[double]):
            assert 8 == await handle.result(timeout=20)
        handle = await api.client.start_workflow("doubles", 5)
        assert "PENDING" == await handle.status()

        await worker.resume()

        assert 10 == await handle.result(timeout=20)


async def test_server_that_restarts_loses_nothing(engine: OpenEngine):
    """The same port, another server: the worker opens a new session and everything comes to its end."""
    api = await engine()
    server = await open_server(api)
    settings = GrpcSettings(port=server.port, common=BRIEF)
    async with remote(server.url) as worker:
        first = worker.session
        handles = [await api.client.start_workflow("many", 20) for _ in range(5)]
        await until(lambda: _has_begun(handles[0]))
        await server.stop()
        handles.append(await api.client.start_workflow("many", 20))  # the others may be done on a quick machine
        async with serving(api, settings=settings):
            expected = sum(2 * number + number + 10 for number in range(20))
            assert [expected] * 6 == [await handle.result(timeout=30) for handle in handles]
            assert first != worker.session
    await sound(api)


async def _has_begun(handle: WorkflowHandle) -> bool:
    return any(event.type == "TASK_COMPLETED" for event in await handle.history())


RUNS: list[int] = []
GATES: dict[str, asyncio.Event] = {}


@task
async def gated(ctx: TaskContext, name: str) -> int:
    RUNS.append(ctx.info.attempt)
    await GATES[name].wait()
    return ctx.info.attempt


@workflow
async def waits_at_the_gate(ctx: WorkflowContext, name: str) -> int:
    return await ctx.task(gated, name)


@pytest.mark.parametrize("other", [False, True], ids=["same server", "another server"])
async def test_task_runs_on_when_its_server_goes(engine: OpenEngine, other: bool):
    """It is neither stopped nor run a second time: it belongs to the session that the worker opens next."""
    api, second = await engine(), await engine()
    server, spare = await open_server(api), await open_server(second)
    RUNS.clear()
    GATES["g"] = asyncio.Event()
    config = WorkerConfig(lease_s=60.0, shutdown_grace_s=0.5, task_slots=1)
    where = f"grpc://{server.address}" if not other else f"grpc://{server.address},{spare.address}"
    worker = RemoteWorker(where, workflows=[waits_at_the_gate], tasks=[gated], config=config)
    async with worker:
        handle = await api.client.start_workflow("waits_at_the_gate", "g")
        await until(lambda: RUNS)
        before = worker.session
        # The one that has it, and that one only: the worker may be with the other before this one has stopped.
        (gone,) = (each for each in (server, spare) if each._workers.sessions)
        await gone.stop()
        again = None if other else await open_server(api, settings=GrpcSettings(port=gone.port, common=BRIEF))
        await until(lambda: worker.connected and worker.session != before)
        queued = await api.client.start_workflow("waits_at_the_gate", "g")
        GATES["g"].set()

        assert [1, 1] == [await handle.result(timeout=20), await queued.result(timeout=20)]
        assert [1, 1] == RUNS
        if again is not None:
            await again.stop()
    for left in (server, spare):
        await left.stop()
    await sound(api)


async def test_report_that_was_not_answered_is_shown_to_the_next_server(engine: OpenEngine):
    """The task is done, the server is gone before it says so: the body does not run again."""
    api = await engine()
    server = await open_server(api)
    RUNS.clear()
    GATES["g"] = asyncio.Event()
    async with TcpProxy(server.port) as proxy:
        config = WorkerConfig(lease_s=60.0, shutdown_grace_s=0.5)
        way = f"grpc://127.0.0.1:{proxy.port}"
        async with RemoteWorker(way, workflows=[waits_at_the_gate], tasks=[gated], config=config) as worker:
            handle = await api.client.start_workflow("waits_at_the_gate", "g")
            await until(lambda: RUNS)
            proxy.hold()
            GATES["g"].set()
            await until(lambda: worker._workers._pending)
            await server.stop()
            async with serving(api) as again:
                proxy.target = again.port
                proxy.cut()
                proxy.resume()
                assert 1 == await handle.result(timeout=20)
        assert [1] == RUNS
    await sound(api)


async def test_worker_moves_to_another_server(engine: OpenEngine):
    """Two servers on one database: when one goes, its worker goes on with the other, without waiting for a lease."""
    one, two = await engine(), await engine()
    servers = [await open_server(one), await open_server(two)]
    config = WorkerConfig(lease_s=60.0, shutdown_grace_s=0.5)
    try:
        async with remote(f"grpc://{servers[0].address},{servers[1].address}", config=config) as worker:
            handles = [await one.client.start_workflow("many", 10) for _ in range(5)]
            (busy,) = [server for server in servers if server._workers.sessions]
            await busy.stop()
            for handle in handles:
                await handle.result(timeout=30)
            assert worker.connected
    finally:
        for server in servers:
            await server.stop()
    await sound(one)


async def test_leaving_hands_over_within_a_second(engine: OpenEngine):
    """What a worker holds when it is left is with another one soon, though its lease is long."""
    api = await engine()
    config = WorkerConfig(lease_s=60.0, shutdown_grace_s=0.1)
    async with serving(api) as server:
        first = RemoteWorker(server.url, workflows=WORKFLOWS, tasks=TASKS, config=config)
        await first.open()
        handles = [await api.client.start_workflow("many", 30) for _ in range(20)]
        async with remote(server.url, config=config):
            began = time.monotonic()
            await first.shutdown()
            took = time.monotonic() - began
            for handle in handles:
                await handle.result(timeout=30)
        assert took < 5
    await sound(api)


async def test_first_opening_is_given_up_after_a_while():
    """A server that is not there is named."""
    worker = RemoteWorker("grpc://127.0.0.1:1", workflows=WORKFLOWS, connect_timeout_s=0.2)
    with pytest.raises(ServerUnreachable, match="no server has answered"):
        await worker.open()


async def test_wrong_key_is_refused_at_once(engine: OpenEngine):
    """Unauthenticated without a key, Forbidden with one for reading."""
    api = await engine()
    reader = await make_key(api, Role.READER)
    async with serving(api, auth=AuthSettings(mode=AuthMode.KEYS)) as server:
        for key, refusal in ((None, Unauthenticated), ("hf_x", Unauthenticated), (reader, Forbidden)):
            with pytest.raises(refusal):
                await RemoteWorker(server.url, workflows=WORKFLOWS, api_key=key).open()


async def test_worker_key_is_enough(engine: OpenEngine):
    """It registers, works and reads histories of its org, which need not be named."""
    api = await engine(org="acme")
    key = await make_key(api, Role.WORKER, "acme")
    keys = AuthSettings(mode=AuthMode.KEYS)
    async with serving(api, auth=keys) as server, remote(server.url, api_key=key):
        handle = await api.client.start_workflow("everything", 1)
        assert [2, 11, 2, 2, 2] == await handle.result(timeout=10)
        TOKENS.clear()
        handle = await api.client.start_workflow("approval")
        await api.client.complete_promise(await until(lambda: TOKENS and TOKENS.pop()), "yes")
        assert "yes" == await handle.result(timeout=10)


@pytest.mark.parametrize(
    "server", ["", "http://x", "grpc://", "grpc://:1", "grpc://a:b", "grpc://u@h:1", "grpc://h:1/x"]
)
def test_address_that_is_none_is_refused(server):
    """With the form it should have."""
    with pytest.raises(InvalidServer):
        RemoteWorker(server, workflows=WORKFLOWS)


async def test_key_over_an_open_network_is_warned_of(caplog):
    """Not on this machine, where nobody listens."""
    with caplog.at_level(logging.WARNING):
        RemoteWorker("grpc://127.0.0.1:1", workflows=WORKFLOWS, api_key="hf_x")
        assert not caplog.records
        RemoteWorker("grpc://example.com:1", workflows=WORKFLOWS, api_key="hf_x")
    assert "unencrypted" in caplog.text
