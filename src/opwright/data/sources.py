"""Datasets that start a pipeline: tensors, their slices, numbers, Python generators.

Lives here: the classes.  Not here: the public constructors (constructors.py), files (files.py).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import errors, nest
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError, compose
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..eager.python_functions import function_name
from ..eager.tensor import EagerTensor, to_array
from ..ops.lod_tensor import LoDTensor, LoDTensorSpec
from ..ops.random.state import seeds_for
from ..tracing.symbolic import SymbolicTensor
from .base import INFINITE, UNKNOWN, Rows
from .composites import has_composites, sized_parts, split
from .dataset import Dataset
from .functions import Failure, IteratorContext, RandomPasses
from .structure import ElementStructure, Flat, map_leaves, operand, row, structure_of_value

if TYPE_CHECKING:
    from ..core.type_spec import TypeSpec

_BLOCK = 4096  # numbers of a range computed at once


class _TensorDataset(Dataset):
    def __init__(self, value: Any) -> None:
        spec, tensors = structure_of_value(value)
        super().__init__(spec, operands=[operand(t) for t in tensors])

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        return iter((self._operands,))

    def _cardinality(self) -> int:
        return 1


class _TensorSliceDataset(Dataset):
    def __init__(self, value: Any) -> None:
        if any(isinstance(part, LoDTensor) for part in nest.flatten(value)):
            raise TypeError(
                compose(
                    "sequences cannot be sliced to elements of one type",
                    found="a LoDTensor",
                    op="Dataset.from_tensor_slices",
                    wanted="tensors",
                    do="from_tensors for the entire value, from_generator with x.to_nested(), or x.values for its rows",
                )
            )
        spec, tensors = structure_of_value(value)
        size: int | None = None
        if not tensors:
            raise ValueError(f"Dataset.from_tensor_slices needs a tensor, found none in {value!r}")
        self._whole = ElementStructure(spec)
        self._composite = has_composites(self._whole)
        for leaf in sized_parts(self._whole):
            shape = leaf.shape
            if shape.rank == 0:
                raise ValueError("Unbatching a tensor is only supported for rank >= 1")
            if shape.rank and shape[0] is not None:
                if size is not None and shape[0] != size:
                    raise ValueError(
                        f"Dimensions {size} and {shape[0]} are not compatible: Dataset.from_tensor_slices "
                        "takes components with one first dimension"
                    )
                size = shape[0]
        super().__init__(map_leaves(row_spec, spec), operands=[operand(t) for t in tensors])
        self.begin()

    def begin(self) -> None:
        if self._composite:
            return
        arrays = [a for a in self._operands if type(a) is not SymbolicTensor]
        sizes = {len(a) for a in arrays}
        if len(sizes) > 1:
            raise InvalidArgumentError(
                op="Dataset.from_tensor_slices",
                what="the components differ in their first dimension",
                found=sorted(sizes),
                wanted="one size",
            )

    def rows(self, context: IteratorContext) -> Rows | None:
        if self._composite:
            return None
        n = len(self._operands[0])
        return self._operands, lambda: iter(range(n))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        rows = self.rows(context)
        return iterate_rows(*rows) if rows is not None else self._composite_rows()

    def _composite_rows(self) -> Iterator[Any]:
        rows = split(self._whole, self._operands, "Dataset.from_tensor_slices")
        if isinstance(rows, Failure):
            yield rows
        else:
            count, get = rows
            yield from map(get, range(count))

    def _cardinality(self) -> int:
        if self._composite and all(type(a) is not SymbolicTensor for a in self._operands):
            rows = split(self._whole, self._operands, "Dataset.from_tensor_slices")
            return 1 if isinstance(rows, Failure) else rows[0]
        first = self._operands[0]
        return UNKNOWN if type(first) is SymbolicTensor else len(first)


def iterate_rows(arrays: tuple[Any, ...], order: Callable[[], Iterator[int]]) -> Iterator[Any]:
    """Yield rows of arrays, as views, in an order."""
    if any(array.dtype == object for array in arrays):
        for i in order():
            yield tuple([row(array, i) for array in arrays])
    elif len(arrays) == 1:
        (array,) = arrays
        for i in order():
            yield (array[i, ...],)
    else:
        for i in order():
            yield tuple([array[i, ...] for array in arrays])


def row_spec(spec: Any) -> TypeSpec:
    """Return the type of a row. Raises ValueError for scalars and types without rows."""
    if isinstance(spec, TensorSpec):
        dims = spec.shape.dims
        if dims == ():
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return TensorSpec(None if dims is None else dims[1:], spec.dtype)
    unbatch: Callable[[], TypeSpec] | None = getattr(spec, "_unbatch", None)
    if unbatch is None:
        raise ValueError(f"values of type {spec!r} have no rows")
    return unbatch()


class _RangeDataset(Dataset):
    def __init__(self, start: Any, stop: Any, step: Any, dtype: DType) -> None:
        super().__init__(TensorSpec((), dtype), operands=(start, stop, step))
        self.begin()

    def begin(self) -> None:
        if self._operands[2] == 0 and type(self._operands[2]) is not SymbolicTensor:
            raise InvalidArgumentError(op="Dataset.range", what="step must be a non-zero integer", found=0)

    def _range(self) -> range:
        return range(*map(int, self._operands))

    def rows(self, context: IteratorContext) -> Rows | None:
        numbers = self._range()
        if len(numbers) > _BLOCK:
            return None
        array = np.arange(numbers.start, numbers.stop, numbers.step).astype(self._form.dtypes[0].np)
        return (array,), lambda: iter(range(len(array)))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        numbers, dtype = self._range(), self._form.dtypes[0].np
        for first in range(0, len(numbers), _BLOCK):
            part = numbers[first : first + _BLOCK]
            block = np.arange(part.start, part.stop, part.step).astype(dtype)
            for i in range(len(block)):
                yield (block[i, ...],)

    def _cardinality(self) -> int:
        return len(self._range()) if self._is_known() else UNKNOWN


class _CounterDataset(Dataset):
    def __init__(self, start: Any, step: Any, dtype: DType) -> None:
        super().__init__(TensorSpec((), dtype), operands=(start, step))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        value, step = map(int, self._operands)
        dtype = self._form.dtypes[0].np
        while True:
            yield (np.array(value, dtype),)
            value += step

    def _cardinality(self) -> int:
        return INFINITE


class _RandomDataset(RandomPasses, Dataset):
    def __init__(self, seed: Any, rerandomize: bool | None) -> None:
        super().__init__(TensorSpec((), "int64"))
        self._seeds = seeds_for(seed)
        self._rerandomize = bool(rerandomize)
        self.begin()

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        seeds = self._seeds
        key = [seeds["seed"], seeds["seed2"], context.epoch(self, self._rerandomize)]
        if key[:2] == [0, 0]:
            key[0] = self._entropy if context.random_access else secrets.randbits(64)
        generator = np.random.Generator(np.random.Philox(_seed_sequence(key)))
        while True:
            block = generator.integers(0, 1 << 32, _BLOCK // 4, np.int64)
            for i in range(len(block)):
                yield (block[i, ...],)

    def _cardinality(self) -> int:
        return INFINITE


def _seed_sequence(key: list[int]) -> np.random.SeedSequence:
    return np.random.SeedSequence([k & ((1 << 64) - 1) for k in key])


class _GeneratorDataset(Dataset):
    """Elements yielded by a Python callable, which every iteration calls again."""

    def __init__(self, generator: Callable[..., Any], spec: Any, args: Any) -> None:
        values = () if args is None else tuple(args)
        super().__init__(spec, operands=[operand(t) for t in structure_of_value(values)[1]] if values else ())
        self._generator = generator

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        convert = element_converter(self._form, f"generator {function_name(self._generator)!r}")
        try:
            source = iter(self._generator(*[a if a.ndim else a[()] for a in map(np.asarray, self._operands)]))
        except Exception as error:
            yield Failure(generator_error(error, self._generator))
            return
        while True:
            try:
                value = next(source)
            except StopIteration:
                return
            except Exception as error:
                yield Failure(generator_error(error, self._generator))
                continue
            try:
                yield convert(value)
            except InvalidArgumentError as error:
                yield Failure(error)


def generator_error(error: Exception, function: Any) -> Exception:
    """Convert an error of a user's generator to TensorFlow's class, with the error as its cause."""
    if isinstance(error, errors.OpError):
        return error
    error_class: Any = (
        InvalidArgumentError
        if isinstance(error, (TypeError, ValueError))
        else getattr(errors, "UnknownError", errors.OpError)
    )
    new = error_class(
        op="Dataset.from_generator", what=f"{type(error).__name__}: {error}, raised in {function_name(function)!r}"
    )
    new.__cause__ = error
    result: Exception = new
    return result


def element_converter(form: ElementStructure, who: str) -> Callable[[Any], Any]:
    """Return the conversion of Python values to flat elements; it raises InvalidArgumentError on mismatch."""
    single = form.components[0] if type(form.spec) is TensorSpec else None

    def component(value: Any, spec: TensorSpec) -> np.ndarray:
        try:
            array = (
                value._array
                if type(value) is EagerTensor and value._dtype is spec.dtype
                else _cast_by_numpy(value, spec.dtype)
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                op="Dataset.from_generator",
                what=f"TypeError: `generator` yielded an element that could not be converted to the expected type. The "
                f"expected type was {spec.dtype.name}, but the yielded element was {_shorten(value)}. ({who})",
            ) from error
        dims = spec.shape.dims
        if dims is not None and array.shape != dims and not spec.shape.is_compatible_with(array.shape):
            raise InvalidArgumentError(
                op="Dataset.from_generator",
                what=f"TypeError: `generator` yielded an element of shape {array.shape} where an element of shape "
                f"{TensorShape(dims)} was expected. ({who})",
            )
        return array

    def sequences(value: Any, spec: LoDTensorSpec) -> LoDTensor:
        if isinstance(value, (list, tuple)):
            row = spec.shape.dims or (None,)
            value = LoDTensor.from_nested(value, spec.lod_level, spec.dtype, [n or 0 for n in row[1:]])
        if not isinstance(value, LoDTensor) or not spec.is_compatible_with(value):
            description = repr(value._type_spec) if isinstance(value, LoDTensor) else _shorten(value)
            raise InvalidArgumentError(
                op="Dataset.from_generator",
                what=f"the generator yielded sequences of another type than output_signature ({who})",
                found=description,
                wanted=repr(spec),
                do="yield nested lists or ow.LoDTensor",
            )
        return value

    def convert(value: Any) -> Flat:
        if single is not None:
            return (component(value, single),)
        parts: list[Any] = []

        def leaf(spec: Any, part: Any) -> None:
            if type(spec) is TensorSpec:
                parts.append(component(part, spec))
            else:
                if isinstance(spec, LoDTensorSpec):
                    part = sequences(part, spec)
                parts.extend(t._array for t in spec.to_tensors(part))

        try:
            map_leaves(leaf, form.spec, value)
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidArgumentError):
                raise
            expected = map_leaves(lambda s: getattr(s, "dtype", s), form.spec)
            raise InvalidArgumentError(
                op="Dataset.from_generator",
                what=f"TypeError: `generator` yielded an element that did not match the expected structure. The "
                f"expected structure was {expected!r}, but the yielded element was {_shorten(value)}. ({who})",
            ) from error
        return tuple(parts)

    return convert


def _cast_by_numpy(value: Any, dtype: DType) -> np.ndarray:
    """Convert by NumPy's rules: a generator's float64 numbers become float32, its integers floats."""
    if isinstance(value, EagerTensor):
        value = value._array
    if dtype.name != "string" and isinstance(value, (np.ndarray, np.generic)) and value.dtype != dtype.np:
        if value.dtype.kind in "OSU" or not np.can_cast(value.dtype, dtype.np, "same_kind"):
            raise TypeError(f"{value.dtype} is not {dtype.name}")
        return np.array(value, dtype.np)
    return to_array(value, dtype)[0]


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) < 80 else text[:77] + "..."
