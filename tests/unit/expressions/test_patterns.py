"""Patterns of `matches`: RE2's language, in linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.expressions.cel.patterns import MAX_PROGRAM, BadPattern, Pattern


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        ("", ["", "a"], []),
        ("b", ["b", "abc"], ["", "a"]),
        ("^ab$", ["ab"], ["abc", "cab", "ab\n"]),
        ("a.c", ["abc", "aéc"], ["ac", "a\nc"]),
        ("(?s)a.c", ["a\nc"], ["ac"]),
        ("^b", ["b"], ["a\nb"]),
        ("(?m)^b$", ["a\nb\nc"], ["ab"]),
        ("a*b+c?$", ["b", "aabbc"], ["ac", "a"]),
        ("^(ab|cd)+$", ["ab", "abcdab"], ["abc", ""]),
        ("^(?:a|)b$", ["ab", "b"], ["aab"]),
        ("^a{2}$", ["aa"], ["a", "aaa"]),
        ("^a{2,}$", ["aa", "aaaa"], ["a"]),
        ("^a{1,3}b{0}$", ["a", "aaa"], ["aaaa", "ab"]),
        ("^a{,3}$", ["a{,3}"], ["aa"]),
        ("^a{x}$", ["a{x}"], ["a"]),
        ("^[a-c]+$", ["abc"], ["abcd", ""]),
        ("^[^a-c]$", ["d", "\n"], ["a", "c"]),
        ("^[]a-]+$", ["]a-"], ["b"]),
        (r"^[\d.-]+$", ["1.-2"], ["a"]),
        (r"^\d\D\w\W\s\S$", ["1a_- x"], ["aaaaaa"]),
        (r"\bcat\b", ["a cat.", "cat"], ["concat", "cats"]),
        (r"\Bat", ["cat"], ["at"]),
        (r"\Aab\z", ["ab"], ["abc", "xab"]),
        (r"^\x41\x{42}\t\.\\\-$", ["AB\t.\\-"], ["AB"]),
        ("(?i)HeLLo", ["hello", "HELLO"], ["helo"]),
        ("(?i)[^a]", ["b"], ["a", "A"]),
        ("a(?i:b)c", ["aBc", "abc"], ["ABc", "abC"]),
        ("a*?b", ["b", "ab"], ["a"]),
        ("(a*)*$", ["", "aaa", "b"], []),
        ("^(a?){20}a{20}$", ["a" * 20, "a" * 40], ["a" * 19, "a" * 41]),
        ("^é+$", ["éé"], ["e"]),
        ("^[0-9a-f]{8}-[0-9a-f]{4}$", ["0123abcd-00ff"], ["0123abcd-00fg"]),
        ("^[^@ ]+@[^@ ]+[.][a-z]+$", ["a.b@c.de"], ["a@b", "a b@c.de"]),
    ],
)
def test_what_a_pattern_finds(pattern, found, not_found):
    """Anywhere in the text, unless it is anchored."""
    compiled = Pattern(pattern)

    assert [True] * len(found) == [compiled.found_in(text) for text in found]
    assert [False] * len(not_found) == [compiled.found_in(text) for text in not_found]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a", "without its `)`"),
        ("a)", "without its `(`"),
        ("[a", "without its `]`"),
        ("[]", "without its `]`"),
        ("*a", "nothing to repeat"),
        ("a**", "needs brackets"),
        ("a{3,2}", "from less to more"),
        ("a{1001}", "1000 at most"),
        ("[z-a]", "from a character to a later one"),
        (r"[a-\d]", "from a character to a later one"),
        (r"a\1", "`\\1` is not known"),
        (r"\pL", "`\\p` is not known"),
        ("\\", "is not known"),
        (r"\xZZ", "hexadecimal"),
        ("(?=a)", "only (?:…)"),
        ("(?<!a)b", "only (?:…)"),
        ("(?P<n>a)", "only (?:…)"),
        ("(?:a", "without its `)`"),
        ("(?", "only (?:…)"),
        ("[[:alpha:]]", "[:alpha:]"),
        ("(" * 60 + ")" * 60, "nested deeper"),
        ("a" * 257, "256 bytes"),
        ("é" * 129, "256 bytes"),
        ("(((a{10}){10}){10}){10}", "too large"),
        ("(a{0,1000}){0,1000}", "too large"),
        ("(a{500}|b{500})", "too large"),
    ],
)
def test_what_can_not_be_a_pattern(pattern, words):
    """Refused with a reason: what is wrong, what would need backtracking, and what would be too large."""
    with pytest.raises(BadPattern) as raised:
        Pattern(pattern)

    assert words in str(raised.value)
    assert 0 <= raised.value.at <= len(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "((a|b)*(c|d)*)*e", "(x+x+)+y"])
def test_patterns_that_kill_backtracking_engines_answer(pattern):
    """The classic bad cases, on a text that would take such an engine longer than anybody waits."""
    text = "ax" * 2000 + "!"

    assert Pattern(pattern).found_in(text) is False
    assert Pattern(pattern).cost <= 2 + MAX_PROGRAM // 4


ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\b", r"\B", "^", r"\Z", "x", "-", r"[\w-]"]


def _patterns() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(ATOMS),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
        ),
        max_leaves=6,
    )


@given(pattern=_patterns(), text=st.text("abx-1 \n", min_size=1, max_size=8))
def test_patterns_agree_with_python(pattern, text):
    """On what both languages share, Python's engine finds the same. (It is wrong about \\B in an empty text.)"""
    ours = Pattern(pattern.replace(r"\Z", r"\z"))

    assert (re.search(pattern, text, re.ASCII) is not None) is ours.found_in(text)


@given(pattern=st.text(r"ab01()[]{}|*+?^$.,-\:dwsbxi" + "é\n", max_size=30), text=st.text("ab01\n", max_size=6))
def test_no_pattern_breaks_the_reader(pattern, text):
    """Any text is a pattern or a refusal."""
    try:
        compiled = Pattern(pattern)
    except BadPattern:
        return
    assert compiled.found_in(text) in {True, False}


def test_what_is_remembered_does_not_change_the_answer():
    """A pattern that has seen thousands of texts answers as a fresh one."""
    used = Pattern(r"(a|b)*a(a|b){12}c\b")
    for number in range(3000):
        used.found_in(f"{number:b}".replace("0", "a").replace("1", "b"))

    for text in ["abbbbbbbbbbbbbc", "bbabbabbabbabbac x", "c", "aaaaaaaaaaaaaaaac"]:
        assert Pattern(r"(a|b)*a(a|b){12}c\b").found_in(text) is used.found_in(text)
