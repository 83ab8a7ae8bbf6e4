"""Stores: where records are kept. A store loads and writes; it decides nothing."""
