"""Page cursors: nobody can make one, change one, or use somebody else's."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest

from holdfast.contract.executions import ListExecutions
from holdfast.engine.cursors import Cursors
from holdfast.errors import InvalidCursor
from holdfast.model.executions import WorkflowStatus

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
        {"statuses": (WorkflowStatus.FAILED,)},
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
