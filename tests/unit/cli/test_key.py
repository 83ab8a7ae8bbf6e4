"""`holdfast key …` on a database."""

import pytest


@pytest.fixture(autouse=True)
def _database(cli, engine):
    """One with its schema."""


def test_a_key_is_shown_once(cli):
    """Its text alone is on standard output; the list has only how it begins."""
    made = cli("key", "create", "ci", "--role", "writer", "--expires-in", "30d")
    [listed] = cli.lines("key", "list")

    assert made.stdout.startswith("hf_")
    assert 1 == len(made.stdout.splitlines())
    assert ("ci", "writer", "active") == (listed["name"], listed["role"], listed["state"])
    assert made.stdout.strip() not in cli("key", "list").stdout
    assert listed["expires_at"] is not None


def test_a_key_is_rotated_and_revoked(cli):
    """A new text for the same key; then none."""
    first = cli.json("key", "create", "ci", "--role", "reader")
    second = cli.json("key", "rotate", first["key"]["key_id"], "--overlap", "1h")
    revoked = cli.json("key", "revoke", first["key"]["key_id"])

    assert (first["key"]["key_id"], True) == (second["key"]["key_id"], first["text"] != second["text"])
    assert second["key"]["old_until"] is not None
    assert "revoked" == revoked["state"]
    assert "[key_ended]" in cli.refused("key", "rotate", first["key"]["key_id"], code=7)


def test_orgs_have_their_own_keys(cli):
    """A key of another org is not found."""
    made = cli.json("key", "create", "ci", "--role", "admin", "--org", "acme")

    assert ([], 1) == (cli.lines("key", "list"), len(cli.lines("key", "list", "--org", "acme")))
    assert "[key_not_found]" in cli.refused("key", "revoke", made["key"]["key_id"], code=4)
    assert "Invalid value for '--role'" in cli.refused("key", "create", "ci", "--role", "king", code=2)
