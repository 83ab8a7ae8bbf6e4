"""The Python front-end: workflows as ordinary `async def` code, driven by a deterministic event loop."""
