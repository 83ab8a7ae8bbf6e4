"""A process of the chaos run: `python -m verification.chaos.process` is told by a line of JSON what it is to be.

Until then it waits, so that whoever takes the place of a killed process does not have to be started first.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from verification.chaos import broken_store
from verification.chaos.app import Book, Everywhere, FileLedger, work
from verification.chaos.caller import call_all
from verification.chaos.metronome import BEAT_S
from verification.simulation import programs


def main(options: dict[str, Any]) -> int:
    folder, name = Path(options["folder"]), options["name"]
    with (folder / f"{name}.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    broken_store.from_environment()
    book = Book(folder / f"{name}-{os.getpid()}.ledger")
    programs.LEDGER = Everywhere(FileLedger(book))  # type: ignore[assignment]  # the same methods

    async def run() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        pulse = asyncio.ensure_future(watch_stalls(book))
        try:
            await (work if name.startswith("worker") else call_all)(options, stop)
        finally:
            pulse.cancel()

    try:
        asyncio.run(run())
    except HoldfastError:
        logging.getLogger("chaos").exception("ended by an error")
        return 1
    return 0


async def watch_stalls(book: Book) -> None:
    """Write down when this process did not come to run: what it has missed then was the machine's doing."""
    last = time.monotonic_ns() // 1000
    while True:
        await asyncio.sleep(BEAT_S)
        now = time.monotonic_ns() // 1000
        if now > last + 3 * BEAT_S * 1e6:
            book.write("stalled", last)
        last = now


if __name__ == "__main__":
    if line := sys.stdin.readline():
        sys.exit(main(json.loads(line)))
