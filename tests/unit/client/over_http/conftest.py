"""The tests of the engine once more, with every client at the other end of an HTTP connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from holdfast import Client, Engine, EngineConfig
from holdfast.testing import WorkflowEnvironment
from tests.conftest import QUICK, OpenEngine, OpenEnvironment
from tests.rest_server import rest_server

IN_NO_ORDER = "calls made at once travel on several connections"
ANOTHER_PROCESS = "only an engine in the caller's process can join the caller's transaction"

DIFFERENT = {
    "test_promise_types.py::test_within_the_callers_transaction": ANOTHER_PROCESS,
    "test_promises.py::test_a_settlement_and_the_time_out_in_one_transaction[settlement]": IN_NO_ORDER,
    "test_promises.py::test_a_settlement_and_the_time_out_in_one_transaction[time-out]": IN_NO_ORDER,
    "test_signals.py::test_the_real_limit_is_ten_thousand": IN_NO_ORDER,
    "test_updates.py::test_updates_at_once_are_done_in_the_order_of_their_requests": IN_NO_ORDER,
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dropped = [item for item in items if item.path.parent.name == "over_http" and not _is_repeated(item)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]


def _is_repeated(item: pytest.Item) -> bool:
    """Not what is different here; and what has no client is the same as without HTTP."""
    if item.path.name == "test_differences.py":
        return True
    has_a_client = {"engine", "environment"} & set(getattr(item, "fixturenames", ()))
    return bool(has_a_client) and item.nodeid.rpartition("/")[2] not in DIFFERENT


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[OpenEngine]:
    """Engines whose `client` reaches them over HTTP. It makes no difference: that is what is tested."""
    async with AsyncExitStack() as opened:

        async def open_engine(
            *,
            workflows: Iterable[Callable[..., Any]] = (),
            tasks: Iterable[Callable[..., Any]] = (),
            config: EngineConfig = QUICK,
            url: str | None = None,
            **options: Any,
        ) -> Engine:
            where = url if url is not None else database_url
            made = Engine(where, workflows=workflows, tasks=tasks, config=config, **options)
            running = await opened.enter_async_context(made)
            api = await opened.enter_async_context(rest_server(running))
            running.client = await opened.enter_async_context(Client.connect(api.url, org=running.org))
            return running

        yield open_engine


@pytest.fixture
async def environment(database_url: str) -> AsyncIterator[OpenEnvironment]:
    """The same for engines whose time the test moves."""
    async with AsyncExitStack() as opened:

        async def open_environment(**options: Any) -> WorkflowEnvironment:
            made = await opened.enter_async_context(WorkflowEnvironment(url=database_url, **options))
            api = await opened.enter_async_context(rest_server(made.engine))
            made.engine.client = await opened.enter_async_context(Client.connect(api.url, org=made.engine.org))
            return made

        yield open_environment
