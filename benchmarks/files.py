"""Reading .tflite files: rows of our side.

Lives here: the files, and what is timed on them.  Not here: the table of rows (rows.py), timing (measure.py).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

FIRST = """
import sys, time
from opwright.lite import Model
start = time.perf_counter()
Model.read(sys.argv[1]).verify()
print(time.perf_counter() - start)
"""


def _layers(width: int, layers: int = 64) -> Any:
    """A model of 1x1 convolutions: of each, weights, bias and result, with names as long as those of converters."""
    import numpy as np

    from opwright.lite.format import Model, objects, versions

    buffers, tensors, operators = [objects.Buffer()], [], []

    def tensor(shape: list[int], data: Any = None) -> int:
        buffers.append(objects.Buffer(data=data))
        name = f"network/expanded_conv_{len(tensors)}/project/BatchNorm/FusedBatchNormV3"
        tensors.append(
            objects.Tensor(
                shape=shape,
                shape_signature=[-1, *shape[1:]],
                buffer=len(buffers) - 1,
                name=name,
                quantization=objects.QuantizationParameters(),
            )
        )
        return len(tensors) - 1

    x = first = tensor([1, 14, 14, width])
    for _ in range(layers):
        weights = tensor([width, 1, 1, width], np.zeros(4 * width * width, np.uint8))
        bias, y = tensor([width], np.zeros(4 * width, np.uint8)), tensor([1, 14, 14, width])
        options = objects.Conv2DOptions(stride_w=1, stride_h=1)
        operators.append(objects.Operator(inputs=[x, weights, bias], outputs=[y], builtin_options=options))
        x = y
    main = objects.SubGraph(tensors=tensors, inputs=[first], outputs=[x], operators=operators, name="main")
    return Model(operator_codes=[versions.operator_code("CONV_2D")], subgraphs=[main], buffers=buffers)


def _file(width: int) -> str:
    path = os.path.join(tempfile.mkdtemp(prefix="opwright-bench-"), "m.tflite")
    _layers(width).write(path)
    return path


def read_first() -> float:
    path = _file(232)
    times = []
    for _ in range(11):
        done = subprocess.run([sys.executable, "-c", FIRST, path], check=True, stdout=subprocess.PIPE, text=True)
        times.append(float(done.stdout))
    return statistics.median(times)


def read_again() -> Callable[[], object]:
    from opwright.lite import Model

    path = _file(232)
    return lambda: Model.read(path).verify()


def read_large() -> Callable[[], object]:
    from opwright.lite import Model

    path = _file(640)
    return lambda: Model.read(path).verify()


def write_again() -> Callable[[], object]:
    from opwright.lite import Model

    model = Model.read(_file(232))
    return lambda: model.to_bytes()


RUNS = {"read_first": read_first, "read_again": read_again, "read_large": read_large, "write_again": write_again}
