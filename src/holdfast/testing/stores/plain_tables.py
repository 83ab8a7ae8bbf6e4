"""Every plain table, whatever its columns: written whole, loaded by key, kept apart by key, gone with its owner.

The cases follow from the declarations (`model.records`): a table that is added is tested by them at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin

from msgspec import Raw, structs

from holdfast.model.records import Table
from holdfast.store import reads
from holdfast.store.plain import TABLES
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from holdfast.testing.stores.bench import Bench, OpenStore
from holdfast.testing.stores.records import ORG, OTHER_ORG

_UNSET: dict[str, tuple[str, ...]] = {"holdfast_tokens": ("promise",)}
"""Fields that a rule of the table wants to be empty when all others are set."""
_NEEDED = {"holdfast_tokens": ("task_no", "attempt")}
"""Fields without which a bare row breaks a rule of its table."""


def a_row(table: Table, number: int, org: str = ORG, *, bare: bool = False) -> Any:
    """A record made up from its fields: all of them have a value, or only those that must."""
    fields: dict[str, Any] = {}
    for field in structs.fields(table.record):
        if field.name in _UNSET.get(table.name, ()):
            continue
        if bare and not field.required and field.name not in _NEEDED.get(table.name, ()):
            continue
        fields[field.name] = _value(field.type, f"{field.name} {number}", number)
    if table.key != ("org",) and "org" in fields:
        fields["org"] = org
    return table.record(**fields)


def _value(hint: Any, text: str, number: int) -> Any:
    if get_origin(hint) in {Union, UnionType}:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)[number % len(hint)]
    values = {
        str: f"{text} größer".ljust(64, "."),
        int: number,
        bool: True,
        float: number + 0.5,
        bytes: b"\0\xff",
        Raw: Raw(b'{"a":"\xc3\xbc"}'),
    }
    return values[hint]


def _tables(*, owner: str | None = None) -> Iterator[Table]:
    for table in TABLES.values():
        if owner is None or table.spec.owner == owner:
            yield table.spec


def _keys(*rows: Any) -> set[Any]:
    return {TABLES[type(row)].spec.key_of(row) for row in rows}


async def _found(bench: Bench, *rows: Any) -> list[Any]:
    """Those of the rows that are there, under their keys, in their order."""
    record = type(rows[0])
    loaded = await bench.load(rows={record: _keys(*rows)})
    found = loaded.rows[record]
    return [found[key] for row in rows if (key := TABLES[record].spec.key_of(row)) in found]


class PlainTables:
    async def test_a_row_is_loaded_as_it_was_written(self, open_store: OpenStore) -> None:
        """Every column, set and empty; what is not there is not in the answer."""
        bench = await Bench.opened(open_store)
        for table in _tables():
            rows = [a_row(table, 1), a_row(table, 2, bare=True)]
            await bench.put(*rows)
            assert await _found(bench, *rows, a_row(table, 3)) == rows, table.name

    async def test_a_row_is_changed_whole(self, open_store: OpenStore) -> None:
        """From one with every column set to a bare one, and nothing else; or it stays, or the batch is refused."""
        bench = await Bench.opened(open_store)
        for table in _tables():
            first, other = a_row(table, 1), a_row(table, 2)
            changed = structs.replace(a_row(table, 3, bare=True), **{name: getattr(first, name) for name in table.key})
            await bench.put(first, other)
            again = bench.run(LoadPlan(rows={table.record: _keys(first)}), _putting(changed))
            (refusal,) = await asyncio.gather(again, return_exceptions=True)
            stays = table.on_conflict in {"keep", "refuse"}
            assert await _found(bench, first, other) == [first if stays else changed, other], table.name
            assert isinstance(refusal, Exception) == (table.on_conflict == "refuse"), table.name

    async def test_a_row_is_deleted(self, open_store: OpenStore) -> None:
        """By its key, and nothing else; a key that is not there may be named, and a deleted one be used again."""
        bench = await Bench.opened(open_store)
        for table in _tables():
            rows = [a_row(table, number) for number in (1, 2, 3)]
            await bench.put(*rows[:2])
            await bench.write(rows={table.record: dict.fromkeys(_keys(rows[0], rows[2]))})
            assert await _found(bench, *rows) == [rows[1]], table.name
            await bench.put(rows[0])
            assert await _found(bench, *rows) == rows[:2], table.name

    async def test_many_rows_are_written_and_loaded_at_once(self, open_store: OpenStore) -> None:
        """More than a statement may have parameters for."""
        bench = await Bench.opened(open_store)
        for table in _tables():
            rows = [a_row(table, number) for number in range(1, 600)]
            await bench.put(*rows)
            assert await _found(bench, *rows) == rows, table.name
            await bench.write(rows={table.record: dict.fromkeys(_keys(*rows[:-1]))})
            assert await _found(bench, *rows) == rows[-1:], table.name

    async def test_the_rows_of_an_org_go_with_it(self, open_store: OpenStore) -> None:
        """In pages; those of another org, and of tables without an owner, stay."""
        bench = await Bench.opened(open_store)
        for table in _tables(owner="org"):
            ours = [a_row(table, number) for number in (1, 2, 3)]
            others = [a_row(table, number, OTHER_ORG) for number in (4, 5)]
            await bench.put(*ours, *others)
            assert await bench.store.read(reads.HoldsAny(ORG)), table.name
            await bench.write(purged_orgs={ORG: 2})
            assert len(await _found(bench, *ours)) == 1, table.name
            await bench.write(purged_orgs={ORG: 2})
            assert await _found(bench, *ours, *others) == others, table.name
            assert not await bench.store.read(reads.HoldsAny(ORG)), table.name
            await bench.write(purged_orgs={OTHER_ORG: 9})


def _putting(row: Any) -> Callable[[Loaded], Changes]:
    changes = Changes()
    changes.put(row)
    return lambda _: changes
