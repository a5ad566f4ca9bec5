"""Sorting integers of every dtype, and products of nothing, in a .tflite: as eagerly, by both engines."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright import lite
from thorough import crossed


def by_file(function, *arrays):
    specs = [ow.TensorSpec(a.shape, a.dtype) for a in arrays]
    concrete = ow.function(function, autograph=False).get_concrete_function(*specs)
    content = lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    for compiled in (False, True):
        with ow.flags(compiled=compiled, background=False):
            interpreter = lite.Interpreter(model_content=content)
            interpreter.allocate_tensors()
            for detail, a in zip(interpreter.get_input_details(), arrays):
                interpreter.set_tensor(detail["index"], a)
            interpreter.invoke()
            yield interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize(
    ("direction", "dtype"),
    crossed(
        ["ASCENDING", "DESCENDING"],
        ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float16", "float32"],
    ),
)
def test_sort_and_argsort(dtype, direction):
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if "int" in dtype else (-60000, 60000)
    x = np.array([[3, 0, high, 7, 7, low], [1, 1, 2, high, low, low]], dtype)
    expected = np.sort(x, -1) if direction == "ASCENDING" else np.sort(x, -1)[:, ::-1]
    for y in by_file(lambda x: ow.sort(x, direction=direction), x):
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y, expected)
    for y in by_file(lambda x: ow.argsort(x, direction=direction, stable=True), x):
        np.testing.assert_array_equal(y, ow.argsort(x, direction=direction, stable=True).numpy())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (3,)])
def test_running_sums_and_products_of_nothing(shape, exclusive, reverse):
    x = np.full(shape, 2, np.float32)
    for scan in (ow.cumsum, ow.math.cumprod):
        for y in by_file(lambda x, scan=scan: scan(x, -1, exclusive, reverse), x):
            np.testing.assert_array_equal(y, scan(x, -1, exclusive, reverse).numpy())
