"""Workflows to read and to run.

Read `hello.py`, then `chat.py`, then `order.py`; each is a whole program (`python -m examples.hello`). `run.py` starts
all of them on one database file (`make run`); `send.py` and `show.py` work on that file from another terminal.
"""
