"""Expressions that users write as text: filters over published events.

This package owns reading, checking and evaluating them. It promises that no text, and no payload, makes it do more than
a bounded amount of work: everything is counted in steps, not in seconds, so that the same filter on the same payload
always gives the same verdict. It is pure: no clock, no chance, no I/O, and text from outside is never run as Python.

`lexer` and `syntax` know tokens, precedence and positions and serve any small language; `cel` is the one of filters.
"""

from holdfast.expressions.cel.analysis import Equality, equality_key, lookup
from holdfast.expressions.cel.explain import Explanation, Finding
from holdfast.expressions.cel.filters import Filter, Verdict, compile_filter

__all__ = [
    "Equality",
    "Explanation",
    "Filter",
    "Finding",
    "Verdict",
    "compile_filter",
    "equality_key",
    "lookup",
]
