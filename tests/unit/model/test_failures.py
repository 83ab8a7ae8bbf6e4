"""What is kept of an exception: its text is the interpreter's own, however often it is asked for."""

import traceback
from collections.abc import Callable

import pytest

from holdfast.model import failures
from holdfast.model.failures import failure_of

SOURCE = "\n\ndef fail():\n    raise ValueError('no')\n"


def plainly(message: str) -> None:
    raise ValueError(message)


def deep(message: str, depth: int = 12) -> None:
    if depth:
        deep(message, depth - 1)
    raise KeyError(message)


def with_a_note(message: str) -> None:
    error = RuntimeError(message)
    error.add_note("and a note")
    raise error


def several(message: str) -> None:
    raise ExceptionGroup(message, [ValueError("one"), KeyError("two")])


def caught(body: Callable[[str], None], message: str) -> Exception:
    with pytest.raises(Exception) as info:  # noqa: PT011 - any
        body(message)
    return info.value


@pytest.mark.parametrize("body", [plainly, deep, with_a_note, several])
def test_text_is_that_of_the_interpreter(body: Callable[[str], None]) -> None:
    """With its marks, notes and repeated lines; the second failure at a place has its own message."""
    for message in ("first", "second\nof two lines"):
        error = caught(body, message)
        expected = "".join(traceback.format_exception(type(error), error, error.__traceback__, chain=False))
        assert failure_of(error).traceback == expected


def test_one_that_was_never_raised_has_a_text() -> None:
    """A program may hand over an exception it has only made."""
    assert failure_of(ValueError("made")).traceback.endswith("ValueError: made\n")


def test_equal_code_in_two_files_is_told_apart() -> None:
    """Two functions of the same text are equal as code; each failure names its own file."""
    for name in ("one.py", "other.py"):
        names: dict[str, Callable[[], None]] = {}
        exec(compile(SOURCE, name, "exec"), names)
        error = caught(lambda _, fail=names["fail"]: fail(), "")  # type: ignore[misc]
        assert f'File "{name}", line 4' in failure_of(error).traceback


def test_texts_are_kept_for_so_many_places_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that make code as they run do not fill the memory."""
    monkeypatch.setattr(failures, "MAX_STACKS", 3)
    for number in range(10):
        names: dict[str, Callable[[], None]] = {}
        exec(compile(SOURCE, f"{number}.py", "exec"), names)
        failure_of(caught(lambda _, fail=names["fail"]: fail(), ""))  # type: ignore[misc]
    assert len(failures._STACKS) <= 3
