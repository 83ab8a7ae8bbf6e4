"""Servers that may lose answered calls in a failover: warned about, or refused."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import pytest

from holdfast.cli.doctor.database_checks import check_database
from holdfast.config import StoreConfig
from holdfast.errors import ServerNotSupported
from holdfast.store.postgres.connections import Database, close_quietly
from tests.conftest import until
from verification.postgres import LocalPostgres
from verification.postgres_binaries import find_binaries

SYNC = StoreConfig(require_sync=True)


@pytest.fixture(scope="module")
def server() -> Iterator[LocalPostgres]:
    """One that is durable, and may have standbys."""
    settings = {"wal_level": "logical", "max_wal_senders": "5"}
    with LocalPostgres(durable=True, settings=settings) as started:
        yield started


async def connect(url: str, config: StoreConfig) -> None:
    await close_quietly(await Database(url, config, lambda: 0).connect_writer())


async def run(server: LocalPostgres, *statements: str) -> None:
    connection = await asyncpg.connect(server.url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_durable_server_alone_is_good_enough(server, caplog):
    with caplog.at_level(logging.WARNING):
        await connect(server.url, SYNC)
        await connect(server.url, StoreConfig())

    assert [] == caplog.messages


async def test_a_standby_that_is_not_waited_for_is_warned_about_or_refused(server, caplog):
    """F18: known by its slot, though it is away just now."""
    await run(server, "SELECT pg_create_physical_replication_slot('away')")
    try:
        with caplog.at_level(logging.WARNING):
            await connect(server.url, StoreConfig())
            await connect(server.url, StoreConfig(synchronous="normal"))
        [said] = caplog.messages
        assert "1 standby" in said
        assert "synchronous_standby_names is empty" in said

        with pytest.raises(ServerNotSupported, match="require_sync forbids") as refused:
            await connect(server.url, SYNC)
        assert 1 == len(refused.value.details["found"])
        noted = [finding for finding in await check_database(server.url) if finding.level == "note"]
        assert ["standby_not_waited_for"] == [finding.code for finding in noted]
    finally:
        await run(server, "SELECT pg_drop_replication_slot('away')")


async def test_a_standby_is_known_while_it_is_connected(server, tmp_path):
    """Without a slot: whatever receives the log. A subscriber is no standby."""
    await run(server, "SELECT pg_create_logical_replication_slot('subscriber', 'pgoutput')")
    await connect(server.url, SYNC)
    await run(server, "SELECT pg_drop_replication_slot('subscriber')")
    with receiving(server, tmp_path):
        connection = await asyncpg.connect(server.url)
        await until(lambda: connection.fetchval("SELECT count(*) FROM pg_stat_replication"))
        await connection.close()
        with pytest.raises(ServerNotSupported, match="1 standby"):
            await connect(server.url, SYNC)


@pytest.mark.parametrize(("setting", "refused"), [("on", False), ("remote_write", False), ("local", True)])
async def test_whether_a_named_standby_is_waited_for(server, setting, refused):
    await run(
        server,
        "SELECT pg_create_physical_replication_slot('away')",
        "ALTER SYSTEM SET synchronous_standby_names = 'away'",
        "SELECT pg_reload_conf()",
    )
    url = f"{server.url}?options=-c%20synchronous_commit%3D{setting}"
    try:
        if refused:
            with pytest.raises(ServerNotSupported, match="synchronous_commit = local"):
                await Database(url, SYNC, lambda: 0).check()
        else:
            await Database(url, SYNC, lambda: 0).check()
    finally:
        # Whoever commits now would wait for the standby.
        await run(
            server,
            "SET synchronous_commit = local",
            "ALTER SYSTEM RESET synchronous_standby_names",
            "SELECT pg_reload_conf()",
            "SELECT pg_drop_replication_slot('away')",
        )


async def test_what_is_not_on_disk_when_it_is_answered_is_refused(postgres_url, server):
    """Every reason is named."""
    with pytest.raises(ServerNotSupported, match=r"synchronous_commit = off.*fsync = off"):
        await connect(postgres_url, SYNC)
    with pytest.raises(ServerNotSupported, match="synchronous_commit = off"):
        await connect(f"{server.url}?options=-c%20synchronous_commit%3Doff", SYNC)


@contextmanager
def receiving(server: LocalPostgres, folder: object) -> Iterator[None]:
    """Somebody who receives the server's log, as a standby does."""
    program = find_binaries() / "pg_receivewal"
    if not program.exists():
        pytest.skip("this PostgreSQL comes without pg_receivewal")
    receiver = subprocess.Popen([program, "-d", server.url, "-D", str(folder)])
    try:
        yield
    finally:
        receiver.kill()
        receiver.wait()
