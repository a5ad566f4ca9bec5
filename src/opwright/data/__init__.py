"""Input pipelines: datasets of nested tensors, evaluated lazily, and their iterators.

Lives here: the public names.

    structure.py    the structure of elements: nested types, flat arrays
    functions.py    user functions as programs over elements, the state of an iterator
    base.py         the base class of datasets
    dataset.py      the public class; its methods: constructors.py, transformations.py; loops over datasets in functions
    sources.py order.py elementwise.py buffers.py batch.py combination.py files.py    the classes of datasets
    column_sources.py    datasets of Arrow, Parquet, Dask and Ray
    iterator.py optional.py    iterators, optionals
"""

from . import batch, buffers, combination, elementwise, experimental, order, sources, windows  # noqa: F401  register their classes
from .base import INFINITE as INFINITE_CARDINALITY
from .base import UNKNOWN as UNKNOWN_CARDINALITY
from .base import DatasetSpec
from .buffers import AUTOTUNE
from .dataset import Dataset, Options, ThreadingOptions
from .files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from .iterator import IteratorBase as Iterator
from .iterator import IteratorSpec, NumpyIterator

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]
