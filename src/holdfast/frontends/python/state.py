"""`ctx.state`: a mapping of the workflow's own that others may read."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from holdfast.model.payloads import encode
from holdfast.model.validation import check_name
from holdfast.replay.machine import Machine


class DurableState(MutableMapping[str, Any]):
    """Text to values. What is set is shown outside when the turn is recorded.

    A value is put into its durable form when it is set, and read back as it was given. Changing it in place therefore
    shows nothing outside: assign it again.
    """

    __slots__ = ("_machine", "_values")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._values: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        check_name(key, "key")
        self._machine.change_state(key, encode(value, field=f"state[{key!r}]"))
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self._values:
            raise KeyError(key)
        self._machine.change_state(key, None)
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ctx.state({self._values!r})"
