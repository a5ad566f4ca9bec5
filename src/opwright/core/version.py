"""The version of the package, equal to the one in pyproject.toml.

Lives here: the number.  Not here: versions of operators (ops/versions.py) and of files.
"""

__version__ = "0.2.0"
