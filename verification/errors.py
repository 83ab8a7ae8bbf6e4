"""The errors that only verification raises."""

from __future__ import annotations

from holdfast.errors import ScenarioError


class PostgresNotFound(ScenarioError):
    """No PostgreSQL server was found that could be started here."""

    code = "postgres_not_found"

    def __init__(self, message: str | None = None, *, looked_in: tuple[str, ...] = ()) -> None:
        super().__init__(message, looked_in=looked_in)
        self.looked_in = looked_in


class PostgresNotStarted(ScenarioError):
    """The PostgreSQL server was not started; its log says why."""

    code = "postgres_not_started"

    def __init__(self, message: str | None = None, *, directory: str = "", log: str = "") -> None:
        super().__init__(message, directory=directory, log=log)
        self.directory = directory
        self.log = log
