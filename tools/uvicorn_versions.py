"""Runs the server's tests with the oldest uvicorn that pyproject.toml allows, and with the newest there is.

The server overrides parts of uvicorn that it does not promise to keep (`api/rest/protocol.py`). Each version goes into
a directory of its own that is removed afterwards; one that is installed here is not tried again. Where no package
registry can be reached this says so and passes, unless `HOLDFAST_TEST_VERSIONS=required`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = [f"tests/unit/api/rest/test_{name}.py" for name in ("protocol", "heads", "server", "streams")]


def oldest() -> str:
    """As `uvicorn>=0.50,<1` allows it."""
    server = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["server"]
    (bounds,) = (found for needed in server if (found := re.fullmatch(r"uvicorn>=([\d.]+),<[\d.]+", needed)))
    return f"uvicorn=={bounds[1]}"


def install(what: str, folder: str) -> str | None:
    """Its version; None where it can't be had."""
    installers = [["uv", "pip", "install"], ["pip", "install", "--disable-pip-version-check"]]
    for installer in installers:
        command = [sys.executable, "-m", *installer, "--quiet", "--no-deps", "--target", folder, what]
        if subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0:
            (found,) = metadata.distributions(name="uvicorn", path=[folder])
            return found.version
    return None


def tried(what: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        version = install(what, folder)
        if version is None:
            print(f"versions: {what} was left out: no package registry can be reached")
            return os.environ.get("HOLDFAST_TEST_VERSIONS") != "required"
        if version == metadata.version("uvicorn"):
            print(f"versions: uvicorn {version} is the one installed: nothing more to try")
            return True
        print(f"versions: the server's tests with uvicorn {version}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", *TESTS]
        return subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": folder}).returncode == 0


if __name__ == "__main__":
    sys.exit(0 if all([tried(oldest()), tried("uvicorn")]) else 1)
