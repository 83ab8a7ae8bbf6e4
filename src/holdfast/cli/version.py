"""`holdfast version`."""

from __future__ import annotations

import click

_PARTS = ("click", "msgspec", "rich", "asyncpg", "uvicorn", "grpcio", "protobuf")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def version(*, as_json: bool) -> None:
    """Say which versions are at work: of Holdfast, Python, SQLite, and what is installed beside it."""
    import platform
    import sqlite3
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    from holdfast.cli.output import Output

    out = Output(as_json=as_json)
    found: dict[str, str | None] = {
        "holdfast": version_of("holdfast"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    for part in _PARTS:
        try:
            found[part] = version_of(part)
        except PackageNotFoundError:
            found[part] = None
    if as_json:
        out.document(found)
        return
    for name, number in found.items():
        out.field(name, number or "not installed")
