"""Requests and answers, one module and one Protocol per noun.

The engine implements these protocols in process; the remote client and remote workers will implement them over the
wire. Methods return an awaitable, not necessarily a coroutine: in process it is the very future of the commit.
"""
