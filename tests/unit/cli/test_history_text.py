"""A history in words."""

import pytest
from msgspec import Raw

from holdfast.cli.history_text import HistoryText
from holdfast.model import events as e
from holdfast.model.values import NULL, Failure

SAMPLES = {
    "str": "x",
    "int": 1,
    "str | None": "x",
    "int | None": 1,
    "float | None": 1.0,
    "Raw": NULL,
    "Failure": Failure(type="ValueError", message="no"),
    "bool": True,
}


def sample(cls: type[e.EventBody]) -> e.EventBody:
    required = {name: SAMPLES[cls_hint(cls, name)] for name in cls.__struct_fields__ if needed(cls, name)}
    return cls(**required)


def cls_hint(cls: type[e.EventBody], name: str) -> str:
    return next(str(base.__annotations__[name]) for base in cls.__mro__ if name in getattr(base, "__annotations__", {}))


def needed(cls: type[e.EventBody], name: str) -> bool:
    import msgspec

    return next(field.required for field in msgspec.structs.fields(cls) if field.name == name)


@pytest.mark.parametrize("cls", e.EVENT_TYPES.values(), ids=e.EVENT_TYPES)
def test_every_event_is_told(cls):
    """Also one that comes without its beginning; only changes that changed nothing have no words."""
    told = HistoryText().what(sample(cls)).text

    assert told or cls in {e.StateChanged, e.MetadataChanged}


def test_a_story_remembers_names():
    """What was number 1 is told by its kind."""
    history_text = HistoryText()
    history_text.what(e.TaskScheduled(task_no=1, kind="charge", up_to=1))

    assert "task 'charge': 7" == history_text.what(e.TaskCompleted(task_no=1, result=Raw(b"7"))).text
