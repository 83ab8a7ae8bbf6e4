"""Yardstick: commits per second of bare SQLite (WAL, synchronous=FULL), one row each."""

from __future__ import annotations

from bench.figures import Figure
from bench.meters import commit_seconds
from bench.setting import Setting

FULL = {"commits": 2_000}
QUICK = {"commits": 200}


def run(setting: Setting) -> list[Figure]:
    count = setting["commits"]
    return [Figure(name="commits", figure=count / commit_seconds(setting.path(), count), unit="commits/s")]
