"""Benchmarks: what Holdfast costs, against the bare database and bare Python on the same machine in the same run.

    python -m bench [NAME ...] [--store sqlite|postgres] [--quick] [--list] [--json FILE] [--dir DIR]

One module per benchmark. Each has a docstring that says what is measured, `FULL` and `QUICK` parameters, and
`run(setting)`, which measures once and returns its figures, the most important one first. Everything else is done
around it: a fresh process, a fresh database and on PostgreSQL a fresh server for each repetition, medians, one JSON
line, the table at the end. `python -m bench.model` reckons how throughput grows with nodes, from what was measured.
"""
