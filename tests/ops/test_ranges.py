"""`range` and `linspace`: how many numbers, and the last of them, in every way of running.

Counts are TensorFlow 2.21's, which divides in the dtype of the numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright import lite

#        dtype      start, limit, delta   count, last
ROWS = [
    ("float32", (0.1, 1.1, 0.1), 10, 1.0),
    ("float32", (0.0, 0.3, 0.1), 3, 0.2),
    ("float32", (0.0, 1.0, 0.1), 10, 0.9),
    ("float32", (0.0, 2.1, 0.3), 7, 1.8),
    ("float32", (1.0, 0.0, -0.3), 4, 0.1),
    ("float32", (0.0, 100.0, 0.1), 1000, 99.9),
    ("float32", (5.0, 5.0, 1.0), 0, None),
    ("float32", (0.3, 0.9, 0.3), 2, 0.6),
    ("float64", (0.1, 1.1, 0.1), 10, 1.0),
    ("float64", (0.0, 0.3, 0.1), 3, 0.2),
    ("float64", (0.0, 2.1, 0.3), 8, 2.1),
    ("float64", (0.3, 0.9, 0.3), 3, 0.9),
    ("float64", (0.0, 1e-40, 1e-41), 10, 9e-41),
    ("float16", (0.0, 0.3, 0.1), 4, 0.3),
    ("float16", (0.1, 1.1, 0.1), 10, 1.0),
    ("float16", (0.0, 2.1, 0.3), 7, 1.8),
    ("bfloat16", (0.0, 0.3, 0.1), 3, 0.2),
    ("bfloat16", (0.1, 1.1, 0.1), 10, 1.0),
    ("int32", (0, 10, 3), 4, 9),
    ("int32", (10, 0, -3), 4, 1),
    ("int64", (-(2**62), 2**62, 2**61), 4, 2**61),
    ("int32", (-(2**31), 2**31 - 1, 2**30), 4, 2**30),
    ("int8", (-128, 127, 100), 3, 72),
    ("uint8", (0, 255, 100), 3, 200),
]


def run_lite(function, *arrays):
    specs = [ow.TensorSpec(a.shape, a.dtype) for a in arrays]
    concrete = ow.function(function).get_concrete_function(*specs)
    content = lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    result = []
    for compiled in (False, True):
        with ow.flags(compiled=compiled, background=False):
            interpreter = lite.Interpreter(model_content=content)
            interpreter.allocate_tensors()
            for detail, a in zip(interpreter.get_input_details(), arrays):
                interpreter.set_tensor(detail["index"], a)
            interpreter.invoke()
            result.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return result


@pytest.mark.parametrize(("dtype", "arguments", "count", "last"), ROWS, ids=str)
def test_range(dtype, arguments, count, last):
    arguments = [np.array(v, ow.as_dtype(dtype).np) for v in arguments]
    result = [
        ow.range(*arguments),
        ow.function(lambda: ow.range(*arguments))(),
        ow.function(ow.range)(*arguments),
        ow.function(ow.range, jit_compile=True)(*arguments),
    ]
    result = [y.numpy() for y in result]
    if dtype in ("float32", "int32", "int64"):
        result += run_lite(lambda a, b, c: ow.range(a, b, c), *arguments)
    for y in result:
        assert y.shape == (count,)
        assert y.dtype == arguments[0].dtype
        if count:
            tolerance = 2e-2 if y.dtype.itemsize == 2 else 2e-5 if y.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(float(y[-1]), float(last), tolerance)


def test_python_numbers_are_float32():
    assert ow.range(0.1, 1.1, 0.1).shape == (10,)
    assert ow.range(0.0, 0.3, 0.1).shape == (3,)


@pytest.mark.parametrize(
    "arguments",
    [(0.0, np.inf, 1.0), (0.0, np.nan, 1.0), (0.0, 1.0, np.nan), (0.0, 1.0, 0.0), (0.0, 1.0, -1.0), (0.0, 3e38, 1e-30)],
    ids=str,
)
def test_ranges_without_an_end_are_errors(arguments):
    with pytest.raises(ow.errors.InvalidArgumentError):
        ow.range(*arguments)
    with pytest.raises(ow.errors.InvalidArgumentError):
        ow.function(ow.range)(*map(np.float32, arguments))


@pytest.mark.parametrize(
    ("start", "stop", "num"),
    [
        (0.1, 1.1, 7),
        (0.0, 1.0, 10),
        (1.0, -1.0, 5),
        (3.0, 7.0, 1),
        (0.0, 3.3e38, 3),
        (-3.3e38, 3.3e38, 4),
        (0.1, 0.7, 1000),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linspace_has_both_ends_exactly(dtype, start, stop, num):
    start, stop = (np.array(v, dtype) for v in (start, stop))
    expected = np.linspace(float(start), float(stop), num)
    actual = [
        ow.linspace(start, stop, num).numpy(),
        ow.function(lambda a, b: ow.linspace(a, b, num))(start, stop).numpy(),
        ow.linspace(start[None], stop[None], num).numpy()[:, 0],
    ]
    if dtype == "float32":
        actual += run_lite(lambda a, b: ow.linspace(a, b, num), start, stop)
    for y in actual:
        assert y.shape == (num,)
        assert y[0] == start
        assert num == 1 or y[-1] == stop
        relative = 4e-7 if dtype == "float32" else 1e-15
        np.testing.assert_allclose(y, expected, relative, relative * np.abs(expected).max())
