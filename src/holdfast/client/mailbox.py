"""Signals nobody has read, in the words of an application."""

from __future__ import annotations

from holdfast.contract.mailboxes import (
    BuryUnread,
    DeadLetter,
    GetMailbox,
    ListDeadLetters,
    ListDeadLettersOf,
    Mailbox,
    Redelivered,
    RedeliverSignal,
    RemoveDeadLetter,
)
from holdfast.contract.operation import Api
from holdfast.errors import ExecutionNotFound, InvalidRequest


class Mailboxes:
    """What a client does about unread signals. See `Client`."""

    __slots__ = ("_api", "_org")

    def __init__(self, api: Api, org: str) -> None:
        self._api = api
        self._org = org

    async def look(self, execution_id: str, limit: int) -> Mailbox:
        return await self._api.call(GetMailbox(org=self._org, workflow_execution_id=execution_id, limit=limit))

    async def dead_letters(self, execution_id: str | None, limit: int) -> list[DeadLetter]:
        if execution_id is None:
            return list((await self._api.call(ListDeadLetters(org=self._org, limit=limit))).dead_letters)
        request = ListDeadLettersOf(org=self._org, workflow_execution_id=execution_id, limit=limit)
        try:
            return list((await self._api.call(request)).dead_letters)
        except ExecutionNotFound:
            return []

    async def redeliver(self, dead_letter: DeadLetter, to: str | None) -> Redelivered:
        execution_id, seq = _key(dead_letter)
        return await self._api.call(RedeliverSignal(org=self._org, workflow_execution_id=execution_id, seq=seq, to=to))

    async def remove(self, dead_letter: DeadLetter) -> None:
        execution_id, seq = _key(dead_letter)
        await self._api.call(RemoveDeadLetter(org=self._org, workflow_execution_id=execution_id, seq=seq))

    async def bury(self, execution_id: str, reason: str) -> int:
        request = BuryUnread(org=self._org, workflow_execution_id=execution_id, reason=reason)
        return (await self._api.call(request)).buried


def _key(given: object) -> tuple[str, int]:
    if not isinstance(given, DeadLetter):
        raise InvalidRequest(
            f"give a dead letter as client.dead_letters() lists them, not {type(given).__name__}", field="dead_letter"
        )
    return given.execution_id, given.seq
