"""Input pipelines: datasets of nested tensors, evaluated lazily, and their iterators.

Lives here: the public names.  Not here: loops over datasets in converted functions (AutoGraph uses graph_loops.py).

    structure.py    the structure of elements: nested types, flat arrays
    functions.py    user functions as programs over elements
    base.py         the base class of datasets; dataset.py, constructors.py, transformations.py: the public methods
    sources.py order.py elementwise.py parallel.py batch.py padded_batch.py windows.py combination.py cache.py files.py
                    the transformations
    iterator.py optional.py graph_loops.py    iterators, optionals, loops over them in functions
"""

from . import (  # noqa: F401  imported to register their classes
    batch,
    cache,
    combination,
    elementwise,
    experimental,
    graph_loops,
    order,
    padded_batch,
    parallel,
    sources,
    windows,
)
from .base import INFINITE as INFINITE_CARDINALITY
from .base import UNKNOWN as UNKNOWN_CARDINALITY
from .base import DatasetSpec
from .dataset import Dataset
from .dataset_options import Options, ThreadingOptions
from .files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from .iterator import IteratorBase as Iterator
from .iterator import IteratorSpec, NumpyIterator
from .parallel import AUTOTUNE

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
