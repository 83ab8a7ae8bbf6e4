"""The bytes of a snapshot: what the machine keeps of a program's asks, and the program's own bytes inside.

The machine keeps its clock, the numbers given out so far, which slots are open and who waits for which signal, signals
nobody has read, and the answers to patches. Slots and waiters themselves are the program's: it makes them again in
`Program.restore`, and the machine compares them with what it has kept.

The same history always gives the same bytes. `FORMAT` goes up when they change; bytes of another format are not read,
and the program is rebuilt from its history.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec
from msgspec import Raw

from holdfast.errors import EventTooNew, SnapshotMismatch
from holdfast.model.events import EventBody, decode_body, encode_body
from holdfast.model.values import Payload

FORMAT: Final = 1
_SEAL_BYTES: Final = 4


class StoredEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event in the form that a history keeps it in, so that a later version of Holdfast can read it."""

    type: str
    version: int
    body: bytes


class MachineState(msgspec.Struct, frozen=True, array_like=True):
    """See the module's text. `slots` are in the order of their creation, `signals` in that of their arrival."""

    format: int
    up_to: int
    now: int
    started: StoredEvent
    made: dict[str, int]
    slots: list[tuple[str, int]]
    waiters: list[tuple[str, int]]
    signals: list[tuple[int, str, bytes]]
    unclaimed: list[StoredEvent]
    patches: dict[str, bool]
    program: bytes


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(MachineState).decode


def written(state: MachineState) -> bytes:
    return sealed(_encode(state))


def sealed(data: bytes) -> bytes:
    """With a checksum in front: a program must not go on from bytes that were damaged and can still be read."""
    return crc32(data).to_bytes(_SEAL_BYTES, "big") + data


def read(data: bytes) -> MachineState:
    """Raises SnapshotMismatch if these are not the bytes of a snapshot in this format."""
    content = data[_SEAL_BYTES:]
    if sealed(content) != data:
        raise SnapshotMismatch("its bytes are damaged: the checksum is another")
    try:
        state = _decode(content)
    except (msgspec.MsgspecError, ValueError) as error:
        raise SnapshotMismatch(f"its bytes can't be read: {error}") from error
    if state.format != FORMAT:
        raise SnapshotMismatch(f"it has format {state.format}, and format {FORMAT} is read here")
    return state


def stored(body: EventBody) -> StoredEvent:
    return StoredEvent(body.TYPE, body.VERSION, encode_body(body))


def recalled(event: StoredEvent) -> EventBody:
    try:
        return decode_body(event.type, event.version, event.body)
    except (EventTooNew, msgspec.MsgspecError) as error:
        raise SnapshotMismatch(f"it holds an event that can't be read: {error}") from error


def payload(data: bytes) -> Payload:
    return Raw(data)
