"""Dataset's constructors: static methods that create a dataset or combine several.

Lives here: the public signatures, files matched by patterns.  Not here: the classes (sources.py, combination.py,
files.py).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype
from ..core.errors import InvalidArgumentError
from ..core.lazy_imports import import_module
from ..core.specs import TensorSpec
from ..ops import dispatch
from .base import DatasetBase, dataset_classes, int_operand
from .structure import check_spec_structure, flatten, is_scalar_int64, is_structure, map_leaves

if TYPE_CHECKING:
    from .dataset import Dataset


class DatasetConstructors(DatasetBase):
    """Static constructors of Dataset."""

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Return a dataset of one element: the nested tensors."""
        return dataset_classes.TensorDataset(tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Return a dataset with an element per row of the nested tensors; a list is one tensor.

        raises ValueError for scalars and for first dimensions that differ
        """
        return dataset_classes.TensorSliceDataset(tensors)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Return a dataset of the values yielded by a Python function, which every iteration calls again.

        output_signature: nested TensorSpecs of an element; or the older output_types (nested dtypes) and output_shapes.
        args: tensors passed to the function as arrays.
        raises TypeError unless the function is callable and exactly one kind of types is specified
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        if output_types is None and output_signature is None:
            raise TypeError(
                "To specify the output signature you need to provide either the `output_signature` "
                "argument or the `output_types` argument."
            )
        if output_signature is not None:
            if output_types is not None:
                raise TypeError(
                    "The `output_types` argument can not be used together with the `output_signature` argument."
                )
            if output_shapes is not None:
                raise TypeError(
                    "The `output_shapes` argument can not be used together with the `output_signature` argument."
                )
            spec = check_spec_structure(output_signature, "output_signature")
        else:
            types = map_leaves(as_dtype, _tuples(output_types))
            if output_shapes is None:
                spec = map_leaves(lambda d: TensorSpec(None, d), types)
            else:
                spec = _with_shapes(types, output_shapes)
        if args is not None and not isinstance(args, (list, tuple)):
            args = (args,)
        return dataset_classes.GeneratorDataset(generator, spec, args)

    @staticmethod
    def from_arrow(source: Any, columns: Any = None, name: str | None = None) -> Dataset:
        """Return a dataset of the rows of Arrow tables or files, as dicts of tensors by column.

        source: a `pyarrow.Table`, a path, a folder or a list of paths; files are Parquet or Arrow (Feather) by suffix.
        columns: names, all by default. Numbers, booleans, strings and bytes are scalars; lists of numbers are vectors,
        fixed-shape tensors have their shape. A null is NaN in a column of floats, and an error elsewhere.
        raises FailedPreconditionError without pyarrow, UnimplementedError for a column of another type
        """
        dataset: Dataset = column_sources().from_arrow(source, columns)
        return dataset

    @staticmethod
    def from_parquet(filenames: Any, columns: Any = None, name: str | None = None) -> Dataset:
        """Return a dataset of the rows of Parquet files, as `from_arrow` does.

        filenames: a path, a folder or a list of paths
        """
        dataset: Dataset = column_sources().from_arrow(filenames, columns, "parquet")
        return dataset

    @staticmethod
    def load(path: Any, element_spec: Any = None, compression: str | None = None, reader_func: Any = None) -> Dataset:
        """Return the dataset that `save` wrote to a folder.

        element_spec: what its elements must be. compression, reader_func: accepted
        raises NotFoundError for another folder, DataLossError for a damaged one, ValueError for other elements
        """
        dataset: Dataset = saved_elements()._SavedDataset(path, element_spec)
        return dataset

    @staticmethod
    def from_dask(collection: Any, output_signature: Any = None, name: str | None = None) -> Dataset:
        """Return a dataset of the elements of a Dask collection, computed one partition at a time.

        collection: a `dask.array` (its rows), a `dask.dataframe` (rows as dicts by column), or a `dask.bag`, whose
        element type output_signature states. Partitions run on the current Dask client.
        raises TypeError for another type, or for a bag without output_signature
        """
        dataset: Dataset = column_sources().from_dask(collection, output_signature)
        return dataset

    @staticmethod
    def from_ray(dataset: Any, name: str | None = None) -> Dataset:
        """Return a dataset of the rows of a `ray.data.Dataset`, as dicts of tensors by column, read as it streams.

        raises ValueError for an empty dataset
        """
        rows: Dataset = column_sources().from_ray(dataset)
        return rows

    @staticmethod
    def range(*args: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Return a dataset of numbers as in Python's range: (stop), (start, stop) or (start, stop, step).

        raises InvalidArgumentError for a step of 0
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Dataset.range takes 1 to 3 numbers, found {len(args)}")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
        numbers = [int_operand(v, n) for v, n in zip((start, stop, step), ("start", "stop", "step"))]
        return dataset_classes.RangeDataset(*numbers, as_dtype(output_type))

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Return the infinite dataset start, start + step, ..."""
        counter_dtype: DType = as_dtype(dtype)
        return dataset_classes.CounterDataset(int_operand(start, "start"), int_operand(step, "step"), counter_dtype)

    @staticmethod
    def random(seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None) -> Dataset:
        """Return an infinite dataset of random int64 in [0, 2^32).

        rerandomize_each_iteration: whether every iteration draws different numbers.
        """
        return dataset_classes.RandomDataset(seed, rerandomize_each_iteration)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Return a dataset of tuples of elements of several datasets, up to the shortest; accepts nested datasets.

        raises TypeError for other values
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        nested = datasets if not args else args[0] if len(args) == 1 else args
        for leaf in flatten(nested):
            if not isinstance(leaf, DatasetBase):
                if isinstance(leaf, list):
                    raise TypeError(
                        "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                        "`tf.data.Dataset` objects. Python `list` is not supported and you should use "
                        "`tuple` instead."
                    )
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                    f"`tf.data.Dataset` objects but encountered object of type {type(leaf)}."
                )
        return dataset_classes.ZipDataset(nested)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None
    ) -> Dataset:
        """Return a dataset of files that match one or several glob patterns, shuffled unless `shuffle` is False.

        raises InvalidArgumentError if no file matches
        """
        if hasattr(file_pattern, "__fspath__"):
            patterns: list[Any] = [file_pattern]
        else:
            value = dispatch.to_tensor(file_pattern).constant
            if value is None:
                raise ValueError("the patterns of Dataset.list_files must be known while tracing")
            patterns = value.reshape(-1).tolist()
        names = np.array(matching_files(patterns), object)
        dataset = dataset_classes.TensorSliceDataset(names)
        return dataset if shuffle is False else dataset.shuffle(max(1, len(names)), seed=seed)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """Return a dataset of elements of the datasets selected by `choice_dataset` (scalar int64 indices).

        stop_on_empty_dataset: whether it ends when an exhausted dataset is chosen; otherwise that choice is skipped.
        raises TypeError or ValueError for choices of another type, no datasets, or elements that differ in type
        """
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        if not isinstance(choice_dataset, DatasetBase):
            raise TypeError(f"`choice_dataset` should be a `tf.data.Dataset`; found {choice_dataset!r}")
        choice_spec = choice_dataset.element_spec
        if not is_scalar_int64(choice_spec):
            raise TypeError(f"Elements of `choice_dataset` must be scalar `tf.int64` tensors; found {choice_spec!r}")
        return dataset_classes.DirectedInterleaveDataset(choice_dataset, datasets, stop_on_empty_dataset)

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset],
        weights: Any = None,
        seed: Any = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Return a dataset that samples from datasets by weights: a list, a tensor, or a dataset. Default: uniform.

        stop_on_empty_dataset: whether it ends when an exhausted dataset is drawn; otherwise it is no longer drawn.
        raises ValueError or TypeError for invalid weights
        """
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        if len(datasets) == 1:
            return datasets[0]
        if weights is None:
            weights = [1.0 / len(datasets)] * len(datasets)
        if not isinstance(weights, DatasetBase):
            value = dispatch.to_tensor(weights).constant
            if value is None:
                raise ValueError("the weights of Dataset.sample_from_datasets must be known while tracing")
            if value.shape != (len(datasets),):
                raise ValueError(
                    f"Invalid `weights`. The shape of `weights` should be compatible with "
                    f"`[len(datasets)]` but is {value.shape}."
                )
            if value.dtype.kind != "f":
                raise TypeError(
                    f"Invalid `weights`. `weights` type must be either `tf.float32` or `tf.float64` but is "
                    f"{dtypes.of_numpy(value.dtype)!r}."
                )
            weights = value
            if not stop_on_empty_dataset:  # datasets of weight 0 are never drawn
                datasets = [d for d, w in zip(datasets, value) if w > 0]
                weights = value[value > 0]
        choices = dataset_classes.SampleDataset(weights, seed, rerandomize_each_iteration)
        return dataset_classes.DirectedInterleaveDataset(choices, datasets, stop_on_empty_dataset)


def column_sources() -> Any:
    """Return the module of datasets of columns, which few programs need."""
    return import_module(".column_sources", __package__)


def saved_elements() -> Any:
    """Return the module of datasets in folders, which few programs need."""
    return import_module(".saved_elements", __package__)


def _tuples(types: Any) -> Any:
    """Convert lists of types to tuples: they are several components."""
    return tuple(map(_tuples, types)) if isinstance(types, (list, tuple)) and not hasattr(types, "_fields") else types


def _with_shapes(types: Any, shapes: Any) -> Any:
    """Combine nested dtypes and shapes to specs. Raises TypeError or ValueError if their structures differ."""
    if not is_structure(types):
        return TensorSpec(shapes, types)
    if isinstance(types, dict):
        return {k: _with_shapes(types[k], shapes[k]) for k in types}
    if len(types) != len(shapes):
        raise ValueError(f"output_types and output_shapes differ in structure: {types!r} and {shapes!r}")
    parts = [_with_shapes(t, s) for t, s in zip(types, shapes)]
    return type(types)(*parts) if hasattr(types, "_fields") else tuple(parts)


def matching_files(patterns: Any) -> list[bytes]:
    """Return the files that match glob patterns, sorted. Raises InvalidArgumentError if there are none."""
    texts = [p.decode() if isinstance(p, bytes) else os.fspath(p) for p in patterns]
    names = sorted({name for text in texts for name in glob.glob(text)})
    if not names:
        raise InvalidArgumentError(op="Dataset.list_files", what=f"No files matched pattern: {', '.join(texts)}")
    return [name.encode() for name in names]
