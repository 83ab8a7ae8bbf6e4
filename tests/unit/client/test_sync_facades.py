"""The blocking classes are generated, and are what they were generated from."""

import ast
import inspect
import subprocess
import sys

import pytest

from holdfast import assembly
from holdfast.client import calls, client, handles, sync
from holdfast.sync.shortcuts import EngineShortcuts
from tools import sync_facades
from tools.sync_facades import ROOT, SKIPPED, generated

PAIRS = [
    (client.Client, sync.SyncClient),
    (handles.WorkflowHandle, sync.SyncWorkflowHandle),
    (calls.UpdateHandle, sync.SyncUpdateHandle),
]


def test_generated_files_are_up_to_date():
    """Whoever changes an async class runs `make generate`."""
    stale = [path.name for path, text in generated() if text != path.read_text("utf-8")]

    assert [] == stale, "run `make generate`"


def test_check_says_so_too():
    """For those who want it without pytest."""
    assert (
        0 == subprocess.run([sys.executable, "-m", "tools.sync_facades", "--check"], cwd=ROOT, check=False).returncode
    )


def public(cls: type) -> dict[str, object]:
    return {name: member for name, member in vars(cls).items() if not name.startswith("_")}


@pytest.mark.parametrize(("asynchronous", "blocking"), PAIRS, ids=lambda cls: cls.__name__)
def test_same_methods_with_the_same_signatures(asynchronous, blocking):
    """Name by name, parameter by parameter, default by default; and the docstring."""
    skipped = SKIPPED.get(asynchronous.__name__, set())
    methods = {name: fn for name, fn in public(asynchronous).items() if inspect.isfunction(fn) and name not in skipped}
    assert methods
    for name, method in methods.items():
        other = vars(blocking)[name]
        assert parameters(method) == parameters(other), name
        assert inspect.getdoc(method) == inspect.getdoc(other)
        assert not inspect.iscoroutinefunction(other)


@pytest.mark.parametrize("name", ["start", "query_status", "query_result", "cancel", "recover"])
def test_short_forms_of_the_engine(name):
    """Those that the source documents name are there, with the engine's own signatures."""
    assert parameters(getattr(assembly.Engine, name)) == parameters(getattr(EngineShortcuts, name))


def parameters(fn) -> list[tuple[str, object, object]]:
    found = inspect.signature(fn).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in found]


# --- the generator ------------------------------------------------------------------------------------------------

SOURCE = '''
import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import overload

class Handle:
    async def go(self) -> None: ...

class Other:
    """Not reached, so it has no face."""
    async def stay(self) -> None: ...

class Client:
    """All kinds of methods."""

    def __init__(self, name: str, other: Other) -> None:
        self.name = name
        """What it is called."""
        self._other = other
        self.made_here = Other()

    @property
    def first(self) -> Handle: ...
    async def find(self, name: str) -> Handle | None: ...
    async def several(self, *names: str, **more: int) -> list[Handle]: ...
    async def by_name(self) -> dict[str, Handle]: ...
    async def pair(self) -> tuple[Handle, ...]: ...
    async def each(self) -> AsyncIterator[Handle]:
        yield self.first
    def later(self, /, a: int = 3, *, b: str) -> Awaitable[int]: ...
    def future(self) -> asyncio.Future[Handle]: ...
    def plain(self) -> int: ...
    async def takes(self, handle: Handle) -> None: ...
    @overload
    async def either(self, key: int) -> int: ...
    @overload
    async def either(self, key: str) -> Handle: ...
    async def either(self, key: object) -> object: ...
    @classmethod
    def connect(cls) -> Client: ...
    async def _hidden(self) -> None: ...
'''
EXPECTED = '''
def name(self) -> str:
"""What it is called."""
return self._wrapped.name
def first(self) -> SyncHandle:
return SyncHandle(self._portal, self._wrapped.first)
def find(self, name: str) -> SyncHandle | None:
return None if (found := self._portal.call(self._wrapped.find, name)) is None else SyncHandle(self._portal, found)
def several(self, *names: str, **more: int) -> list[SyncHandle]:
return [SyncHandle(self._portal, each) for each in self._portal.call(self._wrapped.several, *names, **more)]
def by_name(self) -> dict[str, SyncHandle]:
return {key: SyncHandle(self._portal, each) for key, each in self._portal.call(self._wrapped.by_name).items()}
def pair(self) -> tuple[SyncHandle, ...]:
return tuple(SyncHandle(self._portal, each) for each in self._portal.call(self._wrapped.pair))
def each(self) -> Iterator[SyncHandle]:
return (SyncHandle(self._portal, each) for each in self._portal.iterate(self._wrapped.each()))
def later(self, /, a: int=3, *, b: str) -> int:
return self._portal.call(self._wrapped.later, a, b=b)
def future(self) -> SyncHandle:
return SyncHandle(self._portal, self._portal.call(self._wrapped.future))
def plain(self) -> int:
return self._wrapped.plain()
def takes(self, handle: SyncHandle) -> None:
return self._portal.call(self._wrapped.takes, handle._wrapped)
def either(self, key: int) -> int:
def either(self, key: str) -> SyncHandle:
def either(self, key: object) -> object:
return self._portal.call(self._wrapped.either, key)
'''


def test_every_kind_of_method():
    """Properties, handles in containers, iterators, awaitables of plain functions, handles as arguments."""
    sources = sync_facades.reachable(list(sync_facades.classes_in(ast.parse(SOURCE), "somewhere")))
    target = sync_facades.Target(ROOT / "sync.py", "", {s.node.name: f"Sync{s.node.name}" for s in sources}, sources)

    text = sync_facades.facade_class(sources[0], target)

    assert ["Client", "Handle"] == [source.node.name for source in sources]
    lines = [line.strip() for line in text.splitlines()]
    assert EXPECTED.strip().splitlines() == [line for line in lines if line.startswith(("def ", "return ", '"""What'))]
