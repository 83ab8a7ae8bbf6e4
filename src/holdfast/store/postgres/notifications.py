"""Tells other nodes that something was committed, and hears it from them: LISTEN and NOTIFY on a connection of its own.

A hint says only "look": it has no content, and nothing is lost when one is. Whoever hears none looks from time to time
anyway, more often when hints are known not to work. Nodes say hello and answer each other, so that one that is alone
on its database sends no hints at all, but for one when it stops. Hints are sent after the commit, by one connection
for the whole node, because a NOTIFY inside a transaction makes all commits of the server queue up behind one another.
"""

from __future__ import annotations

import asyncio
import logging
import time
from random import uniform
from typing import Any, Final
from uuid import uuid4

import asyncpg

from holdfast.errors import HoldfastError
from holdfast.store.postgres.connections import DRIVER_ERRORS, Database, close_quietly
from holdfast.store.postgres.driver_errors import reason

_log = logging.getLogger("holdfast.store")

CHANNEL: Final = "holdfast"
HEALTHY_POLL_S: Final = 5.0
QUIET_POLL_S: Final = 20.0
BROKEN_POLL_S: Final = 1.0

_HELLO: Final = "hello"
_HERE: Final = "here"
_PEERS_S: Final = 90.0
_QUIET_S: Final = 30.0
_NOTIFY_GAP_S: Final = 0.002
_PROBE_S: Final = 1.0
_PROBE_EVERY_S: Final = 30.0
_SEND_S: Final = 5.0
_START_S: Final = 1.0
_STOP_S: Final = 2.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 5.0


class Notifications:
    """The hints of one node. No method but `start` and `stop` needs the network, and none raises what it says."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = False
        self._heard = asyncio.Event()
        self._to_send = False
        self._unsent = False
        self._to_answer = False
        self._pending_events_at = float("-inf")
        self._peers_until = float("-inf")
        self._work = asyncio.Event()  # something to tell, the connection is gone, or it is time to stop
        self._settled = asyncio.Event()  # the first connection works, or does not
        self._healthy = False
        self._stopping = False
        self._looked_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def enabled(self) -> bool:
        return self._database.notify

    @property
    def healthy(self) -> bool:
        """Whether a hint would be heard: the last self-test came back, and the connection stands since."""
        return self._healthy

    @property
    def has_peers(self) -> bool:
        """Whether another node has been heard lately."""
        return time.monotonic() < self._peers_until

    async def start(self) -> None:
        """Connect. Comes back after a moment also when that does not work; it is tried again and again."""
        if not self.enabled or self._task is not None:
            return
        self._stopping = False
        self._settled.clear()
        self._task = asyncio.create_task(self._run(), name="holdfast notifications")
        try:
            async with asyncio.timeout(_START_S):
                await self._settled.wait()
        except TimeoutError:
            _log.warning("hints of %s are not there yet: looking every %g s", self._database.name, BROKEN_POLL_S)

    async def stop(self) -> None:
        """Tell what is still to be told, and close the connection."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        # Whoever is there may not have answered yet: a node that comes, starts a workflow and goes would say nothing.
        self._to_send |= self._unsent
        self._unsent = False
        self._work.set()
        if not self._healthy:
            task.cancel()
        await asyncio.wait([task], timeout=_STOP_S)
        task.cancel()
        await asyncio.wait([task])

    def notify_peers(self) -> None:
        """Something was committed here. Many of these become one hint."""
        if not self.has_peers:
            self._unsent = True
        elif self._task is not None:
            self._to_send = True
            self._work.set()

    def take_changed(self) -> bool:
        """Whether it is time to look for changes: a hint has come, or none for long."""
        now = asyncio.get_running_loop().time()
        pause_s = BROKEN_POLL_S
        if self._healthy:
            # Where nothing has been said for long, there is hardly anything that was not heard.
            quiet = now > self._pending_events_at + _QUIET_S
            pause_s = QUIET_POLL_S if quiet else HEALTHY_POLL_S
        if not self._changed and now < self._looked_at + pause_s:
            return False
        self._changed = False
        self._heard.clear()
        self._looked_at = now
        return True

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a hint that nobody has taken yet; whether there is one."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._heard.wait()
        except TimeoutError:
            return self._changed
        return True

    # --- the connection ---

    async def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping:
            try:
                await self._work_on_a_connection()
                pause_s = _FIRST_PAUSE_S
            except (HoldfastError, *DRIVER_ERRORS) as error:
                if self._healthy or not self._settled.is_set():
                    _log.warning("hints of %s do not work: %s; trying again", self._database.name, reason(error))
            except Exception:  # noqa: BLE001 - without hints a node still works; without this task it never has any
                _log.exception("hints of %s do not work; trying again", self._database.name)
            # A connection that had worked is worth a quick new try.
            pause_s = _FIRST_PAUSE_S if self._healthy else min(pause_s * 2, _LONGEST_PAUSE_S)
            self._healthy = False
            self._settled.set()
            if not self._stopping:
                await asyncio.sleep(uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter, not a secret

    async def _work_on_a_connection(self) -> None:
        connection = await self._database.connect_notifications()
        try:
            connection.add_termination_listener(self._on_end)
            await connection.add_listener(CHANNEL, self._on_hint)
            await self._probe(connection)
            # A hint that a crash takes away need not be on disk. Not before the session is known to be ours: a pooler
            # would give it to somebody whose commits have to be.
            await connection.execute("SET synchronous_commit = off")
            if self._settled.is_set():
                _log.info("hints of %s work again", self._database.name)
            self._healthy = True
            self._settled.set()
            self.on_notified()  # whatever was said before nobody listened
            await self._send_word(connection, _HELLO)
            await self._serve(connection)
        finally:
            await close_quietly(connection)

    async def _serve(self, connection: Any) -> None:
        """Send hints until it is time to stop; prove from time to time that they still arrive."""
        loop = asyncio.get_running_loop()
        probe_at = loop.time() + _PROBE_EVERY_S
        while not connection.is_closed():
            if self._to_answer:
                self._to_answer = False
                await self._send_word(connection, _HERE)
            elif self._to_send:
                self._to_send = False
                await self._send(connection)
            elif self._stopping:
                return
            elif loop.time() >= probe_at:
                await self._probe(connection)
                await self._send_word(connection, _HELLO)
                probe_at = loop.time() + _PROBE_EVERY_S
            else:
                await self._rest(probe_at - loop.time())
        raise asyncpg.InterfaceError("the connection is closed")

    async def _rest(self, at_most_s: float) -> None:
        try:
            async with asyncio.timeout(at_most_s):
                await self._work.wait()
        except TimeoutError:
            pass
        self._work.clear()

    async def _send(self, connection: Any) -> None:
        try:
            await connection.execute(f"NOTIFY {CHANNEL}", timeout=_SEND_S)
        except BaseException:
            self._to_send = True  # the next connection says it
            raise
        if not self._stopping:
            await asyncio.sleep(_NOTIFY_GAP_S)

    async def _send_word(self, connection: Any, word: str) -> None:
        await connection.execute(f"NOTIFY {CHANNEL}, '{word}'", timeout=_SEND_S)

    async def _probe(self, connection: Any) -> None:
        """Send a hint to ourselves. Behind a pooler that gives the session to others, it does not come back."""
        channel = f"{CHANNEL}_probe_{uuid4().hex}"
        came = asyncio.Event()

        def answer(*_: object) -> None:
            came.set()

        await connection.add_listener(channel, answer)
        try:
            await connection.execute(f"NOTIFY {channel}", timeout=_SEND_S)
            async with asyncio.timeout(_PROBE_S):
                await came.wait()
        except TimeoutError:
            raise asyncpg.InterfaceError(
                "a hint sent to ourselves did not come back; behind a transaction pooler, write notify=off into the URL"
            ) from None
        await connection.remove_listener(channel, answer)

    def _on_hint(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if pid == connection.get_server_pid():
            return
        self._peers_until = time.monotonic() + _PEERS_S
        if payload in {_HELLO, _HERE}:
            # What was committed since the other one looked, and before we knew of it, was told to nobody.
            self._to_answer |= payload == _HELLO
            self._to_send |= self._unsent
            self._unsent = False
            self._work.set()
        else:
            self._pending_events_at = asyncio.get_running_loop().time()
            self.on_notified()

    def _on_end(self, connection: Any) -> None:
        self._work.set()

    def on_notified(self) -> None:
        """It is time to look."""
        self._changed = True
        self._heard.set()
