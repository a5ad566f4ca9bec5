"""Mathematics: arithmetic, analysis, comparison, rounding, reductions, sorting and segments.

Lives here: the family's public names.  Not here: shapes and selection (array/), matrices (linalg/), networks (nn/).
"""

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__, unlisted=("special",))
