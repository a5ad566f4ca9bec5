"""Computations of builtin operators that are functions of the table (scalar/table.py), by the operator's name.

Lives here: `SAME`, `computation`.  Not here: operators whose official arithmetic is another, which say theirs.
"""

from __future__ import annotations

from typing import Any

from ...scalar.table import OF_BUILTIN

SAME = "the function of the table"


def computation(name: str, compute: Any) -> Any:
    """Return what an operator computes with: `compute`, for SAME the function that bears the operator's name."""
    if compute is not SAME:
        return compute
    row = OF_BUILTIN[name]
    return row.ufunc or row.of_arrays
