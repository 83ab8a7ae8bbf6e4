"""One turn of any program, as a pure function of its history.

The core owns: which events a turn sees and in which order, the queues of signals, the numbering of commands, the
comparison with what was recorded. Its host (the worker) owns: fetching events, running steps, committing.
"""
