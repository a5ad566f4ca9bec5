"""Tensors from sizes and numbers; copies, types; random numbers.

Lives here: rules of ATen's factories and conversions. Not here: rearrangements (shapes.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....ops import array, linalg, math, random
from ...constants import FOLDING
from .table import AtenCall, aten, is_dynamic, shape_argument, sizes, tensor


def _filled(op: AtenCall, dims: Any, value: Any) -> Any:
    if not is_dynamic(dims) and not hasattr(value, "dtype"):
        FOLDING.reserve(*map(int, dims), itemsize=op.dtype.size or 8)
        return np.full([int(d) for d in dims], value, op.dtype.np)
    return array.fill(shape_argument(op, dims), tensor(value, op.dtype))


def _like(op: AtenCall, x: Any, value: Any) -> Any:
    dims = sizes(x)
    if None in dims:
        return array.fill(array.shape(x), tensor(value, op.dtype))
    return _filled(op, dims, value)


@aten("full", "new_full")
def full(op: AtenCall, *args: Any, **options: Any) -> Any:
    dims, value = args[-2:]  # new_full has a tensor first, for its type
    return _filled(op, dims, value)


@aten("zeros", "empty.memory_format", "empty_strided")
def zeros(op: AtenCall, dims: Any, *rest: Any, **options: Any) -> Any:
    return _filled(op, dims, 0)


@aten("ones")
def ones(op: AtenCall, dims: Any, **options: Any) -> Any:
    return _filled(op, dims, 1)


@aten("new_zeros", "new_empty", "new_empty_strided")
def new_zeros(op: AtenCall, x: Any, dims: Any, *rest: Any, **options: Any) -> Any:
    return _filled(op, dims, 0)


@aten("new_ones")
def new_ones(op: AtenCall, x: Any, dims: Any, **options: Any) -> Any:
    return _filled(op, dims, 1)


@aten("zeros_like", "empty_like")
def zeros_like(op: AtenCall, x: Any, **options: Any) -> Any:
    return _like(op, x, 0)


@aten("ones_like")
def ones_like(op: AtenCall, x: Any, **options: Any) -> Any:
    return _like(op, x, 1)


@aten("full_like", "fill")
def full_like(op: AtenCall, x: Any, value: Any, **options: Any) -> Any:
    return _like(op, x, value)


@aten("scalar_tensor")
def scalar_tensor(op: AtenCall, value: Any, **options: Any) -> Any:
    return tensor(value, op.dtype)


@aten("arange")
def arange(op: AtenCall, *args: Any, **options: Any) -> Any:
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    if not is_dynamic((start, end, step)):
        count = max(int(np.ceil((end - start) / step)), 0)
        FOLDING.reserve(count)
        return (start + np.arange(count) * step).astype(op.dtype.np)
    return array.range(*(tensor(v, op.dtype) for v in (start, end, step)))


@aten("linspace")
def linspace(op: AtenCall, start: Any, end: Any, steps: int, **options: Any) -> Any:
    if hasattr(start, "shape") or hasattr(end, "shape"):
        start, end = tensor(start, op.dtype), tensor(end, op.dtype)
        weights = np.linspace(0.0, 1.0, steps).astype(op.dtype.np)
        return start * (tensor(1, op.dtype) - weights) + end * weights
    if op.dtype.is_integer:
        return np.trunc(np.linspace(float(start), float(end), steps)).astype(op.dtype.np)
    return np.linspace(start, end, steps, dtype=op.dtype.np)


@aten("logspace")
def logspace(op: AtenCall, start: float, end: float, steps: int, base: float = 10.0, **options: Any) -> Any:
    if hasattr(start, "shape") or hasattr(end, "shape"):
        exponents = array.cast(tensor(start), op.dtype) * (1 - np.linspace(0.0, 1.0, steps).astype(op.dtype.np))
        exponents = exponents + array.cast(tensor(end), op.dtype) * np.linspace(0.0, 1.0, steps).astype(op.dtype.np)
        return math.pow(tensor(base, op.dtype), exponents)
    return np.logspace(start, end, steps, base=base).astype(op.dtype.np)


@aten("eye")
def eye(op: AtenCall, n: int, m: int | None = None, **options: Any) -> Any:
    FOLDING.reserve(n, n if m is None else m, itemsize=op.dtype.size or 8)
    return np.eye(n, n if m is None else m, dtype=op.dtype.np)


@aten("tril_indices")
def tril_indices(op: AtenCall, row: int, col: int, offset: int = 0, **options: Any) -> Any:
    return np.stack(np.tril_indices(row, offset, col)).astype(op.dtype.np)


@aten("triu_indices")
def triu_indices(op: AtenCall, row: int, col: int, offset: int = 0, **options: Any) -> Any:
    return np.stack(np.triu_indices(row, offset, col)).astype(op.dtype.np)


@aten("tril")
def tril(op: AtenCall, x: Any, diagonal: int = 0) -> Any:
    return _masked(op, tensor(x), lambda rows, columns: columns <= rows + diagonal)


@aten("triu")
def triu(op: AtenCall, x: Any, diagonal: int = 0) -> Any:
    return _masked(op, tensor(x), lambda rows, columns: columns >= rows + diagonal)


def _masked(op: AtenCall, x: Any, inside: Any) -> Any:
    rows, columns = sizes(x)[-2:]
    if rows is not None and columns is not None:
        mask: Any = inside(np.arange(rows)[:, None], np.arange(columns)[None])
    else:
        shape = array.shape(x)
        mask = inside(array.range(shape[-2])[:, None], array.range(shape[-1])[None])
    return array.where(mask, x, tensor(0, op.dtype))


# ---- copies and types -------------------------------------------------------------------------------------------


@aten(
    "clone", "contiguous", "detach", "detach_", "alias", "lift_fresh", "lift_fresh_copy", "resolve_conj", "resolve_neg"
)
def same(op: AtenCall, x: Any, **options: Any) -> Any:
    return tensor(x, op.dtype)


@aten("_to_copy", "to", "type_as", "_assert_tensor_metadata")
def to_copy(op: AtenCall, x: Any, *rest: Any, **options: Any) -> Any:
    x = tensor(x)
    return x if x.dtype is op.dtype else array.cast(x, op.dtype)


@aten("view.dtype")
def view_dtype(op: AtenCall, x: Any, dtype: Any) -> Any:
    """Return the same bytes as numbers of another type; the last dimension grows or shrinks with their size."""
    x = tensor(x)
    wide, narrow = x.dtype.size, op.dtype.size
    if wide > narrow:
        return array.reshape(array.bitcast(x, op.dtype), shape_argument(op, op.shape))
    if wide < narrow:
        x = array.reshape(x, [*shape_argument(op, op.shape)[:-1], op.shape[-1], narrow // wide])
    return array.bitcast(x, op.dtype)


@aten("copy")
def copy(op: AtenCall, x: Any, source: Any, non_blocking: bool = False) -> Any:
    source = tensor(source, op.dtype)
    return source if sizes(source) == list(op.shape) else array.broadcast_to(source, shape_argument(op, op.shape))


@aten("sym_size")
def sym_size(op: AtenCall, x: Any, dim: int) -> Any:
    size = x.shape[dim]
    return int(size) if size is not None else array.cast(array.shape(x)[dim], int64)


@aten("sym_numel")
def sym_numel(op: AtenCall, x: Any) -> Any:
    dims = sizes(x)
    known = [d for d in dims if d is not None]
    return int(np.prod(known)) if len(known) == len(dims) else array.cast(array.size(x), op.dtype)


@aten("item", "_local_scalar_dense")
def item(op: AtenCall, x: Any) -> Any:
    return tensor(x)


@aten(
    "_assert_scalar",
    "_assert_async.msg",
    "_assert_async",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "_functional_assert_async.msg",
    pure=False,
)
def assertion(op: AtenCall, *args: Any, **options: Any) -> Any:
    return None  # torch.export has checked it where it is static; sizes are checked by the operators


# ---- random numbers ---------------------------------------------------------------------------------------------


@aten("rand", pure=False)
def rand(op: AtenCall, dims: Any, **options: Any) -> Any:
    return random.uniform(shape_argument(op, dims), dtype=op.dtype)


@aten("randn", pure=False)
def randn(op: AtenCall, dims: Any, **options: Any) -> Any:
    return random.normal(shape_argument(op, dims), dtype=op.dtype)


@aten("rand_like", pure=False)
def rand_like(op: AtenCall, x: Any, **options: Any) -> Any:
    return random.uniform(array.shape(x), dtype=op.dtype)


@aten("randn_like", pure=False)
def randn_like(op: AtenCall, x: Any, **options: Any) -> Any:
    return random.normal(array.shape(x), dtype=op.dtype)


@aten("bernoulli", pure=False)
def bernoulli(op: AtenCall, x: Any, p: float | None = None, **options: Any) -> Any:
    x = tensor(x)
    return array.cast(random.uniform(array.shape(x)) < (x if p is None else tensor(p)), op.dtype)


@aten("cross", "linalg_cross")
def cross(op: AtenCall, x: Any, y: Any, dim: int = -1) -> Any:
    x, y = (array.broadcast_to(tensor(v), shape_argument(op, op.shape)) for v in (x, y))
    last = (len(x.shape) - 1, -1)
    if dim in last:
        return linalg.cross(x, y)
    order = [i for i in range(len(x.shape)) if i != dim % len(x.shape)] + [dim % len(x.shape)]
    z = linalg.cross(array.transpose(x, order), array.transpose(y, order))
    return array.transpose(z, np.argsort(order).tolist())
