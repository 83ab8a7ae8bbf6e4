"""Writes the blocking faces: `python -m tools.sync_facades`, or `make generate`.

Reads the source of the async classes (`Client`, every class in `holdfast/client` with async methods that its methods
or theirs give, and the short forms of `Engine`) and writes for each a class with the same methods, signatures and
docstrings that blocks. What a method gives is translated by its annotation: an awaitable to its value, an async
iterator to an iterator, one of these classes to its blocking face. Attributes are there if `__init__` takes them as
arguments or annotates them. With `--check` nothing is written; the exit code says whether the files are up to date.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holdfast"

SKIPPED = {
    # The async side itself.
    "Client": {"executions", "messages", "tasks", "deployments", "portal", "sync", "connect", "close"},
    "Engine": {"open", "shutdown"},  # SyncEngine does these in its own way
}
ASYNC_ITERATORS = {"AsyncIterator", "AsyncGenerator", "AsyncIterable"}
USING = "using"
AWAITABLES = {"Awaitable", "Coroutine", "Future", "Task"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Source:
    """An async class and the module it stands in."""

    module: str
    tree: ast.Module
    node: ast.ClassDef
    methods_only: bool = False
    bases: list[Source] = field(default_factory=list)
    """Classes in `holdfast/client` that it is made of: what they have, it has."""

    @property
    def family(self) -> list[Source]:
        return [self, *self.bases]

    @property
    def members(self) -> list[ast.stmt]:
        skipped = SKIPPED.get(self.node.name, set())
        return [node for node in self.node.body if getattr(node, "name", "") not in skipped]

    @property
    def public(self) -> list[Function]:
        return [node for node in self.members if isinstance(node, Function) and not node.name.startswith("_")]


@dataclass
class Target:
    """A file to be written."""

    path: Path
    opening: str
    facades: dict[str, str]
    """The async classes that have a blocking face, and its name."""
    sources: list[Source]
    imports: set[str] = field(default_factory=set)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the blocking faces.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    check = parser.parse_args().check
    stale = []
    for path, text in generated():
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(text, "utf-8")
    if check and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run `make generate`")


def generated() -> Iterator[tuple[Path, str]]:
    """Every file with the text it should have."""
    clients = client_classes()
    facades = {source.node.name: f"Sync{source.node.name}" for source in clients}
    opening = "The blocking facades of the client and its handles."
    yield from written(Target(PACKAGE / "client" / "sync.py", opening, facades, clients))
    tree = ast.parse((PACKAGE / "assembly.py").read_text("utf-8"))
    engine = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Engine")
    sources = [Source("holdfast.assembly", tree, engine, methods_only=True)]
    opening = "The shortcuts of `Engine`, blocking."
    yield from written(
        Target(PACKAGE / "sync" / "shortcuts.py", opening, {**facades, "Engine": "EngineShortcuts"}, sources)
    )


def client_classes() -> list[Source]:
    paths = sorted((PACKAGE / "client").glob("*.py"))
    sources = [source for path in paths for source in classes_in(ast.parse(path.read_text("utf-8")), module_of(path))]
    by_name = {source.node.name: source for source in sources}
    for source in sources:
        names = [base.id for base in source.node.bases if isinstance(base, ast.Name)]
        source.bases = [by_name[name] for name in names if name in by_name]
    return reachable(sources)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def classes_in(tree: ast.Module, module: str) -> Iterator[Source]:
    return (Source(module, tree, node) for node in tree.body if isinstance(node, ast.ClassDef))


def reachable(sources: list[Source]) -> list[Source]:
    """`Client`, and what its methods or theirs give and has something to await."""
    known = {source.node.name: source for source in sources if any(is_async(member) for member in source.public)}
    found = ["Client"]
    for name in found:
        members = [member for source in known[name].family for member in source.public]
        given = {each for member in members if member.returns for each in names_in(member.returns)}
        found += sorted(given & set(known) - set(found))
    return [known[name] for name in found]


def written(target: Target) -> Iterator[tuple[Path, str]]:
    classes = [facade_class(source, target) for source in target.sources]
    lines = [
        f'"""{target.opening}',
        "",
        "Generated by `make generate` from the async classes; every change made here is lost.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from holdfast.client.portal import SyncFacade",
        *sorted(target.imports),
        "",
        *classes,
    ]
    yield target.path, formatted("\n".join(lines), target.path)


def formatted(text: str, path: Path) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(path)]
    for command in (["check", "--quiet", "--select", "I", "--fix", *name, "-"], ["format", "--quiet", *name, "-"]):
        done = subprocess.run([*ruff, *command], input=text, capture_output=True, text=True, check=True, cwd=ROOT)
        text = done.stdout
    return text


# --- classes and their members ------------------------------------------------------------------------------------


def facade_class(source: Source, target: Target) -> str:
    name = source.node.name
    body: list[str] = []
    if not source.methods_only:
        body += attributes(source, target)
    body += filter(None, (method(member, each, target) for each in source.family for member in each.public))
    use({name}, source, target)
    docstring = ast.get_docstring(source.node) if not source.methods_only else None
    head = [f"class {target.facades[name]}(SyncFacade[{name}]):"]
    head += indented(f"{quoted(docstring or f'What `{name}` has for scripts.')}\n\n__slots__ = ()")
    return "\n".join([*head, *(line for part in body for line in ["", *indented(part)])]) + "\n\n"


def attributes(source: Source, target: Target) -> Iterator[str]:
    """Public attributes that `__init__` sets, read-only here."""
    init = next((node for node in source.members if isinstance(node, Function) and node.name == "__init__"), None)
    if init is None:
        return
    skipped = SKIPPED.get(source.node.name, set())
    types = {argument.arg: argument.annotation for argument in all_arguments(init)}
    following = [*init.body[1:], ast.Pass()]
    for statement, after in zip(init.body, following, strict=True):
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name("self"), attr=name)], value=value):
                annotation = types.get(value.id) if isinstance(value, ast.Name) else None
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name("self"), attr=name), annotation=annotation):
                pass
            case _:
                continue
        if name.startswith("_") or name in skipped or annotation is None:
            continue
        yield read_only(name, annotation, docstring_of(after), source, target)


def read_only(name: str, annotation: ast.expr, docstring: str | None, source: Source, target: Target) -> str:
    use(names_in(annotation), source, target)
    lines = ["@property", f"def {name}(self) -> {translated(annotation, target)}:"]
    if docstring:
        lines += indented(quoted(docstring))
    lines += indented(f"return {wrapped(f'self._wrapped.{name}', annotation, target)}")
    return "\n".join(lines)


def method(node: Function, source: Source, target: Target) -> str:
    """One method, or nothing if it has no meaning here."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if decorators & {"classmethod", "staticmethod"} or (source.methods_only and not is_async(node)):
        return ""
    if node.returns is None:
        sys.exit(f"{source.module}.{source.node.name}.{node.name}: say what it returns")
    if "property" in decorators:
        return read_only(node.name, node.returns, ast.get_docstring(node), source, target)
    use(names_in(node.args) | names_in(node.returns), source, target)
    lines = ["@overload"] if "overload" in decorators else []
    if lines:
        target.imports.add("from typing import overload")
    lines.append(f"def {node.name}({signature(node, target)}) -> {translated(node.returns, target)}:")
    if "overload" in decorators:
        return "\n".join([*lines, *indented("...")])
    docstring = ast.get_docstring(node)
    if docstring:
        lines += indented(quoted(docstring))
    return "\n".join([*lines, *indented(f"return {call(node, target)}")])


def call(node: Function, target: Target) -> str:
    """The expression that makes the async call and waits for it."""
    assert node.returns is not None
    function, arguments = f"self._wrapped.{node.name}", passed_on(node, target)
    plain_call = f"{function}({', '.join(arguments)})"
    items = argument_of(node.returns, ASYNC_ITERATORS)
    if items is not None and (isinstance(node, ast.FunctionDef) or is_generator(node)):
        iterator = f"self._portal.iterate({plain_call})"
        if facades_in(items, target):
            return f"({wrapped('each', items, target)} for each in {iterator})"
        return iterator
    if not is_async(node):
        return wrapped(plain_call, node.returns, target)
    awaited = argument_of(node.returns, AWAITABLES) if isinstance(node, ast.FunctionDef) else node.returns
    # A connection of the caller's stays in the caller's thread.
    way = "call_using" if f"{USING}={USING}" in arguments else "call"
    passed = [function, *arguments] if way == "call" else [USING, function, *arguments]
    return wrapped(f"self._portal.{way}({', '.join(passed)})", awaited or node.returns, target)


def wrapped(value: str, annotation: ast.expr, target: Target) -> str:
    """The value with every async object in it behind its blocking face."""
    facade = target.facades.get(ast.unparse(annotation))
    if facade is not None:
        return f"{facade}(self._portal, {value})"
    if not facades_in(annotation, target):
        return value
    match annotation:
        case ast.BinOp(left=inner, op=ast.BitOr(), right=ast.Constant(value=None)):
            return f"None if (found := {value}) is None else {wrapped('found', inner, target)}"
        case ast.Subscript(value=ast.Name("list"), slice=inner):
            return f"[{wrapped('each', inner, target)} for each in {value}]"
        case ast.Subscript(value=ast.Name("tuple"), slice=ast.Tuple(elts=[inner, ast.Constant(value=value_)])):
            if value_ is ...:
                return f"tuple({wrapped('each', inner, target)} for each in {value})"
        case ast.Subscript(value=ast.Name("dict"), slice=ast.Tuple(elts=[_, inner])):
            return f"{{key: {wrapped('each', inner, target)} for key, each in {value}.items()}}"
    sys.exit(f"no rule for what gives {ast.unparse(annotation)}: add one to tools/sync_facades.py")


# --- signatures ---------------------------------------------------------------------------------------------------


def signature(node: Function, target: Target) -> str:
    arguments = copy.deepcopy(node.args)
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.annotation is not None:
            argument.annotation = ast.parse(translated(argument.annotation, target), mode="eval").body
    return ast.unparse(arguments)


def passed_on(node: Function, target: Target) -> list[str]:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args][1:]
    found = [value_of(argument, target) for argument in positional]
    if arguments.vararg is not None:
        found.append(f"*{arguments.vararg.arg}")
    found += [f"{argument.arg}={value_of(argument, target)}" for argument in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        found.append(f"**{arguments.kwarg.arg}")
    return found


def value_of(argument: ast.arg, target: Target) -> str:
    """What is handed on: a blocking face as the object behind it."""
    return (
        f"{argument.arg}._wrapped"
        if ast.unparse(argument.annotation or ast.Name("")) in target.facades
        else argument.arg
    )


def translated(annotation: ast.expr, target: Target) -> str:
    """An annotation of the async side as the blocking side has it."""
    items = argument_of(annotation, ASYNC_ITERATORS)
    if items is not None:
        target.imports.add("from collections.abc import Iterator")
        return f"Iterator[{translated(items, target)}]"
    awaited = argument_of(annotation, AWAITABLES)
    if awaited is not None:
        return translated(awaited, target)

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(target.facades.get(node.id, node.id))

    renamed = Rename().visit(copy.deepcopy(annotation))
    for name in names_in(renamed) & set(target.facades.values()):
        if target.path.name != "sync.py":
            target.imports.add(f"from holdfast.client.sync import {name}")
    return ast.unparse(renamed)


def argument_of(annotation: ast.expr, among: set[str]) -> ast.expr | None:
    """`X` of `AsyncIterator[X]`; of several arguments the one that is given out."""
    if not isinstance(annotation, ast.Subscript):
        return None
    name = ast.unparse(annotation.value).rpartition(".")[2]
    if name not in among:
        return None
    if not isinstance(annotation.slice, ast.Tuple):
        return annotation.slice
    return annotation.slice.elts[-1 if name == "Coroutine" else 0]


# --- names and imports --------------------------------------------------------------------------------------------


def use(names: Iterable[str], source: Source, target: Target) -> None:
    """Import what the annotations name, from where the async module has it."""
    hidden = ASYNC_ITERATORS | AWAITABLES | {"asyncio", "self"}
    for name in set(names) - hidden:
        if name in target.facades and target.facades[name] != "EngineShortcuts" and source.node.name != name:
            continue
        statement = import_of(name, source)
        if statement is not None:
            target.imports.add(statement)


def import_of(name: str, source: Source) -> str | None:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    what = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
                    return f"from {node.module} import {what}" if isinstance(node, ast.ImportFrom) else f"import {what}"
    if name in vars(builtins):
        return None
    return f"from {source.module} import {name}"


def names_in(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def facades_in(annotation: ast.expr, target: Target) -> set[str]:
    return names_in(annotation) & set(target.facades)


def is_async(node: Function) -> bool:
    """Whether it gives something to await."""
    if isinstance(node, ast.AsyncFunctionDef):
        return True
    return node.returns is not None and argument_of(node.returns, AWAITABLES) is not None


def is_generator(node: Function) -> bool:
    return any(isinstance(inner, ast.Yield) for inner in ast.walk(node))


def all_arguments(node: Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def docstring_of(statement: ast.stmt) -> str | None:
    """The text under an attribute, if there is one."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return None


def quoted(docstring: str) -> str:
    lines = docstring.split("\n")
    return f'"""{docstring}"""' if len(lines) == 1 else f'"""{docstring}\n"""'


def indented(text: str) -> list[str]:
    return [f"    {line}" if line.strip() else "" for line in text.split("\n")]


if __name__ == "__main__":
    main()
