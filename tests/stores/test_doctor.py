"""`holdfast doctor` on PostgreSQL: what the server itself is like."""

from __future__ import annotations

import asyncio
import json
import re
import time
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from click.testing import CliRunner

from holdfast import SyncEngine, task
from holdfast.cli.main import main
from tests.conftest import QUICK


@task
def rest() -> None: ...


def doctor(url: str, code: int = 0) -> dict[str, Any]:
    ended = CliRunner().invoke(main, ["doctor", "--db", url, "--json"])
    assert (code, "") == (ended.exit_code, ended.stderr)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.fixture
def migrated_url(postgres_url: str) -> str:
    assert 0 == CliRunner().invoke(main, ["migrate", postgres_url]).exit_code
    return postgres_url


def test_the_version_is_the_whole_one(migrated_url):
    """As the server says it: 15.18 is not 15.0."""
    version = _execute(migrated_url, "SHOW server_version").partition(" ")[0]

    assert doctor(migrated_url)["findings"][0]["text"].endswith(f"answers: PostgreSQL {version}")


def test_a_server_that_answers_too_early_is_a_finding(migrated_url):
    """Among the others, with what to do: not a line beside them. No other command says it at all."""
    url = f"{migrated_url}?options=-c%20synchronous_commit%3Doff"
    found = {finding["code"]: finding for finding in doctor(url)["findings"]}
    listed = CliRunner().invoke(main, ["workflow", "list", "--db", url])

    assert ("note", "set it to on") == (found["answers_early"]["level"], found["answers_early"]["next"])
    assert (0, "no executions match in org 'default'\n") == (listed.exit_code, listed.output)


@pytest.mark.parametrize("arguments", [("doctor", "--db"), ("migrate",), ("migrate", "--check")])
def test_a_table_that_was_dropped_is_named(migrated_url, arguments):
    """Where the error of a worker sends people to."""
    _execute(migrated_url, "DROP TABLE holdfast_timers")
    ended = CliRunner().invoke(main, [*arguments, migrated_url])

    assert (True, True) == (ended.exit_code in {1, 3}, "up to date" not in ended.output)
    assert "lacks holdfast_timers" in ended.output


def test_indexes_that_are_gone_are_named(migrated_url):
    """With the statements that bring them back. One whose making was interrupted is of no use either."""
    _execute(migrated_url, "DROP INDEX holdfast_ready_to_claim")
    _execute(
        migrated_url,
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'holdfast_timers_due'::regclass",
    )
    found = {finding["code"]: finding for finding in doctor(migrated_url, 1)["findings"]}["index_missing"]
    for statement in found["next"].split("; "):
        _execute(migrated_url, statement)

    assert ("bad", True) == (found["level"], found["text"].endswith("holdfast_ready_to_claim, holdfast_timers_due"))
    assert "index_missing" not in {finding["code"] for finding in doctor(migrated_url)["findings"]}


def test_leases_are_judged_by_the_clock_of_the_database(migrated_url, monkeypatch):
    """The caller's may be an hour ahead: no worker is lost for that, and none of them came an hour ago."""
    with SyncEngine(migrated_url, tasks=[rest], config=QUICK):
        ahead = SimpleNamespace(time_ns=lambda: time.time_ns() + 3_600_000_000_000)
        monkeypatch.setattr("holdfast.diagnostics.formatting.time", ahead)
        page = doctor(migrated_url)
        listed = CliRunner().invoke(main, ["workers", "list", "--db", migrated_url]).output

    told = " ".join(finding["text"] for finding in page["findings"])
    assert (True, True) == (page["healthy"], "is there since" in told)
    assert not re.search(r"\d h ", told + listed)
    assert ("works" in listed, "lost" in listed) == (True, False)


def _execute(url: str, statement: str) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(run())
