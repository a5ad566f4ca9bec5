"""Functions of one element, each written once, whoever computes it.

Lives here: nothing but modules: numpy_namespace.py (what formulas are written over, on NumPy arrays).
Not here: operators (ops/, lite/ops/), machine code (compiler/).
"""
