"""Runs one batch as one transaction: begin, load, decide, write, commit.

Promises: no transaction is left open; a batch is told `committed` only when its commit is known to stand and `failed`
only if nothing of it was written, or nobody can know; a batch that fails because of its content is split, so that only
the guilty member fails. What passes by itself (a lost connection, a deadlock, a server that restarts, or lets nobody
in for a while) is tried again, the whole batch from a fresh load. Each member's deadline counts from when it came, also
where it had to wait for others first: those whose time is over fail, and the rest goes on without them. A server that
does not answer at all changes nothing about that: what it may still commit is left in doubt (`in_doubt.py`), everything
else is given up. A lock that somebody else holds for long must not stop everybody: whoever wants it is found by
splitting the batch, and set aside (`lock_waiters.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from random import uniform
from typing import Any, Final, Protocol

from holdfast.errors import HoldfastError, OutcomeUnknown, StorageBusy, StorageError
from holdfast.store.claim_cursors import ClaimCursors
from holdfast.store.postgres.arrays import Packing
from holdfast.store.postgres.clocks import DatabaseClock
from holdfast.store.postgres.commit_markers import ELSEWHERE, CommitMarkers
from holdfast.store.postgres.connections import CLOSE_S, DRIVER_ERRORS, Database, Unconnected, close_quietly
from holdfast.store.postgres.driver_errors import (
    is_connection_lost,
    is_lost_commit,
    is_transient,
    reason,
    sqlstate,
    translate,
)
from holdfast.store.postgres.due_cursor import DueCursor
from holdfast.store.postgres.failover import FailoverDetector
from holdfast.store.postgres.in_doubt import InDoubtCommit
from holdfast.store.postgres.load import Raced, load
from holdfast.store.postgres.lock_waiters import LockWaiters
from holdfast.store.postgres.statements import Connection
from holdfast.store.postgres.write import Seen, write
from holdfast.store.postgres.writing import Piece
from holdfast.store.protocol import Batch, Changes, Clock

_log = logging.getLogger("holdfast.store")

# Rows are found by keys, always: a plan that was made while a table was small must not scan it when it has grown.
_SETTINGS: Final = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "lock_timeout": "500",
    "idle_in_transaction_session_timeout": "5000",
}
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# When somebody is known to hold a lock for long, and when only those are tried who want it.
_CAREFUL: Final = "; SET LOCAL lock_timeout = 30"
_BRIEF: Final = "; SET LOCAL lock_timeout = 5"
_BLOCKED_AT_ONCE: Final = 5
_ASK_AT_LEAST_S: Final = 5.0
# For those who have waited so long for others that their time is over: a race or a deadlock is no reason to fail yet.
_TRY_AT_LEAST_S: Final = 1.0
_CONNECT_AT_LEAST_S: Final = 2.0
# How long a server may be silent, from BEGIN to the last row or from COMMIT on, however late it is.
_ANSWER_AT_LEAST_S: Final = 2.0
_CLOSE_S: Final = 0.5
_NEARLY: Final = 1 / 30
_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 1.0
_LOCK_NOT_AVAILABLE: Final = "55P03"


class WriterIdle(Protocol):
    def __call__(self, *, writing: bool) -> None: ...


def _ignore_idle(*, writing: bool) -> None:
    """Nobody has anything else to do."""


def _ignore_late(before: float, error: Exception) -> None:
    """Nobody waits for this writer."""


def _nothing_to_do() -> None:
    """Nobody here remembers anything."""


class Transactions:
    """The writer's connection. Belongs to the writer."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._connection: Any = None
        self._commit_markers = CommitMarkers()
        self._failover = FailoverDetector()
        self._lock_waiters = LockWaiters()
        self._claim_cursors = ClaimCursors()
        self.due_cursor = DueCursor()
        self.stopping = False
        self.writer_idle: WriterIdle = _ignore_idle
        self.data_loss_detected: Callable[[], None] = _nothing_to_do
        self.refuse_late: Callable[[float, Exception], None] = _ignore_late
        wait_ms = int(database.config.statement_timeout_s * 1000)
        settings = {**_SETTINGS, "statement_timeout": str(wait_ms)}
        # Behind a pooler a session is a transaction.
        self._session = "; ".join(f"SET {name} = {value}" for name, value in settings.items())
        local = "".join(f"; SET LOCAL {name} = {value}" for name, value in settings.items())
        self._begin = _BEGIN if database.notify else _BEGIN + local

    async def connect(self) -> Any:
        """Opened when needed: a connection that was lost has been thrown away. Where the new one leads is asked here
        alone, not by readers: what is read from another past does no harm before it is committed."""
        if self._connection is None:
            connection = await self._database.connect_writer()
            try:
                if self._database.notify:
                    await connection.execute(self._session)
                past = await self._failover.ask(connection)
                lost = await self._commit_markers.met(connection)  # the last: what it finds out it says once
            except DRIVER_ERRORS as error:
                await close_quietly(connection)
                raise self._database.explain(error) from error
            except BaseException:
                await close_quietly(connection)
                raise
            self._connection = connection
            if self._remembers_too_much(lost, moved=self._failover.moved_to(past)):
                _notify(self.data_loss_detected)
        return self._connection

    def _remembers_too_much(self, lost: int, *, moved: bool) -> bool:
        """Whether this process may know what the database does not."""
        name = self._database.name
        if lost:
            _log.error(
                "%s has lost %d transactions of this node that were committed and answered: has a standby taken "
                "over that had not got them, or was a backup restored? Workers begin anew with what is there",
                name,
                lost,
            )
        elif moved:
            _log.warning(
                "%s goes on from another past than before: a standby has taken over, or a backup was restored. All "
                "transactions of this node are there; whether other nodes have lost any is not known here. Workers "
                "begin anew with what is there",
                name,
            )
        return moved or lost > 0

    async def run(self, batch: Batch) -> bool:
        """One transaction, or several if it has to be split. Returns when the batch knows how it ended, or when it is
        set aside: true if anything was written that other nodes should hear of."""
        at_least_s = min(_TRY_AT_LEAST_S, self._database.config.busy_deadline_s)
        give_up_at = max(self._deadline(batch), asyncio.get_running_loop().time() + at_least_s)
        return await self._run(batch, give_up_at, _CAREFUL if self._lock_waiters else "")

    @property
    def again_at(self) -> float | None:
        """When to call `run_again`, by the loop's clock."""
        return self._lock_waiters.next_at if self._lock_waiters else None

    async def run_again(self) -> bool:
        """Those that were set aside, if it is time: true if anything was written. Few who are still blocked are enough
        to leave the others for the next time."""
        loop = asyncio.get_running_loop()
        if not self._lock_waiters or loop.time() < self._lock_waiters.next_at:
            return False
        blocked, written, before = 0, False, len(self._lock_waiters)
        for _ in range(before):
            count = len(self._lock_waiters)
            waiting = self._lock_waiters.take()
            written |= await self._run(waiting.batch, waiting.give_up_at, _BRIEF)
            blocked += len(self._lock_waiters) == count
            if blocked >= _BLOCKED_AT_ONCE:
                break
        self._lock_waiters.end_pass(loop.time(), moved=len(self._lock_waiters) < before)
        return written

    def give_up(self) -> None:
        """Nobody will call `run_again` any more."""
        while self._lock_waiters:
            busy = StorageBusy(
                f"{self._database.name} was closed while somebody else held what this call needs; nothing of it was "
                "written: repeat it",
                path=self._database.name,
            )
            _notify(self._lock_waiters.take().batch.failed, busy)

    def _deadline(self, batch: Batch) -> float:
        return batch.waiting_since + self._database.config.busy_deadline_s

    async def _run(self, batch: Batch, give_up_at: float, settings: str) -> bool:
        loop = asyncio.get_running_loop()
        pauses = _Pauses()
        while True:
            try:
                written = await self._transact(batch, give_up_at, settings)
            except Raced as race:
                await self._roll_back()
                _log.debug("begun again: %s", race)
                if loop.time() >= give_up_at:
                    return await self._settle(batch, race, settings)
                await pauses.after_race()
            except Exception as error:  # noqa: BLE001 - whatever a rule raises belongs to the batch, not to the writer
                await self._roll_back(error)
                if not _is_worth_repeating(error) or loop.time() >= give_up_at:
                    return await self._settle(batch, error, settings)
                await pauses.after_fault(error, give_up_at - loop.time())
            except BaseException:
                # Cancelled: nobody knows how far the statement has come. The connection must not be used again.
                await self.close()
                raise
            else:
                _notify(batch.committed)
                return written

    async def end(self) -> None:
        """In peace: nobody will ask what became of the last transaction."""
        if self._connection is not None:
            with suppress(Exception):
                await self._commit_markers.clear(self._connection)
        await self.close()

    async def close(self, timeout_s: float = CLOSE_S) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await close_quietly(connection, timeout_s)

    async def _transact(self, batch: Batch, give_up_at: float, settings: str) -> bool:
        loop = asyncio.get_running_loop()
        connection = await self._connected(give_up_at - loop.time())
        # Not the time-out of each statement, which is for servers that are slow: this one's callers have a deadline.
        async with asyncio.timeout_at(max(give_up_at, loop.time() + _ANSWER_AT_LEAST_S)):
            await connection.execute(self._begin + settings)
            now = await self.now(connection)
            packing = Packing(connection)
            self.writer_idle(writing=False)
            loaded = await load(packing, batch.plan(), now, self._claim_cursors, self.due_cursor.at)
            seen = Seen(loaded)
            changes = batch.decide(loaded)
            if changes == _NOTHING:
                # Nothing to write, nothing to make durable: locks that found nothing to do need no commit on disk.
                await connection.execute("ROLLBACK")
                return False
            number, mark = self._commit_markers.next(now, None if self._database.notify else self._failover.timeline)
            self.writer_idle(writing=True)
            await self._write(packing, changes, seen, now, mark)
        await self._commit(connection, number, batch, give_up_at)
        self._claim_cursors.wrote(changes)
        self.due_cursor.wrote(changes)
        # That a worker lives is no news for other nodes: they look when its lease is over.
        return changes != Changes(workers=changes.workers)

    async def _connected(self, wait_s: float) -> Any:
        if self._connection is not None:
            return self._connection
        try:
            async with asyncio.timeout(max(wait_s, _CONNECT_AT_LEAST_S)):
                return await self.connect()
        except (HoldfastError, TimeoutError) as error:
            raise Unconnected(error) from error

    async def now(self, connection: Connection) -> int:
        return await self._clock.read(connection) if isinstance(self._clock, DatabaseClock) else self._clock()

    async def _write(self, packing: Packing, changes: Changes, seen: Seen, now: int, mark: Piece) -> None:
        try:
            await write(packing, changes, seen, now, mark)
        except Exception as error:
            if sqlstate(error) == ELSEWHERE:
                # As good as a lost connection: the next one is asked where it leads.
                raise ConnectionResetError(f"{self._database.name} is on another timeline than before") from error
            raise

    async def _commit(self, connection: Any, number: int, batch: Batch, give_up_at: float) -> None:
        # Callers may give up on a COMMIT, the writer may not: one that waits for its standby would stand without it.
        at = max(give_up_at, asyncio.get_running_loop().time() + _ANSWER_AT_LEAST_S)
        with InDoubtCommit(at, lambda in_doubt: self._in_doubt(batch, in_doubt)) as in_doubt:
            try:
                await connection.execute("COMMIT")
            except Exception as error:
                if not is_lost_commit(error):
                    raise
                self._connection = None
                connection.terminate()
                if not await self._stands(number, give_up_at, in_doubt):
                    raise
        self._commit_markers.stands_now(number)

    def _in_doubt(self, batch: Batch, in_doubt: InDoubtCommit) -> None:
        """Those who can't wait for a COMMIT any longer are told that it is not known; those behind it, who were not
        begun, that the database is busy."""
        name = self._database.name
        if not in_doubt.notified:
            _log.warning("%s does not say whether it has committed: asking until it answers", name)
            _notify(batch.commit_in_doubt, self._unknown(in_doubt.why))
        busy = StorageBusy(
            f"{name} did not say before the deadline what became of the call before this one ({in_doubt.why}); nothing "
            "of this one was written: try again",
            path=name,
        )
        before = asyncio.get_running_loop().time() - self._database.config.busy_deadline_s
        _notify(self.refuse_late, before, busy)

    async def _stands(self, number: int, give_up_at: float, in_doubt: InDoubtCommit) -> bool:
        """Whether the commit stands: asked until somebody answers, since nothing can go on before."""
        pauses = _Pauses()
        while True:
            try:
                return await self._ask(number, give_up_at - asyncio.get_running_loop().time())
            except Exception as error:
                in_doubt.why = reason(error)
                if in_doubt.notified and self.stopping:
                    raise self._unknown(in_doubt.why) from error
                await pauses.after_fault(error)

    async def _ask(self, number: int, wait_s: float) -> bool:
        async with asyncio.timeout(max(wait_s, _ASK_AT_LEAST_S)):
            connection = await self._database.connect_writer()
            try:
                return await self._commit_markers.stands(connection, number)
            finally:
                await close_quietly(connection)

    def _unknown(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self._database.name} was lost while it committed ({why}): whether this call counts is not known; "
            "repeat it with the same request id to find out",
            path=self._database.name,
        )

    async def _settle(self, batch: Batch, error: Exception, settings: str) -> bool:
        """What fails by its content, or waits for a lock, is looked for by trying smaller batches. Of those who could
        only wait, the ones whose time is over fail."""
        cause = error.error if isinstance(error, Unconnected) else error
        known = cause if isinstance(cause, StorageError) else translate(cause, self._database.name)
        blocked = sqlstate(error) == _LOCK_NOT_AVAILABLE
        offender = known is None or blocked
        members = batch.split() if offender or _is_worth_repeating(error) else ()
        if len(members) > 1:
            return any([await self._settle_part(part, error, settings, offender=offender) for part in members])
        if blocked and not self._is_late(batch):
            self._lock_waiters.add(batch, self._deadline(batch))
        else:
            _notify(batch.failed, known if known is not None else cause)
        return False

    async def _settle_part(self, part: Batch, error: Exception, settings: str, *, offender: bool) -> bool:
        if offender:
            return await self._run(part, self._deadline(part), _CAREFUL)
        # Those who came at nearly the same time are not worth an attempt of their own.
        if self._is_late(part, self._database.config.busy_deadline_s * _NEARLY):
            return await self._settle(part, error, settings)
        return await self._run(part, self._deadline(part), settings)

    def _is_late(self, batch: Batch, early_s: float = 0.0) -> bool:
        return asyncio.get_running_loop().time() + early_s >= self._deadline(batch)

    async def _roll_back(self, error: Exception | None = None) -> None:
        connection = self._connection
        if connection is None:
            return
        if error is not None and is_connection_lost(error):
            await self.close(_CLOSE_S)
            return
        try:
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
        except Exception as failure:  # noqa: BLE001 - a connection that can't even roll back is of no use
            _log.info("could not roll back, connecting to %s again: %s", self._database.name, failure)
            await self.close()


_NOTHING: Final = Changes()


class _Pauses:
    """Longer from one failure to the next."""

    def __init__(self) -> None:
        self._races = 0
        self._pause_s = _FIRST_PAUSE_S

    async def after_race(self) -> None:
        """Whoever was faster has committed by now: a second look is enough, unless many run for the same thing."""
        self._races += 1
        if self._races > 3:
            await asyncio.sleep(uniform(0.0, 0.001) * self._races)  # noqa: S311 - jitter, not a secret

    async def after_fault(self, error: Exception, at_most_s: float = _LONGEST_PAUSE_S) -> None:
        _log.info("a transaction is repeated: %s", error)
        pause_s = uniform(0.5, 1.5) * self._pause_s  # noqa: S311 - as above
        await asyncio.sleep(max(0.0, min(pause_s, at_most_s)))
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)


def _is_worth_repeating(error: BaseException) -> bool:
    """Whether it passes by itself. A lock that is held for long does, but its holder is waited for alone."""
    if isinstance(error, Unconnected):
        return True
    cause = error.__cause__ if isinstance(error, StorageError) and error.__cause__ is not None else error
    return is_transient(cause) and sqlstate(cause) != _LOCK_NOT_AVAILABLE


def _notify(listener: Callable[..., None], *arguments: object) -> None:
    """A listener that fails must not keep the others from hearing how their batch ended."""
    try:
        listener(*arguments)
    except Exception:  # noqa: BLE001 - as above
        _log.exception("a batch could not take its result")
