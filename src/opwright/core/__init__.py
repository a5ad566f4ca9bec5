"""Fundamental types: dtypes, shapes, specs, nest, places, errors, flags; the version of the package.

Lives here: plain data types with their algebra.  Not here: operators and anything that depends on them.
"""

__version__ = "0.2.0"
"""Equal to the version in pyproject.toml."""
