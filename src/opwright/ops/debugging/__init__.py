"""Assertions: what must hold of values, shapes and dtypes, `ow.debugging`.

Lives here: the family's public names.  Not here: switches (eager/debugging.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.importing import lazily

if TYPE_CHECKING:
    from .assertions import (
        Assert,
        assert_equal,
        assert_greater,
        assert_greater_equal,
        assert_less,
        assert_less_equal,
        assert_near,
        assert_negative,
        assert_non_negative,
        assert_non_positive,
        assert_none_equal,
        assert_positive,
    )
    from .expectations import (
        assert_integer,
        assert_proper_iterable,
        assert_rank,
        assert_rank_at_least,
        assert_rank_in,
        assert_same_float_dtype,
        assert_scalar,
        assert_shapes,
        assert_type,
        is_numeric_tensor,
    )
    from .finiteness import assert_all_finite, check_numerics

_HOMES = {
    ".assertions": (
        "Assert, assert_equal, assert_greater, assert_greater_equal, assert_less, assert_less_equal, "
        "assert_near, assert_negative, assert_non_negative, assert_non_positive, assert_none_equal, "
        "assert_positive"
    ),
    ".expectations": (
        "assert_integer, assert_proper_iterable, assert_rank, assert_rank_at_least, assert_rank_in, "
        "assert_same_float_dtype, assert_scalar, assert_shapes, assert_type, is_numeric_tensor"
    ),
    ".finiteness": "assert_all_finite, check_numerics",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "is_numeric_tensor",
]
