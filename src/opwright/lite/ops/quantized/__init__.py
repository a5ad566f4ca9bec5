"""Integer kernels of the lite dialect: what operators compute on quantised tensors.

Lives here: nothing but modules: fixed_point.py and tables.py (arithmetic that all share), operand.py (what a rule sees
of a tensor), one module a family of rules.
Not here: the operators, which name their rules in the class body (`quantized = "images.average"`: module, function),
how a node gets its kernel (lite/quantized_registration.py).

A rule takes the call's attributes and an Operand for each declared input and output, and checks types and parameters.
It gives the kernel: a function of the raw integer arrays whose results, numbers within the output's range, are stored
in the output. What follows from parameters and constants is computed once, by the rule.
"""
