"""A tree into closures: names resolved, types checked as far as they are known, costs added up.

Each node becomes a `Code`: a function of a frame, the type it gives (None when only the payload can tell), and the
steps it costs each time. What can be refused is refused here, with its place in the text; what remains are errors of
the payload. Comparisons with a constant are what filters are made of, and have closures of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holdfast.errors import ExpressionFailed, InvalidExpression
from holdfast.expressions.cel import runtime
from holdfast.expressions.cel.budget import FIRST_LOCAL, PAYLOAD, Frame
from holdfast.expressions.cel.functions import FORMS, FUNCTIONS, GLOBAL, MEMBER
from holdfast.expressions.cel.macros import MACROS
from holdfast.expressions.cel.operators import ARITHMETIC, NEGATION, Overloads
from holdfast.expressions.cel.patterns import MAX_TOGETHER, BadPattern, Pattern
from holdfast.expressions.cel.values import TYPE_NAMES, CelType, UInt, kind_name, map_key, ordered
from holdfast.expressions.lexer import Source
from holdfast.expressions.syntax import (
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
    Unary,
)

Run = Callable[[Frame], Any]
Kind = type | None

_ITERABLE: frozenset[Kind] = frozenset({None, list, dict})
_BOOLEAN: frozenset[Kind] = frozenset({None, bool})
_FOLDING_BUDGET = 1000
_TYPE_VALUES = {name: CelType(name) for name in TYPE_NAMES.values()}


class Code(NamedTuple):
    """A node that can run. `constant` says that it always gives `value`, `slot` that it gives a text of the frame."""

    run: Run
    kind: Kind
    cost: int
    constant: bool = False
    value: Any = None
    slot: int | None = None


def constant(value: Any) -> Code:
    return Code(lambda _frame: value, type(value), 1, constant=True, value=value)


class Compiler:
    """One pass over one tree. `slots` is how long a frame has to be.

    The literals in `open_texts` are left open: what they say is in the frame, in this order, before all else.
    """

    def __init__(self, source: Source, open_texts: Sequence[Literal] = ()) -> None:
        self._source = source
        self._scope = {"input": PAYLOAD}
        self._patterns = 0
        self._open = {literal.start: FIRST_LOCAL + number for number, literal in enumerate(open_texts)}
        self.slots = self._first_local = FIRST_LOCAL + len(open_texts)

    def filter_code(self, node: Node) -> Code:
        """A whole filter: its answer must be able to be true or false."""
        code = self.code(node)
        if code.kind not in _BOOLEAN:
            raise self._refuse(f"a filter gives true or false, but this gives {kind_name(code.kind)}", node.start)
        return code

    def code(self, node: Node) -> Code:
        return _METHODS[type(node)](self, node)

    def _refuse(self, message: str, at: int) -> InvalidExpression:
        return self._source.refusal(message, at)

    def _boolean(self, node: Node, what: str) -> Code:
        code = self.code(node)
        if code.kind not in _BOOLEAN:
            raise self._refuse(f"{what} must be true or false, not {kind_name(code.kind)}", node.start)
        return code

    # --- values

    def _literal(self, node: Literal) -> Code:
        slot = self._open.get(node.start)
        if slot is not None:
            return Code(lambda frame: frame[slot], str, 1, slot=slot)
        return constant(UInt(node.value) if node.unsigned else node.value)

    def _name(self, node: Name) -> Code:
        slot = self._scope.get(node.name)
        if slot is not None:
            return Code(lambda frame: frame[slot], None, 1)
        if node.name in _TYPE_VALUES:
            return constant(_TYPE_VALUES[node.name])
        raise self._refuse(f"there is no `{node.name}`: the payload is called `input`", node.start)

    def _list(self, node: ListOf) -> Code:
        codes = [self.code(item) for item in node.items]
        if all(code.constant for code in codes):
            return constant([code.value for code in codes])  # nothing ever changes a list
        runs = [code.run for code in codes]
        return Code(lambda frame: [run(frame) for run in runs], list, _cost(*codes))

    def _map(self, node: MapOf) -> Code:
        entries = [(self.code(key), self.code(value)) for key, value in node.entries]
        for (key, _), (key_node, _) in zip(entries, node.entries, strict=True):
            if key.kind not in {None, str, int, UInt, bool}:
                raise self._refuse(f"a value of type {kind_name(key.kind)} can't be a key", key_node.start)
        runs = [(key.run, value.run) for key, value in entries]
        return Code(runtime.map_of(runs), dict, _cost(*(code for entry in entries for code in entry)))

    # --- reaching into values

    def _member(self, node: Member) -> Code:
        if node.name in {"Timestamp", "Duration"} and _dotted(node) in _TYPE_VALUES:
            return constant(_TYPE_VALUES[_dotted(node)])
        self._check_name(node.name, node.end - len(node.name))
        target = self._container(node.target, f"the field `{node.name}`")
        return Code(runtime.member(target.run, node.name, self._text(node.target)), None, _cost(target))

    def _container(self, node: Node, what: str) -> Code:
        code = self.code(node)
        if code.kind not in {None, dict}:
            raise self._refuse(f"{what} is asked of a value of type {kind_name(code.kind)}", node.start)
        return code

    def _check_name(self, name: str, at: int) -> None:
        if name.startswith("_"):
            message = f"a field whose name begins with `_` is reached by index: [{name!r}]".replace("'", '"')
            raise self._refuse(message, at)

    def _index(self, node: Index) -> Code:
        target, key = self.code(node.target), self.code(node.key)
        if target.kind not in _ITERABLE:
            raise self._refuse(f"a value of type {kind_name(target.kind)} has no index", node.key.start)
        text = self._text(node.target)
        if key.constant and type(key.value) is str:
            return Code(runtime.named(target.run, key.value, text), None, _cost(target, key))
        if key.constant and map_key(key.value) is None and type(key.value) is not float:
            raise self._refuse(f"a value of type {kind_name(key.kind)} can't be an index", node.key.start)
        return Code(runtime.index(target.run, key.run, text), None, _cost(target, key))

    def _text(self, node: Node) -> Callable[[], str]:
        """The words of a node, for a message that is rarely needed."""
        return lambda: self._source.slice(node.start, min(node.end, node.start + 80))

    # --- operators

    def _unary(self, node: Unary) -> Code:
        if node.op == "!":
            operand = self._boolean(node.operand, "what is negated")
            return Code(runtime.negated(operand.run), bool, _cost(operand))
        return self._applied("-", NEGATION, [self.code(node.operand)], node.start)

    def _binary(self, node: Binary) -> Code:
        left, right = self.code(node.left), self.code(node.right)
        cost = _cost(left, right)
        match node.op:
            case "==" | "!=":
                return Code(_equality(left, right, same=node.op == "=="), bool, cost)
            case "in":
                if right.kind not in _ITERABLE:
                    raise self._refuse(f"`in` looks into a list or a map, not into {kind_name(right.kind)}", node.at)
                return Code(runtime.contained(left.run, right.run), bool, cost)
            case "<" | "<=" | ">" | ">=":
                if not ordered(left.kind, right.kind):
                    raise self._no_overload(node.op, [left, right], node.at)
                return Code(_ordering(node.op, left, right), bool, cost)
        return self._applied(node.op, ARITHMETIC[node.op], [left, right], node.at)

    def _applied(self, name: str, overloads: Overloads, args: Sequence[Code], at: int) -> Code:
        """An operator or function with several meanings, told apart by the types of its arguments."""
        fitting = [overload for kinds, overload in overloads.items() if _fits(kinds, args)]
        if not fitting:
            raise self._no_overload(name, args, at)
        results = {overload.result for overload in fitting}
        kind = results.pop() if len(results) == 1 else None
        table = {kinds: overload.run for kinds, overload in overloads.items()}
        run = runtime.dispatched(name, table, [code.run for code in args])
        return Code(run, kind, _cost(*args) + 2)  # finding the meaning takes as long as having it

    def _no_overload(self, name: str, args: Sequence[Code], at: int) -> InvalidExpression:
        kinds = ", ".join(kind_name(code.kind) for code in args)
        return self._refuse(f"`{name}` is not defined for {kinds or 'nothing'}", at)

    def _chain(self, node: Chain) -> Code:
        codes = [self._boolean(part, f"each side of `{node.op}`") for part in node.parts]
        runs = [code.run for code in codes]
        return Code(runtime.both(runs) if node.op == "&&" else runtime.either(runs), bool, _cost(*codes))

    def _conditional(self, node: Conditional) -> Code:
        test = self._boolean(node.test, "the question before `?`")
        then, otherwise = self.code(node.then), self.code(node.otherwise)
        kind = then.kind if then.kind is otherwise.kind else None
        return Code(runtime.conditional(test.run, then.run, otherwise.run), kind, _cost(test, then, otherwise))

    # --- calls

    def _call(self, node: Call) -> Code:
        if node.name == "has" and node.target is None:
            return self._has(node)
        if node.target is not None and node.name in MACROS:
            return self._macro(node, node.target)
        form = GLOBAL if node.target is None else MEMBER
        if form not in FORMS.get(node.name, ()):
            raise self._unknown(node, form)
        args = [node.target, *node.args] if node.target is not None else node.args
        if node.name == "matches":
            return self._matches(node, args)
        codes = [self.code(arg) for arg in args]
        if node.name in {"dyn", "type"}:
            return self._of_any_type(node, codes)
        code = self._applied(node.name, FUNCTIONS[node.name], codes, node.at)
        if node.name in {"timestamp", "duration"} and codes[0].constant:
            return self._folded(code, node)
        return code

    def _folded(self, code: Code, node: Call) -> Code:
        """A time that is written out is read once, and a misspelt one refused at once."""
        try:
            return constant(code.run([None, _FOLDING_BUDGET]))
        except ExpressionFailed as error:
            raise self._refuse(error.message, node.args[0].start) from None

    def _unknown(self, node: Call, form: str) -> InvalidExpression:
        if node.name in FORMS:
            return self._refuse(f"`{node.name}` is written {' or '.join(FORMS[node.name])}", node.at)
        if node.name in MACROS or node.name == "has":
            return self._refuse(
                f"`{node.name}` is written {'list.f(x, …)' if form == GLOBAL else 'has(x.field)'}", node.at
            )
        known = sorted(name for name, forms in FORMS.items() if form in forms)
        return self._refuse(f"there is no function `{node.name}`: known are {', '.join(known)}", node.at)

    def _of_any_type(self, node: Call, codes: list[Code]) -> Code:
        if len(codes) != 1:
            raise self._refuse(f"`{node.name}` takes one value", node.at)
        if node.name == "type":
            return Code(runtime.type_of(codes[0].run), CelType, _cost(*codes))
        return Code(codes[0].run, None, _cost(*codes))

    def _matches(self, node: Call, args: list[Node]) -> Code:
        if len(args) != 2:
            raise self._refuse("`matches` takes a text and a pattern", node.at)
        text, pattern = self.code(args[0]), args[1]
        if text.kind not in {None, str}:
            raise self._refuse(f"`matches` is not defined for {kind_name(text.kind)}", node.at)
        if not isinstance(pattern, Literal) or type(pattern.value) is not str:
            raise self._refuse("a pattern must be written out as a string", pattern.start)
        try:
            compiled = Pattern(pattern.value)
        except BadPattern as bad:
            raise self._refuse(
                f"the pattern can't be used: {bad} (character {bad.at + 1} of it)", pattern.start
            ) from None
        self._patterns += compiled.size
        if self._patterns > MAX_TOGETHER:
            raise self._refuse("the patterns of this filter are too large together", pattern.start)
        return Code(runtime.matching(text.run, compiled), bool, _cost(text))

    def _has(self, node: Call) -> Code:
        if len(node.args) != 1 or not isinstance(node.args[0], Member):
            raise self._refuse("`has` asks for a field: has(input.field)", node.at)
        member = node.args[0]
        self._check_name(member.name, member.end - len(member.name))
        target = self._container(member.target, f"the field `{member.name}`")
        return Code(runtime.has(target.run, member.name, self._text(member.target)), bool, _cost(target) + 1)

    def _macro(self, node: Call, target: Node) -> Code:
        macro = MACROS[node.name]
        if len(node.args) not in macro.args:
            raise self._refuse(f"`{node.name}` is written {macro.usage}", node.at)
        variable = node.args[0]
        if not isinstance(variable, Name) or variable.name.startswith("_"):
            raise self._refuse(f"the first argument of `{node.name}` is a name for the element", variable.start)
        items = self.code(target)
        if items.kind not in _ITERABLE:
            raise self._refuse(f"`{node.name}` goes over a list or a map, not {kind_name(items.kind)}", node.at)
        slot, bodies = self._bodies(node, variable.name)
        run = macro.make(items.run, slot, [body.run for body in bodies], 1 + sum(body.cost for body in bodies))
        return Code(run, macro.result, _cost(items))

    def _bodies(self, node: Call, variable: str) -> tuple[int, list[Code]]:
        """What a macro does with each element, which has a place of its own in the frame meanwhile."""
        outer, slot = self._scope, self._first_local + len(self._scope) - 1
        while slot in outer.values():
            slot += 1  # a name that hides another one leaves the scope as long as it was
        self.slots = max(self.slots, slot + 1)
        self._scope = {**outer, variable: slot}
        *tests, last = node.args[1:]
        bodies = [self._boolean(test, f"the condition of `{node.name}`") for test in tests]
        is_test = node.name != "map"
        bodies.append(self._boolean(last, f"the condition of `{node.name}`") if is_test else self.code(last))
        self._scope = outer
        return slot, bodies


_METHODS: dict[type[Node], Callable[[Compiler, Any], Code]] = {
    Literal: Compiler._literal,  # noqa: SLF001 - the table of this class, outside only because it needs the class
    Name: Compiler._name,  # noqa: SLF001
    ListOf: Compiler._list,  # noqa: SLF001
    MapOf: Compiler._map,  # noqa: SLF001
    Member: Compiler._member,  # noqa: SLF001
    Index: Compiler._index,  # noqa: SLF001
    Unary: Compiler._unary,  # noqa: SLF001
    Binary: Compiler._binary,  # noqa: SLF001
    Chain: Compiler._chain,  # noqa: SLF001
    Conditional: Compiler._conditional,  # noqa: SLF001
    Call: Compiler._call,  # noqa: SLF001
}


def _cost(*codes: Code) -> int:
    return 1 + sum(code.cost for code in codes)


def _fits(kinds: tuple[type, ...], args: Sequence[Code]) -> bool:
    return len(kinds) == len(args) and all(
        code.kind is None or code.kind is kind for code, kind in zip(args, kinds, strict=True)
    )


def _dotted(node: Node) -> str:
    """`a.b.c` as text, when the node is nothing but names."""
    match node:
        case Name(name=name):
            return name
        case Member(target=target, name=name) if outer := _dotted(target):
            return f"{outer}.{name}"
    return ""


def _equality(left: Code, right: Code, *, same: bool) -> Run:
    if right.slot is not None:
        return runtime.equals_text(left.run, right.slot, same=same)
    if left.slot is not None:
        return runtime.equals_text(right.run, left.slot, same=same)
    if right.constant and (fast := runtime.equals_constant(left.run, right.value, same=same)):
        return fast
    if left.constant and (fast := runtime.equals_constant(right.run, left.value, same=same)):
        return fast
    return runtime.equals(left.run, right.run, same=same)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _ordering(op: str, left: Code, right: Code) -> Run:
    if right.constant and right.kind in {int, float, UInt}:
        return runtime.compared_with_number(op, left.run, right.value)
    if left.constant and left.kind in {int, float, UInt}:
        return runtime.compared_with_number(_MIRRORED[op], right.run, left.value)
    return runtime.compared(op, left.run, right.run)
