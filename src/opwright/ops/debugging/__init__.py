"""Assertions on values, shapes and dtypes: `ow.debugging`.

Lives here: the family's public names.  Not here: switches (eager/debugging.py).
"""

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
