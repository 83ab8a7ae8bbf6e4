"""Every kind of column that a plain table may have, on both databases."""

import sqlite3
from contextlib import closing
from enum import StrEnum
from operator import attrgetter
from typing import Any

import asyncpg
import msgspec
import pytest
from msgspec import Raw

from holdfast.model.records import Table
from holdfast.store.plain import TABLES, PlainTable
from holdfast.store.postgres import plain as postgres_plain
from holdfast.store.postgres.arrays import Packing
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes
from holdfast.store.sqlite import plain as sqlite_plain


class Colour(StrEnum):
    RED = "red"


class Part(msgspec.Struct, frozen=True):
    name: str
    size: int


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    number: int
    colour: Colour = Colour.RED
    is_on: bool = False
    ratio: float = 0.0
    blob: bytes = b""
    payload: Raw = Raw(b"null")
    part: Part | None = None
    tags: dict[str, str] | None = None
    note: str | None = None
    until_at: int | None = None


SPEC = Table(
    name="samples",
    record=Sample,
    key=("org", "number"),
    owner="org",
    on_conflict="replace",
    locked=True,
    age="number",
    columns={"note": "remark"},
    key_of=attrgetter("org", "number"),
)
BARE = Sample(org="acme", number=1)
FULL = Sample(
    org="acme",
    number=2,
    is_on=True,
    ratio=0.5,
    blob=b"\0\xff",
    payload=Raw('{"ü":[1]}'.encode()),
    part=Part("wheel", 3),
    tags={"a": 'b"\\'},
    note='größer "\\',
    until_at=2**53,
)
MADE = """CREATE TABLE samples (org text NOT NULL, number bigint NOT NULL, colour text NOT NULL, is_on boolean NOT NULL,
    ratio double precision NOT NULL, blob {blob} NOT NULL, payload text NOT NULL, part text, tags text, remark text,
    until_at bigint, PRIMARY KEY (org, number))"""


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were among the others."""
    table: PlainTable[Sample] = PlainTable(SPEC)
    made: list[tuple[Any, Any]] = [
        (TABLES, table),
        (sqlite_plain.STATEMENTS, sqlite_plain.Statements(table)),
        (postgres_plain.STATEMENTS, postgres_plain.Statements(table)),
    ]
    for known, new in made:
        monkeypatch.setitem(known, Sample, new)


def _putting(*rows: Sample) -> Changes:
    return Changes(rows={Sample: {SPEC.key_of(row): row for row in rows}})


def test_every_kind_of_column_comes_back_from_sqlite():
    """Set and empty; as a whole, by the beginning of the key, and forgotten by age."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(MADE.format(blob="BLOB"))
        sqlite_plain.write_rows(connection, _putting(FULL, BARE))

        assert {("acme", 1): BARE, ("acme", 2): FULL} == sqlite_plain.load_rows(
            connection, Sample, [("acme", 1), ("acme", 2), ("acme", 3)]
        )
        assert {("acme",): [BARE, FULL]} == sqlite_plain.load_groups(connection, Sample, [("acme",), ("other",)])
        sqlite_plain.write_rows(connection, Changes(forget_before={Sample: 2}))
        assert [2] == [number for (number,) in connection.execute("SELECT number FROM samples")]


@pytest.mark.parametrize("packed", [False, True])
async def test_every_kind_of_column_comes_back_from_postgresql(postgres_url: str, packed: bool):
    """Through the writer's connection, which packs arrays as texts, and through a plain one."""
    plain_connection: Any = await asyncpg.connect(postgres_url)
    connection: Any = Packing(plain_connection) if packed else plain_connection
    try:
        await connection.execute(MADE.format(blob="bytea"))
        await _write(connection, _putting(FULL, BARE))

        assert {("acme", 1): BARE, ("acme", 2): FULL} == await postgres_plain.load_rows(
            connection, Sample, [("acme", 1), ("acme", 2), ("acme", 3)]
        )
        groups = await postgres_plain.load_groups(connection, Sample, [("acme",), ("other",)])
        assert {("acme",): [BARE, FULL]} == groups
        await _write(connection, Changes(forget_before={Sample: 2}))
        assert [2] == [row[0] for row in await connection.fetch("SELECT number FROM samples")]
    finally:
        await plain_connection.execute("DROP TABLE IF EXISTS samples")
        await plain_connection.close()


async def _write(connection: Any, changes: Changes) -> None:
    writing = Writing(connection)
    postgres_plain.write_rows(writing, changes, {})
    await writing.flush()
