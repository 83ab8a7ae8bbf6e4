"""The chaos run: workers and callers as processes on one PostgreSQL server, faults from one seed, and a checker."""
