"""Tests of the engine run on the store that they are run for, and none is left out without a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast import Engine
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.sqlite.store import SqliteStore
from tests.both_stores import STORE, complaint, opened_sqlite
from tests.conftest import OpenEngine, OpenEnvironment
from tests.database_access import rows

ROOT = Path(__file__).parents[2]


async def test_engines_are_on_the_store_that_the_tests_are_run_on(engine: OpenEngine, database_url: str):
    """Where HOLDFAST_TEST_STORE says PostgreSQL, it is a PostgreSQL server that they write to."""
    running = await engine()
    await running.client.publish_event("order", 1)

    assert {"sqlite": SqliteStore, "postgres": PostgresStore}[STORE] is type(running.storage)
    assert [(1,)] == rows(database_url, "SELECT count(*) FROM holdfast_published")
    if STORE == "postgres":
        assert rows(database_url, "SELECT version()")[0][0].startswith("PostgreSQL")


async def test_environments_are_there_too(environment: OpenEnvironment, database_url: str):
    """Their own default is a database in memory."""
    env = await environment()
    await env.client.publish_event("order", 1)

    assert [(1,)] == rows(database_url, "SELECT count(*) FROM holdfast_published")


@pytest.mark.sqlite_only("opens such a database to see whether that is noticed")
async def test_a_database_of_sqlite_is_noticed():
    async with Engine("sqlite://"):
        assert 1 == len(opened_sqlite)


@pytest.mark.parametrize(
    ("store", "opened", "on_both", "why_not", "fails"),
    [
        ("sqlite", [], False, None, False),
        ("sqlite", ["db"], True, None, False),
        ("sqlite", ["db"], False, "files", False),
        ("sqlite", ["db"], False, None, True),
        ("postgres", [], True, None, False),
        ("postgres", ["db"], True, None, True),
    ],
)
def test_who_would_be_left_out_fails(store: str, opened: list[str], on_both: bool, why_not: str | None, fails: bool):
    """On SQLite a test that PostgreSQL would not get; on PostgreSQL one that is on SQLite all the same."""
    assert fails is (complaint(store, opened, on_both=on_both, why_not=why_not) is not None)


def test_the_run_on_postgresql_names_no_folders():
    """What a list of folders leaves out, nobody notices."""
    recipe = (ROOT / "Makefile").read_text().partition("HOLDFAST_TEST_STORE=postgres")[2].partition("\n\n")[0]

    assert [] == re.findall(r"tests/\S+|--ignore|--deselect", recipe)
