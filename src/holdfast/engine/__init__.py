"""The engine: one file per operation under its noun, the unit of work that batches them, the pure rules that decide.

It never imports replay or a front-end: a user's program can't reach it.
"""
