"""Keys and tokens are what they were yesterday: what was handed out must go on working."""

import hmac

import pytest

from holdfast.model.tokens import execution_key, promise_token, task_token, token_hash


@pytest.mark.parametrize("secret", [b"s", b"x" * 32, b"y" * 64, b"z" * 65, b"long " * 100])
def test_the_key_of_an_execution_is_an_hmac_of_the_secret(secret: bytes) -> None:
    assert execution_key(secret, "acme", "x1") == hmac.digest(secret, b"acme/x1", "sha256")


def test_tokens_differ_by_everything_they_stand_for() -> None:
    key = execution_key(b"secret", "acme", "x1")
    tokens = {
        promise_token(key, "acme", "x1", "p"),
        promise_token(key, "acme", "x1", "q"),
        task_token(key, "acme", "x1", 1, 1),
        task_token(key, "acme", "x1", 1, 2),
        task_token(key, "acme", "x1", 2, 1),
    }
    assert len(tokens) == len({token_hash(token) for token in tokens}) == 5
    assert all(token.startswith("ct_") for token in tokens)
