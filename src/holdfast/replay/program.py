"""What the machine and a front-end know of each other: a program, the slots it waits in, its steps, its turns."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.values import Payload, RetryPolicy


class Program(Protocol):
    """What a front-end provides. It talks back to the machine while it runs."""

    def start(self, event: e.WorkflowStarted) -> None: ...

    def cancel(self, reason: str) -> None: ...

    def on_reset(self, event: e.WorkflowReset) -> None:
        """From here on it is another execution, which has taken over its past."""
        ...

    def takes_signal(self, signal_name: str) -> bool:
        """Whether a handler takes signals of this name; else they wait in their queue."""
        ...

    def signal(self, signal_name: str, value: Payload, seq: int) -> None:
        """Hand a signal to its handler. One that can't be read as the handler wants it is given to `refuse_signal`."""
        ...

    def update(self, request: e.UpdateRequested) -> None:
        """Validate and begin an update: accept or reject it by the machine's methods, now or while it runs."""
        ...

    @property
    def has_handlers(self) -> bool:
        """Whether handlers could still bring it news: then it is never blocked for good."""
        ...

    def run(self) -> c.Command | None:
        """Run until quiet. A closing command when the program has ended; raises ProgramError when it can't go on."""
        ...

    def close(self) -> None:
        """Throw the program away without letting it run on."""
        ...

    def blocked_on(self) -> list[str]: ...


class Slot(Protocol):
    """Where the outcome of a command goes. `name`, `line` and `until_at` tell people what is waited for."""

    name: str
    line: str
    until_at: int | None

    def settle(self, body: e.EventBody) -> None: ...


class WaitSlot(Slot, Protocol):
    """A slot for what was sent to those who wait. `kind`: event, message or broadcast."""

    @property
    def kind(self) -> str: ...

    def accepts(self, event: e.EventReceived) -> bool:
        """Whether an event would do that came for another wait."""
        ...


class StepRequest(msgspec.Struct):
    """A step the program wants run. `run` is the front-end's own business."""

    step_no: int
    name: str
    run: Any
    retry: RetryPolicy
    up_to: int
    line: str


class TurnResult(msgspec.Struct):
    """What a live turn did. `dropped_steps` are no longer wanted; `refused` are signals no handler could read: number
    and reason."""

    up_to: int
    commands: list[c.Command] = []
    dropped_steps: list[int] = []
    refused: list[tuple[int, str]] = []
    closing: bool = False
