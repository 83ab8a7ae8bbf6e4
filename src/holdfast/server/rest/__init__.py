"""The HTTP door: routing, bodies, problems, streams."""
