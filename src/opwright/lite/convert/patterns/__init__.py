"""Patterns of users: operators in a certain shape become one fused operator of theirs in the file.

    pattern     `pattern`, `Pattern`: a Python function whose trace is looked for, checked where it is defined
    refusing    what could never be found, or be right
    capturing   which constants and attributes of the trace are given to the fused operator
    applying    finding them in the graphs that are converted, and the account of it

Not here: matching graphs (graph/matching.py), functions that stand for an operator by themselves (convert/fused.py),
the check of a fused operator against the unfused form (testing/patterns.py).
"""
