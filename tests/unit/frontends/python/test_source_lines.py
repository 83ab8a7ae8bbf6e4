"""The line of the user's code that asked for something."""

from typing import Any

from holdfast.frontends.python.source_lines import calling_line

SOURCE = "def ask():\n    return calling_line()\n"


def compiled(filename: str) -> Any:
    scope: dict[str, Any] = {"calling_line": calling_line}
    exec(compile(SOURCE, filename, "exec"), scope)
    return scope["ask"]


def test_names_file_line_and_function():
    """`file.py:line in function`, with the file's name alone."""
    assert "orders.py:2 in ask" == compiled("/app/shop/orders.py")()


def test_equal_code_in_two_files_is_told_apart():
    """Two functions with the same text at the same line are still in different files."""
    one, two = compiled("/app/one.py"), compiled("/app/two.py")

    assert ["one.py:2 in ask", "two.py:2 in ask"] == [one(), two()]


def test_skips_holdfast_and_asyncio():
    """The nearest frame that is the user's own."""
    import asyncio

    import holdfast.errors as inside

    through_holdfast = compiled(inside.__file__)
    through_asyncio = compiled(asyncio.__file__)

    assert "test_source_lines.py" in through_holdfast()
    assert "test_source_lines.py" in through_asyncio()
