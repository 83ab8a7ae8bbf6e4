"""Holdfast on one SQLite file (or in memory): one writer thread, a few read-only readers, several processes at once."""
