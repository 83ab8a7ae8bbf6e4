"""Which store a database URL names, and what is refused without showing it."""

from __future__ import annotations

import pytest

from holdfast import Engine
from holdfast.errors import InvalidDatabaseUrl
from holdfast.store.urls import kind_of, url_of

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("sqlite://", "sqlite"),
        ("sqlite:////srv/a@b/host=h.db", "sqlite"),
        ("postgresql://u:p@h/d", "postgresql"),
        ("postgres:///d", "postgresql"),
    ],
)
def test_the_scheme_says_which_store(url, kind):
    """The rest is for that store to read."""
    assert kind == kind_of(url)


@pytest.mark.parametrize("path", ["app.db", "/srv/flows/app.db", "C:\\flows\\app.db", "/data/user=me/app.db"])
def test_a_path_is_a_file(path):
    """Where a person names a database; a drive is not a scheme."""
    assert f"sqlite:///{path}" == url_of(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"host=h user=u password={SECRET} dbname=d", "settings of a connection"),
        (f"dbname = d password = {SECRET}", "settings of a connection"),
        (f"user=u password={SECRET}", "settings of a connection"),
        (f"Server=h;User Id=u;Password={SECRET};Database=d", "settings of a connection"),
        (f"u:{SECRET}@h:5432/d", "no scheme"),
        (f"{SECRET}@h/d", "no scheme"),
        (f" postgresql://u:{SECRET}@h/d", "no scheme"),
        ("'postgresql://h/d'", "no scheme"),
        (f"postgresql:/u:{SECRET}@h/d", "begins with postgresql://"),
        ("sqlite:app.db", "begins with sqlite://"),
        (f"mysql://u:{SECRET}@h/d", "scheme mysql://"),
        (f"psql://u:{SECRET}@h/d", "scheme psql://"),
        (f"postgresql+asyncpg://u:{SECRET}@h/d", r"scheme postgresql\+asyncpg://"),
        (f"jdbc:postgresql://h/d?user=u&password={SECRET}", "no scheme"),
    ],
)
def test_what_names_no_store_is_refused_and_not_shown(text, says):
    """A file of that name would be made instead, with a password in its name; the message says what to write."""
    for read in (kind_of, url_of, Engine):
        with pytest.raises(InvalidDatabaseUrl, match=rf"{says}.*write sqlite:///.* or postgresql://user") as refused:
            read(text)
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("url", [f"sqlite://u:{SECRET}@h/d", f"sqlite:///app.db?key={SECRET}", "sqlite://[/d"])
def test_a_file_has_neither_host_nor_options(url):
    """What stands there is not shown."""
    with pytest.raises(InvalidDatabaseUrl, match="names a file, neither a host nor options") as refused:
        Engine(url)

    assert SECRET not in str(refused.value)
