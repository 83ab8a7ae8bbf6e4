"""Page cursors: nobody can make one, change one, or use somebody else's."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from holdfast.contract.execution_reads import ListExecutions
from holdfast.engine.cursors import Cursors
from holdfast.errors import InvalidCursor
from holdfast.model.executions import Status

LAST = "0198c5a0-0000-7000-8000-000000000001"


@pytest.fixture
def cursors():
    return Cursors(lambda: b"the secret of this installation")


def asked(**fields):
    given: dict[str, Any] = {"org": "one", "kinds": ("order",), "limit": 10} | fields
    return ListExecutions(**given)


def test_a_cursor_leads_back_to_its_place(cursors):
    """The page size may change from page to page."""
    cursor = cursors.make(asked(), LAST)

    assert LAST == cursors.read(asked(cursor=cursor))
    assert LAST == cursors.read(asked(cursor=cursor, limit=1))
    assert cursors.read(asked()) is None


@pytest.mark.parametrize(
    "other",
    [
        {"org": "two"},
        {"kinds": ()},
        {"kinds": ("order", "invoice")},
        {"statuses": (Status.FAILED,)},
        {"workflow_id": "w"},
        {"queue": "default"},
        {"metadata": (("a", "b"),)},
        {"created_from": 1},
        {"created_before": 1},
    ],
)
def test_it_belongs_to_one_org_and_one_list(cursors, other):
    """Every filter counts."""
    cursor = cursors.make(asked(), LAST)
    with pytest.raises(InvalidCursor) as refused:
        cursors.read(asked(cursor=cursor, **other))
    assert ("invalid_cursor", "cursor") == (refused.value.code, refused.value.field)


def test_another_place_can_not_be_put_into_it(cursors):
    """The MAC is over the place, too."""
    whole = urlsafe_b64decode(cursors.make(asked(), LAST))
    moved = urlsafe_b64encode(whole[:16] + LAST.replace("1", "2").encode()).decode()
    with pytest.raises(InvalidCursor):
        cursors.read(asked(cursor=moved))


def test_no_character_of_it_can_be_changed(cursors):
    """Also where base64 would give the same bytes."""
    cursor = cursors.make(asked(), LAST)
    for at, char in enumerate(cursor):
        for put in ("A" if char != "A" else "B", "=", "\n", ""):
            edited = f"{cursor[:at]}{put}{cursor[at + 1 :]}"
            if edited == cursor:
                continue
            with pytest.raises(InvalidCursor):
                cursors.read(asked(cursor=edited))


def test_another_installation_has_others(cursors):
    """Who knows how a cursor is made can't make one without the secret."""
    cursor = Cursors(lambda: b"somebody else's secret").make(asked(), LAST)
    with pytest.raises(InvalidCursor):
        cursors.read(asked(cursor=cursor))


def test_the_secret_is_asked_for_once():
    """It may come from a file; and not before there is a second page."""
    asked_for = []

    def secret() -> bytes:
        asked_for.append(1)
        return b"secret"

    cursors = Cursors(secret)
    assert not asked_for

    cursors.read(asked(cursor=cursors.make(asked(), LAST)))
    assert [1] == asked_for


def test_a_cursor_of_an_earlier_version_fits(cursors):
    """It was made over microseconds and pairs, under the names of the fields."""
    when = datetime(2026, 1, 2, tzinfo=UTC)
    request = asked(metadata={"b": "2", "a": "1"}, created_from=when)
    before = {
        "org": "one",
        "statuses": [],
        "kinds": ["order"],
        "workflow_id": None,
        "queue": None,
        "metadata": [["a", "1"], ["b", "2"]],
        "created_from": int(when.timestamp()) * 1_000_000,
        "created_before": None,
        "cursor": None,
        "limit": 0,
    }
    key = hmac.digest(b"the secret of this installation", b"cursors", "sha256")
    mac = hmac.digest(key, msgspec.json.encode(("ListExecutions", before, LAST)), "sha256")[:16]

    assert urlsafe_b64encode(mac + LAST.encode()).decode() == cursors.make(request, LAST)
