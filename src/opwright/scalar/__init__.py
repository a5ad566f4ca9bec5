"""Functions of one element, each defined once for all back ends.

Lives here: nothing but modules: numpy_namespace.py (what formulas are written over, on NumPy arrays), table.py (rows of
functions and what is known of them), fixed_point.py and those named after what is computed in fixed point.
Not here: operators (ops/, lite/ops/), machine code (compiler/).
"""
