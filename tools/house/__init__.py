"""How the code is built, in numbers: `python -m tools.house`, or `make house`.

Sizes are only printed: features add lines. The ratios are held by limits in tools/house.toml, because each of them says
that something is written more than once or is tied to too much:

- near-copies of records, and lines that only carry fields from one record to another (`records`, `copying`);
- runs of lines that stand in two places (`repeats`);
- modules that import each other in a circle (`knots`), and file names that say too little (`sizes`);
- how many files a plain operation or a plain table takes (`touched`);
- how long functions are (`sizes`).
"""
