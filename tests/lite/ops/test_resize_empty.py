"""An image of no pixels takes no memory, however long its other side is: a file's sizes must not cost what they say."""

import tracemalloc

import numpy as np
import pytest
from lite_kit import Build

from opwright import lite


@pytest.mark.parametrize(
    ("name", "images", "size"),
    [
        ("RESIZE_NEAREST_NEIGHBOR", 1, [2**31 - 1, 0]),
        ("RESIZE_NEAREST_NEIGHBOR", 1, [0, 2**31 - 1]),
        ("RESIZE_NEAREST_NEIGHBOR", 0, [2**31 - 1, 2]),
        ("RESIZE_BILINEAR", 0, [2**31 - 1, 2]),  # which refuses sizes of 0
        ("RESIZE_BILINEAR", 0, [2, 2**31 - 1]),
    ],
)
def test_a_resize_to_no_pixels_takes_no_memory(name, images, size):
    build = Build().tensor("x", (images, 2, 2, 3)).tensor("n", (2,), "INT32", np.int32(size))
    content = build.tensor("y", (images, *size, 3)).op(name, "x n", "y").done("x", "y")
    interpreter = lite.Interpreter(model_content=content)
    tracemalloc.start()
    try:
        interpreter.allocate_tensors()
        interpreter.invoke()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape == (images, *size, 3)
    assert peak < 1 << 24
