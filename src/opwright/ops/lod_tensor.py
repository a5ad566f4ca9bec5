"""LoDTensor: packed rows of sequences, with the offsets that separate them.

Lives here: the type, its spec, `create_lod_tensor`.
Not here: arithmetic on offsets (core/lod.py), calls of operators with one (lod_propagation.py), operators on sequences
(sequence/).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from ..core import dtypes, lod
from ..core.dtypes import DType
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.places import Place
from ..core.shapes import TensorShape, as_shape
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from . import dispatch
from .tensor import Overriding, Tensor, TensorLike

T = TypeVar("T")

_OFFSETS = TensorSpec([None], dtypes.int64)


class LoDTensorSpec(TypeSpec):
    """The type of LoDTensors.

    shape: of the packed rows, mostly [None, ...]. dtype: of the rows. lod_level: the number of levels, always known.
    """

    __slots__ = ("_dtype", "_level", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32, lod_level: int = 1) -> None:
        self._shape, self._dtype, self._level = as_shape(shape), dtypes.as_dtype(dtype), int(lod_level)
        if self._level < 0:
            raise ValueError(f"lod_level is a number of levels, 0 or more; found {lod_level}")

    shape = property(lambda self: self._shape, doc="Shape of the packed rows.")
    dtype = property(lambda self: self._dtype, doc="Element type of the rows.")
    lod_level = property(lambda self: self._level, doc="Number of levels.")

    @property
    def value_type(self) -> type[LoDTensor]:
        """LoDTensor."""
        return LoDTensor

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._level

    @property
    def _component_specs(self) -> tuple[TensorSpec, list[TensorSpec]]:
        return TensorSpec(self._shape, self._dtype), [_OFFSETS] * self._level

    def _to_components(self, value: Any) -> tuple[Any, list[Any]]:
        return value.values, list(value.levels)

    def _from_components(self, components: Any) -> LoDTensor:
        return LoDTensor.of(*components)


class LoDTensor(Overriding, CompositeTensor):
    """Sequences of different lengths, packed without padding: `values` has their rows one after another.

    values: tensor [rows, ...]. lod: offsets of each level, coarse to fine; none makes it an ordinary tensor.
    Operators take it where they take tensors: by position the result is a LoDTensor with the same LoD (of the first
    input that has one), by sequence as each operator says (its `lod`). Its gradient is a LoDTensor of the same LoD.
    layout: "any", "NCHW" or "NHWC"; a kernel that wants the other gets the rows transposed.

    >>> x = ow.LoDTensor([[1.0], [2.0], [3.0]], [[0, 2, 3]])
    >>> x.recursive_sequence_lengths()
    [[2, 1]]

    raises InvalidArgumentError for offsets that are not a LoD over these rows
    """

    __slots__ = ("_values", "layout", "levels")

    def __init__(self, values: Any = None, lod: Any = (), dtype: Any = None) -> None:
        self._values: Any = None
        self.levels: tuple[Any, ...] = ()
        self.layout = "any"
        if values is not None:
            dtype_ = None if dtype is None else dtypes.as_dtype(dtype)
            self._values = rows_of(dispatch.to_tensor(values, dtype_))
        if not isinstance(lod, (tuple, list)) or lod:
            self.set_lod(lod)

    @classmethod
    def of(cls, values: Any, levels: Sequence[Any]) -> LoDTensor:
        """Return a LoDTensor of matching tensors, unchecked."""
        tensor = cls.__new__(cls)
        tensor._values, tensor.levels, tensor.layout = values, tuple(levels), "any"
        return tensor

    # ---- what it holds ---------------------------------------------------------------------------------------------

    @property
    def is_initialized(self) -> bool:
        """Whether it has rows yet."""
        return self._values is not None

    @property
    def values(self) -> Tensor:
        """The packed rows. Raises FailedPreconditionError where none were set."""
        if self._values is None:
            raise FailedPreconditionError(op="LoDTensor", what="the tensor is not initialized", do="set(values)")
        values: Tensor = self._values
        return values

    @property
    def lod_level(self) -> int:
        """The number of levels."""
        return len(self.levels)

    def _offsets(self) -> lod.Levels:
        offsets = [level.constant for level in self.levels]
        if any(level is None for level in offsets):
            raise FailedPreconditionError(
                op="LoDTensor",
                what="the offsets are known when the function runs, not while it is traced",
                do="use the tensors in `levels`",
            )
        return tuple(offsets)

    def lod(self) -> list[list[int]]:
        """Return the offsets of each level, as lists."""
        return [level.tolist() for level in self._offsets()]

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """Return the lengths of the sequences of each level."""
        return lod.to_lengths(self._offsets())

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Return whether the offsets are a LoD over the rows."""
        return lod.wrong(self._offsets(), self._rows()) is None

    def _rows(self) -> int | None:
        if self._values is None:
            return None
        shape = self._values.shape
        if shape.rank == 0 and self.levels:
            return -1  # which no LoD is over
        return shape[0] if shape.rank else None

    # ---- setting: for tensors that a scope holds --------------------------------------------------------------------

    def set(self, values: Any, place: Place | None = None) -> None:
        """Replace the rows; a LoD that does not fit them is dropped.

        place: where they shall live; a tensor made from Python lives on the CPU, kernels elsewhere get copies.
        """
        self._values = rows_of(dispatch.to_tensor(values))
        if self.levels and lod.wrong(self._offsets(), self._rows()) is not None:
            self.levels = ()

    def set_lod(self, offsets: Any) -> None:
        """Replace the LoD, by offsets. Raises InvalidArgumentError if they are not a LoD over the rows.

        Offsets that are known only when a function runs are given by `ow.sequence.lod_reset`.
        """
        levels_ = offsets if isinstance(offsets, (tuple, list)) else ()
        if any(isinstance(level, TensorLike) and level.constant is None for level in levels_):
            raise FailedPreconditionError(
                op="LoDTensor",
                what="these offsets are known when the function runs, not while it is traced",
                do="ow.sequence.lod_reset(rows, offsets), or lod_append, which look at them then",
            )
        levels = lod.as_levels(offsets)
        rows = self._rows()
        if levels and self._values is not None and self._values.shape.rank == 0:
            raise InvalidArgumentError(
                op="LoDTensor",
                what="a scalar has no rows that sequences could be made of",
                wanted="a tensor of rank 1 or more",
            )
        lod.check(levels, rows)
        self.levels = tuple(dispatch.to_tensor(level, dtypes.int64) for level in levels)

    def set_recursive_sequence_lengths(self, lengths: Any) -> None:
        """Replace the LoD, by lengths. Raises InvalidArgumentError if they do not sum to the number of rows."""
        self.set_lod(lod.from_lengths(lengths))

    def with_values(self, values: Any) -> LoDTensor:
        """Return other rows under the same LoD. Raises InvalidArgumentError if their number is known to differ."""
        values = rows_of(dispatch.to_tensor(values))
        if self.levels and not values.shape[:1].is_compatible_with(self.shape[:1]):
            raise InvalidArgumentError(
                op="LoDTensor",
                what="these are not as many rows as the LoD speaks of",
                found=f"shape {values.shape}",
                wanted=f"{self.shape[0]} rows",
            )
        return LoDTensor.of(values, self.levels)

    # ---- sequences ---------------------------------------------------------------------------------------------------

    def sequences(self, begin: int, end: int | None = None, level: int = 0) -> LoDTensor:
        """Return the sequences [begin, end) of a level, with the levels below it. end: begin + 1 by default.

        raises InvalidArgumentError for an empty range or one that is not there
        """
        levels, first, last = lod.sliced(self._offsets(), begin, begin + 1 if end is None else end, level)
        return LoDTensor(self.values[first:last], levels)

    def to_nested(self) -> list[Any]:
        """Return nested Python lists, one nesting per level; the innermost lists contain rows.

        >>> ow.LoDTensor([1, 2, 3], [[0, 2, 3]]).to_nested()
        [[1, 2], [3]]
        """
        parts = self.tolist()
        for level in reversed(self._offsets()):
            parts = [parts[a:b] for a, b in zip(level[:-1].tolist(), level[1:].tolist())]
        return parts

    @staticmethod
    def from_nested(nested: Any, lod_level: int = 1, dtype: Any = None, row_shape: Any = ()) -> LoDTensor:
        """Return a LoDTensor from nested lists, the outer `lod_level` of which may be ragged.

        row_shape: the shape of a row, needed where there is none to show it.
        raises InvalidArgumentError where the nesting is too shallow

        >>> ow.LoDTensor.from_nested([[1, 2], [3]]).lod()
        [[0, 2, 3]]
        """
        lengths: list[list[int]] = []
        units: Any = nested
        for k in range(lod_level):
            bad = [u for u in units if not isinstance(u, (list, tuple, np.ndarray))]
            if bad:
                raise InvalidArgumentError(
                    op="LoDTensor.from_nested",
                    what=f"level {k} has a unit that is not a list",
                    found=repr(bad[0]),
                    wanted=f"{lod_level} levels of lists",
                )
            lengths.append([len(u) for u in units])
            units = [row for u in units for row in u]
        if not units:
            dtype_ = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
            return LoDTensor(np.zeros((0, *row_shape), dtype_.np), lod.from_lengths(lengths), dtype_)
        return LoDTensor(units, lod.from_lengths(lengths), dtype)

    # ---- as a tensor ------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """Element type of the rows."""
        result: DType = self.values.dtype
        return result

    @property
    def shape(self) -> TensorShape:
        """Shape of the packed rows."""
        result: TensorShape = self.values.shape
        return result

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape of the packed rows."""
        result: TensorSpec = self.values.spec
        return result

    @property
    def constant(self) -> np.ndarray | None:
        """The packed rows where they are known, else None."""
        constant: np.ndarray | None = self.values.constant
        return constant

    @property
    def _type_spec(self) -> LoDTensorSpec:
        return LoDTensorSpec(self.shape, self.dtype, self.lod_level)

    def __tf_tracing_type__(self, context: Any) -> LoDTensorSpec:
        """Return a type for which one trace serves batches of any number of rows and sequences."""
        shape = self.shape
        return LoDTensorSpec([None, *shape[1:]] if self.levels and shape.rank else shape, self.dtype, self.lod_level)

    def _with_components(self, components: Any) -> LoDTensor | None:
        """Return other rows and levels; a gradient without levels gets those of its forward tensor."""
        values, levels = components
        if values is None:
            return None
        return LoDTensor.of(values, [own if new is None else new for own, new in zip(self.levels, levels)])

    def numpy(self) -> np.ndarray:
        """Return the packed rows as a NumPy array."""
        array: np.ndarray = self.values.numpy()
        return array

    def tolist(self) -> list[Any]:
        """Return the packed rows as lists; see `to_nested` for lists by sequence."""
        values: Any = self.values  # an eager tensor
        rows: list[Any] = values.tolist()
        return rows

    def set_shape(self, shape: Any) -> None:
        """Set the static shape of the packed rows."""
        self.values.set_shape(shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array: np.ndarray = self.values.__array__(dtype, copy)
        return array

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __float__(self) -> float:
        return float(self.values)

    def __int__(self) -> int:
        return int(self.values)

    def record(self, op: Any, inputs: Any, bound: Any, name: str | None) -> Any:
        """Run or record the call of an operator."""
        return dispatch.call_with_lods(op, inputs, bound, name)

    def __repr__(self) -> str:
        if self._values is None:
            return "<LoDTensor: not initialized>"
        levels = [level.constant for level in self.levels]
        shown = f"{len(levels)} levels" if any(v is None for v in levels) else f"lod={[v.tolist() for v in levels]}"
        return f"<LoDTensor: {shown}, values={self._values!r}>"

    __str__ = __repr__


@overload
def rows_of(x: LoDTensor) -> Tensor: ...
@overload
def rows_of(x: T) -> T: ...
def rows_of(x: Any) -> object:
    """Return the packed rows of a LoDTensor; anything else as it is."""
    return x.values if isinstance(x, LoDTensor) else x


def create_lod_tensor(data: Any, recursive_seq_lens: Any, place: Place | None = None) -> LoDTensor:
    """Return a LoDTensor of rows and the lengths of its sequences.

    data: an array or tensor [rows, ...]; another LoDTensor, of which the rows are taken; or a list of sequences of
    integers, each one row of one int64, whose lengths must be those given.
    recursive_seq_lens: lengths of each level. place: as in `LoDTensor.set`.
    raises InvalidArgumentError where the lengths do not fit the rows

    >>> ow.create_lod_tensor([[1, 2, 3], [4, 5]], [[3, 2]]).lod()
    [[0, 3, 5]]
    """
    data = rows_of(data)
    if isinstance(data, list):
        data = _rows_of_lists(data, recursive_seq_lens)
    tensor = LoDTensor(data)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    return tensor


def _rows_of_lists(sequences: list[Any], lengths: Any) -> np.ndarray:
    """Return the integers of all sequences in one column, [rows, 1]."""
    if any(isinstance(s, (str, bytes)) or not isinstance(s, (Sequence, np.ndarray)) for s in sequences):
        raise InvalidArgumentError(
            op="create_lod_tensor",
            what="a list as data is one of sequences of integers",
            found=repr(sequences)[:60],
            wanted="as [[1, 2, 3], [4, 5]]",
            do="for rows as they are give an array or a tensor",
        )
    expected = [[len(sequence) for sequence in sequences]]
    if [level.tolist() for level in lod.as_levels(lengths)] != expected:
        raise InvalidArgumentError(
            op="create_lod_tensor",
            what="the lengths are not those of the sequences given",
            found=lengths,
            wanted=expected,
        )
    rows = np.array([number for sequence in sequences for number in sequence])
    if rows.size and (rows.ndim != 1 or rows.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            op="create_lod_tensor",
            what="the sequences hold something else than integers",
            found=repr(sequences)[:60],
            wanted="integers",
            do="ow.LoDTensor.from_nested takes rows of any kind",
        )
    return rows.astype(np.int64).reshape(-1, 1)
