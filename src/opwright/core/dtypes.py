"""DTypes: the element types of tensors, each tied to its NumPy dtype.

Lives here: `DType`, the named dtypes, groups of them (floating, numeric ...) and `as_dtype`.
Not here: promotion (there is none: mixing dtypes is an error, as in TensorFlow), conversion of values (eager/).
"""

from __future__ import annotations

import builtins
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from .lazy_imports import later

if TYPE_CHECKING:
    import ml_dtypes
else:
    ml_dtypes = later("ml_dtypes", "")  # takes 8 ms to import, and most models do not need it


class Extended(str):
    """The name of a scalar type of ml_dtypes, which is imported when the dtype's NumPy type is first read."""

    __slots__ = ()


class DType:
    """An element type. Compared by identity; `ow.float32`, or anything `as_dtype` accepts, yields the one instance.

    name: TensorFlow's name. as_numpy_dtype: the NumPy scalar type. size: bytes per element in memory (0 for strings and
    handles). short: the name in graph text, such as f32.
    """

    __slots__ = (
        "_extended",
        "as_numpy_dtype",
        "has_gradient",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_handle",
        "is_integer",
        "is_quantized",
        "is_unsigned",
        "name",
        "np",
        "short",
        "size",
    )

    def __init__(self, name: str, short: str, numpy_type: Any, kind: str) -> None:
        self.name, self.short = name, short
        if type(numpy_type) is Extended:
            self._extended = numpy_type
        else:
            self._represent(numpy_type)
        self.is_floating = kind == "f"
        self.is_integer = kind in "iu"
        self.is_unsigned = kind == "u"
        self.is_complex = kind == "c"
        self.is_bool = kind == "b"
        self.is_quantized = False
        # A tensor of it is a Python object: state elsewhere (resource), or a value of its own (variant).
        self.is_handle = name in ("resource", "variant")
        self.has_gradient = kind in "fc" or self.is_handle  # whether gradients flow through tensors of it

    def _represent(self, numpy_type: Any) -> None:
        self.as_numpy_dtype = numpy_type
        self.np = np.dtype(numpy_type)
        self.size = 0 if self.np.kind == "O" else self.np.itemsize

    def __getattr__(self, name: str) -> Any:
        """Resolve an empty slot: the NumPy type of an extended dtype, read for the first time."""
        if name not in ("as_numpy_dtype", "np", "size"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._represent(getattr(ml_dtypes, self._extended))
        return getattr(self, name)

    @property
    def real_dtype(self) -> DType:
        """float32 for complex64, float64 for complex128, itself otherwise."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def base_dtype(self) -> DType:
        """The dtype itself; for compatibility with reference dtypes."""
        return self

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        """Whether NumPy can represent the values: for all dtypes except handles and variants."""
        return not self.is_handle

    @property
    def min(self) -> Any:
        """Smallest finite value. Raises TypeError for dtypes that have none."""
        return self._limits()[0]

    @property
    def max(self) -> Any:
        """Largest finite value. Raises TypeError for dtypes that have none."""
        return self._limits()[1]

    @property
    def limits(self) -> tuple[Any, Any]:
        """(min, max)."""
        return self._limits()

    @functools.cache  # noqa: B019  dtypes live as long as the process
    def _limits(self) -> tuple[Any, Any]:
        if self.is_floating:
            f = ml_dtypes.finfo(self.np)
            return self.as_numpy_dtype(f.min), self.as_numpy_dtype(f.max)
        if self.is_integer:
            i = ml_dtypes.iinfo(self.np)
            return self.as_numpy_dtype(i.min), self.as_numpy_dtype(i.max)
        if self.is_bool:
            return False, True
        raise TypeError(f"dtype {self.name} has no minimum and maximum")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Return whether a tensor of dtype `other` may be used as this one: only if they are the same."""
        return as_dtype(other) is self

    # DTypes are also the trace types of dtypes: a dtype is a subtype of itself only.
    def is_subtype_of(self, other: Any) -> builtins.bool:
        """Return whether every tensor of this dtype has dtype `other`."""
        return self is other

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    # By identity, in C: a hash in Python would slow down every eager call, which looks up its kernel by dtypes.
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


float16 = DType("float16", "f16", np.float16, "f")
bfloat16 = DType("bfloat16", "bf16", Extended("bfloat16"), "f")
float32 = DType("float32", "f32", np.float32, "f")
float64 = DType("float64", "f64", np.float64, "f")
int4 = DType("int4", "i4", Extended("int4"), "i")
int8 = DType("int8", "i8", np.int8, "i")
uint8 = DType("uint8", "u8", np.uint8, "u")
int16 = DType("int16", "i16", np.int16, "i")
uint16 = DType("uint16", "u16", np.uint16, "u")
int32 = DType("int32", "i32", np.int32, "i")
uint32 = DType("uint32", "u32", np.uint32, "u")
int64 = DType("int64", "i64", np.int64, "i")
uint64 = DType("uint64", "u64", np.uint64, "u")
bool = DType("bool", "bool", np.bool_, "b")
string = DType("string", "str", np.object_, "s")
complex64 = DType("complex64", "c64", np.complex64, "c")
complex128 = DType("complex128", "c128", np.complex128, "c")
resource = DType("resource", "resource", np.object_, "r")
"""A handle to state that lives outside the graph: a variable, a table, a dataset's iterator."""
variant = DType("variant", "variant", np.object_, "v")
"""An immutable value that is not an array, such as a list of tensors."""

ALL: tuple[DType, ...] = (
    float16,
    bfloat16,
    float32,
    float64,
    int4,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    bool,
    string,
    complex64,
    complex128,
)

FILE_ONLY: tuple[DType, ...] = (
    DType("int2", "i2", Extended("int2"), "i"),
    DType("uint4", "u4", Extended("uint4"), "u"),
)
"""Dtypes of tensors in files only: no catalogue operator supports them, and `as_dtype` does not return them."""

# Groups, for `Input(dtypes=...)`.
floating = (bfloat16, float16, float32, float64)
signed_integer = (int8, int16, int32, int64)
unsigned_integer = (uint8, uint16, uint32, uint64)
integer = signed_integer + unsigned_integer
complexes = (complex64, complex128)
floating_or_complex = floating + complexes
real = floating + integer
signed = floating + signed_integer + complexes
numeric = real + complexes
index = (int32, int64)
any_dtype = (*ALL, resource)
anything = (*any_dtype, variant)


def as_dtype(value: Any) -> DType:
    """Return the DType for a DType, a name, a NumPy dtype or scalar type, or a Python type.

    float means float32, int means int32.

    raises TypeError if there is no such dtype
    """
    if type(value) is DType:
        return value
    try:
        return _BY_OBJECT[value]
    except (KeyError, TypeError):
        pass
    try:
        if value is None:  # NumPy takes it for float64
            raise TypeError
        return of_numpy(np.dtype(value))
    except TypeError:
        raise TypeError(
            f"Cannot convert the argument `type_value`: {value!r} to a DType; "
            f"wanted one of {', '.join(sorted(_BY_NAME))}, or a NumPy or Python type"
        ) from None


def of_numpy(dtype: np.dtype) -> DType:
    """Return the DType of a NumPy array's dtype. Text and object arrays are strings.

    raises TypeError for dtypes that tensors do not have, such as datetimes
    """
    result = _BY_NUMPY.get(dtype)
    if result is not None:
        return result
    if dtype.kind in "SUT":
        return string
    if dtype.kind == "V" and not _EXTENDED_BY_NUMPY:
        _EXTENDED_BY_NUMPY.update((d.np, d) for d in (bfloat16, int4))
    result = _EXTENDED_BY_NUMPY.get(dtype)
    if result is not None:
        _BY_NUMPY[dtype] = result
        return result
    native = dtype.newbyteorder("=")
    if native in _BY_NUMPY:
        return _BY_NUMPY[native]
    raise TypeError(f"NumPy dtype {dtype} has no tensor dtype; wanted one of {', '.join(sorted(_BY_NAME))}")


def of_stored(dtype: np.dtype) -> DType:
    """Return the DType of a constant of a graph, which may come from a file. Raises TypeError as `of_numpy`."""
    if dtype.kind == "V" and (file_only := next((d for d in FILE_ONLY if d.np == dtype), None)) is not None:
        return file_only
    return of_numpy(dtype)


def of_short(short: str) -> DType:
    """Return the DType with this name in graph text, such as f32. Raises KeyError."""
    return _BY_SHORT[short]


_BY_NAME = {d.name: d for d in anything}
_BY_SHORT = {d.short: d for d in (*anything, *FILE_ONLY)}
_OF_NUMPY = tuple(d for d in ALL if d not in (bfloat16, int4))
_BY_NUMPY: dict[Any, DType] = {d.np: d for d in _OF_NUMPY}
_EXTENDED_BY_NUMPY: dict[Any, DType] = {}  # filled at the first dtype that is not NumPy's own
_BY_OBJECT: dict[Any, DType] = {
    **_BY_NAME,
    **{d.as_numpy_dtype: d for d in _OF_NUMPY},
    float: float32,
    int: int32,
    complex: complex128,
    str: string,
    bytes: string,
    np.str_: string,
    np.bytes_: string,
    "half": float16,
    "float": float32,
    "double": float64,
    builtins.bool: bool,
}
