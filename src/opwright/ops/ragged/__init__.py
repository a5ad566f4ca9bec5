"""Ragged tensors, `ow.ragged`: rows of different lengths.

Lives here: the public names.  Not here: packed sequences for recurrent operators (../sequence/).
"""

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
