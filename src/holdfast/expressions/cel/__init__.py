"""The Common Expression Language, as filters need it: one variable, `input`, and an answer that is true or false.

A text becomes a tree (`holdfast.expressions.syntax`), the tree becomes closures (`compiler`), and the closures run
against a payload with a budget of steps. `analysis` and `explain` read the same tree.
"""
