"""Inputs and outputs of operators, as a definition declares them.

Lives here: `Input` and `Output`.  Not here: attributes (attributes.py), what a declaration implies (definition.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype


class Input:
    """An input tensor of an operator.

    dtypes: the dtypes taken, as a tuple such as `ow.floating`, or one dtype. like: another input whose dtype this one
    must have; Python numbers given for either take the dtype of the tensor given for the other. optional: may be left
    out (None). repeated: any number of tensors, as a list, of one dtype, or with mixed=True each of its own. rank: the
    number of dimensions, or a tuple of allowed ones.
    """

    __slots__ = ("doc", "dtypes", "like", "mixed", "name", "optional", "ranks", "repeated")

    def __init__(
        self,
        dtypes: Any = dtypes.any_dtype,
        *,
        like: str | None = None,
        optional: bool = False,
        repeated: bool = False,
        mixed: bool = False,
        rank: int | Sequence[int] | None = None,
        doc: str = "",
    ) -> None:
        self.name = ""
        one = isinstance(dtypes, (DType, str, type, np.dtype))
        self.dtypes: tuple[DType, ...] = tuple(map(as_dtype, (dtypes,) if one else dtypes))
        self.like, self.optional, self.repeated, self.mixed, self.doc = like, optional, repeated, mixed, doc
        self.ranks = None if rank is None else (rank,) if isinstance(rank, int) else tuple(rank)

    if TYPE_CHECKING:  # in a rule `op.x` is not this declaration but what the call has there

        def __get__(self, instance: Any, owner: Any) -> Any: ...


class Output:
    """An output tensor of an operator.

    like: an input whose dtype (and, where there is no `infer`, shape) this output has. dtype: a fixed dtype instead.
    repeated: several tensors, as a list. intermediate: kept for the gradient, not given to the caller.
    """

    __slots__ = ("doc", "dtype", "intermediate", "like", "name", "repeated")

    def __init__(
        self,
        *,
        like: str | None = None,
        dtype: Any = None,
        repeated: bool = False,
        intermediate: bool = False,
        doc: str = "",
    ) -> None:
        self.name = ""
        self.like, self.repeated, self.intermediate, self.doc = like, repeated, intermediate, doc
        self.dtype = None if dtype is None else as_dtype(dtype)

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any) -> Any: ...
