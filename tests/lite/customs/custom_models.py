"""Models of one shipped custom operator, for its tests.

Lives here: building and running them.  Not here: the tests, drawn models (tests/lite/ops/drawn.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_kit import run

from opwright.core.dtypes import of_numpy
from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, pack_strings, schema, versions
from opwright.lite.format.flexbuffers import encode_options
from opwright.lite.ops import types


class Scaled:
    """A quantised tensor: integers with a scale and a zero point."""

    def __init__(self, array: np.ndarray, scale: float, zero: int = 0) -> None:
        self.array, self.scale, self.zero = array, scale, zero


def custom_model(
    name: str,
    inputs: list[Any],
    outputs: list[Any],
    options: Any = b"",
    version: int = 1,
    constant: tuple[int, ...] = (),
) -> Model:
    """A model of the operator alone.

    inputs: arrays or Scaled; outputs: dtype names of the schema, or (name, scale, zero). options: a dict for
    FlexBuffers, or bytes. constant: places of inputs that are in the file.
    """
    tensors, buffers = [], [objects.Buffer()]

    def add(label: str, kind: str, shape: Any, scale: Any, zero: int, buffer: int = 0) -> None:
        q = None
        if scale is not None:
            q = objects.QuantizationParameters(scale=np.array([scale], np.float32), zero_point=np.array([zero]))
        tensors.append(
            objects.Tensor(shape=list(shape), type=schema.TensorType[kind], name=label, buffer=buffer, quantization=q)
        )

    for i, value in enumerate(inputs):
        array = value.array if isinstance(value, Scaled) else value
        buffer = 0
        if i in constant:
            raw = pack_strings(array.reshape(-1).tolist()) if array.dtype.kind == "O" else array.tobytes()
            buffers.append(objects.Buffer(data=np.frombuffer(raw, np.uint8)))
            buffer = len(buffers) - 1
        scaled = (value.scale, value.zero) if isinstance(value, Scaled) else (None, 0)
        add(f"x{i}", types.name_of(of_numpy(array.dtype)), array.shape, *scaled, buffer)
    for i, result in enumerate(outputs):
        kind, scale, zero = (result, None, 0) if isinstance(result, str) else result
        add(f"y{i}", kind, (), scale, zero)
    n = len(inputs)
    results = list(range(n, len(tensors)))
    raw = encode_options(options) if isinstance(options, dict) else options
    operator = objects.Operator(inputs=list(range(n)), outputs=results, custom_options=np.frombuffer(raw, np.uint8))
    operands = [i for i in range(n) if i not in constant]
    main = objects.SubGraph(tensors=tensors, inputs=operands, outputs=results, operators=[operator], name="main")
    code = versions.operator_code("CUSTOM", version, name)
    return Model(operator_codes=[code], subgraphs=[main], buffers=buffers)


def answers(
    name: str,
    inputs: list[Any],
    outputs: list[Any],
    options: Any = b"",
    version: int = 1,
    constant: tuple[int, ...] = (),
    **settings: Any,
) -> list[np.ndarray]:
    """Return the results of `lite.Interpreter`; settings: its arguments."""
    content = custom_model(name, inputs, outputs, options, version, constant).to_bytes()
    operands = [v.array if isinstance(v, Scaled) else v for i, v in enumerate(inputs) if i not in constant]
    return run(Interpreter(model_content=content, **settings), operands)
