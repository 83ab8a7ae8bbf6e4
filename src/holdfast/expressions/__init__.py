"""Expressions over payloads."""
