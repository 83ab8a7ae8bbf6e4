"""Completion tokens: the right to settle one promise, or to complete one attempt of a task, for whoever holds it.

    secret of the installation ─► key of one execution ─► token of one promise or attempt ─► its hash, which is stored

A token comes out the same on every replay, so it need not be stored; a worker needs no more than the keys of the
executions it runs.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash

PREFIX = "ct_"
_BLOCK = 64
REPLAY_KEY = b"only replayed"
"""For programs whose promises nobody can settle: replays of a history, mocks. What it gives is no secret."""


def replay_key(_: str) -> bytes:
    """The key of any execution that is only replayed."""
    return REPLAY_KEY


def execution_key(secret: bytes, org: str, execution_id: str) -> bytes:
    """One for every turn that is handed out: HMAC-SHA256 as `hmac.digest`, which lets go of the interpreter each time
    and has to win it back."""
    inner, outer = _started(secret)
    within, around = inner.copy(), outer.copy()
    within.update(f"{org}/{execution_id}".encode())
    around.update(within.digest())
    return around.digest()


@lru_cache(maxsize=8)
def _started(secret: bytes) -> tuple[_Hash, _Hash]:
    """The two hashes of an HMAC, each after its padded key."""
    key = (sha256(secret).digest() if len(secret) > _BLOCK else secret).ljust(_BLOCK, b"\0")
    return sha256(bytes(byte ^ 0x36 for byte in key)), sha256(bytes(byte ^ 0x5C for byte in key))


def promise_token(key: bytes, org: str, execution_id: str, name: str) -> str:
    """`key` is that of the execution."""
    return _token(key, f"{org}/{execution_id}/promise/{name}")


def task_token(key: bytes, org: str, execution_id: str, task_no: int, attempt: int) -> str:
    """For one attempt of a task. `key` is that of the execution."""
    return _token(key, f"{org}/{execution_id}/task/{task_no}/{attempt}")


def _token(key: bytes, text: str) -> str:
    return PREFIX + urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")).rstrip(b"=").decode()


def token_hash(token: str) -> str:
    """What stands for a token in the database."""
    return sha256(token.encode()).hexdigest()
