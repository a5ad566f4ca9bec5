"""Words everyone speaks: dtypes, shapes, specs, nest, places, errors, flags.

Lives here: plain data types with their algebra.  Not here: anything that knows what an operator is.
"""
