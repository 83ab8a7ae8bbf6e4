"""What CEL looks like: its tokens, its operators by how tightly they bind, its reserved words."""

from __future__ import annotations

from holdfast.expressions.lexer import Lexicon
from holdfast.expressions.syntax import Grammar

_RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")

CEL = Grammar(
    lexicon=Lexicon(
        operators=(*"()[]{}.,:?!-+*/%<>", "==", "!=", "<=", ">=", "&&", "||"),
        string_prefixes="rb",
        number_suffixes="uU",
    ),
    binary={"||": 20, "&&": 30, **dict.fromkeys(_RELATIONS, 40), "+": 50, "-": 50, "*": 60, "/": 60, "%": 60},
    chains=frozenset({"&&", "||"}),
    unary={"!": 70, "-": 70},
    conditional=10,
    constants={"true": True, "false": False, "null": None},
    keywords=frozenset({"true", "false", "null", "in"}),
    reserved=frozenset(
        {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "namespace"}
        | {"package", "return", "var", "void", "while"}
    ),
)
