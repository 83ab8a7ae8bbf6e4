"""Writes what follows from the table of public names: `python -m tools.public_names`, or `make generate`.

The table stands at the top of `holdfast/__init__.py`. Type checkers can't read it, so they get the same names as import
statements and as a literal `__all__`, between two marks in that file; `holdfast/types.py` has the records among them.
With `--check` nothing is written; the exit code says whether the files are up to date.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import holdfast

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holdfast"
BEGIN = "# --- made by `make generate` from the table above ---\n"
END = "# --- end ---\n"

TYPES = '''"""Records that calls give and nobody makes: for annotations.

Made by `make generate` from the table in `holdfast/__init__.py`; do not edit.
"""

'''


def type_checking_block() -> str:
    modules = sorted(holdfast.MODULES.items())
    lines = [
        f"    from {home.rpartition('.')[0]} import {home.rpartition('.')[2]} as {name}\n" for name, home in modules
    ]
    lines += [f"    from {home} import {', '.join(names.split())}\n" for home, names in holdfast.NAMES.items()]
    # What is not in `__all__` is exported by its `as`.
    lines += [
        f"    from {home} import {name} as {name}\n"
        for home, names in holdfast.RECORDS.items()
        for name in names.split()
    ]
    return "if TYPE_CHECKING:\n" + "".join(lines) + "\n    __version__: str\n"


def listed(names: list[str]) -> str:
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n"


def init() -> str:
    text = (PACKAGE / "__init__.py").read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    names = [name for names in holdfast.NAMES.values() for name in names.split()]
    return before + BEGIN + "\n" + type_checking_block() + "\n" + listed(names) + "\n" + END + after


def types() -> str:
    lines = [f"from {home} import {', '.join(names.split())}\n" for home, names in sorted(holdfast.RECORDS.items())]
    names = [name for names in holdfast.RECORDS.values() for name in names.split()]
    return TYPES + "".join(lines) + "\n" + listed(names)


def formatted(text: str, path: Path) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--quiet", "--fix-only", "--select", "I"], ["format", "--quiet"]):
        run = [*ruff, *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(run, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the files are up to date")
    check = parser.parse_args().check
    stale = False
    for path, text in ((PACKAGE / "__init__.py", init()), (PACKAGE / "types.py", types())):
        made = formatted(text, path)
        stale |= not path.exists() or made != path.read_text()
        if not check:
            path.write_text(made)
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
