"""Which store a database URL names. What is refused is not shown: whatever it is, it may hold a password."""

from __future__ import annotations

import re
from typing import Final, Literal

from holdfast.errors import InvalidDatabaseUrl

Kind = Literal["sqlite", "postgresql"]

KINDS: Final[dict[str, Kind]] = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
FORMS: Final = (
    "write sqlite:///path/to/file.db (four slashes for an absolute path), sqlite:// for memory, or "
    "postgresql://user:password@host:port/database"
)

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
# One letter in front of a colon is a drive.
_HALF_A_SCHEME: Final = re.compile(r"[a-z][\w+.-]+:", re.IGNORECASE)
# What other drivers take: `host=h dbname=d`, `Server=h;Database=d`.
_SETTING: Final = re.compile(
    r"(?:^|[\s;])(?:host|hostaddr|server|port|user|username|user id|password|passfile|dbname|database|service)\s*=",
    re.IGNORECASE,
)


def kind_of(url: str) -> Kind:
    """Which store reads this URL. Raises InvalidDatabaseUrl if none does."""
    if not isinstance(url, str):
        raise InvalidDatabaseUrl(f"a database URL is text, not {type(url).__name__}", field="url")
    scheme, slashes, _ = url.partition("://")
    if slashes and scheme in KINDS:
        return KINDS[scheme]
    raise InvalidDatabaseUrl(f"{_problem(url)}: {FORMS}", field="url")


def url_of(given: str) -> str:
    """A path is as good as a URL, unless it may be meant as one. Raises InvalidDatabaseUrl."""
    if "://" in given or "@" in given or _HALF_A_SCHEME.match(given) or _SETTING.search(given):
        kind_of(given)
        return given
    return f"sqlite:///{given}"


def _problem(url: str) -> str:
    scheme, slashes, _ = url.partition("://")
    if slashes and _SCHEME.fullmatch(scheme):
        return f"the URL's scheme {scheme}:// is not one Holdfast knows"
    if _SETTING.search(url):
        return "this is not a URL but the settings of a connection (host=… dbname=…)"
    half = url.partition(":")[0]
    if half in KINDS:
        return f"the URL's scheme is not complete: it begins with {half}://"
    return "the URL has no scheme in front"
