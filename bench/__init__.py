"""Benchmarks: what Holdfast costs, measured against bare SQLite and bare Python on the same machine in the same run.

    python -m bench [NAME ...] [--quick] [--list] [--json FILE] [--dir DIR]

One module per benchmark. Each has a docstring that says what is measured, `FULL` and `QUICK` parameters, and
`run(setting)`, which measures once and returns its figures, the most important one first. Everything else is done
around it: a fresh process and a fresh database for each repetition, medians, one JSON line, the table at the end.
"""
