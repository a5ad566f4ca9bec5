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
    lod: how many LoD levels it takes, a number or a tuple; None takes any. lod_of: another input, whose offsets this
    one gets where that is given as a LoDTensor: those of the last level, or if repeated of every level (of a repeated
    input: the last level of each). kinds: which it takes of the kinds of variables (ops/kinds.py); None goes by the
    dtypes. since: the operator version that introduced it; what is older does without it, so it is optional, and a call
    by position gives it after all that is older.
    """

    __slots__ = (
        "doc",
        "dtypes",
        "kinds",
        "like",
        "lod",
        "lod_of",
        "mixed",
        "name",
        "optional",
        "ranks",
        "repeated",
        "since",
    )

    def __init__(
        self,
        dtypes: Any = dtypes.any_dtype,
        *,
        like: str | None = None,
        optional: bool = False,
        repeated: bool = False,
        mixed: bool = False,
        rank: int | Sequence[int] | None = None,
        lod: int | Sequence[int] | None = None,
        lod_of: str | None = None,
        kinds: Sequence[str] | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None:
        self.name, self.since = "", since
        one = isinstance(dtypes, (DType, str, type, np.dtype))
        self.dtypes: tuple[DType, ...] = tuple(map(as_dtype, (dtypes,) if one else dtypes))
        self.like, self.optional, self.repeated, self.mixed, self.doc = like, optional, repeated, mixed, doc
        self.ranks = None if rank is None else tuple(rank) if isinstance(rank, (tuple, list)) else (rank,)
        self.lod = None if lod is None else (lod,) if isinstance(lod, int) else tuple(lod)
        self.lod_of = lod_of
        self.kinds = None if kinds is None else tuple(kinds)

    if TYPE_CHECKING:  # in a rule `op.x` is not this declaration but what the call has there

        def __get__(self, instance: Any, owner: Any) -> Any: ...


class Output:
    """An output tensor of an operator.

    dtype: a fixed dtype. like: instead, an input whose dtype (and, where there is no `infer`, shape) this output has.
    repeated: several tensors, as a list. intermediate: kept for the gradient, not given to the caller.
    rows: whether it has the rows of the inputs, and so their LoD where that is unchanged: statistics have not.
    lod_of: another output, whose offsets this one is: of the last level of its LoD, or of every level if repeated.
    kind: what kind of variable it is, of ops/kinds.py, or "as x", "of dtype": as that input, by that attribute's dtype;
    None goes by dtype, `like` and the operator's `lod`. since: the operator version that introduced it; what is older
    does not take it, so it is intermediate.
    """

    __slots__ = ("doc", "dtype", "intermediate", "kind", "like", "lod_of", "name", "repeated", "rows", "since")

    def __init__(
        self,
        dtype: Any = None,
        *,
        like: str | None = None,
        repeated: bool = False,
        intermediate: bool = False,
        rows: bool = True,
        lod_of: str | None = None,
        kind: str | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None:
        self.name, self.since = "", since
        self.like, self.repeated, self.intermediate, self.doc = like, repeated, intermediate, doc
        self.rows, self.lod_of, self.kind = rows, lod_of, kind
        self.dtype = None if dtype is None else as_dtype(dtype)

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any) -> Any: ...
