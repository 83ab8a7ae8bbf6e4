"""A server and workers for it, in processes of their own: `python -m tests.faults.remote_app ROLE OPTIONS`.

Like tests.faults.app, whose workflows and tasks they run. `serve` has the database and no worker; `work` has a server
and no database.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from holdfast import ServerConfig, WorkerConfig
from holdfast.assembly import RemoteWorker
from holdfast.server.grpc.settings import GrpcSettings
from tests.faults import app
from tests.grpc_server import open_server


async def serve(options: dict[str, Any]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with app.engine_of(options, working=False) as engine:
        common = ServerConfig(shutdown_grace_s=options.get("grace_s", 1.0))
        server = await open_server(engine, settings=GrpcSettings(port=options["port"], common=common))
        print("ready", flush=True)
        await stop.wait()
        await server.stop()
    print("stopped", flush=True)


async def work(options: dict[str, Any]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    config = WorkerConfig(**options.get("worker", {}))
    async with RemoteWorker(options["server"], workflows=app.WORKFLOWS, tasks=app.TASKS, config=config):
        print("ready", flush=True)
        await stop.wait()
    print("stopped", flush=True)


app.ROLES.update(serve=serve, work=work)

if __name__ == "__main__":
    app.main()
