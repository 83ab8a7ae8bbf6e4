"""Reads a database URL: `postgresql://user:password@host:port/database?option=value`.

What the driver would drop without a word, take for something else or fail on is refused here, naming the part. A
password never gets into a message: only the parts that can't hold one are shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from holdfast.errors import InvalidDatabaseUrl
from holdfast.store.urls import kind_of

_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_CHOICES: Final = {
    "notify": ("on", "off"),
    "sslmode": _SSL_MODES,
    "sslnegotiation": ("postgres", "direct"),
    "target_session_attrs": ("any", "primary", "read-write"),
    "gsslib": ("gssapi", "sspi"),
    "ssl_min_protocol_version": ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
    "ssl_max_protocol_version": ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
}
_FILES: Final = ("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl")
# Said in the query because they do not fit in front of it: the folder of a socket, for instance.
_PARTS: Final = ("host", "port", "user", "password", "dbname", "database")
_OTHERS: Final = ("sslpassword", "krbsrvname", "application_name", "search_path", "options")
_KNOWN: Final = frozenset({*_CHOICES, *_FILES, *_PARTS, *_OTHERS})
# What people write for other drivers and tools, and what to write here.
_INSTEAD: Final = {
    "connect_timeout": "set StoreConfig.connect_timeout_s",
    "command_timeout": "set StoreConfig.statement_timeout_s",
    "statement_timeout": "set StoreConfig.statement_timeout_s",
    "statement_cache_size": "behind a transaction pooler, write notify=off",
    "prepared_statement_cache_size": "behind a transaction pooler, write notify=off",
    "pgbouncer": "behind a transaction pooler, write notify=off",
    "ssl": "write sslmode=require or another mode",
    "schema": "write search_path=NAME",
    "currentSchema": "write search_path=NAME",
    "channel_binding": "the driver has no such option: leave it out",
    "gssencmode": "the driver has no such option: leave it out",
    "service": "write host, port and database into the URL",
    "pool_size": "set StoreConfig.readers",
}
# Of the options, those that a URL needs to lead to the same tables, and that are no secret of anybody's.
_SHOWN: Final = ("host", "port", "dbname", "database", "search_path", "sslmode", "notify")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_OPTION: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is. `name` is for messages, `shown_url` for commands that are suggested: neither says who
    connects, or with what password."""

    name: str
    shown_url: str
    dsn: str = field(repr=False)
    notify: bool = True
    application_name: str | None = "holdfast"
    target_session_attrs: str | None = None


def parse(url: str) -> Place:
    """Read a URL; what it does not say is taken from PGHOST, PGPORT, PGDATABASE and PGUSER, as the driver does."""
    scheme, netloc, path, query = _split(url)
    options = dict(_options(query))
    user, hosts = _authority(netloc)
    _check_said_once(user, hosts, path, options)
    database = _database(path, options)
    places = [_shown(host, port) for host, port in _hosts(hosts, options)]
    shown = ",".join(places) if places else os.environ.get("PGHOST") or "the local server"
    kept = {name: value for name, value in options.items() if name in _SHOWN}
    notify = options.pop("notify", "on") == "on"
    attributes = None
    if len(places) > 1 and options.get("target_session_attrs", "any") == "any":
        # Of several hosts the one that can be written: after a failover that is another one than before.
        attributes = "read-write"
    return Place(
        name=f"{shown}/{database}",
        shown_url=_url(scheme, hosts, path, kept),
        dsn=_url(scheme, netloc, path, options),
        notify=notify,
        application_name=None if "application_name" in options else "holdfast",
        target_session_attrs=attributes,
    )


def _split(url: str) -> tuple[str, str, str, str]:
    if kind_of(url) != "postgresql":
        raise InvalidDatabaseUrl("this URL is not one of PostgreSQL: it begins with postgresql://", field="url")
    scheme, _, rest = url.partition("://")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise InvalidDatabaseUrl("the URL has blanks or control characters: write a blank as %20", field="url")
    if "#" in rest:
        raise InvalidDatabaseUrl("the URL has a fragment (#): write a # in a password as %23", field="url")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidDatabaseUrl("the URL's host is not valid: write IPv6 as [::1]", field="host") from None
    if "@" in parts.path + parts.query:
        raise InvalidDatabaseUrl(
            "the URL has an @ behind its host: write a / in a password as %2F, a ? as %3F, and an @ as %40", field="url"
        )
    return scheme, parts.netloc, parts.path, parts.query


def _authority(netloc: str) -> tuple[str, str]:
    """User and hosts. The user is only looked at to see whether there is one, or a password."""
    if netloc.count("@") > 1:
        raise InvalidDatabaseUrl("the URL has more than one @: write an @ in a user or password as %40", field="url")
    user, found, hosts = netloc.rpartition("@")
    if found and user.count(":") > 1:
        raise InvalidDatabaseUrl("the URL's password has a colon: write it as %3A", field="password")
    for part in user.split(":", 1):
        _check_escapes(part, "user or password")
    return user, hosts


def _options(query: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        name = unquote(name)
        if not _OPTION.fullmatch(name):
            raise InvalidDatabaseUrl("the URL's query is not name=value&name=value", field="query")
        if name not in _KNOWN:
            instead = _INSTEAD.get(name, f"a setting of the server is written as options=-c%20{name}=VALUE")
            raise InvalidDatabaseUrl(f"the URL's option {name!r} is not known: {instead}", field=name)
        if name in seen:
            raise InvalidDatabaseUrl(f"the URL's option {name!r} is there twice", field=name)
        seen.add(name)
        _check_escapes(value, name)
        yield name, _checked(name, unquote(value.replace("+", " ")))


def _checked(name: str, value: str) -> str:
    if not value:
        raise InvalidDatabaseUrl(f"the URL's option {name!r} has no value", field=name)
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        reason = ": a standby can't be written" if name == "target_session_attrs" else ""
        raise InvalidDatabaseUrl(
            f"the URL's option {name!r} is one of {', '.join(choices)}, not {value!r}{reason}", field=name
        )
    if name in _FILES and not Path(value).is_file():
        raise InvalidDatabaseUrl(f"the URL's option {name!r} names {value}, which is not a file", field=name)
    return value


def _check_said_once(user: str, hosts: str, path: str, options: dict[str, str]) -> None:
    """The driver takes what stands in front of the query and drops the other."""
    said = {
        "user": bool(user.partition(":")[0]),
        "password": ":" in user,
        "host": bool(hosts),
        "port": bool(hosts),
        "dbname": bool(path.strip("/")) or "database" in options,
        "database": bool(path.strip("/")),
    }
    for name, twice in said.items():
        if twice and name in options:
            raise InvalidDatabaseUrl(
                f"the URL's option {name!r} would be ignored: say it in front of the query, or say all of it there",
                field=name,
            )


def _database(path: str, options: dict[str, str]) -> str:
    name = path.removeprefix("/")
    if "/" in name:
        raise InvalidDatabaseUrl("the URL's database has a slash: write it as %2F, in a password too", field="database")
    _check_escapes(name, "database")
    said = unquote(name) or options.get("dbname") or options.get("database") or os.environ.get("PGDATABASE")
    if not said:
        raise InvalidDatabaseUrl(
            "the URL names no database: write postgresql://user:password@host:port/database", field="database"
        )
    return said


def _hosts(hosts: str, options: dict[str, str]) -> list[tuple[str, str]]:
    """Every host with its port; an empty port is the default one."""
    if hosts:
        return [_host_and_port(host, escaped=True) for host in hosts.split(",")]
    found = [_host_and_port(host, escaped=False) for host in options["host"].split(",")] if "host" in options else []
    if "port" not in options:
        return found
    ports = options["port"].split(",")
    for port in ports:
        _check_port(port)
    if len(ports) != len(found):
        raise InvalidDatabaseUrl(f"the URL names {len(found)} hosts and {len(ports)} ports", field="port")
    if any(port for _, port in found):
        raise InvalidDatabaseUrl("the URL says its port twice: leave out the option 'port'", field="port")
    return [(host, port) for (host, _), port in zip(found, ports, strict=True)]


def _host_and_port(text: str, *, escaped: bool) -> tuple[str, str]:
    if text.startswith("/"):
        return text, ""
    bracketed, closing, rest = text.partition("]")
    if closing:
        host, port = f"{bracketed}]", rest.removeprefix(":")
        valid = text.startswith("[") and len(bracketed) > 1 and (not rest or rest.startswith(":"))
    else:
        host, _, port = text.partition(":")
        valid = ":" not in port
    if not valid or not host:
        raise InvalidDatabaseUrl("the URL's host is missing or not valid: write IPv6 as [::1]", field="host")
    if text.endswith(":") or port:
        _check_port(port)
    if escaped:
        _check_escapes(host, "host")
        host = unquote(host)
    try:
        host.encode("idna")
    except UnicodeError:
        raise InvalidDatabaseUrl("the URL's host is not a host name", field="host") from None
    return host, port


def _check_port(port: str) -> None:
    # Not shown: behind an unescaped slash in a password, this is the password's beginning.
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise InvalidDatabaseUrl(
            "the URL's port is not a number from 1 to 65535; a slash in a password is written as %2F", field="port"
        )


def _check_escapes(text: str, name: str) -> None:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise InvalidDatabaseUrl(f"the URL's {name} has a % that is no escape: write it as %25", field=name)
    try:
        clean = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidDatabaseUrl(f"the URL's {name} is not UTF-8", field=name) from None
    if "\0" in clean:
        raise InvalidDatabaseUrl(f"the URL's {name} has a NUL character", field=name)


def _url(scheme: str, authority: str, path: str, options: dict[str, str]) -> str:
    query = f"?{urlencode(options, safe='/,', quote_via=quote)}" if options else ""
    return f"{scheme}://{authority}{path}{query}"


def _shown(host: str, port: str) -> str:
    return f"{host}:{port or os.environ.get('PGPORT') or 5432}"
