"""The engine for programs without an event loop: `SyncEngine` runs one in a thread."""
