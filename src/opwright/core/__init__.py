"""Fundamental types: dtypes, shapes, specs, nest, places, errors, flags.

Lives here: plain data types with their algebra.  Not here: operators and anything that depends on them.
"""
