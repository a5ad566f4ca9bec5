"""Helpers of the converter's tests: a row of the table, converting it, running the file in both interpreters.

Not here: the rows (convert_cases.py), the checks (test_convert_*.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_kit import run

import opwright as ow


@dataclass(frozen=True, eq=False)
class Case:
    """function: of tensors; inputs: arrays it is traced with and run on; ops: names of the file's operators, in order.

    open: dimensions that are unknown while tracing, by input: {0: (0,)}; None for an unknown rank. rtol: of the
    largest result. versions: that the file must have stamped.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    ops: tuple[str, ...] | None = None
    open: dict[int, tuple[int, ...] | None] = field(default_factory=dict)
    rtol: float = 1e-5
    versions: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def concrete(self) -> Any:
        specs = []
        for i, x in enumerate(self.inputs):
            gaps = self.open.get(i, ())
            shape = None if gaps is None else [None if d in gaps else n for d, n in enumerate(x.shape)]
            specs.append(ow.TensorSpec(shape, x.dtype if x.dtype != object else "string", name=f"x{i}"))
        return ow.function(self.function).get_concrete_function(*specs)


def case(name: str, function: Callable[..., Any], *inputs: Any, ops: str | None = None, **more: Any) -> Case:
    """A row; ops: the names with spaces between."""
    return Case(name, function, tuple(map(np.asarray, inputs)), None if ops is None else tuple(ops.split()), **more)


def converter(*concrete: Any, **settings: Any) -> Any:
    """A converter with settings."""
    made = ow.lite.TFLiteConverter.from_concrete_functions(list(concrete))
    for name, value in settings.items():
        setattr(made, name, value)
    return made


@functools.cache
def converted(row: Case) -> bytes:
    """The file of a row, whose graphs are looked at after each pass."""
    with ow.flags(verify=True):
        return converter(row.concrete()).convert()


def eager(row: Case) -> list[np.ndarray]:
    """Return the eager results of the function of a row."""
    result = row.function(*(ow.constant(x) for x in row.inputs))
    return [np.asarray(y.numpy()) for y in ow.nest.flatten(result)]


def official(content: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The official interpreter's results."""
    from ai_edge_litert.interpreter import Interpreter

    return run(Interpreter(model_content=content), inputs)


def ours(content: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Our interpreter's results."""
    return run(ow.lite.Interpreter(model_content=content), inputs)


def assert_same(actual: Sequence[np.ndarray], reference: Sequence[np.ndarray], rtol: float) -> None:
    """Equal dtypes and shapes; floats within rtol of the largest, others exactly."""
    assert len(actual) == len(reference)
    for y, expected in zip(actual, reference):
        assert y.dtype == expected.dtype
        assert y.shape == expected.shape
        if y.dtype.kind in "fc":
            finite = expected[np.isfinite(expected)]
            scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
            np.testing.assert_allclose(y, expected, rtol=rtol, atol=rtol * scale)
        else:
            np.testing.assert_array_equal(y, expected)


def arrays(seed: int = 0) -> np.random.Generator:
    """The one source of test data."""
    return np.random.default_rng(seed)


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    """Floats in [-2, 2]."""
    return arrays(seed + len(shape) * 31 + sum(shape)).uniform(-2, 2, shape).astype(np.float32)


def pos(*shape: int) -> np.ndarray:
    """Positive floats."""
    return np.abs(f32(*shape)) + np.float32(0.1)


def ints(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int32, seed: int = 1) -> np.ndarray:
    """Integers."""
    return arrays(seed + sum(shape)).integers(low, high, shape).astype(dtype)


def bools(*shape: int, seed: int = 2) -> np.ndarray:
    """Truth values."""
    return arrays(seed + sum(shape)).integers(0, 2, shape).astype(bool)
