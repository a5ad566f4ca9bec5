"""One call of an operator, which checks run in many ways; generated inputs; comparisons and their tolerances.

Lives here: `CheckedCall`, `NotApplicable`, `generate_call`, comparisons.  Not here: the checks.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..eager.tensor import EagerTensor, make
from ..ops import dispatch, lod_propagation
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import LoDTensor

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (3, 3), (4,), (), (2, 3, 4), (1, 4, 4, 2), (1, 4, 4, 4, 2))
MAX_ATTEMPTS = 400  # combinations of shapes and dtypes tried until a call works


def numbers(shape: tuple[int, ...], dtype: dtypes.DType, seed: int) -> np.ndarray:
    """Return numbers between 0.1 and 0.9, well separated; small integers; text."""
    n = math.prod(shape)
    flat = 0.1 + 0.8 * ((np.arange(n) * 0.6180339887 + seed * 0.37) % 1.0)
    if dtype is dtypes.string:
        return np.array([b"text %d" % i for i in range(n)], object).reshape(shape)
    if dtype.is_bool:
        return (flat > 0.5).reshape(shape)
    if dtype.is_floating or dtype.is_complex:
        return flat.reshape(shape).astype(dtype.np)
    return (np.arange(n) % 3 + seed % 2).reshape(shape).astype(dtype.np)


def generate_call(op: Any) -> CheckedCall:
    """Return a valid call: the definition's `example`, or found by search. Raises NotApplicable with the last error."""
    if op.effect is not None or op.control:
        raise NotApplicable(f"it has an effect: {op.effect}" if op.effect else "control flow runs in graphs alone")
    example = vars(op._call_class).get("example")
    if example is not None:
        return CheckedCall.of(op, example())
    required = [a for a in op.attr_defs.values() if a.required]
    needed = [i for i in op.inputs if not i.optional]
    last: Exception | None = None
    choices = itertools.product(*(list(_attribute_values(a)) for a in required))
    for attrs in itertools.islice(choices, 24):
        tries = itertools.product(*(_input_values(i, k) for k, i in enumerate(needed)))
        for values in itertools.islice(tries, MAX_ATTEMPTS if len(needed) < 3 else 4 * MAX_ATTEMPTS):
            arguments = {a.name: v for a, v in zip(required, attrs)} | {i.name: v for i, v in zip(needed, values)}
            try:
                call = CheckedCall.of(op, arguments)
                call.call()
            except Exception as error:  # rules may raise any error for unsuitable inputs
                last = error
            else:
                return call
    reason = f"; the last try: {str(last).splitlines()[0]}" if last else ""
    raise NotApplicable(
        f"no inputs could be made up{reason}. Give the class `def example(): return dict(x=..., n=...)`"
    )


def _attribute_values(attr: Any) -> Iterator[Any]:
    """Yield values to try for a required attribute."""
    item = attr.type[0] if isinstance(attr.type, list) else attr.type
    constraint = attr.check.canonical_form if attr.check else ()
    if constraint and constraint[0] == "one_of":
        yield from constraint[1:]
        return
    values_by_type: dict[Any, tuple[Any, ...]] = {
        int: (1, 0, 2, -1),
        float: (1.0, 0.5, 0.0, 2.0),
        bool: (False, True),
        str: ("a", ""),
        bytes: (b"a",),
        dtypes.DType: (dtypes.float32, dtypes.int32),
        object: (None,),
    }
    values = values_by_type.get(item, ())
    if isinstance(attr.type, list):
        yield from ((v,) * n for v in values for n in (1, 2, 4, 5))
    else:
        yield from values


def _dtypes_for(declared: Any) -> list[dtypes.DType]:
    usable = [d for d in declared.dtypes if not d.is_handle]
    return sorted(usable, key=lambda d: (d is not dtypes.float64, d is not dtypes.float32, d is not dtypes.int32))[:2]


def _input_values(declared: Any, seed: int) -> list[Any]:
    values = []
    for shape, dtype in itertools.product(SHAPES, _dtypes_for(declared)):
        if declared.ranks is None or len(shape) in declared.ranks:
            value = numbers(shape, dtype, seed)
            values.append([value, numbers(shape, dtype, seed + 7)] if declared.repeated else value)
    return values


TOLERANCE = {  # relative to each element, and absolute
    "float64": (1e-10, 1e-12),
    "complex128": (1e-10, 1e-12),
    "float32": (2e-5, 1e-6),
    "complex64": (2e-5, 2e-6),
    "float16": (4e-3, 2e-3),
    "bfloat16": (3e-2, 2e-2),
}


class NotApplicable(Exception):
    """A check does not apply to this call; the message has the reason."""


@dataclasses.dataclass(frozen=True, eq=False)
class CheckedCall:
    """A call. inputs: one entry for each declared input: None, a tensor or LoDTensor, or a tuple of them."""

    op: Any
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]

    @classmethod
    def of(cls, op: Any, arguments: Mapping[str, Any]) -> CheckedCall:
        """Create a call from inputs and attributes by name; inputs are arrays, nested lists, tensors, LoDTensors, lists
        of these.

        raises ValueError for a name that the operator does not have
        """
        wrong = [n for n in arguments if n not in op.input_names and n not in op.attr_defs]
        if wrong:
            names = ", ".join((*op.input_names, *op.attr_defs))
            raise ValueError(f"{op.name} has no input or attribute {wrong[0]!r}; it has {names}")

        def input_value(declared: Any) -> object:
            value = arguments.get(declared.name)
            if value is None:
                return None
            return tuple(map(tensor, value)) if declared.repeated else tensor(value)

        return cls(op, tuple(map(input_value, op.inputs)), {k: v for k, v in arguments.items() if k in op.attr_defs})

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Yield every tensor with the name of its input; members of a list with their index: `x[1]`."""
        for declared, value in zip(self.op.inputs, self.inputs):
            if isinstance(value, tuple):
                yield from ((f"{declared.name}[{i}]", member) for i, member in enumerate(value))
            elif value is not None:
                yield declared.name, value

    def tensors(self) -> list[Any]:
        """Return every tensor, in order."""
        return [t for _, t in self.parts()]

    def over(self, tensors: Sequence[Any]) -> CheckedCall:
        """Return the same call on other tensors, in the order of `tensors()`."""
        return dataclasses.replace(self, inputs=tuple(self.operands(tensors)))

    def operands(self, values: Sequence[Any]) -> list[Any]:
        """Return the operands with the tensors replaced, one entry for each declared input."""
        remaining = iter(values)
        return [
            None if x is None else tuple(next(remaining) for _ in x) if isinstance(x, tuple) else next(remaining)
            for x in self.inputs
        ]

    def call(self, tensors: Sequence[Any] | None = None) -> Any:
        """Return the operator's results, for these or for other tensors."""
        operands = self.inputs if tensors is None else self.operands(tensors)
        inputs = {i.name: x for i, x in zip(self.op.inputs, operands) if x is not None}
        return self.op(**inputs, **self.attrs)

    def plain(self) -> CheckedCall:
        """Return the same call on ordinary tensors: LoDs split, offsets in the inputs that ask for them."""
        inputs = list(self.inputs)
        carriers = lod_propagation.carriers_of(self.op, inputs)
        return dataclasses.replace(self, inputs=tuple(lod_propagation.take_apart(self.op, inputs, carriers)))

    def flat(self, tensors: Sequence[Any] | None = None) -> list[Any]:
        """Return the result tensors in a flat list."""
        return flat(self.call(tensors))

    def floats(self) -> list[int]:
        """Return the indices of the floating and complex tensors in `tensors()`."""
        return [i for i, t in enumerate(self.tensors()) if flows(t)]


def tensor(value: Any) -> Tensor | LoDTensor | IndexedSlices:
    """Return an eager tensor of a value; LoDTensors, rows and tensors unchanged."""
    if isinstance(value, (EagerTensor, LoDTensor, IndexedSlices)):
        return value
    return make(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else dispatch.to_tensor(value)


def flat(result: Any) -> list[Any]:
    """Return the tensors of a result in a flat list; a LoDTensor counts as one, as do rows."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [t for part in parts for t in (part if isinstance(part, (tuple, list)) else [part]) if t is not None]


def flows(t: Any) -> bool:
    """Return whether gradients flow through it, by its dtype."""
    dtype = getattr(t, "dtype", None)
    return getattr(dtype, "is_floating", False) or getattr(dtype, "is_complex", False)


def array(t: Any) -> np.ndarray:
    """Return its numbers: a LoDTensor's rows, the dense form of sparse rows."""
    t = t.to_dense() if isinstance(t, IndexedSlices) else t
    t = t.values if isinstance(t, LoDTensor) else t
    return np.asarray(t.numpy() if hasattr(t, "numpy") else t)


def replaced(t: Any, numbers: Any) -> Tensor | LoDTensor:
    """Return other numbers as a tensor with the LoD of `t`."""
    result = make(numbers) if isinstance(numbers, np.ndarray) else numbers
    return LoDTensor.of(result, t.levels) if isinstance(t, LoDTensor) else result


def lod_of(t: Any) -> list[list[int]]:
    """Return the offsets of a LoDTensor; [] for any other tensor."""
    return t.lod() if isinstance(t, LoDTensor) else []


def assert_same(actual: Sequence[Any], expected: Sequence[Any], where: str, bits: bool = True) -> None:
    """Check that there are as many tensors, of the same dtypes, shapes and LoDs; equal in bits, or within the
    tolerance.

    Objects behind handles are ignored. raises AssertionError
    """
    if len(actual) != len(expected):
        raise AssertionError(f"{where}: {len(actual)} results, wanted {len(expected)}")
    for i, (a, b) in enumerate(zip(actual, expected)):
        if getattr(b, "dtype", None) is not None and getattr(b.dtype, "is_handle", False):
            continue
        if lod_of(a) != lod_of(b):
            raise AssertionError(f"{where}, result {i}: LoD {lod_of(a)}, wanted {lod_of(b)}")
        x, y = array(a), array(b)
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            raise AssertionError(f"{where}, result {i}: {x.dtype} {x.shape}, wanted {y.dtype} {y.shape}")
        if bits and x.dtype != object:
            if x.tobytes() != y.tobytes():
                raise AssertionError(f"{where}, result {i}: {_first_differences(x, y)}")
        elif x.dtype == object:
            if x.ravel().tolist() != y.ravel().tolist():
                raise AssertionError(f"{where}, result {i}: {_first_differences(x, y)}")
        else:
            assert_near(x, y, f"{where}, result {i}")


def assert_near(
    actual: np.ndarray, expected: Any, where: str, rtol: float | None = None, atol: float | None = None
) -> None:
    """Check that shapes are equal, and elements equal or, for floating numbers, within the tolerance of the actual
    dtype.
    """
    expected = np.asarray(expected)
    if actual.shape != expected.shape:
        raise AssertionError(f"{where}: shape {actual.shape}, wanted {expected.shape}")
    if actual.dtype == object or actual.dtype.name not in TOLERANCE:
        same = [a == b for a, b in zip(actual.ravel().tolist(), expected.ravel().tolist())]
        if not all(same):
            raise AssertionError(f"{where}: {_first_differences(actual, expected)}")
        return
    relative, absolute = TOLERANCE[actual.dtype.name]
    kind = np.complex128 if actual.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        target = expected.astype(actual.dtype)  # overflow becomes infinity
    np.testing.assert_allclose(
        actual.astype(kind),
        target.astype(kind),
        relative if rtol is None else rtol,
        absolute if atol is None else atol,
        err_msg=where,
    )


def _first_differences(x: np.ndarray, y: np.ndarray) -> str:
    """Describe the first elements in which two arrays differ."""
    a, b = x.ravel().tolist(), y.ravel().tolist()
    indices = [i for i, (p, q) in enumerate(zip(a, b)) if p != q or (p == q == 0 and repr(p) != repr(q))][:3]
    return "; ".join(f"element {i} is {a[i]!r}, wanted {b[i]!r}" for i in indices) or "other bits"


def refs(t: Any) -> list[np.ndarray]:
    """Return the arrays of a tensor; of a LoDTensor rows and offsets."""
    tensors = [t]
    if isinstance(t, LoDTensor):
        tensors = [t.values, *t.levels]
    elif isinstance(t, IndexedSlices):
        tensors = [t.values, t.indices]
    return [f._array for f in tensors if isinstance(getattr(f, "_array", None), np.ndarray)]
