"""Declarations of inputs and outputs of operators, and the base class of definitions.

Lives here: `Input`, `Output`, `OperatorDefinition`.
Not here: attributes (attributes.py), consequences of a declaration (definition.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

import numpy as np

from ..core.dtypes import DType, any_dtype, as_dtype

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from .definition import Operator
    from .tensor import Tensor

    Result = TypeVarWithDefault("Result", default=Tensor)

    class _OperatorType(type, Operator):  # type: ignore[misc]  # both define __call__; calls follow __new__
        """The type of a decorated class to a checker: an `Operator`."""

        inputs: Any  # pyright applies these types to the attributes of the class, too: an input named `inputs`,
        lod: Any  # the rule of LoDs


T = TypeVar("T")
QUANTIZED = ("reals", "integers", None)
"""Values of `quantized` in a user's operator, besides a method; the first is the default."""


class Input(Generic[T]):
    """An input tensor of an operator.

    dtypes: the supported dtypes, as a tuple such as `ow.floating`, or one dtype. like: another input with the same
    dtype; Python numbers for either take the dtype of the other's tensor. optional: may be None. repeated: any number
    of tensors, as a list, of one dtype, or with mixed=True of any. rank: the number of dimensions, or a tuple of
    allowed ones.
    lod: the number of LoD levels, or a tuple of them; None for any. lod_of: another input, whose offsets this one
    receives if that is a LoDTensor: of the last level, or if repeated of every level (of a repeated input: the last
    level of each). kinds: the supported kinds of variables (ops/var_types.py); None: determined by the dtypes. since:
    the operator version that introduced it; older calls lack it, so it is optional, and by position it follows all
    older parts.
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

    @overload
    def __init__(
        self: Input[Tensor],
        dtypes: Any = ...,
        *,
        like: str | None = None,
        optional: bool = False,
        repeated: Literal[False] = False,
        mixed: bool = False,
        rank: int | Sequence[int] | None = None,
        lod: int | Sequence[int] | None = None,
        lod_of: str | None = None,
        kinds: Sequence[str] | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: Input[list[Tensor]],
        dtypes: Any = ...,
        *,
        like: str | None = None,
        optional: bool = False,
        repeated: Literal[True],
        mixed: bool = False,
        rank: int | Sequence[int] | None = None,
        lod: int | Sequence[int] | None = None,
        lod_of: str | None = None,
        kinds: Sequence[str] | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
    def __init__(
        self,
        dtypes: Any = any_dtype,
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

    if TYPE_CHECKING:  # in a rule `op.x` is the value of the call, not this declaration

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type) -> T: ...
        def __get__(self, instance: object, owner: type) -> object: ...


class Output(Generic[T]):
    """An output tensor of an operator.

    dtype: a fixed dtype. like: instead, an input whose dtype (and, where there is no `infer`, shape) this output has.
    repeated: several tensors, as a list. intermediate: stored for the gradient, not returned to the caller.
    rows: whether it has the rows of the inputs, and so their unchanged LoD: statistics have not.
    lod_of: another output, whose offsets this one is: of the last level of its LoD, or of every level if repeated.
    kind: its kind of variable (ops/var_types.py), or "as x", "of dtype": as that input, by that attribute's dtype; None
    goes by dtype, `like` and the operator's `lod`. since: the operator version that introduced it; what is older
    does not take it, so it is intermediate.
    """

    __slots__ = ("doc", "dtype", "intermediate", "kind", "like", "lod_of", "name", "repeated", "rows", "since")

    @overload
    def __init__(
        self: Output[Tensor],
        dtype: Any = None,
        *,
        like: str | None = None,
        repeated: Literal[False] = False,
        intermediate: bool = False,
        rows: bool = True,
        lod_of: str | None = None,
        kind: str | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: Output[list[Tensor]],
        dtype: Any = None,
        *,
        like: str | None = None,
        repeated: Literal[True],
        intermediate: bool = False,
        rows: bool = True,
        lod_of: str | None = None,
        kind: str | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
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

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type) -> T: ...
        def __get__(self, instance: object, owner: type) -> object: ...


if TYPE_CHECKING:

    class OperatorDefinition(Generic[Result], metaclass=_OperatorType):
        """Base class of the classes under `@operator`, as checkers see it: `op` in rules; calls return Result."""

        operator: Operator
        attrs: dict[str, Any]

        def __new__(cls, *args: Any, name: str | None = None, **kwargs: Any) -> Result: ...  # type: ignore[misc]
        def dtype_of(self, *slots: str, skip_empty: bool = False) -> DType: ...
        def needs_gradient(self, name: str) -> bool: ...

else:

    class OperatorDefinition:
        """Base class for the classes under `@ow.operator`, for type checkers.

        mypy does not follow decorators of classes: without the base it rejects calls of the operator. The base also
        types `op` in rules: attributes have their declared types, inputs and outputs are tensors. Calls return a
        Tensor, or the type in brackets. It has no effect at run time.

        >>> @ow.operator
        ... class Halves(ow.OperatorDefinition[tuple[ow.Tensor, ow.Tensor]]):
        ...     ...
        """

        def __class_getitem__(cls, result: Any) -> type[OperatorDefinition]:
            return cls
