"""What every operation is: names what it needs, then decides.

`plan` adds to the load plan. `decide` gets the loaded records and answers, or raises a HoldfastError to refuse; a
refusal changes nothing. It may be run more than once (a retried transaction loads and decides afresh), so it keeps no
state.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Operation(Generic[Request, Answer]):
    """One change of state. `RETRY_ON_OUTAGE` operations wait until the database can be used again instead of being
    refused: their caller has done work that must not be lost."""

    __slots__ = ("request",)

    RETRY_ON_OUTAGE: ClassVar[bool] = False
    RELEASES_SLOT: ClassVar[str] = ""
    """Which kind of slot its session may have free afterwards: turn or task."""
    ANSWER: ClassVar[type[Any] | None] = None
    """The answer's type, for operations whose request may carry a request id."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def plan(self, plan: LoadPlan) -> None:
        raise NotImplementedError

    def decide(self, uow: UnitOfWork) -> Answer:
        raise NotImplementedError

    def subject(self, answer: Answer) -> tuple[str | None, str | None]:
        """What an idempotency key is kept for: the execution whose life prolongs its own, and a name for people."""
        return None, None

    def on_refused(self, uow: UnitOfWork) -> None:
        """Called when `decide` refused: for what must happen all the same."""
