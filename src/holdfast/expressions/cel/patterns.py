"""Regular expressions that can't run away: RE2's syntax, matched by following all alternatives at once.

A pattern becomes a small program (Thompson's construction); a text is read once from left to right with the set of
places the program may be at. Time is at most length of text times length of program, whatever the pattern.

What needs backtracking (back-references, look-around) does not exist here, as in RE2. Unicode classes (`\\pL`), POSIX
classes (`[[:alpha:]]`) and captures have no use in a filter and are refused by name, so that nobody gets a surprise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

MAX_BYTES = 256
MAX_PROGRAM = 512
MAX_TOGETHER = 1024
"""Of all patterns in one filter: what they prepare at their first use is not counted as steps."""
_MAX_REPEAT = 1000
_MAX_NESTING = 30
_MAX_REMEMBERED = 1024

Ranges = tuple[tuple[int, int], ...]


class BadPattern(ValueError):
    """What is wrong with a pattern, and where in it."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


# --- programs -----------------------------------------------------------------------------------------------------


class _Take(NamedTuple):
    """Goes on when the next character is one of these."""

    ranges: Ranges


class _Fork(NamedTuple):
    """Goes on at both places, counted from here."""

    one: int
    two: int


class _Check(NamedTuple):
    """Goes on where the place itself is right: "^", "$", "b", "B", and with (?m) "line^", "line$"."""

    kind: str


_Instruction = _Take | _Fork | _Check
_Piece = list[_Instruction]


def _either(one: _Piece, two: _Piece) -> _Piece:
    return [_Fork(1, len(one) + 2), *one, _Fork(len(two) + 1, len(two) + 1), *two]


def _star(piece: _Piece) -> _Piece:
    return [_Fork(1, len(piece) + 2), *piece, _Fork(-len(piece) - 1, -len(piece) - 1)]


def _repeat(piece: _Piece, low: int, high: int | None) -> _Piece:
    """So many times; None as the upper bound is without end."""
    if high is None:
        return [*piece * low, *_star(piece)]
    width, most = len(piece) + 1, high - low
    optional = [part for number in range(most) for part in (_Fork(1, (most - number) * width), *piece)]
    return [*piece * low, *optional]


# --- reading a pattern --------------------------------------------------------------------------------------------

_DIGITS: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_SHORT = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_ESCAPED = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_CHECKS = {"A": "^", "z": "$", "b": "b", "B": "B"}
_ALL: Ranges = ((0, 0x10FFFF),)


def _inverse(ranges: Ranges) -> Ranges:
    found, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return (*found, (at, 0x10FFFF)) if at <= 0x10FFFF else tuple(found)


def _without_case(ranges: Ranges) -> Ranges:
    """Both cases of letters from A to Z; other letters keep theirs."""
    found = list(ranges)
    for low, high in ranges:
        for first, last, shift in ((65, 90, 32), (97, 122, -32)):
            if low <= last and high >= first:
                found.append((max(low, first) + shift, min(high, last) + shift))
    return tuple(found)


class _Reader:
    """One pass over one pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._flags = frozenset[str]()

    def whole(self) -> _Piece:
        piece = self._alternatives()
        if self._at < len(self._text):
            raise BadPattern("a bracket `)` without its `(`", self._at)
        return piece

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _alternatives(self) -> _Piece:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise BadPattern(f"groups nested deeper than {_MAX_NESTING} levels", self._at)
        flags = self._flags
        piece = self._sequence()
        while self._next() == "|":
            self._at += 1
            piece = self._bounded(_either(piece, self._sequence()))
        self._flags = flags
        self._depth -= 1
        return piece

    def _sequence(self) -> _Piece:
        found: _Piece = []
        while self._next() not in {"", "|", ")"}:
            begin = self._at
            piece = self._atom()
            found += self._repeated(piece, begin)
            self._bounded(found)
        return found

    def _bounded(self, piece: _Piece) -> _Piece:
        if len(piece) > MAX_PROGRAM:
            raise BadPattern("the pattern is too large once its repetitions are written out", self._at)
        return piece

    def _repeated(self, piece: _Piece, begin: int) -> _Piece:
        seen = False
        while (bounds := self._bounds()) is not None:
            if seen:
                raise BadPattern("a repetition of a repetition needs brackets", begin)
            low, high = bounds
            if len(piece) * max(low, high or 0, 1) > MAX_PROGRAM:
                raise BadPattern("the pattern is too large once its repetitions are written out", begin)
            piece, seen = self._bounded(_repeat(piece, low, high)), True
            if self._next() == "?":  # the shortest match instead of the longest: whether there is one stays the same
                self._at += 1
        return piece

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        char = self._next()
        if char in simple:
            self._at += 1
            return simple[char]
        return self._counts() if char == "{" else None

    def _counts(self) -> tuple[int, int | None] | None:
        """`{3}`, `{3,}`, `{3,5}`; any other brace is a brace."""
        close = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : max(close, 0)].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None
        least, most = int(low), int(high) if high else None if comma else int(low)
        if max(least, most or 0) > _MAX_REPEAT or (most is not None and most < least):
            raise BadPattern(f"a repetition goes from less to more, and to {_MAX_REPEAT} at most", self._at)
        self._at = close + 1
        return least, most

    def _atom(self) -> _Piece:
        char = self._next()
        at = self._at
        self._at += 1
        match char:
            case "(":
                return self._group(at)
            case "[":
                return [_Take(self._cased(self._class(at)))]
            case ".":
                return [_Take(_ALL if "s" in self._flags else _inverse(((10, 10),)))]
            case "^" | "$":
                return [_Check(f"line{char}" if "m" in self._flags else char)]
            case "\\":
                return self._escape(at)
            case "*" | "+" | "?":
                raise BadPattern(f"`{char}` has nothing to repeat", at)
        return [_Take(self._cased(((ord(char), ord(char)),)))]

    def _cased(self, ranges: Ranges) -> Ranges:
        return _without_case(ranges) if "i" in self._flags else ranges

    def _group(self, at: int) -> _Piece:
        if self._next() == "?":
            close = self._text.find(":", self._at)
            end = self._text.find(")", self._at)
            inline = end >= 0 and (close < 0 or end < close)
            letters = self._text[self._at + 1 : end if inline else max(close, self._at)]
            if not (set(letters) <= set("ims") and (letters or not inline) and (inline or close >= 0)):
                raise BadPattern("of the groups that begin with `(?` only (?:…) and the flags i, m, s are known", at)
            before = self._flags
            self._flags |= set(letters)
            if inline:
                self._at = end + 1
                return []
            self._at = close + 1
            return self._closed(before, at)
        return self._closed(self._flags, at)

    def _closed(self, flags: frozenset[str], at: int) -> _Piece:
        piece = self._alternatives()
        if self._next() != ")":
            raise BadPattern("a bracket `(` without its `)`", at)
        self._at += 1
        self._flags = flags
        return piece

    def _escape(self, at: int) -> _Piece:
        char = self._next()
        if char in _CHECKS:
            self._at += 1
            return [_Check(_CHECKS[char])]
        return [_Take(self._cased(self._escaped(at)))]

    def _escaped(self, at: int) -> Ranges:
        """The characters an escape stands for, after its backslash."""
        char = self._next()
        self._at += 1
        if char.lower() in _SHORT:
            ranges = _SHORT[char.lower()]
            return ranges if char.islower() else _inverse(ranges)
        if char == "x":
            return self._hexadecimal(at)
        if char in _ESCAPED:
            return ((_ESCAPED[char], _ESCAPED[char]),)
        if not char or (char.isascii() and char.isalnum()):
            raise BadPattern(f"`\\{char}` is not known in a pattern", at)
        return ((ord(char), ord(char)),)

    def _hexadecimal(self, at: int) -> Ranges:
        if self._next() == "{":
            end = self._text.find("}", self._at)
            digits, after = self._text[self._at + 1 : max(end, 0)], end + 1
        else:
            digits, after = self._text[self._at : self._at + 2], self._at + 2
        valid = 2 <= len(digits) <= 6 or (len(digits) == 1 and self._next() == "{")
        if not valid or not set(digits) <= set("0123456789abcdefABCDEF") or int(digits, 16) > 0x10FFFF:
            raise BadPattern("`\\x` takes two hexadecimal digits, or as many as needed in braces", at)
        self._at = after
        return ((int(digits, 16), int(digits, 16)),)

    def _class(self, at: int) -> Ranges:
        negated = self._next() == "^"
        self._at += negated
        found: list[tuple[int, int]] = []
        first = True
        while self._next() != "]" or first:
            if not self._next():
                raise BadPattern("a class `[` without its `]`", at)
            found += self._class_item()
            first = False
        self._at += 1
        if negated:
            # The case is widened before the class is turned round: [^a] without case is neither a nor A.
            return _inverse(self._cased(tuple(found)))
        return tuple(found)

    def _class_item(self) -> Ranges:
        at = self._at
        if self._text.startswith("[:", at):
            raise BadPattern("classes such as [:alpha:] are not known: write [a-zA-Z]", at)
        low = self._class_char()
        if len(low) > 1 or low[0][0] != low[0][1] or self._next() != "-":
            return low
        if self._text[self._at + 1 : self._at + 2] in {"]", ""}:
            return low
        self._at += 1
        high = self._class_char()
        if len(high) > 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
            raise BadPattern("a range goes from a character to a later one", at)
        return ((low[0][0], high[0][0]),)

    def _class_char(self) -> Ranges:
        at = self._at
        char = self._next()
        self._at += 1
        if char == "\\":
            return self._escaped(at)
        if not char:
            raise BadPattern("a class `[` without its `]`", at)
        return ((ord(char), ord(char)),)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5


# --- matching -----------------------------------------------------------------------------------------------------

# What stands on either side of a place, as far as a check can see it.
_EDGE, _NEWLINE, _WORDLIKE, _OTHER = range(4)


class Pattern:
    """A pattern ready to be looked for. What it remembers changes its speed, never its answer.

    Places of the program are bits of a number. `_reached` finds where the forks and checks lead from a set of places,
    eight at a time; a character then keeps the places that take it, and moving on is a shift by one.
    """

    __slots__ = ("_bounds", "_checks", "_closures", "_kept", "_program", "_remembered", "_takers", "cost", "size")

    def __init__(self, text: str) -> None:
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            raise BadPattern(f"a pattern may have {MAX_BYTES} bytes at most", 0)
        self._program = _Reader(text).whole()
        self._checks = any(isinstance(instruction, _Check) for instruction in self._program)
        ranges = [one for found in self._program if isinstance(found, _Take) for one in found.ranges]
        edges = {edge for low, high in (*ranges, *_WORD, (10, 10)) for edge in (low, high + 1)}
        self._bounds = sorted(edges)
        self._takers: dict[Ranges, int] = {}
        for place, found in enumerate(self._program):
            if isinstance(found, _Take):
                self._takers[found.ranges] = self._takers.get(found.ranges, 0) | 1 << place
        self._kept: list[tuple[int, int] | None] = [None] * (len(self._bounds) + 1)
        self._closures: dict[int, list[int]] = {}
        self._remembered: dict[tuple[int, int, int], int] = {}
        self.size = len(self._program)
        self.cost = 2 + len(self._program) // 4
        """Steps for a character."""

    def found_in(self, text: str) -> bool:
        """Whether some part of the text matches."""
        matched = 1 << len(self._program)
        places, before = 1, _EDGE
        for char in map(ord, text):
            after, takers = self._class_of(char)
            reached = self._reached(places, before, after)
            if reached & matched:
                return True
            places = (reached & takers) << 1 | 1
            before = after
        return bool(self._reached(places, before, _EDGE) & matched)

    def _class_of(self, char: int) -> tuple[int, int]:
        """What a check sees in a character, and which places take it: the same for all between two bounds."""
        number = bisect_right(self._bounds, char)
        kept = self._kept[number]
        if kept is None:
            kind = _NEWLINE if char == 10 else _WORDLIKE if _within(char, _WORD) else _OTHER
            takers = sum(places for ranges, places in self._takers.items() if _within(char, ranges))
            kept = self._kept[number] = (kind, takers)
        return kept

    def _reached(self, places: int, before: int, after: int) -> int:
        sides = before * 4 + after if self._checks else 0
        found, first, remembered = 0, 0, self._remembered
        while places:
            some = places & 0xFF
            if some:
                key = (sides, first, some)
                known = remembered.get(key)
                found |= self._remember(key) if known is None else known
            places >>= 8
            first += 8
        return found

    def _remember(self, key: tuple[int, int, int]) -> int:
        if len(self._remembered) >= _MAX_REMEMBERED:
            self._remembered.clear()
        sides, first, some = key
        closures = self._closures.get(sides)
        if closures is None:
            closures = self._closures[sides] = self._follow(*divmod(sides, 4))
        found = 0
        for bit in range(8):
            if some >> bit & 1:
                found |= closures[first + bit]
        self._remembered[key] = found
        return found

    def _follow(self, before: int, after: int) -> list[int]:
        """For each place all that can be reached from it without taking a character.

        Places mostly lead forward, so one pass from the end finds nearly all; loops need another one for each level.
        """
        closures = [1 << place for place in range(len(self._program) + 1)]
        changed = True
        while changed:
            changed = False
            for place in range(len(self._program) - 1, -1, -1):
                reached = closures[place]
                for step in _steps(self._program[place], before, after):
                    reached |= closures[place + step]
                changed = changed or reached != closures[place]
                closures[place] = reached
        return closures


def _steps(instruction: _Instruction, before: int, after: int) -> tuple[int, ...]:
    """Where an instruction leads at once, counted from itself."""
    match instruction:
        case _Fork(one, two):
            return (one, two)
        case _Check(kind) if _HOLDS[kind](before, after):
            return (1,)
    return ()


def _within(char: int, ranges: Ranges) -> bool:
    return any(low <= char <= high for low, high in ranges)


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "^": lambda before, _: before == _EDGE,
    "$": lambda _, after: after == _EDGE,
    "line^": lambda before, _: before in {_EDGE, _NEWLINE},
    "line$": lambda _, after: after in {_EDGE, _NEWLINE},
    "b": lambda before, after: (before == _WORDLIKE) is not (after == _WORDLIKE),
    "B": lambda before, after: (before == _WORDLIKE) is (after == _WORDLIKE),
}
