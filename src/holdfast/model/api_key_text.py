"""The text of an API key: `hf_`, 32 random bytes in base 62, and a checksum.

    hf_ 7Qm…(43 characters) 0aZ3kP(6)

The checksum tells a mistyped or made-up key from one that may exist, without asking the database, and lets scanners of
leaked secrets find keys. Only the hash is ever stored: the secret has 256 random bits, so a fast hash is enough.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from typing import Final
from zlib import crc32

PREFIX: Final = "hf_"
SECRET_BYTES: Final = 32
_SECRET_DIGITS: Final = 43
_SUM_DIGITS: Final = 6
KEY_LENGTH: Final = len(PREFIX) + _SECRET_DIGITS + _SUM_DIGITS
HINT_LENGTH: Final = len(PREFIX) + 4
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEY: Final = re.compile(rb"hf_[0-9A-Za-z]{49}")
_IN_TEXT: Final = re.compile(r"hf_[0-9A-Za-z]{8,}")


def make_key(secret: bytes) -> str:
    """The text of the key with this secret."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a key has {SECRET_BYTES} bytes of secret, not {len(secret)}")
    body = PREFIX + _base62(int.from_bytes(secret), _SECRET_DIGITS)
    return body + _checksum(body.encode())


def hash_key(text: object) -> str | None:
    """What stands for a key in the database; None for anything that can't be a key, whatever it is."""
    if isinstance(text, str):
        # Bytes are compared below: comparing text outside ASCII in constant time is an error.
        text = text.encode("utf-8", "replace") if len(text) == KEY_LENGTH else b""
    if not isinstance(text, bytes) or _KEY.fullmatch(text) is None:
        return None
    if not hmac.compare_digest(_checksum(text[:-_SUM_DIGITS]).encode(), text[-_SUM_DIGITS:]):
        return None
    return sha256(text).hexdigest()


def hint_of(text: str) -> str:
    """As much of a key as may be shown."""
    return text[:HINT_LENGTH]


def redact_keys(text: str) -> str:
    """Text for a log: whatever looks like a key is not in it any more."""
    return _IN_TEXT.sub(f"{PREFIX}***", text)


def _base62(number: int, digits: int) -> str:
    found = []
    for _ in range(digits):
        number, digit = divmod(number, 62)
        found.append(_ALPHABET[digit])
    return "".join(reversed(found))


def _checksum(body: bytes) -> str:
    return _base62(crc32(body), _SUM_DIGITS)
