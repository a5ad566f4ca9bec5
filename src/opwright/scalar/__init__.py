"""Functions of one element, each defined once for all back ends.

    table.py               the table of functions: formula, vector code, NumPy and C implementations, error bounds
    formulas.py            formulas over an array namespace; constants of activations
    namespace.py           types of array namespaces; numpy_namespace.py, the one of NumPy arrays
    numerics/              vector code of float32 functions
    arrays.py              NumPy implementations of functions that have no ufunc
    fixed_point.py         fixed-point arithmetic, quantization of real numbers; fixed_point_layers.py, of whole layers
    counter_generators.py  counter-based random number generators

Not here: operators (ops/, lite/ops/), machine code (compiler/).
"""
