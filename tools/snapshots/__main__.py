"""`python -m tools.snapshots`: writes all snapshots and removes files that no snapshot writes any more."""

from __future__ import annotations

import sys

from holdfast.errors import PostgresNotFound
from holdfast.testing.postgres import LocalPostgres
from tools.snapshots import FOLDER, POSTGRES_SCHEMA, SNAPSHOTS
from tools.snapshots.schemas import migrate, postgres_schema


def main() -> int:
    texts = {name: text for make in SNAPSHOTS.values() for name, text in make().items()}
    try:
        with LocalPostgres() as server:
            migrate(server.url)
            texts[POSTGRES_SCHEMA] = postgres_schema(server.url)
    except PostgresNotFound as error:
        print(f"{POSTGRES_SCHEMA} is left as it is: {error}", file=sys.stderr)  # noqa: T201 - its answer
    for name, text in texts.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for path in [path for path in FOLDER.rglob("*") if path.is_file()]:
        if path.relative_to(FOLDER).as_posix() not in {*texts, POSTGRES_SCHEMA}:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
