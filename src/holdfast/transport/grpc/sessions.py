"""The opening of a worker's session as messages and back, and messages in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from holdfast.contract.workers import RegisterWorker, Trigger
from holdfast.errors import InvalidRequest
from holdfast.model.validation import check_name
from holdfast.transport.grpc import holdfast_pb2 as pb

MOST_KINDS = 10_000
LONGEST_HOST = 200
MOST_SLOTS = 1_000_000
SHORTEST_LEASE_S = 0.05
LONGEST_LEASE_S = 3600.0

Message = TypeVar("Message", pb.WorkerMessage, pb.ServerMessage)


def open_message(request: RegisterWorker) -> pb.OpenSession:
    return pb.OpenSession(
        org_id=request.org,
        host=request.host,
        pid=request.pid,
        queues=request.queues,
        builds=[
            pb.Build(workflow_kind=kind, workflow_version=version, build=build)
            for (kind, version), build in request.builds.items()
        ],
        task_kinds=request.task_kinds,
        triggers=[
            pb.Trigger(
                workflow_kind=found.kind,
                workflow_version=found.version,
                key=found.key,
                queue=found.queue,
                where=found.where,
            )
            for found in request.triggers
        ],
        turn_slots=request.turn_slots,
        task_slots=request.task_slots,
        lease_seconds=request.lease_s,
    )


def register_request(message: pb.OpenSession, org: str, session: str) -> RegisterWorker:
    """`session` is the name that the server gives it. Raises InvalidRequest for what no worker would say of itself."""
    check_name(message.host, "host", LONGEST_HOST)
    for field in ("queues", "builds", "task_kinds", "triggers"):
        if len(getattr(message, field)) > MOST_KINDS:
            raise InvalidRequest(f"a worker may have {MOST_KINDS} {field}", field=field)
    for queue in message.queues:
        check_name(queue, "queues")
    for kind in message.task_kinds:
        check_name(kind, "task_kinds")
    for found in message.builds:
        check_name(found.workflow_kind, "builds")
        check_name(found.workflow_version, "builds")
        check_name(found.build, "builds")
    for field in ("turn_slots", "task_slots"):
        if getattr(message, field) > MOST_SLOTS:
            raise InvalidRequest(f"{field} must be at most {MOST_SLOTS}", field=field)
    if not 0 <= message.pid < 2**53:
        raise InvalidRequest("pid must be a process's number", field="pid")
    return RegisterWorker(
        org=org,
        session=session,
        host=message.host,
        pid=message.pid,
        queues=tuple(message.queues),
        builds={(found.workflow_kind, found.workflow_version): found.build for found in message.builds},
        task_kinds=tuple(message.task_kinds),
        triggers=tuple(
            Trigger(
                kind=found.workflow_kind,
                version=found.workflow_version,
                key=found.key,
                queue=found.queue,
                where=found.where if found.HasField("where") else None,
            )
            for found in message.triggers
        ),
        turn_slots=message.turn_slots,
        task_slots=message.task_slots,
        lease_s=check_lease(message.lease_seconds),
    )


def check_lease(seconds: float) -> float:
    if not SHORTEST_LEASE_S <= seconds <= LONGEST_LEASE_S:
        raise InvalidRequest(
            f"lease_seconds must lie between {SHORTEST_LEASE_S} and {LONGEST_LEASE_S}, not {seconds}",
            field="lease_seconds",
        )
    return seconds


# --- messages that are too large to be sent at once ---


def in_parts(message: Message, size: int) -> Iterator[Message]:
    """The message itself, or messages that carry it in parts of this size."""
    if message.ByteSize() <= size:
        yield message
        return
    data = message.SerializeToString()
    last = (len(data) - 1) // size
    for number in range(last + 1):
        yield type(message)(part=data[number * size : (number + 1) * size], more=number < last)


class Parts:
    """Puts messages together again. `most` bounds what is kept of one whose end has not come."""

    __slots__ = ("_kept", "_most", "_size")

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[bytes] = []
        self._size = 0

    def take(self, message: Message) -> Message | None:
        """A whole message, or None if more parts of it are to come. Raises InvalidRequest or DecodeError."""
        if not message.part:
            if self._kept:
                raise InvalidRequest("the rest of a message in parts is missing", field="part")
            return message
        self._kept.append(message.part)
        self._size += len(message.part)
        if self._size > self._most:
            raise InvalidRequest(f"a message has more than {self._most} bytes", field="part")
        if message.more:
            return None
        whole: Message = type(message).FromString(b"".join(self._kept))
        self._kept, self._size = [], 0
        if whole.part:
            raise InvalidRequest("a part of a message can't be a part itself", field="part")
        return whole
