"""A workflow that listens for signals, and the ear of the benchmark inside it.

The workflow's own code notes the moment it sees a signal. That is not deterministic, and harmless: nothing the workflow
asks for depends on it.
"""

from __future__ import annotations

import asyncio
import time

from holdfast import WorkflowContext, WorkflowHandle, workflow


class Ear:
    """Waits for one signal at a time to be seen by workflow code in this process."""

    def __init__(self) -> None:
        self.seen = 0
        self._number = -1
        self._heard: asyncio.Future[float] | None = None

    def saw(self, number: int) -> None:
        self.seen += 1
        if number == self._number and self._heard is not None and not self._heard.done():
            self._heard.set_result(time.perf_counter())

    async def reaction_s(self, handle: WorkflowHandle, number: int) -> float:
        """Send a numbered signal; the time until the workflow's code has it in hand."""
        heard = self.expect(number)
        began = time.perf_counter()
        await handle.signal("ping", number)
        return await heard - began

    def expect(self, number: int) -> asyncio.Future[float]:
        """Listen for a numbered signal; the moment at which the workflow's code has it."""
        self._number = number
        self._heard = asyncio.get_running_loop().create_future()
        return self._heard


EAR = Ear()


@workflow
async def listener(ctx: WorkflowContext) -> None:
    while True:
        EAR.saw(await ctx.wait_for_signal("ping", int))
