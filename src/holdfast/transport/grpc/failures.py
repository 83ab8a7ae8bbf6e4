"""Errors as messages and back: the same class, by its stable code."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import HoldfastError, revived
from holdfast.transport.grpc import holdfast_pb2 as pb


def error_message(error: HoldfastError) -> pb.Error:
    return pb.Error(code=error.code, message=error.message, details=details_bytes(error))


def error(message: pb.Error) -> HoldfastError:
    return revived(message.code, message.message, read_details(message.details))


def details_bytes(error: HoldfastError) -> bytes:
    """What is known about an error, as a JSON object."""
    try:
        return msgspec.json.encode(error.details, enc_hook=str)
    except (TypeError, ValueError, RecursionError):
        return b"{}"


def read_details(data: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(data, type=dict[str, Any]) if data else {}
    except ValueError:
        return {}
