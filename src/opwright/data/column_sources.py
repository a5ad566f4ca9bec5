"""Datasets of stores of columns and of other engines' collections: Arrow, Parquet, Dask, Ray.

Lives here: `from_arrow`, `from_dask`, `from_ray`, the types of their elements.
Not here: the public constructors (constructors.py), writing (distribute/sinks.py).

All read a block of rows at a time, and yield each row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.dtypes import of_numpy
from ..core.errors import DataLossError, InvalidArgumentError, UnimplementedError
from ..core.extras import optional_module
from ..core.specs import TensorSpec
from .dataset import Dataset

BLOCK_ROWS = 1024
"""Rows that are read at once."""


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def from_arrow(source: Any, columns: Any = None, format: str | None = None) -> Dataset:
    """Return a dataset of the rows of tables or files."""
    optional_module("pyarrow")
    datasets = optional_module("pyarrow.dataset")
    opened = datasets.dataset(_paths(source), format=format or _format_of(source))
    names = list(opened.schema.names if columns is None else columns)
    missing = sorted(set(names) - set(opened.schema.names))
    if missing:
        raise InvalidArgumentError(
            op="Dataset.from_arrow", what="there are no such columns", found=missing, wanted=opened.schema.names
        )
    specs = {name: _spec_of(opened.schema.field(name)) for name in names}

    def rows() -> Iterator[dict[str, Any]]:
        for batch in opened.to_batches(columns=names, batch_size=BLOCK_ROWS):
            blocks = [_block_of(name, batch.column(i), specs[name]) for i, name in enumerate(names)]
            for values in zip(*blocks):
                yield dict(zip(names, values))

    return Dataset.from_generator(rows, output_signature=specs)


def _paths(source: Any) -> Any:
    if isinstance(source, list | tuple):
        return [_paths(item) for item in source]
    return os.fspath(source) if isinstance(source, str | os.PathLike) else source


def _format_of(source: Any) -> str | None:
    """Return the format of files by the suffix of the first; None for tables."""
    first = source[0] if isinstance(source, list | tuple) and source else source
    if not isinstance(first, str | os.PathLike):
        return None
    path = os.fspath(first)
    if os.path.isdir(path):
        path = next((name for name in sorted(os.listdir(path)) if name[0] not in "._"), "")
    return "feather" if path.endswith((".arrow", ".feather", ".ipc")) else "parquet"


def _spec_of(field: Any) -> TensorSpec:
    """Return the type of a column's elements. Raises UnimplementedError if it has no tensors."""
    arrow = optional_module("pyarrow")
    kind, shape = field.type, []
    if isinstance(kind, arrow.FixedShapeTensorType):
        kind, shape = kind.value_type, list(kind.shape)
    elif arrow.types.is_fixed_size_list(kind):
        kind, shape = kind.value_type, [kind.list_size]
    elif arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
        kind, shape = kind.value_type, [None]
    if any(test(kind) for test in _tests_of_strings(arrow)):
        return TensorSpec(shape, "string")
    if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind) or arrow.types.is_boolean(kind)):
        raise UnimplementedError(
            op="Dataset.from_arrow",
            what=f"column {field.name!r} has no type of tensors",
            found=str(field.type),
            do="columns=[...] without it",
        )
    return TensorSpec(shape, of_numpy(np.dtype(kind.to_pandas_dtype())))


def _tests_of_strings(arrow: Any) -> tuple[Any, ...]:
    types = arrow.types
    return types.is_string, types.is_large_string, types.is_binary, types.is_large_binary


def _block_of(name: str, column: Any, spec: TensorSpec) -> Any:
    """Return the elements of a column's block: an array of rows, or a list for strings and vectors of any length."""
    rank = spec.shape.rank
    if column.null_count and (rank or not spec.dtype.is_floating):
        raise DataLossError(op="Dataset.from_arrow", what=f"column {name!r} has nulls, which {spec} cannot express")
    if spec.dtype.name == "string" or (rank == 1 and spec.shape[0] is None):
        dtype = object if spec.dtype.name == "string" else spec.dtype.np
        return [_bytes_of(value) if dtype is object else np.array(value, dtype) for value in column.to_pylist()]
    if not rank:
        return column.to_numpy(zero_copy_only=False).astype(spec.dtype.np, copy=False)
    storage = column.storage if hasattr(column, "storage") else column
    flat = storage.flatten().to_numpy(zero_copy_only=False)
    return flat.astype(spec.dtype.np, copy=False).reshape(len(column), *spec.shape.as_list())


def _bytes_of(value: Any) -> Any:
    if isinstance(value, list):
        return np.array([_bytes_of(item) for item in value], object)
    return value.encode() if isinstance(value, str) else value


# ---- Dask ------------------------------------------------------------------------------------------------------------


def from_dask(collection: Any, output_signature: Any = None) -> Dataset:
    """Return a dataset of the elements of an array, a data frame or a bag."""
    kind = type(collection).__name__
    if not hasattr(collection, "__dask_graph__") or kind not in _DASK:
        raise TypeError(f"Dataset.from_dask takes a dask.array, a dask.dataframe or a dask.bag, found {kind}")
    return _DASK[kind](collection, output_signature)


def _from_dask_array(array: Any, output_signature: Any) -> Dataset:
    if not array.ndim:
        raise TypeError("Dataset.from_dask takes arrays with rows, found a scalar")
    whole_rows = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    sizes = [None if np.isnan(size) else int(size) for size in array.shape[1:]]
    spec = output_signature or TensorSpec(sizes, of_numpy(array.dtype))

    def rows() -> Iterator[np.ndarray]:
        for i in range(whole_rows.numblocks[0]):
            yield from np.asarray(whole_rows.blocks[i].compute())

    return Dataset.from_generator(rows, output_signature=spec)


def _from_dask_frame(frame: Any, output_signature: Any) -> Dataset:
    spec = output_signature or {str(name): _spec_of_series(str(name), dtype) for name, dtype in frame.dtypes.items()}

    def rows() -> Iterator[dict[str, Any]]:
        for i in range(frame.npartitions):
            part = frame.partitions[i].compute()
            blocks = [_column_of(part[name], spec[str(name)]) for name in frame.columns]
            for values in zip(*blocks):
                yield dict(zip(spec, values))

    return Dataset.from_generator(rows, output_signature=spec)


def _spec_of_series(name: str, dtype: Any) -> TensorSpec:
    if getattr(dtype, "kind", "O") in "biuf":
        return TensorSpec([], of_numpy(np.dtype(str(dtype).lower())))
    if str(dtype) in ("object", "str") or str(dtype).startswith("string"):
        return TensorSpec([], "string")
    raise UnimplementedError(
        op="Dataset.from_dask", what=f"column {name!r} has no type of tensors", found=str(dtype), do="select others"
    )


def _column_of(series: Any, spec: TensorSpec) -> Any:
    return [_bytes_of(value) for value in series] if spec.dtype.name == "string" else series.to_numpy(spec.dtype.np)


def _from_dask_bag(bag: Any, output_signature: Any) -> Dataset:
    if output_signature is None:
        raise TypeError("Dataset.from_dask needs output_signature for the elements of a dask.bag")

    def elements() -> Iterator[Any]:
        for part in bag.to_delayed():
            yield from part.compute()

    return Dataset.from_generator(elements, output_signature=output_signature)


_DASK = {"Array": _from_dask_array, "DataFrame": _from_dask_frame, "Bag": _from_dask_bag}


# ---- Ray -------------------------------------------------------------------------------------------------------------


def from_ray(dataset: Any) -> Dataset:
    """Return a dataset of the rows of a `ray.data.Dataset`."""
    first = next(iter(dataset.iter_batches(batch_size=1, batch_format="numpy")), None)
    if first is None:
        raise ValueError("Dataset.from_ray: the dataset is empty, and so has no types")
    specs = {name: _spec_of_rows(array) for name, array in first.items()}

    def rows() -> Iterator[dict[str, Any]]:
        for batch in dataset.iter_batches(batch_size=BLOCK_ROWS, batch_format="numpy"):
            for values in zip(*batch.values()):
                yield {name: _element_of(value, specs[name]) for name, value in zip(batch, values)}

    return Dataset.from_generator(rows, output_signature=specs)


def _spec_of_rows(array: np.ndarray) -> TensorSpec:
    if array.dtype.kind in "OSU":
        first = array[0]
        if isinstance(first, np.ndarray):  # rows of different lengths
            return TensorSpec([None] * first.ndim, of_numpy(first.dtype))
        return TensorSpec(array.shape[1:], "string")
    return TensorSpec(array.shape[1:], of_numpy(array.dtype))


def _element_of(value: Any, spec: TensorSpec) -> Any:
    return _bytes_of(value) if spec.dtype.name == "string" and not isinstance(value, Mapping) else value
