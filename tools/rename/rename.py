"""python rename.py TREE: give a worktree of this repository the plain names. Can be run any number of times.

1. Files move (`MOVES`), with `git mv` where git knows them; new files below a moved folder move with it.
2. Dotted module paths, `from package import module` and file paths in prose follow (`MODULES`, made from the moves).
3. Identifiers change (`rules.py`): see `Rule`.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from moves import LITERAL, MODULE_ALIASES, MOVES, PUT_BACK  # noqa: E402
from rules import RULES, SKIP  # noqa: E402
from words import apply_rules  # noqa: E402

TEXT = {".py", ".md", ".toml", ".sql", ".proto", ".json", ".pyi", ".html", ".yml", ".yaml", ".cfg", ".txt"}


def main(tree: Path) -> None:
    move_all(tree)
    for path in files(tree):
        text = path.read_text("utf-8")
        changed = rewrite(path.relative_to(tree).as_posix(), text)
        if changed != text:
            path.write_text(changed, "utf-8")
    remove_empty(tree)
    ruff = next((r for r in (tree / ".venv/bin/ruff",) if r.exists()), None)
    if ruff:
        subprocess.run([ruff, "check", "--quiet", "--select", "I,RUF022,RUF023", "--fix-only", "."], cwd=tree, check=False)
        subprocess.run([ruff, "format", "--quiet", "."], cwd=tree, check=False)


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True, text=True).stdout


def files(tree: Path) -> list[Path]:
    names = git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    paths = [tree / name for name in names if name and name not in SKIP]
    return [p for p in dict.fromkeys(paths) if p.is_file() and not p.is_symlink() and "_pb2." not in p.name and (p.suffix in TEXT or p.name == "Makefile")]


# --- moves --------------------------------------------------------------------------------------------------------


def move_all(tree: Path) -> None:
    for old, new in MOVES:
        source, target = tree / old, tree / new
        if source.is_dir():
            for name in git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard", old).split("\0"):
                if name and (tree / name).exists():
                    move(tree, name, new + name[len(old) :])
        elif source.is_file():
            move(tree, old, new)
        del target


def move(tree: Path, old: str, new: str) -> None:
    source, target = tree / old, tree / new
    if target.exists():
        print(f"both {old} and {new} exist: merge by hand", file=sys.stderr)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    known = subprocess.run(["git", "ls-files", "--error-unmatch", old], cwd=tree, capture_output=True, check=False)
    if known.returncode == 0:
        git(tree, "mv", old, new)
    else:
        source.rename(target)


def remove_empty(tree: Path) -> None:
    for old, _ in MOVES:
        folder = tree / old
        if not folder.is_dir():
            continue
        for cache in folder.rglob("__pycache__"):
            for file in cache.iterdir():
                file.unlink()
        for below in sorted([folder, *folder.rglob("*")], key=lambda p: -len(p.parts)):
            if below.is_dir() and not any(below.iterdir()):
                below.rmdir()


# --- module paths -------------------------------------------------------------------------------------------------


def dotted(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _pairs() -> list[tuple[re.Pattern[str], str, str]]:
    """Longest first. `holdfast.a.b` anywhere; `a/b.py` and `src/holdfast/a/b.py` in prose and configuration."""
    pairs: list[tuple[str, str, str]] = []
    for old, new in MOVES:
        if old.endswith((".sql", ".json")):
            continue
        pairs.append((r"(?<![\w./-])" + re.escape(dotted(old)) + r"(?![\w-])", dotted(new), dotted(old)))
        after = r"(?![\w-])" if old.endswith(".py") else r"(?=[/\"'`*\s),;:]|$)"
        pairs.append((r"(?<![\w./-])" + re.escape(old) + after, new, old))
        short, short_new = old.removeprefix("src/holdfast/"), new.removeprefix("src/holdfast/")
        if short != old:
            # A folder's short path only with something below it: `wire/rest`, not the word.
            tail = after if old.endswith(".py") else r"(?=/\w)"
            pairs.append((r"(?<![\w./-])" + re.escape(short) + tail, short_new, short))
    pairs.sort(key=lambda pair: -len(pair[0]))
    return [(re.compile(a), b, c) for a, b, c in pairs]


PAIRS = _pairs()
# from package import module [as x]
LEAVES = {dotted(old): dotted(new) for old, new in MOVES if not old.endswith((".sql", ".json"))}
FROM = re.compile(
    r"^(?P<indent>[ \t]*)from (?P<package>[\w.]+) import (?P<open>\()?(?P<names>(?(open)[^)]*|[^\n#]*))(?(open)\))", re.MULTILINE
)


def rewrite(name: str, text: str) -> str:
    for old, new in LITERAL.get(name, ()):  # exact texts of single files
        if new not in text:
            text = text.replace(old, new)
    text = from_imports(text)
    for pattern, new, literal in PAIRS:
        if literal in text:
            text = pattern.sub(new, text)
    once = apply_rules(name, text, RULES)
    twice = apply_rules(name, once, RULES)  # a regular expression may need what a word has become
    done = wrapped(twice) if name.endswith(".py") else twice
    for old, new in PUT_BACK.get(name, ()):
        done = done.replace(old, new)
    return done


def wrapped(text: str) -> str:
    """Lines of docstrings and comments that have become too long run over into the next one."""
    if not any(len(line) > 120 for line in text.splitlines()):
        return text
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    prose: set[int] = set()
    for token in tokens:
        if token.type == tokenize.STRING and token.string.startswith('"""'):
            prose.update(range(token.start[0] - 1, token.end[0]))
        elif token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            prose.add(token.start[0] - 1)
    lines = text.split("\n")
    flags = [number in prose for number in range(len(lines))]
    number = 0
    while number < len(lines):
        line = lines[number]
        if len(line) > 120 and flags[number] and "://" not in line:
            indent = re.match(r"\s*(?:# )?", line)[0]  # type: ignore[index]
            cut = line.rfind(" ", 0, 121)
            if cut > len(indent) + 20:
                lines[number], rest = line[:cut], line[cut + 1 :]
                following = lines[number + 1] if number + 1 < len(lines) else ""
                joins = flags[number + 1] and following.startswith(indent) and following.strip() and following[len(indent) :][:1] not in " -|" and not following.strip().startswith('"""') and not rest.endswith('"""')
                if joins:
                    lines[number + 1] = indent + rest + " " + following[len(indent) :]
                else:
                    lines.insert(number + 1, indent + rest)
                    flags.insert(number + 1, True)
        number += 1
    return "\n".join(lines)


def from_imports(text: str) -> str:
    """`from holdfast.testing import mutants`: the name is a module that has moved, or been renamed in its package."""
    renamed: list[tuple[str, str]] = []

    def change(match: re.Match[str]) -> str:
        package = match["package"]
        kept, out = [], []
        for item in re.split(r",", match["names"]):
            bare = item.strip()
            if not bare:
                continue
            leaf, _, alias = bare.partition(" as ")
            new = LEAVES.get(f"{package}.{leaf}")
            if new is None:
                kept.append(bare)
                continue
            home, _, new_leaf = new.rpartition(".")
            if alias:
                out.append((home, f"{new_leaf} as {alias}"))
            else:
                out.append((home, new_leaf))
                if new_leaf != leaf:
                    renamed.append((leaf, new_leaf))
        if not out:
            return match[0]
        lines = []
        if kept:
            lines.append(f"{match['indent']}from {package} import {', '.join(kept)}")
        for home in sorted({home for home, _ in out}):
            names = ", ".join(n for h, n in out if h == home)
            lines.append(f"{match['indent']}from {home} import {names}" if home else f"{match['indent']}import {names}")
        return "\n".join(lines)

    text = FROM.sub(change, text)
    for old, new in renamed:
        text = re.sub(rf"(?<![\w.\"'/]){old}(?=\.\w)(?!\.py\b)", new, text)
        text = re.sub(rf"(?m)^(\s+){old},$", rf"\1{new},", text)
        text = re.sub(rf"(?<=[(,] ){old}(?=[,)])|(?<=\(){old}(?=[,)])", new, text)
    for alias_old, alias_new in MODULE_ALIASES:
        text = text.replace(alias_old, alias_new)
    return text


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
