"""Rows of a table by index.

Lives here: embedding_lookup.  Not here: gather itself (ops/array/).
"""

from __future__ import annotations

from typing import Any

from .. import dispatch
from ..array import concat, gather
from ..math import maximum, reduce_sum, rsqrt, square


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None, name: str | None = None) -> Any:
    """The rows of `params` at `ids`: ids' shape followed by a row's. Gradients by `params` are sparse rows.

    params: a table [rows, ...], or a list of tables that follow each other. max_norm: rows longer than this are
    shrunk to it.
    raises ValueError for an empty list
    """
    if isinstance(params, (list, tuple)):
        if not params:
            raise ValueError("params must be specified: embedding_lookup got an empty list")
        params = params[0] if len(params) == 1 else concat([dispatch.to_tensor(p) for p in params], 0)
    ids = dispatch.to_tensor(ids)
    rows = gather(params, ids, name=name)
    if max_norm is None:
        return rows
    axes = None if rows.shape.rank is None or ids.shape.rank is None else tuple(range(ids.shape.rank, rows.shape.rank))
    if axes is None:
        raise ValueError(f"embedding_lookup: max_norm needs the ranks of params and ids; found {params}, {ids}")
    squares = reduce_sum(square(rows), axis=axes, keepdims=True) if axes else square(rows)
    limit = float(max_norm)
    return rows * (limit * rsqrt(maximum(squares, limit * limit)))
