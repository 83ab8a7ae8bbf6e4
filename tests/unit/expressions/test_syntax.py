"""Text becomes tokens and a tree, or a refusal that says where."""

import pytest

from holdfast.errors import InvalidExpression
from holdfast.expressions.cel.grammar import CEL
from holdfast.expressions.lexer import Source
from holdfast.expressions.syntax import (
    MAX_NESTING,
    Binary,
    Call,
    Chain,
    Conditional,
    Index,
    ListOf,
    Literal,
    MapOf,
    Member,
    Name,
    Node,
    Parser,
    Unary,
)


def parsed(text: str) -> Node:
    return Parser(Source(text), CEL).whole()


def drawn(node: Node) -> str:
    """The tree with every bracket written."""
    match node:
        case Literal(value=value):
            return repr(value)
        case Name(name=name):
            return name
        case Member(target=target, name=name):
            return f"{drawn(target)}.{name}"
        case Index(target=target, key=key):
            return f"{drawn(target)}[{drawn(key)}]"
        case Call(target=target, name=name, args=args):
            called = name if target is None else f"{drawn(target)}.{name}"
            return f"{called}({', '.join(map(drawn, args))})"
        case ListOf(items=items):
            return f"[{', '.join(map(drawn, items))}]"
        case MapOf(entries=entries):
            return "{" + ", ".join(f"{drawn(key)}: {drawn(value)}" for key, value in entries) + "}"
        case Unary(op=op, operand=operand):
            return f"({op}{drawn(operand)})"
        case Binary(op=op, left=left, right=right):
            return f"({drawn(left)} {op} {drawn(right)})"
        case Chain(op=op, parts=parts):
            return f"({f' {op} '.join(map(drawn, parts))})"
        case Conditional(test=test, then=then, otherwise=otherwise):
            return f"({drawn(test)} ? {drawn(then)} : {drawn(otherwise)})"
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a * b / c % d", "(((a * b) / c) % d)"),
        ("a && b || c && d", "((a && b) || (c && d))"),
        ("a || b || c", "(a || b || c)"),
        ("a && (b && c)", "(a && (b && c))"),
        ("a == b && c < d", "((a == b) && (c < d))"),
        ("a == b == c", "((a == b) == c)"),
        ("a in b + c", "(a in (b + c))"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a || b ? c : d", "((a || b) ? c : d)"),
        ("!a.b", "(!a.b)"),
        ("!!a", "(!(!a))"),
        ("-a + b", "((-a) + b)"),
        ("-1 - -2", "(-1 - -2)"),
        ("- 1", "-1"),
        ("--1", "(--1)"),
        ("a.b.c[0].d", "a.b.c[0].d"),
        ("a.b(c, d).e()", "a.b(c, d).e()"),
        ("f(a).g(b)", "f(a).g(b)"),
        ("[1, 2.5, 'x', [true]]", "[1, 2.5, 'x', [True]]"),
        ("[1,]", "[1]"),
        ("{'a': 1, 'b': {}}", "{'a': 1, 'b': {}}"),
        ("a // to the end\n && b", "(a && b)"),
        ("a.if", "a.if"),
        ("0x1F + .5 + 1e3", "((31 + 0.5) + 1000.0)"),
        ("-9223372036854775808", "-9223372036854775808"),
        (r"'\n\x41\u00e9\101\U0001F600\?'", r"'\nAéA😀?'"),
        (r"r'\n' + R'''a'b'''", "('\\\\n' + \"a'b\")"),
        ('"""two\n\'lines\'"""', "\"two\\n'lines'\""),
        (r"b'é\xff'", r"b'\xc3\xa9\xff'"),
        (r"rb'\x' + bR'\y'", r"(b'\\x' + b'\\y')"),
    ],
)
def test_the_tree_of_a_text(text, tree):
    """Operators bind as in CEL; literals mean what CEL says."""
    assert tree == drawn(parsed(text))


@pytest.mark.parametrize(
    ("text", "words", "line", "column"),
    [
        ("", "empty", 1, 1),
        ("  // nothing", "empty", 1, 1),
        ("a ==", "expected a value", 1, 5),
        ("a = 1", "write `==`", 1, 3),
        ("a & b", "write `&&`", 1, 3),
        ("a b", "expected an operator or the end, but there is `b`", 1, 3),
        ("(a", "expected `)`", 1, 3),
        ("a)", "expected an operator or the end", 1, 2),
        ("a[1", "expected `]`", 1, 4),
        ("[1, 2", "expected `]`", 1, 6),
        ("{'a' 1}", "expected `:`", 1, 6),
        ("f(1,)", "expected a value", 1, 5),
        ("(f)(1)", "only a name can be called", 1, 4),
        ("a ? b", "expected `:`", 1, 6),
        ("a ? b ? c : d : e", "expected `:`", 1, 7),
        ("a.", "the name of a field", 1, 3),
        ("a.in", "the name of a field", 1, 3),
        ("a.1", "expected an operator or the end", 1, 2),
        ("if", "reserved word", 1, 1),
        ("a &&\n  while", "reserved word", 2, 3),
        ("'abc", "not closed", 1, 1),
        ("'a\nb'", "not closed", 1, 1),
        (r"'a\q'", "not an escape", 1, 3),
        (r"'\ud800'", "not a character", 1, 2),
        ("@", "no meaning", 1, 1),
        ("12ab", "need something between", 1, 3),
        ("9223372036854775808", "64 bits", 1, 1),
        ("18446744073709551616u", "64 bits", 1, 1),
        ("-1u", "no sign", 1, 2),
        ("9" * 3000, "64 bits", 1, 1),
        ("1e999", "double", 1, 1),
    ],
)
def test_a_refusal_names_the_place(text, words, line, column):
    """Line and column count from one, the offset from zero, and the message says them."""
    with pytest.raises(InvalidExpression, match=f"line {line}, column {column}") as raised:
        parsed(text)

    error = raised.value
    assert words in error.message
    assert (line, column) == (error.line, error.column)
    assert error.details["offset"] == error.offset == _offset(text, line, column)


def _offset(text: str, line: int, column: int) -> int:
    return sum(len(above) + 1 for above in text.split("\n")[: line - 1]) + column - 1


@pytest.mark.parametrize(("text", "at"), [("input.a == 1 && input.b @ 2", "@"), ("x" * 300 + " @ " + "y" * 300, "@")])
def test_the_caret_stands_under_the_place(text, at):
    """Whatever the length of the line, the excerpt is short and its caret points at the culprit."""
    with pytest.raises(InvalidExpression) as raised:
        parsed(text)

    _, excerpt, caret = raised.value.message.split("\n")
    assert at == excerpt[caret.index("^")]
    assert len(excerpt) < 80


def test_the_excerpt_is_the_line_itself():
    """Only the line in question is shown, and a tab does not move the caret."""
    with pytest.raises(InvalidExpression) as raised:
        parsed("input.a &&\n\tinput.b ! 1 &&\ninput.c")

    _, excerpt, caret = raised.value.message.split("\n")
    assert "   input.b ! 1 &&" == excerpt
    assert "!" == excerpt[caret.index("^")]


DEEP = {
    "brackets": lambda depth: "(" * depth + "a" + ")" * depth,
    "lists": lambda depth: "[" * depth + "]" * depth,
    "negations": lambda depth: "!" * depth + "a",
    "sums": lambda depth: "+".join("a" * (depth + 1)),
    "fields": lambda depth: "a" + ".b" * depth,
    "indexes": lambda depth: "a" + "[0]" * depth,
    "conditionals": lambda depth: "a?b:" * depth + "c",
    "calls": lambda depth: "f(" * depth + "a" + ")" * depth,
    "comparisons": lambda depth: "==".join("a" * (depth + 1)),
}


@pytest.mark.parametrize("shape", DEEP)
def test_nesting_is_bounded(shape):
    """Forty levels of anything are read; sixty, and a thousand, are refused by name and not by the stack."""
    assert parsed(DEEP[shape](40)).height <= MAX_NESTING
    for depth in (60, 1000):
        with pytest.raises(InvalidExpression, match=f"nested deeper than {MAX_NESTING}"):
            parsed(DEEP[shape](depth))


@pytest.mark.parametrize("op", ["&&", "||"])
def test_many_conditions_side_by_side_are_not_nesting(op):
    """Five hundred alternatives are one node."""
    tree = parsed(f" {op} ".join(["a"] * 500))

    assert isinstance(tree, Chain)
    assert (500, 2) == (len(tree.parts), tree.height)
