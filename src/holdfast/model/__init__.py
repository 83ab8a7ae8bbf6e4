"""Passive records: what is stored and what travels. No clock, no I/O, no rules.

Instants are integer microseconds since the Unix epoch (UTC) and end in `_at`; durations end in `_s`.
A payload is a user's value in its durable form: UTF-8 JSON, kept as raw bytes until somebody asks for it with a type.
"""
