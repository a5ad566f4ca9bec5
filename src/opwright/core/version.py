"""The package's version, for modules on every floor; pyproject.toml says the same.

Lives here: the number.  Not here: versions of operators (ops/versions.py) and of files.
"""

__version__ = "0.2.0"
