"""What proves Holdfast and ships with nothing: simulation, chaos, invariants, mutants, the store suite, PostgreSQL.

It drives the engine's own parts and breaks them on purpose, so it lives beside the wheel, not in it. The wheel never
imports it.
"""
