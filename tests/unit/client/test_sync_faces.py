"""The blocking classes are generated, and are what they were generated from."""

import inspect
import subprocess
import sys

import pytest

from holdfast import assembly
from holdfast.blocking.short_forms import ShortForms
from holdfast.client import calls, client, sync
from tools.sync_faces import ROOT, SKIPPED, generated

PAIRS = [
    (client.Client, sync.SyncClient),
    (client.WorkflowHandle, sync.SyncWorkflowHandle),
    (calls.UpdateHandle, sync.SyncUpdateHandle),
]


def test_generated_files_are_up_to_date():
    """Whoever changes an async class runs `make generate`."""
    stale = [path.name for path, text in generated() if text != path.read_text("utf-8")]

    assert [] == stale, "run `make generate`"


def test_check_says_so_too():
    """For those who want it without pytest."""
    assert 0 == subprocess.run([sys.executable, "-m", "tools.sync_faces", "--check"], cwd=ROOT, check=False).returncode


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
    assert parameters(getattr(assembly.Engine, name)) == parameters(getattr(ShortForms, name))


def parameters(fn) -> list[tuple[str, object, object]]:
    found = inspect.signature(fn).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in found]
