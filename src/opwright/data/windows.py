"""Transformations to datasets of datasets: window and group_by_window.

Not here: interleaving of datasets (combination.py), batches (batch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..tracing.symbolic import SymbolicTensor
from .base import INFINITE, UNKNOWN, DatasetHandle, DatasetSpec, int_operand
from .batch import static_bool
from .combination import dataset_function, int64_key
from .dataset import Dataset
from .functions import ElementFunction, Failure, IteratorContext
from .structure import flatten, is_scalar_int64, map_leaves


class _ItemsDataset(Dataset):
    """Dataset of flat elements in memory."""

    def __init__(self, spec: Any, items: Sequence[Any]) -> None:
        super().__init__(spec)
        self._items = items

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        return iter(self._items)

    def _cardinality(self) -> int:
        return len(self._items)


class _WindowDataset(Dataset):
    """Datasets of `size` elements with step `stride`, each starting `shift` elements later."""

    def __init__(self, input_dataset: Any, size: Any, shift: Any, stride: Any, drop_remainder: Any) -> None:
        numbers = [
            int_operand(v, n)
            for v, n in ((size, "size"), (size if shift is None else shift, "shift"), (stride, "stride"))
        ]
        self._drop = static_bool(drop_remainder)
        super().__init__(map_leaves(DatasetSpec, input_dataset.element_spec), (input_dataset,), numbers)
        self.begin()

    def begin(self) -> None:
        for name, value in zip(("size", "shift", "stride"), self._operands):
            if type(value) is not SymbolicTensor and value < 1:
                raise InvalidArgumentError(
                    op="Dataset.window", found=value, what=f"Window {name} must be greater than zero."
                )

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        size, shift, stride = map(int, self._operands)
        source = self._inputs[0]
        specs = flatten(source.element_spec)
        widths = [len(s.flatten()) for s in specs]
        span = (size - 1) * stride + 1
        items: Iterator[Any] = source.flow(context.input())
        buffer: list[Any] = []
        more = True
        skip = 0
        while True:
            while more and len(buffer) < span:
                item = next(items, None)
                if item is None:
                    more = False
                elif type(item) is Failure:
                    yield item
                elif skip:
                    skip -= 1
                else:
                    buffer.append(item)
            if not buffer or (len(buffer) < span and self._drop):
                return
            window = buffer[:span:stride]
            parts, offset = [], 0
            for spec, width in zip(specs, widths):
                parts.append(DatasetHandle(_ItemsDataset(spec, [item[offset : offset + width] for item in window])))
                offset += width
            yield tuple(parts)
            skip = max(0, shift - len(buffer))
            buffer = buffer[shift:]

    def _cardinality(self) -> int:
        n = int(self._inputs[0]._cardinality())
        if n < 0:
            return n
        if not self._is_known():
            return UNKNOWN
        size, shift, stride = map(int, self._operands)
        last = n - ((size - 1) * stride + 1) if self._drop else n - 1
        return 0 if last < 0 else last // shift + 1


class _GroupByWindowDataset(Dataset):
    """Grouping of elements by key; a function maps each full group, a dataset, to the dataset of its outputs."""

    def __init__(self, input_dataset: Any, key_func: Any, reduce_func: Any, window_size: Any, size_func: Any) -> None:
        if (window_size is None) == (size_func is None):
            raise ValueError(
                "Exactly one of the `window_size` and `window_size_func` arguments must be provided, not both."
                if window_size is not None
                else "Either the `window_size` or `window_size_func` argument must be provided."
            )
        spec = input_dataset.element_spec
        key = ElementFunction(int64_key(key_func), spec, "group_by_window", "key_func")
        key_spec = key.form.spec
        if not is_scalar_int64(key_spec):
            raise ValueError(
                "Invalid `key_func`. `key_func` must return a single `tf.int64` scalar tensor but "
                f"{key.name} returns {key_spec!r}."
            )
        scalar = TensorSpec((), "int64")
        functions = [key, dataset_function(reduce_func, (scalar, DatasetSpec(spec)), "group_by_window", "reduce_func")]
        if size_func is not None:
            size = ElementFunction(size_func, scalar, "group_by_window", "window_size_func")
            if not isinstance(size.form.spec, TensorSpec) or size.form.spec.dtype.name not in ("int32", "int64"):
                raise ValueError(
                    "Invalid `window_size_func`. `window_size_func` must return a single `tf.int64` "
                    f"scalar tensor but {size.name} returns {size.form.spec!r}."
                )
            functions.append(size)
        operands = () if window_size is None else (int_operand(window_size, "window_size"),)
        super().__init__(functions[1].form.spec.element_spec, (input_dataset,), operands, functions)

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        key_of, reduce = (f.caller(context) for f in self._functions[:2])
        size_of: Callable[..., Any] | None = self._functions[2].caller(context) if len(self._functions) > 2 else None
        fixed = int(self._operands[0]) if self._operands else 0
        if size_of is None and fixed < 1:
            yield Failure(_window_error(fixed))
            return
        spec = self._inputs[0].element_spec
        groups: dict[int, tuple[Any, list[Any], int]] = {}

        def finished(key: Any, items: list[Any]) -> Iterator[Any]:
            try:
                (handle,) = reduce(key, DatasetHandle(_ItemsDataset(spec, items)))
                flow = handle.dataset.flow(context.input("computed"))
            except Exception as error:
                flow = iter((Failure(error),))
            result: Iterator[Any] = flow
            return result

        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            try:
                (key,) = key_of(*item)
                number = int(key)
                if number not in groups:
                    size = fixed if size_of is None else int(size_of(key)[0])
                    if size < 1:
                        raise _window_error(size)
                    groups[number] = (key, [], size)
            except Exception as error:
                yield Failure(error)
                continue
            key, items, size = groups[number]
            items.append(item)
            if len(items) == size:
                del groups[number]
                yield from finished(key, items)
        for number in sorted(groups):
            key, items, _ = groups[number]
            yield from finished(key, items)

    def _cardinality(self) -> int:
        return INFINITE if self._inputs[0]._cardinality() == INFINITE else UNKNOWN


def _window_error(size: int) -> InvalidArgumentError:
    what = f"Window size must be greater than zero, but got {size}."
    return InvalidArgumentError(op="Dataset.group_by_window", what=what)
