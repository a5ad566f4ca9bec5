"""Models that the tests of the interpreter share."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwright.lite.format import Model, objects, schema, versions
from opwright.lite.format.flex import encode_options
from opwright.lite.ops import get

T = schema.TensorType


class Build:
    """Writes a model of one subgraph line by line: tensors by name, operators in order."""

    def __init__(self) -> None:
        self.model = Model(buffers=[objects.Buffer()], subgraphs=[objects.SubGraph(name="main")])
        self.main = self.model.subgraphs[0]
        self.names: dict[str, int] = {}

    def tensor(self, name: str, shape: Any = (5,), type: str = "FLOAT32", data: Any = None, **fields: Any) -> int:
        buffer = 0
        if data is not None:
            array = np.asarray(data)
            self.model.buffers.append(objects.Buffer(data=np.frombuffer(array.tobytes(), np.uint8)))
            buffer, shape = len(self.model.buffers) - 1, array.shape
        self.names[name] = len(self.main.tensors)
        self.main.tensors.append(objects.Tensor(name=name, shape=list(shape), type=T[type], buffer=buffer, **fields))
        return self.names[name]

    def _operator(self, code: Any, inputs: str, outputs: str, **fields: Any) -> Build:
        self.model.operator_codes.append(code)
        for name in [*inputs.split(), *outputs.split()]:
            if name != "_" and name not in self.names:
                self.tensor(name)
        indices = [[-1 if n == "_" else self.names[n] for n in side.split()] for side in (inputs, outputs)]
        place = len(self.model.operator_codes) - 1
        self.main.operators.append(
            objects.Operator(opcode_index=place, inputs=indices[0], outputs=indices[1], **fields)
        )
        return self

    def op(self, name: str, inputs: str, outputs: str, version: int = 1, **options: Any) -> Build:
        return self._operator(versions.operator_code(name, version), inputs, outputs,
                              builtin_options=get(name).to_options(options))  # fmt: skip

    def custom(self, name: str, inputs: str, outputs: str, version: int = 1, **options: Any) -> Build:
        raw = np.frombuffer(encode_options(options), np.uint8) if options else None
        return self._operator(versions.operator_code("CUSTOM", version, name), inputs, outputs, custom_options=raw)

    def done(self, inputs: str = "x", outputs: str = "y", signature: str | None = None) -> bytes:
        self.main.inputs = [self.names[n] for n in inputs.split()]
        self.main.outputs = [self.names[n] for n in outputs.split()]
        if signature:
            self.model.signature_defs.append(
                objects.SignatureDef(
                    signature_key=signature,
                    inputs=[objects.TensorMap(name=n, tensor_index=self.names[n]) for n in inputs.split()],
                    outputs=[objects.TensorMap(name=n, tensor_index=self.names[n]) for n in outputs.split()],
                )
            )
        return self.model.to_bytes()


def sin_model() -> bytes:
    """y = sin(x + 1)"""
    b = Build()
    b.tensor("one", data=np.float32(1))
    return b.op("ADD", "x one", "s").op("SIN", "s", "y").done(signature="serving_default")


def atan_model(**options: Any) -> bytes:
    """y = Atan(x), a custom operator"""
    return Build().custom("Atan", "x", "y", **options).done()


def dynamic_model(after: str = "Twice") -> bytes:
    """y = after(reshape(x, computed shape)): from the reshape on, shapes are known only while the model runs."""
    b = Build()
    b.tensor("x", (6,))
    b.tensor("shape", (2,), "INT32")
    return b.op("RESHAPE", "x shape", "r").custom(after, "r", "y").done("x shape")
