"""Text into tokens, and positions into words: the part every small language shares.

A `Lexicon` says what the tokens of one language look like. A `Source` is the text itself and makes the refusals, so
that each names line and column and shows the place. Patterns here are ours, never a user's, and match in linear time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.errors import InvalidExpression

_EXCERPT = 72
_CLOSED = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]")


class Token(NamedTuple):
    """A piece of the text: `kind` is "name", "int", "double", "string", "op" or "end"."""

    kind: str
    text: str
    start: int
    end: int


class Source:
    """The text of an expression."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def refusal(self, message: str, offset: int) -> InvalidExpression:
        """The error to raise: the message, where it is, and the line with a caret under the place."""
        line = self.text.count("\n", 0, offset) + 1
        begin = self.text.rfind("\n", 0, offset) + 1
        column = offset - begin + 1
        end = self.text.find("\n", offset)
        full = self.text[begin : len(self.text) if end < 0 else end]
        return InvalidExpression(
            f"{message} (line {line}, column {column})\n{_excerpt(full, column - 1)}",
            offset=offset,
            line=line,
            column=column,
        )

    def slice(self, start: int, end: int) -> str:
        """Part of the text on one line, as people want to read it back."""
        part = self.text[start:end]
        return " ".join(part.split()) if "\n" in part or "\r" in part else part


def _excerpt(line: str, at: int) -> str:
    """The part of a line around a place, and a caret below it."""
    first = max(0, min(at - _EXCERPT // 2, len(line) - _EXCERPT))
    shown = line[first : first + _EXCERPT]
    # A tab or a control character would move the caret away from what it points at.
    plain = "".join(char if _CLOSED.match(char) else " " for char in shown)
    return f"  {plain}\n  {' ' * (at - first)}^"


class Lexicon:
    """What the tokens of a language look like: its operators, and the letters that may stand before a string."""

    __slots__ = ("_pattern",)

    def __init__(self, *, operators: tuple[str, ...], string_prefixes: str = "", number_suffixes: str = "") -> None:
        longest_first = sorted(operators, key=len, reverse=True)
        raw = r"(?:[rR][bB]?|[bB][rR])" if "r" in string_prefixes else r"(?!)"
        cooked = r"[bB]?" if "b" in string_prefixes else ""
        suffix = f"[{number_suffixes}]?" if number_suffixes else ""
        self._pattern = re.compile(
            "|".join(
                [
                    r"(?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)",
                    rf"(?P<string>{raw}{_quoted(escapes=False)}|{cooked}{_quoted(escapes=True)})",
                    r"(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
                    rf"(?P<int>0[xX][0-9a-fA-F]+{suffix}|[0-9]+{suffix})",
                    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)",
                    f"(?P<op>{'|'.join(map(re.escape, longest_first))})",
                    r"(?P<unreadable>[\s\S])",  # always matches, so that nothing is ever searched for further on
                ]
            )
        )

    def tokens(self, source: Source) -> list[Token]:
        """All tokens, the last one of kind "end"."""
        text, found, at = source.text, [], 0
        for token in self._pattern.finditer(text):
            start, at = token.span()
            kind = token.lastgroup
            if kind == "unreadable":
                raise source.refusal(_unreadable(token[0]), start)
            if kind != "space":
                found.append(Token(kind or "", token[0], start, at))
                if kind in _NUMBERS and _WORD.match(text, at):
                    raise source.refusal("a number and a name need something between them", at)
        found.append(Token("end", "", at, at))
        return found


_NUMBERS = frozenset({"double", "int"})
_WORD = re.compile("[A-Za-z0-9_]")


def _quoted(*, escapes: bool) -> str:
    escape = r"|\\[\s\S]" if escapes else ""
    not_escape = r"\\" if escapes else ""
    long = [rf"{q}{{3}}(?:[^{not_escape}{q}]|{q}(?!{q}{q}){escape})*{q}{{3}}" for q in "\"'"]
    short = [rf"{q}(?:[^{not_escape}{q}\r\n]{escape})*{q}" for q in "\"'"]
    return f"(?:{'|'.join(long + short)})"


def _unreadable(char: str) -> str:
    if char in "\"'":
        return "the string that begins here is not closed"
    meant = {"=": "==", "&": "&&", "|": "||"}.get(char)
    return f"`{char}` has no meaning here" + (f": write `{meant}`" if meant else "")


# --- literals -----------------------------------------------------------------------------------------------------

_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([\s\S])|$)")
_SIMPLE = dict(zip("abfnrtv\\\"'`?", "\a\b\f\n\r\t\v\\\"'`?", strict=True))


def string_value(source: Source, token: Token) -> str | bytes:
    """What a string token stands for."""
    quote = re.search("[\"']", token.text)
    assert quote is not None
    prefix = token.text[: quote.start()].lower()
    body = token.text[quote.start() :]
    width = 3 if body[:3] in {'"""', "'''"} else 1
    inner, offset = body[width:-width], token.start + quote.start() + width
    if "b" not in prefix:
        return inner if "r" in prefix or "\\" not in inner else _unescaped(source, inner, offset)
    if "r" in prefix or "\\" not in inner:
        return inner.encode("utf-8", "surrogatepass")
    return _unescaped_bytes(source, inner, offset)


def _unescaped(source: Source, text: str, offset: int) -> str:
    def replaced(match: re.Match[str]) -> str:
        return _escaped_char(source, match, offset)

    return _ESCAPE.sub(replaced, text)


def _unescaped_bytes(source: Source, text: str, offset: int) -> bytes:
    """In bytes, \\x and octal escapes are single bytes; all other text is UTF-8."""
    parts, at = [], 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[at : match.start()].encode("utf-8", "surrogatepass"))
        code = _byte_code(match)
        parts.append(_escaped_char(source, match, offset).encode() if code is None else bytes([code]))
        at = match.end()
    parts.append(text[at:].encode("utf-8", "surrogatepass"))
    return b"".join(parts)


def _byte_code(match: re.Match[str]) -> int | None:
    if match[1]:
        return int(match[1], 16)
    return int(match[4], 8) if match[4] else None


def _escaped_char(source: Source, match: re.Match[str], offset: int) -> str:
    if match[5] in _SIMPLE:
        return _SIMPLE[match[5]]
    code = _byte_code(match)
    if code is None and (match[2] or match[3]):
        code = int(match[2] or match[3], 16)
    if code is None:
        raise source.refusal(f"{match[0]!r} is not an escape of a string", offset + match.start())
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise source.refusal(f"{match[0]!r} is not a character", offset + match.start())
    return chr(code)
