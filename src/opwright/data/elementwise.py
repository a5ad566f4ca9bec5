"""Transformations that apply a function to each element: map, filter, scan, take_while; errors, duplicates, counts.

Lives here: the classes.  Not here: functions as programs (functions.py), parallel calls (buffers.py), functions that
return datasets (combination.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..core import flags
from ..core.errors import FailedPreconditionError
from .base import UNKNOWN
from .buffers import num_threads, parallel_map
from .dataset import Dataset
from .functions import (
    ElementFunction,
    Failure,
    IteratorContext,
    check_predicate,
    initial_state_operands,
    trace_state_function,
)
from .structure import ElementStructure


class _MapDataset(Dataset):
    def __init__(self, input_dataset: Any, func: Any, num_parallel_calls: Any, deterministic: Any) -> None:
        traced = ElementFunction(func, input_dataset.element_spec, "map", "func")
        super().__init__(traced.form.spec, (input_dataset,), functions=(traced,))
        self._calls = num_threads(num_parallel_calls)
        self._ordered = deterministic is not False

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        call, items = self._functions[0].caller(context), self._inputs[0].flow(context.input())
        if self._calls > 1 and not (
            flags.deterministic and self._functions[0].is_random
        ):  # threads race for random numbers
            return parallel_map(call, items, self._calls, self._ordered or flags.deterministic)
        return map_elements(call, items)

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


def map_elements(call: Callable[..., Any], items: Iterator[Any]) -> Iterator[Any]:
    """Yield the function's result for each element, or a Failure."""
    for item in items:
        if type(item) is Failure:
            yield item
            continue
        try:
            result = call(*item)
        except Exception as error:
            result = Failure(error)
        yield result


class _FilterDataset(Dataset):
    transformation, ends = "filter", False  # ends: whether an element for which the predicate is false ends the flow

    def __init__(self, input_dataset: Any, predicate: Any) -> None:
        function = ElementFunction(predicate, input_dataset.element_spec, self.transformation, "predicate")
        super().__init__(input_dataset.element_spec, (input_dataset,), functions=(check_predicate(function),))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        holds = self._functions[0].truth(context)
        for item in self._inputs[0].flow(context.input()):
            if type(item) is not Failure:
                try:
                    if not holds(*item):
                        if self.ends:
                            return
                        continue
                except Exception as error:
                    item = Failure(error)
            yield item


class _TakeWhileDataset(_FilterDataset):
    transformation, ends = "take_while", True


class _ScanDataset(Dataset):
    """Map with a state carried from element to element."""

    def __init__(self, input_dataset: Any, initial_state: Any, scan_func: Any) -> None:
        state, operands = initial_state_operands(initial_state)

        def new_state(traced: ElementFunction) -> Any:
            spec = traced.form.spec
            if type(spec) is not tuple or len(spec) != 2:
                raise TypeError(
                    "The scan function must return a pair comprising the new state and the output value; "
                    f"{traced.name} returns {spec!r}"
                )
            return spec[0]

        traced, state = trace_state_function(
            scan_func, state, input_dataset.element_spec, "scan", "scan_func", new_state
        )
        super().__init__(traced.form.spec[1], (input_dataset,), operands, (traced,))
        self._width = len(ElementStructure(state).components)

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        call, n = self._functions[0].caller(context), self._width
        state = self._operands
        for item in self._inputs[0].flow(context.input()):
            if type(item) is not Failure:
                try:
                    results = call(*state, *item)
                except Exception as error:
                    item = Failure(error)
                else:
                    state, item = results[:n], results[n:]
            yield item

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


class _IgnoreErrorsDataset(Dataset):
    def __init__(self, input_dataset: Any, log_warning: bool) -> None:
        super().__init__(input_dataset.element_spec, (input_dataset,))
        self._log = log_warning

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        for item in self._inputs[0].flow(context.input()):
            if type(item) is not Failure:
                yield item
            elif self._log:
                warnings.warn(f"an element was dropped: {item.error}", stacklevel=2)


class _UniqueDataset(Dataset):
    def __init__(self, input_dataset: Any) -> None:
        form = input_dataset._form
        if len(form.components) != 1 or form.dtypes[0].name not in ("int32", "int64", "string"):
            raise TypeError(
                f"`tf.data.Dataset.unique` does not support type {form.spec!r} -- only `tf.int32`, "
                "`tf.int64`, and `tf.string` are supported."
            )
        super().__init__(form.spec, (input_dataset,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        seen = set()
        for item in self._inputs[0].flow(context.input()):
            if type(item) is not Failure:
                array = item[0]
                key = (array.shape, tuple(array.flat) if array.dtype == object else array.tobytes())
                if key in seen:
                    continue
                seen.add(key)
            yield item


class _AssertCardinalityDataset(Dataset):
    def __init__(self, input_dataset: Any, expected: int) -> None:
        super().__init__(input_dataset.element_spec, (input_dataset,))
        self._expected = expected

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        n = 0
        what = f"Input dataset was expected to contain {self._expected} elements but contained "
        for item in self._inputs[0].flow(context.input()):
            n += 1
            if 0 <= self._expected < n:
                yield Failure(FailedPreconditionError(op="assert_cardinality", what=f"{what}at least {n} elements."))
                return
            yield item
        if self._expected != UNKNOWN and n != self._expected:
            yield Failure(FailedPreconditionError(op="assert_cardinality", what=f"{what}only {n} elements."))

    def _cardinality(self) -> int:
        return self._expected
