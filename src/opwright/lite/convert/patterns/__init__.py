"""Users' patterns: subgraphs that become one fused operator in the file.

    pattern     `pattern`, `Pattern`: a Python function whose trace is matched; checked at its definition
    capture     the constants and attributes of a match that the fused operator receives
    fusion      matching in the graphs of a conversion, replacement, and the account of both

Not here: matching of graphs (graph/matcher.py), functions that implement an operator (custom_operators.py), comparison
of the fused with the unfused form (testing/cases.py).
"""
