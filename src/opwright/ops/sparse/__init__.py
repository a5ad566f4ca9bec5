"""Sparse tensors, `ow.sparse`: the elements that are not 0, with their positions.

Lives here: the public names.  Not here: sparse rows of gradients (../indexed_slices.py).
"""

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
