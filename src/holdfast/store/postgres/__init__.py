"""The PostgreSQL store. Its driver is an extra of the package: without it, nothing in here can be imported."""

try:
    import asyncpg as asyncpg
except ModuleNotFoundError as error:
    if error.name != "asyncpg":
        raise
    from holdfast.errors import DriverMissing

    raise DriverMissing(
        "a PostgreSQL database needs the driver asyncpg, which is not installed: pip install 'holdfast[postgres]'"
    ) from error
