"""Renaming identifiers in a text.

A rule is `(old, new, mode, where)`:
- "word": every whole word `old`, in code, comments, strings and prose. For identifiers that are no English words.
- "code": names in Python code, in f-strings' braces, in backticks of comments, docstrings and Markdown, in Markdown's
  code blocks, and as `setattr(x, "old"` and the like.
- "attr": as "code", but only what is an attribute, a method or function being defined, a keyword argument, a field of a
  class: `x.old`, `def old`, `f(old=…)`, `    old: int`. Local variables keep their names.
- "regex": `old` is a regular expression, `new` its replacement, over the whole text.
- "prose": exact text in comments, strings and Markdown.
`where`: None for all files, or a list of globs (paths after the moves; `!` in front excludes).
"""

from __future__ import annotations

import io
import re
import tokenize
from fnmatch import fnmatch
from functools import lru_cache

WORD = re.compile(r"(?<![\w])([A-Za-z_]\w*)(?![\w])")
BACKTICKS = re.compile(r"`[^`\n]+`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PATCHED = re.compile(r"((?:set|get|has|del)attr|patch\.object|attrgetter|methodcaller)\s*\((?:[^()\"']|\([^()]*\))*?[\"'](\w+)[\"']")


FIXTURES = re.compile(r"(usefixtures|parametrize|getfixturevalue)\(\s*((?:\"[^\"]*\"(?:,\s*)?)+)")


def fits(name: str, where: object) -> bool:
    if where is None:
        return True
    included, positive = False, False
    for glob in where:  # type: ignore[attr-defined]
        if glob.startswith("!"):
            if fnmatch(name, glob[1:]):
                return False
        else:
            positive = True
            included = included or fnmatch(name, glob)
    return included or not positive


class Chosen:
    def __init__(self, name: str, rules: list[tuple]) -> None:
        self.words: dict[str, str] = {}
        self.code: dict[str, str] = {}
        self.attr: dict[str, str] = {}
        self.regexes: list[tuple[re.Pattern[str], str]] = []
        known: dict[int, bool] = {}
        for old, new, mode, where in rules:
            fit = known.get(id(where))
            if fit is None:
                fit = known[id(where)] = fits(name, where)
            if not fit:
                continue
            if mode == "regex":
                self.regexes.append((re.compile(old, re.MULTILINE), new))
            else:
                {"word": self.words, "code": self.code, "attr": self.attr}[mode].setdefault(old, new)


SEGMENTS = {
    "goes_on": "continues", "go_on": "continue", "gone_on": "continued", "exhumed": "replayed", "buried": "dead_lettered", "bury": "dead_letter",
    "bereaved": "orphans", "both_doors": "both_listeners", "with_doors": "with_listeners", "the_door": "the_server", "at_the_door": "at_the_server",
    "blocking_face": "sync_client", "lanes": "cursors", "floor": "cursor", "news": "events", "whose_head": "whose_row", "its_head": "its_row", "begins": "starts",
}
HINTS = {"hints": "notifications", "hint": "notification"}
TEST_NAME = re.compile(r"\bdef (test_\w+)")


def renamed_test(name: str, test: str) -> str:
    for old, new in {**SEGMENTS, **(HINTS if name.startswith("tests/stores/") else {})}.items():
        test = re.sub(rf"(?<=_){old}(?=_|$)", new, test)
    return test


def apply_rules(name: str, text: str, rules: list[tuple]) -> str:
    chosen = Chosen(name, rules)
    if name.startswith(("tests/", "verification/")):
        text = TEST_NAME.sub(lambda m: "def " + renamed_test(name, m[1]), text)
    for pattern, new in chosen.regexes:
        text = pattern.sub(new, text)
    if chosen.words:
        text = WORD.sub(lambda m: chosen.words.get(m[1], m[1]), text)
    if not chosen.code and not chosen.attr:
        return text
    if name.endswith((".py", ".pyi")):
        text = in_python(text, chosen)
        if name.startswith("tests/"):
            text = FIXTURES.sub(lambda m: m[1] + m[0][len(m[1]) :].replace(m[2], WORD.sub(lambda w: chosen.code.get(w[1], w[1]), m[2]), 1), text)
        return PATCHED.sub(lambda m: m[0][: m.start(2) - m.start()] + (chosen.attr.get(m[2]) or chosen.code.get(m[2], m[2])) + m[0][m.end(2) - m.start() :], text)
    if name.endswith(".md"):
        return in_markdown(text, chosen)
    return text


def snippet(text: str, chosen: Chosen) -> str:
    """A piece of code without context: in backticks, braces of an f-string, a code block."""

    def change(match: re.Match[str]) -> str:
        word = match[1]
        if word in chosen.code:
            return chosen.code[word]
        if word in chosen.attr:
            before, after = text[: match.start()], text[match.end() :]
            if (before.endswith(".") and not before.endswith("..")) or re.search(r"\bdef $", before) or after.startswith("("):
                return chosen.attr[word]
            if re.search(r"[(,]\s*$", before) and re.match(r"=(?!=)", after):
                return chosen.attr[word]
            if not before.strip("`") and not after.strip("`"):
                return chosen.attr[word]
        return word

    return WORD.sub(change, text)


def in_markdown(text: str, chosen: Chosen) -> str:
    out, last = [], 0
    for match in FENCE.finditer(text):
        out.append(BACKTICKS.sub(lambda m: snippet(m[0], chosen), text[last : match.start()]))
        block = match[0]
        out.append(snippet(block, chosen) if block.startswith("```python") else block)
        last = match.end()
    out.append(BACKTICKS.sub(lambda m: snippet(m[0], chosen), text[last:]))
    return "".join(out)


def in_python(text: str, chosen: Chosen) -> str:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return text
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    edits: list[tuple[int, int, str]] = []
    significant = [t for t in tokens if t.type not in {tokenize.NL, tokenize.COMMENT}]
    index = {id(t): i for i, t in enumerate(significant)}
    depth = 0
    slots = 0  # the depth at which a `__slots__ = (` was opened
    for token in tokens:
        if token.string in "([{" and token.type == tokenize.OP:
            depth += 1
        elif token.string in ")]}" and token.type == tokenize.OP:
            depth -= 1
            if depth < slots:
                slots = 0
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == tokenize.NAME:
            word = token.string
            new = chosen.code.get(word)
            if new is None and word in chosen.attr and is_attribute(significant, index[id(token)], depth):
                new = chosen.attr[word]
            at = index[id(token)]
            if at > 1 and significant[at - 1].string == "." and significant[at - 2].string == "pb":
                new = None  # a message of the protocol
            if new is not None:
                edits.append((begin, end, new))
            if word == "__slots__":
                slots = depth + 1
        elif token.type == tokenize.STRING:
            changed = in_string(token.string, chosen)
            inner = token.string[1:-1]
            if slots and depth >= slots and (inner in chosen.attr or inner in chosen.code):
                changed = f'"{chosen.attr.get(inner) or chosen.code[inner]}"'
            if changed != token.string:
                edits.append((begin, end, changed))
        elif token.type == tokenize.COMMENT:
            changed = BACKTICKS.sub(lambda m: snippet(m[0], chosen), token.string)
            if changed != token.string:
                edits.append((begin, end, changed))
    for begin, end, new in reversed(edits):
        text = text[:begin] + new + text[end:]
    return text


def is_attribute(tokens: list[tokenize.TokenInfo], at: int, depth: int) -> bool:
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if before is not None and before.string in {".", "def"}:
        return True
    if after is not None and after.string == "=" and before is not None and before.string in {"(", ","} and depth:
        return True
    statement = before is None or before.type in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    return statement and not depth and after is not None and after.string == ":" and tokens[at].start[1] > 0


@lru_cache(maxsize=None)
def _prefix(text: str) -> str:
    return re.match(r"[A-Za-z]*", text)[0].lower()  # type: ignore[index]


def in_string(text: str, chosen: Chosen) -> str:
    prefix = _prefix(text[:4])
    changed = BACKTICKS.sub(lambda m: snippet(m[0], chosen), text)
    body = changed[len(prefix) :]
    quote = body[:3] if body[:3] in {'"""', "'''"} else body[:1]
    inner = body[len(quote) : -len(quote)]
    if re.fullmatch(r"[a-z_]\w*(\.\w+)+", inner) is None and re.fullmatch(r"_?[A-Z]\w*", inner) and inner in chosen.code:
        return changed[: len(prefix)] + quote + chosen.code[inner] + quote  # a forward reference, or a name in __all__
    if "f" in prefix:
        changed = re.sub(
            r"(?<!\{)((?:\{\{)*)\{((?:[^{}]|\{[^{}]*\})+)\}", lambda m: m[1] + "{" + snippet(m[2], chosen) + "}", changed
        )
    return changed
