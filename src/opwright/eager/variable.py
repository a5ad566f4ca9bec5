"""Variable: mutable state with the value of a tensor.

Lives here: the type and its assignments, eager and traced.  Not here: the operators on its handle (ops/state.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core import forks
from ..core.dtypes import DType, as_dtype, resource
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.notebook_reprs import shown_as
from ..core.shapes import SCALAR, TensorShape
from ..core.specs import TensorSpec
from ..ops import array as array_ops
from ..ops import dispatch
from ..ops import state as state_ops
from ..ops.array.slices import set_item
from ..ops.autodiff import OpRecord
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import rows_of
from ..ops.tensor import TensorLike, TensorReference
from . import variable_state
from .tensor import EagerTensor, to_array
from .variable_state import CopyOnWrite

if TYPE_CHECKING:
    from ..ops.call import Call
    from ..ops.tensor import Tensor

_count = threading.local()


class Variable(TensorLike):
    """Mutable state with a fixed dtype and shape.

    initial_value: anything `constant` accepts, or a function without arguments that returns it. trainable: whether
    tapes watch it automatically. name: for readers; need not be unique. shape: a supertype of the initial value's
    shape, such as TensorShape(None), if later values differ in shape. constraint: a function applied by optimizers
    after updates.
    raises TypeError or ValueError as `constant` does
    """

    is_shard: bool = False  # whether other workers have other parts of the value (distribute/tables.py)

    __slots__ = (
        "__weakref__",
        "_guard",
        "_initial",
        "_lock",
        "_value",
        "constraint",
        "dtype",
        "name",
        "scoped_name",
        "shape",
        "trainable",
    )

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if constraint is not None and not callable(constraint):
            raise ValueError(f"Argument `constraint` must be None or a callable. Got {constraint!r}")
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified; found None")
        trace = dispatch.state.trace
        if trace is not None:
            initial_value = trace.lift_initial_value(self, initial_value)
        elif callable(initial_value) and not isinstance(initial_value, TensorLike):
            initial_value = initial_value()
        requested = None if dtype is None else as_dtype(dtype)
        if isinstance(initial_value, TensorLike):
            array, value_dtype = np.asarray(initial_value.numpy()), initial_value.dtype
            if requested is not None and requested is not value_dtype:
                raise ValueError(
                    f"Tensor conversion requested dtype {requested.name} for Tensor with dtype {value_dtype.name}"
                )
            array = array.astype(value_dtype.np, copy=False)  # numpy() returns a copy
        else:
            array, value_dtype = to_array(initial_value, requested)
        self.dtype: DType = value_dtype  # pyright: ignore[reportIncompatibleMethodOverride]  # attributes, for speed
        given = array.shape if shape is None else shape
        self.shape: TensorShape = TensorShape(given)  # pyright: ignore[reportIncompatibleMethodOverride]
        if not self.shape.is_compatible_with(array.shape):
            raise ValueError(
                f"The initial value's shape {array.shape} is not compatible with the explicitly supplied `shape` "
                f"argument ({self.shape})."
            )
        path = "/".join((*dispatch.state.names, name or "Variable"))
        self.name: str = f"{path}:0"  # pyright: ignore[reportIncompatibleMethodOverride]
        self.scoped_name: str | None = None
        """The name in the layers that contain it, which `path` is."""
        self.trainable = True if trainable is None else bool(trainable)
        self.constraint = constraint
        self._lock = forks.lock()
        self._guard: Any = None  # created when the value is first written in place
        self._value: EagerTensor | None = EagerTensor(array, value_dtype)
        self._initial: EagerTensor | None = None
        if variable_state.deferred_restores:  # a checkpoint may contain its value
            self._initial, self._value = self._value, None

    # ---- interface of graphs and kernels -----------------------------------------------------------------------

    def read_array(self) -> np.ndarray:
        """Return the value as an array, not to be modified. Raises FailedPreconditionError if it was deleted."""
        value = self._value
        if value is None:
            value = self._resolved_value()
        array: np.ndarray = value._array
        return array

    def _resolved_value(self) -> EagerTensor:
        """Return the value at the first use: of a deferred restore, else the initial one."""
        if self._value is None and self._guard is not None:
            with self._guard:  # wait for a write in progress
                pass
        if self._initial is not None:
            self._value, self._initial = self._initial, None
            variable_state.run_deferred_restores()
        if self._value is None:
            raise FailedPreconditionError(what=f"variable {self.name!r} has no value", do="assign to it first")
        return self._value

    def write_array(self, array: Any) -> None:
        """Set the value; the variable takes ownership of the array."""
        array = np.asarray(array, self.dtype.np)
        if self.shape.dims != array.shape and not self.shape.is_compatible_with(array.shape):
            raise InvalidArgumentError(
                what=f"Cannot assign value to variable '{self.name}': Shape mismatch.The variable shape {self.shape}, "
                f"and the assigned value shape {TensorShape(array.shape)} are incompatible."
            )
        if self._initial is not None:
            self._resolved_value()
        self._value = EagerTensor(array, self.dtype)

    def writing(self) -> CopyOnWrite:
        """Return a context whose value is an array to modify; other threads that read the variable wait."""
        return CopyOnWrite(self)

    # A kernel on state receives the variable itself in place of an array.
    _dtype = resource

    @property
    def _array(self) -> Variable:
        return self

    @property
    def _shape(self) -> tuple[int | None, ...] | None:
        """The sizes of its shape, as of other identities (ShapeOnlyTensor)."""
        return self.shape.dims

    @property
    def path(self) -> str:
        """The name without its output index, after those of the layers that contain it: "model/dense/kernel"."""
        return self.scoped_name or self.name.removesuffix(":0")

    @property
    def handle(self) -> Variable:
        """The operand of operators on state: the variable itself."""
        return self

    @property
    def spec(self) -> TensorSpec:
        """The type of its handle."""
        return _HANDLE

    @property
    def constant(self) -> None:
        """None: the value may change."""
        return None

    # ---- reading ------------------------------------------------------------------------------------------------

    def value(self) -> Tensor:
        """Return the value as a tensor, and record the read to tapes."""
        s = dispatch.state
        if s.trace is not None:
            for tape in s.tapes:
                if self.trainable and getattr(tape, "watches_variables", False):
                    tape.watch_variable(self)
            return state_ops.ReadVariable(self, dtype=self.dtype, shape=self.shape)
        if s.tapes:
            fresh = EagerTensor(self.read_array(), self.dtype)
            record = None
            for tape in s.tapes:
                if self.trainable and getattr(tape, "watches_variables", False):
                    tape.watch_variable(self)
                if tape.follows((id(self),)):
                    if record is None:
                        bound = _read_call(self.dtype, self.shape)
                        record = OpRecord.light(state_ops.ReadVariable, bound, (self,), (self,), (fresh,))
                    tape.keep(record)
            return fresh
        value = self._value
        return self._resolved_value() if value is None else value

    read_value = value

    def _as_tensor(self) -> Tensor:
        return self.value()

    def numpy(self) -> np.ndarray:
        """Return the value as a copied NumPy array."""
        array = self.read_array()
        return array[()] if array.ndim == 0 else array.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return EagerTensor(self.read_array(), self.dtype).__array__(dtype, copy)

    def initialized_value(self) -> Tensor:
        """Return `value()`."""
        return self.value()

    # ---- writing ------------------------------------------------------------------------------------------------

    def _update(self, op: Any, value: Any, use: str) -> Variable:
        dtype = self.dtype
        tensor: Any = rows_of(dispatch.to_tensor(value, dtype, None))
        if tensor.dtype is not dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {tensor.dtype.name} "
                f"({use} of variable {self.name!r})"
            )
        if not self.shape.is_compatible_with(tensor.shape):
            if op is not state_ops.AssignVariable:
                raise state_ops.unequal_shapes(self.name, self.shape, tensor.shape)
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch.The variable shape {self.shape}, "
                f"and the assigned value shape {tensor.shape} are incompatible."
            )
        if dispatch.state.trace is not None:
            op(self, tensor)
        else:
            with self._lock:
                op.kernel(op.bind({}))(self, tensor._array)
        return self

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Variable:
        """Set the value, of this dtype and a compatible shape. Raises ValueError otherwise. Returns the variable."""
        return self._update(state_ops.AssignVariable, value, "assign")

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Variable:
        """Add `delta`, of the value's shape. Raises InvalidArgumentError for another one. Returns the variable."""
        return self._update(state_ops.AssignAddVariable, delta, "assign_add")

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Variable:
        """Subtract `delta`. Returns the variable."""
        return self._update(state_ops.AssignSubVariable, delta, "assign_sub")

    def _scatter(self, op: Any, slices: IndexedSlices) -> Variable:
        values = dispatch.to_tensor(slices.values, self.dtype, None)
        indices = dispatch.to_tensor(slices.indices, None, None)
        if dispatch.state.trace is not None:
            op(self, indices, values)
        else:
            with self._lock:
                op.kernel(op.bind({}))(self, indices.constant, values.constant)
        return self

    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Set rows: self[indices[i]] = values[i]. Raises InvalidArgumentError for rows out of range."""
        return self._scatter(state_ops.ScatterUpdateVariable, sparse_delta)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Add to rows; values of equal indices are summed."""
        return self._scatter(state_ops.ScatterAddVariable, sparse_delta)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Subtract from rows; values of equal indices are summed."""
        return self._scatter(state_ops.ScatterSubVariable, sparse_delta)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Multiply rows; equal indices apply in order."""
        return self._scatter(state_ops.ScatterMulVariable, sparse_delta)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Divide rows; equal indices apply in order."""
        return self._scatter(state_ops.ScatterDivVariable, sparse_delta)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Replace rows by the maximum of their elements and the values."""
        return self._scatter(state_ops.ScatterMaxVariable, sparse_delta)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Replace rows by the minimum of their elements and the values."""
        return self._scatter(state_ops.ScatterMinVariable, sparse_delta)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Set the slices at `indices`; see `tensor_scatter_nd_update`. Returns the variable."""
        return self.assign(array_ops.tensor_scatter_nd_update(self, indices, updates, name=name))

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Add to the slices at `indices`. Returns the variable."""
        return self.assign(array_ops.tensor_scatter_nd_add(self, indices, updates, name=name))

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Subtract from the slices at `indices`. Returns the variable."""
        return self.assign(array_ops.tensor_scatter_nd_sub(self, indices, updates, name=name))

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Set rows of each batch entry: self[b..., indices[b..., i]] = values[b..., i]. Returns the variable."""
        indices = dispatch.to_tensor(sparse_delta.indices)
        n = len(indices.shape) - 1
        grid = array_ops.meshgrid(*(array_ops.range(d) for d in indices.shape), indexing="ij")[:n]
        positions = array_ops.stack([*(array_ops.cast(g, indices.dtype) for g in grid), indices], -1)
        return self.scatter_nd_update(positions, sparse_delta.values, name)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Replace the slices at `indices` by the maximum of their elements and the updates. Returns the variable."""
        return self.assign(array_ops.tensor_scatter_nd_max(self, indices, updates, name=name))

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Replace the slices at `indices` by the minimum of their elements and the updates. Returns the variable."""
        return self.assign(array_ops.tensor_scatter_nd_min(self, indices, updates, name=name))

    def __getitem__(self, key: Any) -> Tensor:
        """Return `variable[key]`, a tensor with a method `assign` that sets this part: `variable[1:3].assign(x)`."""
        part: Any = array_ops.getitem(self, key)

        def assign(value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Variable:
            return self.assign(set_item(self, key, value))

        part.assign = assign
        result: Tensor = part
        return result

    # ---- showing ------------------------------------------------------------------------------------------------

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Return the rows at `indices`; see `gather`."""
        return array_ops.gather(self, indices, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Return the slices at `indices`; see `gather_nd`."""
        return array_ops.gather_nd(self, indices, name=name)

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self.shape

    @property
    def device(self) -> str:
        """The device of the value."""
        return EagerTensor(self.read_array(), self.dtype).device

    @property
    def rank(self) -> int | None:
        """Number of dimensions."""
        return self.shape.rank

    @property
    def ndim(self) -> int | None:
        """Same as `rank`."""
        return self.shape.rank

    def identity(self) -> int:
        """Return a number that is unique among live variables: a key for state per variable."""
        return id(self)

    def ref(self) -> TensorReference:
        """Return a hashable reference that compares by identity."""
        return TensorReference(self)

    def __hash__(self) -> int:
        raise TypeError("Variable is unhashable. Instead, use variable.ref() as the key.")

    def __bool__(self) -> bool:
        return bool(self.value())

    def __int__(self) -> int:
        return int(self.value())

    def __float__(self) -> float:
        return float(self.value())

    def __complex__(self) -> complex:
        return complex(self.value())

    def __index__(self) -> int:
        return self.value().__index__()

    def __bytes__(self) -> bytes:
        return bytes(self.value())

    def __buffer__(self, flags: int) -> memoryview:
        """Return a read-only view of the elements (Python 3.12 and later)."""
        return self.value().__buffer__(flags)

    def __format__(self, spec: str) -> str:
        return format(self.value(), spec) if spec else str(self)

    def __dlpack__(self, **options: Any) -> object:
        return EagerTensor(self.read_array().copy(), self.dtype).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value().__dlpack_device__()

    def __len__(self) -> int:
        return len(self.value())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.value())

    def _refuse_in_place(self, other: Any) -> NoReturn:
        raise RuntimeError(
            "`variable += value` would bind the name to a tensor and leave the variable as it is: not supported. "
            "Use `variable.assign_add(value)` to modify the variable, or `out = variable + value` for a new tensor."
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = _refuse_in_place

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.numpy(), self.trainable, self.name, self.dtype, self.shape)

    def __deepcopy__(self, memo: Any) -> Variable:
        return Variable(
            self.numpy(),
            self.trainable,
            name=self.name.rpartition(":")[0],
            dtype=self.dtype,
            constraint=self.constraint,
            shape=self.shape,
        )

    _repr_html_ = shown_as("variable")

    def __repr__(self) -> str:
        value = self._resolved_value() if self._initial is not None else self._value
        shown = repr(value).partition("numpy=")[2][:-1] if value is not None else "<deleted>"
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={shown}>"


def _restored(value: Any, trainable: bool, name: str, dtype: DType, shape: TensorShape) -> Variable:
    """Unpickle a variable. Its constraint, a function, is not pickled."""
    return Variable(value, trainable, name=name.rpartition(":")[0], dtype=dtype, shape=shape)


_HANDLE = TensorSpec(SCALAR, "resource")


def _read_call(dtype: DType, shape: TensorShape) -> Call:
    return state_ops.ReadVariable.bind({"dtype": dtype, "shape": shape})
