"""Histories as text, and replayed against the code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast.testing
from holdfast import WorkflowContext, workflow
from holdfast import errors as err
from holdfast.model import events as e
from holdfast.testing import MockWorkflowContext, export_history, load_history, replay

LISTED = [
    "Fake",
    "MockCall",
    "MockTaskContext",
    "MockTimer",
    "MockUpdate",
    "MockWorkflowContext",
    "ReplayReport",
    "StoredHistory",
    "WorkflowEnvironment",
    "export_history",
    "load_history",
    "replay",
]


@workflow(kind="shopping", version="2")
async def shopping(ctx: WorkflowContext, item: str) -> str:
    await ctx.sleep(60)
    return str(await ctx.task("buy", item))


def history() -> list[e.HistoryEvent]:
    mock = MockWorkflowContext()
    mock.result("buy", {"price": 12345678901234567890, "note": "naïve"})
    mock.run(shopping, "tea")
    return mock.history


def test_export_and_load_give_the_same_history():
    """Every event, its time to the microsecond, every payload digit for digit."""
    stored = load_history(export_history(history(), execution_id="e1"))

    assert ("e1", "shopping", "2", history()) == (stored.execution_id, stored.kind, stored.version, stored.events)


def test_format_is_for_people():
    """Version, names and UTC times are there to be read."""
    found = json.loads(export_history(history(), execution_id="e1"))

    assert ("holdfast-history", 1, "e1", "shopping", "2") == tuple(
        found[key] for key in ("format", "format_version", "execution_id", "kind", "version")
    )
    assert {
        "seq": 2,
        "at": "2030-01-01T00:00:00.000000Z",
        "type": "TIMER_STARTED",
        "version": 1,
        "data": {**found["events"][1]["data"], "timer_no": 1, "up_to": 1},
    } == found["events"][1]


@pytest.mark.parametrize("form", ["path", "path as text", "text", "object"])
def test_history_is_read_from(form: str, tmp_path: Path):
    """A file, the text, the decoded object."""
    text = export_history(history(), execution_id="e1")
    path = tmp_path / "history.json"
    path.write_text(text, "utf-8")
    source: dict[str, Any] = {"path": path, "path as text": str(path), "text": text, "object": json.loads(text)}

    assert len(history()) == len(load_history(source[form]).events)


def test_old_event_versions_are_brought_up_to_date(monkeypatch):
    """A stored history stays readable when an event type changes."""
    found = json.loads(export_history(history(), execution_id="e1"))
    found["events"][1]["version"] = 0
    found["events"][1]["data"]["number"] = found["events"][1]["data"].pop("timer_no")
    monkeypatch.setitem(e.UPCASTERS, ("TIMER_STARTED", 0), lambda old: old | {"timer_no": old.pop("number")})

    assert history() == load_history(found).events


def _changed(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(export_history(history(), execution_id="e1"))
    return found | changes


@pytest.mark.parametrize(
    "source",
    [
        "{",
        "no/such/file.json",
        _changed(format="something else"),
        _changed(format_version=2),
        _changed(events=[]),
        _changed(events=_changed()["events"][1:]),
        _changed(events=[_changed()["events"][0], _changed()["events"][2]]),
        _changed(events=[_changed()["events"][0] | {"type": "NO_SUCH_EVENT"}]),
        _changed(events=[_changed()["events"][0] | {"at": "2030-01-01T00:00:00"}]),
        _changed(events=[_changed()["events"][0] | {"data": {}}]),
        {"format": "holdfast-history"},
    ],
)
def test_what_is_no_history_is_refused(source):
    """Broken, cut, of a newer format: InvalidHistory, with the reason."""
    with pytest.raises(err.InvalidHistory):
        load_history(source)


def test_replay_reports_what_it_went_through():
    """Events, turns, compared commands, and whether the program has ended."""
    report = replay(shopping, history(), execution_id="e1")

    assert ("shopping", "2", 8, 3, 3, True) == (
        report.kind,
        report.version,
        report.events,
        report.turns,
        report.commands,
        report.ended,
    )


def test_replay_of_an_open_history_has_not_ended():
    """Cut where a crash could have cut it."""
    assert not replay(shopping, history()[:3]).ended


def test_replay_raises_where_the_code_makes_other_moves():
    """Both sides and their lines; one workflow given alone is tried whatever its version."""

    @workflow(kind="shopping", version="3")
    async def changed(ctx: WorkflowContext, item: str) -> str:
        return str(await ctx.task("buy", item))

    with pytest.raises(err.DeterminismError, match=r"event 2 records: timer 1 .* now asks for: task 1 'buy'") as raised:
        replay(changed, export_history(history(), execution_id="e1"))

    assert ["while replaying execution e1 of workflow 'shopping' version '3'"] == raised.value.__notes__


def test_of_several_workflows_the_fitting_one_is_taken():
    """By kind and version, as a worker does it."""

    @workflow(kind="shopping", version="1")
    async def older(ctx: WorkflowContext, item: str) -> str:
        return item

    assert replay([older, shopping], history()).ended
    with pytest.raises(err.UnknownWorkflowKind, match="'shopping' version '2'; given: workflow 'shopping' version '1'"):
        replay([older], history())


def test_replay_of_what_is_not_a_history_is_refused():
    """By field."""
    with pytest.raises(err.InvalidRequest) as raised:
        replay(shopping, ["event"])  # type: ignore[list-item]

    assert "history" == raised.value.field


# --- the module ---------------------------------------------------------------------------------------------------


def test_all_is_the_list():
    """`holdfast.testing.__all__` names exactly what tests may import, sorted."""
    assert sorted(LISTED) == LISTED == holdfast.testing.__all__


@pytest.mark.parametrize("name", LISTED)
def test_every_name_resolves(name):
    """Each name is there, and appears in dir()."""
    assert getattr(holdfast.testing, name).__module__.startswith("holdfast.testing.")
    assert name in dir(holdfast.testing)


def test_importing_is_light():
    """`import holdfast.testing` loads no event loop, no codec, no database, no pytest."""
    code = "import holdfast.testing, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert {"asyncio", "msgspec", "sqlite3", "pytest"}.isdisjoint(json.loads(done.stdout))


def test_an_unknown_name_is_an_attribute_error():
    """As in any other module."""
    with pytest.raises(AttributeError, match="no attribute 'Environment'"):
        _ = holdfast.testing.Environment
