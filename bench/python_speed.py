"""Yardstick: the speed of bare Python, a fixed loop of calls, attributes, dicts and strings."""

from __future__ import annotations

from bench.figures import Figure
from bench.meters import python_speed
from bench.setting import Setting

FULL = {"seconds": 1.0}
QUICK = {"seconds": 0.2}


def run(setting: Setting) -> list[Figure]:
    return [Figure(name="rounds", figure=python_speed(setting["seconds"]), unit="thousand rounds/s")]
