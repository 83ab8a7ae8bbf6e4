"""Hints between nodes: heard from others, not from oneself, told in the end, and done without when they do not work."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import asyncpg
import pytest

from holdfast.config import StoreConfig
from holdfast.store.postgres import notifications as module
from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.notifications import Notifications
from holdfast.store.postgres.store import PostgresStore
from tests.conftest import PATIENCE_S, until
from verification.stores.bench import Bench
from verification.stores.records import a_worker, an_execution


def database_at(url: str, **settings: Any) -> Database:
    return Database(url, StoreConfig(**settings), lambda: 0)


@asynccontextmanager
async def node(url: str, **settings: Any):
    notifications = Notifications(database_at(url, **settings))
    await notifications.start()
    try:
        yield notifications
    finally:
        await notifications.stop()


@asynccontextmanager
async def connected(url: str):
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def cut(connection: asyncpg.Connection) -> None:
    """End every connection of the database but this one."""
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def acquainted(*nodes: Notifications) -> None:
    """Each has heard of the others, and nothing is under way any more."""
    await until(lambda: all(each.has_peers for each in nodes))
    while any(each.take_changed() for each in nodes):
        await asyncio.sleep(0.02)


async def test_what_one_node_tells_the_others_hear(postgres_url):
    """And not the one who told it."""
    async with node(postgres_url) as one, node(postgres_url) as two, node(postgres_url) as three:
        assert (True, True, True) == (one.take_changed(), two.take_changed(), three.take_changed())  # they just came
        await acquainted(one, two, three)
        # Answers to a greeting come with a hint, and may come late: whoever hears his own words hears them every time.
        heard_by_one = []
        for _ in range(5):
            one.notify_peers()
            assert await two.wait(PATIENCE_S)
            assert await three.wait(PATIENCE_S)
            assert two.take_changed()
            assert three.take_changed()
            heard_by_one.append(await one.wait(0.05) and one.take_changed())
        assert False in heard_by_one


async def test_a_notification_is_taken_once(postgres_url):
    """Until the next one comes, or it is time to look anyway."""
    async with node(postgres_url) as one:
        assert one.take_changed()
        one.on_notified()

        assert one.take_changed()
        assert not one.take_changed()


async def test_a_notification_waits_until_it_is_taken(postgres_url):
    """Waiting does not use it up."""
    async with node(postgres_url) as one, node(postgres_url) as two:
        await acquainted(one, two)
        one.notify_peers()

        assert await two.wait(PATIENCE_S)
        assert await two.wait(0)
        assert two.take_changed()
        assert not await two.wait(0)


async def test_many_tellings_become_few_notifications(postgres_url):
    """Others are told after the last of them, too."""
    async with node(postgres_url) as one, node(postgres_url) as two, connected(postgres_url) as listening:
        await acquainted(one, two)
        heard: list[int] = []
        told = 0
        await listening.add_listener(module.CHANNEL, lambda *_: heard.append(told))
        while told < 2000:
            one.notify_peers()
            told += 1
            if not told % 100:
                await asyncio.sleep(0.0005)

        await until(lambda: heard and heard[-1] == told)
        assert len(heard) < 100


async def test_what_was_told_before_stopping_is_heard(postgres_url):
    """However soon one stops after it."""
    async with connected(postgres_url) as listening:
        heard: list[str] = []
        async with node(postgres_url) as other, node(postgres_url) as one:
            await acquainted(one, other)
            await listening.add_listener(module.CHANNEL, lambda *_: heard.append("a hint"))
            one.notify_peers()

        await until(lambda: heard)


async def test_a_lost_connection_is_replaced_and_nothing_is_missed(postgres_url, caplog):
    """What others told meanwhile may have been missed, so it is time to look; what was told here is told then."""
    async with node(postgres_url) as one, connected(postgres_url) as other:
        heard: list[str] = []
        await other.add_listener(module.CHANNEL, lambda *_: heard.append("a hint"))
        one.take_changed()
        with caplog.at_level(logging.INFO):
            await cut(other)
            await until(lambda: not one.healthy)
            one.notify_peers()
            await until(lambda: one.healthy)

        assert one.take_changed()
        await until(lambda: heard)
        assert any("work again" in record.getMessage() for record in caplog.records)


async def test_without_notifications_it_is_time_to_look_more_often(postgres_url, monkeypatch):
    """Every second instead of every twenty of one that is alone, on a clock that the test turns."""
    moments = (1000.0, 1000.5, 1001.1, 1002.2, 1020.1, 1040.2)
    async with node(postgres_url) as healthy, node(postgres_url, notify=False) as off:
        assert (True, False) == (healthy.healthy, off.healthy)
        seen = []
        for now in moments:
            monkeypatch.setattr(asyncio.get_running_loop(), "time", partial(float, now))
            seen.append((healthy.take_changed(), off.take_changed()))
        monkeypatch.undo()

    assert [(True, True), (False, False), (False, True), (False, True), (True, True), (True, True)] == seen


async def test_notifications_can_be_switched_off(postgres_url):
    """By the settings or the URL; nothing is connected, and telling does nothing."""
    async with connected(postgres_url) as other:
        for url, settings in ((f"{postgres_url}?notify=off", {}), (postgres_url, {"notify": False})):
            async with node(url, **settings) as off:
                off.notify_peers()

                assert (False, False) == (off.enabled, off.healthy)
                assert 0 == await other.fetchval(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast' "
                    "AND datname = current_database()"
                )


class Deaf:
    """A connection behind a pooler that gives each statement another session: what it listens to never comes."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def add_listener(self, channel: str, callback: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def test_notifications_that_do_not_arrive_count_as_broken(postgres_url, monkeypatch, caplog):
    """The self-test finds out, and the log says what to do."""
    database = database_at(postgres_url)
    connect = database.connect_notifications

    async def connect_deaf() -> Any:
        return Deaf(await connect())

    monkeypatch.setattr(database, "connect_notifications", connect_deaf)
    monkeypatch.setattr(module, "_PROBE_S", 0.02)
    notifications = Notifications(database)
    with caplog.at_level(logging.WARNING):
        await notifications.start()
    notifications.notify_peers()

    assert not notifications.healthy
    assert 1 == sum("notify=off" in record.getMessage() for record in caplog.records)
    await notifications.stop()


async def test_the_self_test_is_repeated(postgres_url, monkeypatch):
    """A connection may fall silent without being closed."""
    monkeypatch.setattr(module, "_PROBE_EVERY_S", 0.01)
    probes = 0
    original = Notifications._probe

    async def counted(self: Notifications, connection: Any) -> None:
        nonlocal probes
        await original(self, connection)
        probes += 1

    monkeypatch.setattr(Notifications, "_probe", counted)
    async with node(postgres_url) as one:
        await until(lambda: probes > 3)

        assert one.healthy


async def test_a_server_that_is_not_there_does_not_keep_a_node_from_starting(caplog):
    """Nor from stopping; connecting goes on meanwhile, and is logged once."""
    with caplog.at_level(logging.WARNING):
        async with node("postgresql://u:hush@127.0.0.1:1/app") as alone:
            alone.notify_peers()

            assert not alone.healthy
            assert alone.take_changed()
            assert not await alone.wait(0.2)

    assert 1 == len(caplog.records)
    assert "hush" not in caplog.text


async def test_stopping_twice_and_starting_again_is_fine(postgres_url):
    """And leaves no connection behind."""
    notifications = Notifications(database_at(postgres_url))
    for _ in range(2):
        await notifications.start()
        await notifications.start()
        assert notifications.healthy
        await notifications.stop()
        await notifications.stop()
        assert not notifications.healthy
    async with connected(postgres_url) as other:
        count = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'holdfast'"
        count = f"{count} AND datname = current_database()"
        await until(lambda: other.fetchval(count))


@pytest.mark.slow
async def test_notifications_that_are_cut_again_and_again_come_back(postgres_url):
    """After each cut both nodes hear each other again."""
    async with node(postgres_url) as one, node(postgres_url) as two, connected(postgres_url) as other:
        for _ in range(5):
            await cut(other)
            await until(lambda: not one.healthy and not two.healthy)
            await until(lambda: one.healthy and two.healthy)
            two.take_changed()
            one.notify_peers()
            assert await two.wait(PATIENCE_S)


async def test_one_that_is_alone_says_nothing(postgres_url):
    """Nobody would hear it; when somebody comes, he is told to look."""
    async with connected(postgres_url) as listening, node(postgres_url) as one:
        said: list[object] = []
        await listening.add_listener(module.CHANNEL, lambda _, __, ___, word: said.append(word))
        for _ in range(100):
            one.notify_peers()
        assert not one.has_peers

        async with node(postgres_url) as two:
            await until(lambda: one.has_peers and two.has_peers)
            assert await two.wait(PATIENCE_S)
        assert said[0] == "hello"


@asynccontextmanager
async def overheard(url: str):
    """What is said, by whomever; and a way to say something."""
    async with connected(url) as connection:
        said: list[object] = []
        await connection.add_listener(module.CHANNEL, lambda _, __, ___, word: said.append(word))
        yield said, lambda word: connection.execute(f"NOTIFY {module.CHANNEL}, '{word}'")


async def test_what_was_told_to_nobody_is_told_to_whoever_answers(postgres_url):
    """Somebody was there before, and did not know of what was committed since the greeting."""
    async with overheard(postgres_url) as (said, say), node(postgres_url) as one:
        one.notify_peers()
        assert not one.has_peers
        await say("here")

        await until(lambda: "" in said)


async def test_who_goes_before_anybody_answers_says_so_once(postgres_url):
    """A command that starts a workflow and ends is not there any more when the answer to its greeting comes."""
    async with overheard(postgres_url) as (said, _):
        async with node(postgres_url) as one:
            one.notify_peers()
            one.notify_peers()
        await until(lambda: len(said) > 1)
        async with node(postgres_url):
            pass
        await until(lambda: said.count("hello") == 2)

        assert ["hello", "", "hello"] == said


async def test_that_a_worker_lives_is_no_events(postgres_url, monkeypatch):
    """Other nodes are told of what is committed, but not of heartbeats."""
    told: list[str] = []
    monkeypatch.setattr(Notifications, "notify_peers", lambda _: told.append("look"))

    async def opened(clock: Any, source: Any) -> PostgresStore:
        store = PostgresStore(postgres_url, StoreConfig(), clock)
        await store.open(source)
        return store

    bench = await Bench.opened(opened)
    await bench.write(workers={"w-1": a_worker("w-1")})
    assert [] == told

    await bench.write(new_executions=[an_execution(1)])
    assert ["look"] == told
    await bench.store.close()


async def test_a_reason_is_given_also_where_the_error_has_no_words(postgres_url, monkeypatch, caplog):
    """A time-out says nothing but its name."""

    async def silent(_: Database) -> None:
        raise TimeoutError

    monkeypatch.setattr(Database, "connect_notifications", silent)
    with caplog.at_level(logging.WARNING):
        async with node(postgres_url):
            pass

    assert ["TimeoutError"] == [text.partition("do not work: ")[2].partition(";")[0] for text in caplog.messages]
