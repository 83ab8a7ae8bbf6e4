"""The simulation notices planted bugs: each mutant breaks one rule, and some scenario shows that very rule broken."""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from holdfast.engine.rules import messages
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.engine.turns.complete import Complete
from holdfast.errors import InvalidRequest
from verification import mutants
from verification.mutants import planted
from verification.simulation import Report, simulate

MOST = 250  # the rarest are convicted by one scenario of 40
COLLECT_EVERY = 50


@pytest.fixture(autouse=True)
def rare_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def first_conviction(name: str) -> Report:
    """By one of the invariants that the mutant breaks. That everything stands still, say, convicts few of them."""
    others: Counter[str] = Counter()
    with planted(name):
        for seed in range(1, MOST + 1):
            report = simulate(seed)
            found = {violation.invariant for violation in report.violations}
            if found & mutants.breaks(name):
                return report
            others.update(found)
            if seed % COLLECT_EVERY == 0:
                gc.collect()
    text = f"{name} was not convicted by {MOST} scenarios: {mutants.says(name)}"
    raise AssertionError(f"{text} Wanted: {sorted(mutants.breaks(name))}; found: {dict(others)}")


@pytest.mark.parametrize("name", mutants.names())
def test_planted_bug_is_caught(name: str) -> None:
    """Within a few hundred scenarios, of what it does wrong; the scenario that shows it is clean without it."""
    report = first_conviction(name)

    assert simulate(report.seed).ok, "a scenario that fails without the mutant proves nothing"


def test_there_are_enough_of_them() -> None:
    """One for each way in which engines of this kind have failed, and each says what it does."""
    assert len(mutants.names()) >= 12
    assert all(mutants.says(name) for name in mutants.names())


def test_what_a_history_must_be_is_broken_by_somebody() -> None:
    """Whatever an invariant says of histories, bodies and rows: some mutant breaks it, so that its check is proved."""
    broken = {invariant for name in mutants.names() for invariant in mutants.breaks(name)}

    assert {f"I{number:02}" for number in (1, *range(3, 20))} <= broken
    assert {"I20", "I23", "I26"} <= broken


def test_a_mutant_is_gone_after_its_block() -> None:
    """Even if the block ends in an error: what was patched is what it was."""
    before = (Complete.decide, UnitOfWork.task, UnitOfWork.append, messages._look_back)
    for name in mutants.names():
        with pytest.raises(KeyError), planted(name):
            raise KeyError
    assert (Complete.decide, UnitOfWork.task, UnitOfWork.append, messages._look_back) == before


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
