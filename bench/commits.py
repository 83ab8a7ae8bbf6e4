"""Yardstick: commits per second of the bare database, one row each: SQLite with synchronous=FULL, or PostgreSQL."""

from __future__ import annotations

from bench.figures import Figure
from bench.setting import Setting

FULL = {"commits": 2_000}
QUICK = {"commits": 200}


def run(setting: Setting) -> list[Figure]:
    count = setting["commits"]
    return [Figure(name="commits", figure=count / setting.commit_seconds(count), unit="commits/s")]
