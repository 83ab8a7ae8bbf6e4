"""The tests of the engine once more, with every client at the other end of an HTTP connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from holdfast import Client, Engine, EngineConfig
from tests.conftest import QUICK, OpenEngine
from tests.http_door import http_door

# What differs, and why. A wrong type is named by the door, which sees it before the engine does; a server learns that
# its caller has gone a moment after the caller has; calls made at once travel on several connections, in no order.
DIFFERENT = {
    "test_fork.py::test_bad_input",
    "test_reset.py::test_bad_input",
    "test_queries.py::test_a_moment_outside_the_history_is_refused[True]",
    "test_queries.py::test_a_moment_outside_the_history_is_refused[1]",
    *(f"test_reset.py::test_a_number_that_is_no_event_is_refused[{n}]" for n in (2**70, 1.5, "3", True, None)),
    "test_signals.py::test_the_real_limit_is_ten_thousand",
    "test_updates.py::test_a_caller_who_gives_up_leaves_nothing_behind",
    "test_updates.py::test_updates_at_once_are_done_in_the_order_of_their_requests",
    "test_queries.py::test_a_caller_who_gives_up_leaves_nothing_behind",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = [item for item in items if item.path.parent.name == "over_http"]
    dropped = [item for item in here if item.nodeid.rpartition("/")[2] in DIFFERENT]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]


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
            door = await opened.enter_async_context(http_door(running))
            running.client = await opened.enter_async_context(Client.connect(door.url, org=running.org))
            return running

        yield open_engine
