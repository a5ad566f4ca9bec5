"""One call of an operator, which checks run in many ways; what is compared, and how nearly.

Lives here: `Trial`, `NotTried`, comparisons.  Not here: the checks, making inputs up (trial.py).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..eager.tensor import EagerTensor, make
from ..ops import lod_calls
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import LoDTensor

SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (3, 3), (4,), (), (2, 3, 4), (1, 4, 4, 2), (1, 4, 4, 4, 2))
TRIES = 400  # combinations of shapes and dtypes until a call works


def numbers(shape: tuple[int, ...], dtype: dtypes.DType, seed: int) -> np.ndarray:
    """Numbers between 0.1 and 0.9, away from each other; small integers; text."""
    n = math.prod(shape)
    flat = 0.1 + 0.8 * ((np.arange(n) * 0.6180339887 + seed * 0.37) % 1.0)
    if dtype is dtypes.string:
        return np.array([b"text %d" % i for i in range(n)], object).reshape(shape)
    if dtype.is_bool:
        return (flat > 0.5).reshape(shape)
    if dtype.is_floating or dtype.is_complex:
        return flat.reshape(shape).astype(dtype.np)
    return (np.arange(n) % 3 + seed % 2).reshape(shape).astype(dtype.np)


def made_up(op: Any) -> Trial:
    """A call that works: the one its definition gives as `example`, or found. Raises NotTried with the last error."""
    if op.effect is not None or op.control:
        raise NotTried(f"it has an effect: {op.effect}" if op.effect else "control flow runs in graphs alone")
    example = vars(op._call_class).get("example")
    if example is not None:
        return Trial.of(op, example())
    required = [a for a in op.attr_defs.values() if a.required]
    needed = [i for i in op.inputs if not i.optional]
    last: Exception | None = None
    choices = itertools.product(*(list(_attribute(a)) for a in required))
    for attrs in itertools.islice(choices, 24):
        tries = itertools.product(*(_candidates(i, k) for k, i in enumerate(needed)))
        for values in itertools.islice(tries, TRIES if len(needed) < 3 else 4 * TRIES):
            given = {a.name: v for a, v in zip(required, attrs)} | {i.name: v for i, v in zip(needed, values)}
            try:
                trial = Trial.of(op, given)
                trial.call()
            except Exception as error:  # whatever a rule does with inputs that are not for it
                last = error
            else:
                return trial
    why = f"; the last try: {str(last).splitlines()[0]}" if last else ""
    raise NotTried(f"no inputs could be made up{why}. Give the class `def example(): return dict(x=..., n=...)`")


def _attribute(attr: Any) -> Iterator[Any]:
    """Values to try for a required attribute."""
    item = attr.type[0] if isinstance(attr.type, list) else attr.type
    form = attr.check.known_form if attr.check else ()
    if form and form[0] == "one_of":
        yield from form[1:]
        return
    known: dict[Any, tuple[Any, ...]] = {
        int: (1, 0, 2, -1),
        float: (1.0, 0.5, 0.0, 2.0),
        bool: (False, True),
        str: ("a", ""),
        bytes: (b"a",),
        dtypes.DType: (dtypes.float32, dtypes.int32),
        object: (None,),
    }
    values = known.get(item, ())
    if isinstance(attr.type, list):
        yield from ((v,) * n for v in values for n in (1, 2, 4, 5))
    else:
        yield from values


def _dtypes_for(declared: Any) -> list[dtypes.DType]:
    usable = [d for d in declared.dtypes if not d.is_handle]
    return sorted(usable, key=lambda d: (d is not dtypes.float64, d is not dtypes.float32, d is not dtypes.int32))[:2]


def _candidates(declared: Any, seed: int) -> list[Any]:
    found = []
    for shape, dtype in itertools.product(SHAPES, _dtypes_for(declared)):
        if declared.ranks is None or len(shape) in declared.ranks:
            value = numbers(shape, dtype, seed)
            found.append([value, numbers(shape, dtype, seed + 7)] if declared.repeated else value)
    return found


TOLERANCE = {  # relative to each element, and absolute
    "float64": (1e-10, 1e-12),
    "complex128": (1e-10, 1e-12),
    "float32": (2e-5, 1e-6),
    "complex64": (2e-5, 2e-6),
    "float16": (4e-3, 2e-3),
    "bfloat16": (3e-2, 2e-2),
}


class NotTried(Exception):
    """A check is not for this call; why."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """A call. inputs: one entry for each declared input: None, a tensor or LoDTensor, or a tuple of them."""

    op: Any
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]

    @classmethod
    def of(cls, op: Any, given: Mapping[str, Any]) -> Trial:
        """From inputs and attributes by name; inputs are arrays, nested lists, tensors, LoDTensors, lists of these.

        raises ValueError for a name the operator has not
        """
        wrong = [n for n in given if n not in op.input_names and n not in op.attr_defs]
        if wrong:
            known = ", ".join((*op.input_names, *op.attr_defs))
            raise ValueError(f"{op.name} has no input or attribute {wrong[0]!r}; it has {known}")

        def taken(declared: Any) -> Any:
            value = given.get(declared.name)
            if value is None:
                return None
            return tuple(map(tensor, value)) if declared.repeated else tensor(value)

        return cls(op, tuple(map(taken, op.inputs)), {k: v for k, v in given.items() if k in op.attr_defs})

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Every tensor with the name of its input; those of a list with its place: `x[1]`."""
        for declared, value in zip(self.op.inputs, self.inputs):
            if isinstance(value, tuple):
                yield from ((f"{declared.name}[{i}]", member) for i, member in enumerate(value))
            elif value is not None:
                yield declared.name, value

    def tensors(self) -> list[Any]:
        """Every tensor, in order."""
        return [t for _, t in self.parts()]

    def over(self, tensors: Sequence[Any]) -> Trial:
        """The same call of other tensors, in the order of `tensors()`."""
        return dataclasses.replace(self, inputs=tuple(self.operands(tensors)))

    def operands(self, values: Sequence[Any]) -> list[Any]:
        """Others in place of the tensors, one entry for each declared input."""
        rest = iter(values)
        return [
            None if x is None else tuple(next(rest) for _ in x) if isinstance(x, tuple) else next(rest)
            for x in self.inputs
        ]

    def call(self, tensors: Sequence[Any] | None = None) -> Any:
        """What the operator gives, here or with other tensors."""
        chosen = self.inputs if tensors is None else self.operands(tensors)
        given = {i.name: x for i, x in zip(self.op.inputs, chosen) if x is not None}
        return self.op(**given, **self.attrs)

    def plain(self) -> Trial:
        """The same call of ordinary tensors: LoDs taken apart, offsets in the inputs that ask for them."""
        inputs = list(self.inputs)
        carriers = lod_calls.carriers_of(self.op, inputs)
        return dataclasses.replace(self, inputs=tuple(lod_calls.take_apart(self.op, inputs, carriers)))

    def flat(self, tensors: Sequence[Any] | None = None) -> list[Any]:
        """The tensors that come out, in a flat list."""
        return flat(self.call(tensors))

    def floats(self) -> list[int]:
        """Which of `tensors()` are floating or complex."""
        return [i for i, t in enumerate(self.tensors()) if flows(t)]


def tensor(value: Any) -> Any:
    """An eager tensor of a value; LoDTensors, rows and tensors as they are."""
    if isinstance(value, (EagerTensor, LoDTensor, IndexedSlices)):
        return value
    from ..ops import dispatch

    return make(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else dispatch.to_tensor(value)


def flat(result: Any) -> list[Any]:
    """The tensors of a result; a LoDTensor is one, and so are rows."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [t for part in parts for t in (part if isinstance(part, (tuple, list)) else [part]) if t is not None]


def flows(t: Any) -> bool:
    """Whether gradients flow through it by its dtype."""
    dtype = getattr(t, "dtype", None)
    return getattr(dtype, "is_floating", False) or getattr(dtype, "is_complex", False)


def array(t: Any) -> np.ndarray:
    """Its numbers; of a LoDTensor the rows, of sparse rows the whole table."""
    t = t.to_dense() if isinstance(t, IndexedSlices) else t
    t = t.values if isinstance(t, LoDTensor) else t
    return np.asarray(t.numpy() if hasattr(t, "numpy") else t)


def replaced(t: Any, numbers: Any) -> Any:
    """Other numbers as a tensor with the LoD of `t`."""
    made = make(numbers) if isinstance(numbers, np.ndarray) else numbers
    return LoDTensor.of(made, t.levels) if isinstance(t, LoDTensor) else made


def lod_of(t: Any) -> Any:
    """The offsets of a LoDTensor; of anything else []."""
    return t.lod() if isinstance(t, LoDTensor) else []


def assert_same(found: Sequence[Any], wanted: Sequence[Any], where: str, bits: bool = True) -> None:
    """As many tensors, of the same dtypes, shapes and LoDs; the same bits, or numbers within the dtype's tolerance.

    Objects behind handles are not looked at. raises AssertionError
    """
    assert len(found) == len(wanted), f"{where}: {len(found)} results, wanted {len(wanted)}"
    for i, (a, b) in enumerate(zip(found, wanted)):
        if getattr(b, "dtype", None) is not None and getattr(b.dtype, "is_handle", False):
            continue
        assert lod_of(a) == lod_of(b), f"{where}, result {i}: LoD {lod_of(a)}, wanted {lod_of(b)}"
        x, y = array(a), array(b)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), (
            f"{where}, result {i}: {x.dtype} {x.shape}, wanted {y.dtype} {y.shape}"
        )
        if bits and x.dtype != object:
            assert x.tobytes() == y.tobytes(), f"{where}, result {i}: {_first(x, y)}"
        elif x.dtype == object:
            assert x.ravel().tolist() == y.ravel().tolist(), f"{where}, result {i}: {_first(x, y)}"
        else:
            assert_near(x, y, f"{where}, result {i}")


def assert_near(
    found: np.ndarray, wanted: Any, where: str, rtol: float | None = None, atol: float | None = None
) -> None:
    """Same shape; equal, or for floating numbers within the tolerance of the dtype that was found."""
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape, f"{where}: shape {found.shape}, wanted {wanted.shape}"
    if found.dtype == object or found.dtype.name not in TOLERANCE:
        same = [a == b for a, b in zip(found.ravel().tolist(), wanted.ravel().tolist())]
        assert all(same), f"{where}: {_first(found, wanted)}"
        return
    relative, near = TOLERANCE[found.dtype.name]
    kind = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        target = wanted.astype(found.dtype)  # what overflows there is infinite there
    np.testing.assert_allclose(
        found.astype(kind),
        target.astype(kind),
        relative if rtol is None else rtol,
        near if atol is None else atol,
        err_msg=where,
    )


def _first(x: np.ndarray, y: np.ndarray) -> str:
    """The first places where two arrays differ, in words."""
    a, b = x.ravel().tolist(), y.ravel().tolist()
    at = [i for i, (p, q) in enumerate(zip(a, b)) if p != q or (p == q == 0 and repr(p) != repr(q))][:3]
    return "; ".join(f"element {i} is {a[i]!r}, wanted {b[i]!r}" for i in at) or "other bits"


def refs(t: Any) -> list[np.ndarray]:
    """The arrays a tensor holds: of a LoDTensor rows and offsets."""
    found = [t]
    if isinstance(t, LoDTensor):
        found = [t.values, *t.levels]
    elif isinstance(t, IndexedSlices):
        found = [t.values, t.indices]
    return [f._array for f in found if isinstance(getattr(f, "_array", None), np.ndarray)]
