"""`map_fn` over the rows of ragged and sparse tensors, and with results that are ragged or sparse.

Lives here: the loop, which runs eagerly.  Not here: tensors of one shape (higher_order.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import dtypes, nest
from ...core.errors import UnimplementedError
from ...ops import array, dispatch, math
from ...ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from ...ops.ragged.shapes import stack
from ...ops.sparse import functions as sparse_functions
from ...ops.sparse.sparse_tensor import SparseTensor, SparseTensorSpec


def has_composites(elems: Any, signature: Any) -> bool:
    """Return whether elements or declared results are ragged or sparse."""
    return any(isinstance(x, (RaggedTensor, SparseTensor)) for x in nest.flatten(elems)) or any(
        isinstance(s, (RaggedTensorSpec, SparseTensorSpec)) for s in nest.flatten(signature)
    )


def map_rows(fn: Callable[[Any], Any], elems: Any, signature: Any) -> Any:
    """Return the stacked results of `fn` for each row. signature: nested specs or dtypes of a result, or None.

    raises UnimplementedError while a function is traced, ValueError if first sizes differ
    """
    if dispatch.state.trace is not None:
        raise UnimplementedError(
            op="map_fn",
            what="rows of ragged and sparse tensors are mapped eagerly, not while a function is traced",
            do="RaggedTensor.to_tensor(), ow.ragged.map_flat_values, or Dataset.from_tensor_slices(...).map",
        )
    leaves = [x if isinstance(x, (RaggedTensor, SparseTensor)) else dispatch.to_tensor(x) for x in nest.flatten(elems)]
    counts = {int(_count(x)) for x in leaves}
    if len(counts) != 1:
        raise ValueError(f"map_fn: elems have different first sizes, {sorted(counts)}")
    results = [fn(nest.pack_sequence_as(elems, [_row(x, i) for x in leaves])) for i in range(counts.pop())]
    if not results:
        if signature is None:
            raise ValueError("map_fn: there are no elements, and no fn_output_signature")
        return nest.map_structure(_empty, signature)
    columns = zip(*(nest.flatten(r) for r in results))
    specs = [None] * len(nest.flatten(results[0])) if signature is None else nest.flatten(signature)
    ragged_rows = any(isinstance(x, RaggedTensor) for x in leaves)
    stacked = [_stacked(column, spec, ragged_rows) for column, spec in zip(columns, specs, strict=True)]
    return nest.pack_sequence_as(results[0], stacked)


def _count(x: Any) -> Any:
    if isinstance(x, RaggedTensor):
        return x.nrows()
    return x.dense_shape[0] if isinstance(x, SparseTensor) else array.shape(x)[0]


def _row(x: Any, i: int) -> Any:
    if not isinstance(x, SparseTensor):
        return x[i]
    chosen = sparse_functions.retain(x, math.equal(x.indices[:, 0], array.cast(i, dtypes.int64)))
    return SparseTensor.of(chosen.indices[:, 1:], chosen.values, x.dense_shape[1:])


def _stacked(parts: Sequence[Any], spec: Any, ragged_rows: bool) -> Any:
    """Return one part of all results, stacked. ragged_rows: whether results without a spec may differ in size."""
    if isinstance(parts[0], SparseTensor):
        return sparse_functions.concat(0, [sparse_functions.expand_dims(p, 0) for p in parts], True)
    tensors = [p if isinstance(p, RaggedTensor) else dispatch.to_tensor(p) for p in parts]
    rows = ragged_rows and spec is None and tensors[0].shape.rank != 0
    if rows or isinstance(spec, RaggedTensorSpec) or any(isinstance(t, RaggedTensor) for t in tensors):
        return stack(tensors, 0)
    return array.stack(tensors)


def _empty(spec: Any) -> Any:
    if isinstance(spec, RaggedTensorSpec):
        values = array.zeros([0, *(d or 0 for d in (spec.shape.dims or ())[spec.ragged_rank + 1 :])], spec.dtype)
        return RaggedTensor.from_nested_row_splits(values, [[0]] * (spec.ragged_rank + 1))
    shape = [0, *(d or 0 for d in getattr(spec, "shape", ()) or ())]
    dtype = dtypes.as_dtype(getattr(spec, "dtype", spec))
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor(array.zeros([0, len(shape)], dtypes.int64), array.zeros([0], dtype), shape)
    return array.zeros(shape, dtype)
