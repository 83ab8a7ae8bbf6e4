"""The text of a key: what is one, what can't be one."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.api_key_text import KEY_LENGTH, hash_key, hint_of, make_key, redact_keys

SECRETS = st.binary(min_size=32, max_size=32)
KEY = make_key(bytes(range(32)))


@given(SECRETS)
def test_every_secret_makes_a_key_of_the_same_shape(secret):
    """Also the lowest and the highest: scanners of leaked secrets look for one pattern."""
    assert re.fullmatch(r"hf_[0-9A-Za-z]{49}", make_key(secret))
    assert len(make_key(secret)) == KEY_LENGTH


def test_the_ends_of_the_range_fit():
    """32 bytes need 43 digits, no more and no fewer."""
    assert make_key(bytes(32)).startswith("hf_" + "0" * 43)
    assert len(make_key(b"\xff" * 32)) == KEY_LENGTH


@given(SECRETS, SECRETS)
def test_different_secrets_make_different_keys(one, other):
    """Nothing of the secret is lost."""
    assert (make_key(one) == make_key(other)) is (one == other)


def test_the_hash_of_a_key_is_its_sha256():
    """Of the whole text: what is stored says nothing about it."""
    assert hash_key(KEY) == hashlib.sha256(KEY.encode()).hexdigest()
    assert hash_key(KEY.encode()) == hash_key(KEY)


@pytest.mark.parametrize("place", range(len(KEY)))
def test_a_key_with_one_character_changed_is_none(place):
    """The checksum tells, wherever it is; also the other case of the same letter."""
    for other in ("0", "x", KEY[place].swapcase()):
        changed = KEY[:place] + other + KEY[place + 1 :]
        assert hash_key(changed) is None or changed == KEY


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hf_",
        KEY[:-1],
        KEY + "0",
        KEY + " ",
        KEY + "\n",
        " " + KEY,
        KEY.upper(),
        KEY.removeprefix("hf_"),
        KEY[:-1] + "\0",
        KEY[:-1] + "ü",
        KEY[:-1] + "\ud800",
        "ü" * KEY_LENGTH,
        "\0" * KEY_LENGTH,
        "x" * 65_536,
        "hf_" + "é" * 49,
        "hf_" + "٣" * 49,
        None,
        7,
        b"",
        b"\xff" * KEY_LENGTH,
        bytearray(KEY.encode()),
        hash_key(KEY),
    ],
)
def test_what_is_no_key_has_no_hash(text):
    """Whatever it is: there is no error to provoke. The hash of a key is no key either."""
    assert hash_key(text) is None


@given(st.one_of(st.text(), st.binary(), st.text(min_size=KEY_LENGTH, max_size=KEY_LENGTH)))
def test_anything_may_be_asked(anything):
    """Made-up keys that pass are one in four billion."""
    assert hash_key(anything) is None


def test_a_log_shows_no_key():
    """Wherever it stands, also if it is cut off; the rest of the line stays."""
    line = f"GET /api/orgs/a?api_key={KEY}&x=1 Bearer {KEY[:20]} {hint_of(KEY)}"
    assert redact_keys(line) == f"GET /api/orgs/a?api_key=hf_***&x=1 Bearer hf_*** {hint_of(KEY)}"


def test_a_secret_of_another_length_is_refused():
    """A key with less chance in it would look just as good."""
    with pytest.raises(ValueError, match="32 bytes"):
        make_key(b"short")
