"""Metrics, traces and logs: what an operator sees of an engine. All of it is off unless it is asked for."""

from __future__ import annotations

from holdfast.telemetry.logs import JsonFormatter, json_logs

__all__ = ["JsonFormatter", "json_logs"]
