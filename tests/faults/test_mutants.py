"""The simulation notices planted bugs: each mutant breaks one rule, and some scenario shows it."""

import gc
from collections.abc import Iterator

import pytest

from holdfast.engine.rules import messages
from holdfast.engine.rules.workspace import Workspace
from holdfast.engine.turns.complete import Complete
from holdfast.errors import InvalidRequest
from holdfast.testing import mutants
from holdfast.testing.mutants import planted
from holdfast.testing.simulation import Report, simulate

MOST = 400  # the rarest shows in one scenario of 50
COLLECT_EVERY = 50


@pytest.fixture(autouse=True)
def rare_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def first_failure(name: str) -> Report:
    with planted(name):
        for seed in range(1, MOST + 1):
            report = simulate(seed)
            if not report.ok:
                return report
            if seed % COLLECT_EVERY == 0:
                gc.collect()
    raise AssertionError(f"{name} was not caught by {MOST} scenarios: {mutants.says(name)}")


@pytest.mark.parametrize("name", mutants.names())
def test_planted_bug_is_caught(name: str) -> None:
    """Within a few hundred scenarios; the scenario that shows it is clean without it."""
    report = first_failure(name)

    assert simulate(report.seed).ok, "a scenario that fails without the mutant proves nothing"


def test_there_are_enough_of_them() -> None:
    """One for each way in which engines of this kind have failed, and each says what it does."""
    assert len(mutants.names()) >= 12
    assert all(mutants.says(name) for name in mutants.names())


def test_a_mutant_is_gone_after_its_block() -> None:
    """Even if the block ends in an error: what was patched is what it was."""
    before = (Complete.decide, Workspace.task, Workspace.append, messages._look_back)
    for name in mutants.names():
        with pytest.raises(KeyError), planted(name):
            raise KeyError
    assert (Complete.decide, Workspace.task, Workspace.append, messages._look_back) == before


def test_an_unknown_mutant_is_refused() -> None:
    """With the names that there are."""
    with pytest.raises(InvalidRequest, match="no_fencing"), planted("nothing"):
        pass


def test_the_environment_plants_only_where_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable alone does nothing: a test's own application has to ask for it."""
    monkeypatch.delenv(mutants.VARIABLE, raising=False)
    assert mutants.from_environment() is None

    monkeypatch.setenv(mutants.VARIABLE, "wake_up_lost")
    before = Complete.decide
    assert simulate(2).ok
    assert Complete.decide is before
    try:
        assert mutants.from_environment() == "wake_up_lost"
        assert Complete.decide is not before
    finally:
        mutants._FOR_EVER.close()
    assert Complete.decide is before
