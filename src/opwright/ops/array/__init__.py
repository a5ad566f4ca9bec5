"""Operators on arrays: creation, shapes, slices, gathers and scatters, permutations, selection.

Lives here: the family's public names.  Not here: arithmetic (math/), matrices (linalg/).
"""

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__, unlisted=("MergeRows", "RowsAt", "run_time_axes", "zero_of"))
__all__ += ["newaxis"]

newaxis = None
