"""Simulation: whole clusters in one thread, on virtual time, from one seed.

    simulate(seed) ─► nodes (engine + services + worker) over one MemoryDatabase ─► callers and faults ─► Report

The engine, its rules, the services, the worker and the Python front-end are the real ones. The database is
`verification.memory`; time, chance and the network are made up. The same seed gives the same run, event for event.
"""

from __future__ import annotations

from verification.simulation.scenario import Report, Scenario, simulate

__all__ = ["Report", "Scenario", "simulate"]
