"""Input pipelines: datasets of nested tensors, made as they are asked for, and their iterators.

Lives here: the public names.  Not here: loops over datasets in converted functions (AutoGraph asks staged.py).

    structure.py    the form of elements: nested types, flat arrays
    functions.py    users' functions as programs over elements
    base.py         what a dataset is made of; dataset.py, making.py, transforming.py: its methods
    sources.py ordering.py elementwise.py parallel.py batching.py padding.py windows.py mixing.py cache.py files.py
                    the transformations themselves
    iterator.py optional.py staged.py    iterators, optionals, loops over them in functions
"""

from . import batching, cache, elementwise, experimental, mixing, ordering, padding, parallel, sources, staged, windows  # noqa: F401  importing them enters their classes
from .base import INFINITE as INFINITE_CARDINALITY
from .base import UNKNOWN as UNKNOWN_CARDINALITY
from .base import DatasetSpec
from .dataset import Dataset
from .files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from .iterator import IteratorBase as Iterator
from .iterator import IteratorSpec, NumpyIterator
from .options import Options, ThreadingOptions
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
