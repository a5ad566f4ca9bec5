"""Files as the first converters wrote them: uint8 everywhere, the narrow operator code alone, nothing that came later.

They are written by the official schema's own generated code, and run here as in the official interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_kit import run

from opwright.lite import Interpreter
from opwright.lite.format import Model

schema: Any = pytest.importorskip("ai_edge_litert.schema_py_generated")
flatbuffers: Any = pytest.importorskip("flatbuffers")
BUILTIN = schema.BuiltinOperator


class Old:
    """A file of the year 2018: no version of an operator, no signature, no metadata, no shape signatures."""

    def __init__(self, kind: str) -> None:
        self.rng, self.kind = np.random.default_rng(3), kind
        self.graph, self.model = schema.SubGraphT(), schema.ModelT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.version, self.model.description, self.model.operatorCodes = 3, "TOCO Converted.", []
        self.model.subgraphs, self.model.buffers = [self.graph], [schema.BufferT()]

    def tensor(self, shape: Any, scale: float, zero: int, values: Any = None, kind: str = "") -> int:
        result = schema.TensorT()
        kind = kind or self.kind
        result.shape, result.type, result.name = (
            list(shape),
            getattr(schema.TensorType, kind),
            f"t{len(self.graph.tensors)}",
        )
        if kind != "FLOAT32":
            q = schema.QuantizationParametersT()
            q.scale, q.zeroPoint, q.min, q.max = [scale], [zero], [-1.0], [1.0]
            result.quantization = q
        if values is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(values.tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            result.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(result)
        return len(self.graph.tensors) - 1

    def weights(self, *shape: int) -> int:
        if self.kind == "FLOAT32":
            return self.tensor(shape, 0, 0, self.rng.normal(0, 0.5, shape).astype(np.float32))
        return self.tensor(shape, 0.01, 120, self.rng.integers(0, 256, shape).astype(np.uint8))

    def bias(self, n: int, scale: float) -> int:
        if self.kind == "FLOAT32":
            return self.tensor((n,), 0, 0, self.rng.normal(0, 1, n).astype(np.float32))
        return self.tensor((n,), scale, 0, self.rng.integers(-500, 500, n).astype(np.int32), "INT32")

    def node(self, name: str, inputs: list[int], output: int, table: str = "", **fields: Any) -> int:
        code, operator = schema.OperatorCodeT(), schema.OperatorT()
        code.deprecatedBuiltinCode = getattr(BUILTIN, name)  # the wide field came later, and defaults to ADD
        operator.opcodeIndex, operator.inputs, operator.outputs = len(self.model.operatorCodes), inputs, [output]
        if table:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, table)
            operator.builtinOptions = getattr(schema, f"{table}T")()
            for field, value in fields.items():
                setattr(operator.builtinOptions, field, value)
        self.model.operatorCodes.append(code)
        self.graph.operators.append(operator)
        return output

    def bytes(self, x: int, y: int) -> bytes:
        self.graph.inputs, self.graph.outputs = [x], [y]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def network(kind: str) -> bytes:
    """A small network for images: every operator is version 1."""
    old = Old(kind)
    relu6 = schema.ActivationFunctionType.RELU6
    x = old.tensor((1, 8, 8, 3), 1 / 128, 128)
    y = old.node(
        "CONV_2D",
        [x, old.weights(4, 3, 3, 3), old.bias(4, 0.01 / 128)],
        old.tensor((1, 8, 8, 4), 0.05, 0),
        "Conv2DOptions",
        strideW=1,
        strideH=1,
        fusedActivationFunction=relu6,
    )
    y = old.node(
        "DEPTHWISE_CONV_2D",
        [y, old.weights(1, 3, 3, 4), old.bias(4, 0.0005)],
        old.tensor((1, 4, 4, 4), 0.1, 100),
        "DepthwiseConv2DOptions",
        strideW=2,
        strideH=2,
        depthMultiplier=1,
    )
    y = old.node(
        "MAX_POOL_2D",
        [y],
        old.tensor((1, 2, 2, 4), 0.1, 100),
        "Pool2DOptions",
        strideW=2,
        strideH=2,
        filterWidth=2,
        filterHeight=2,
        padding=schema.Padding.VALID,
    )
    z = old.node(
        "AVERAGE_POOL_2D",
        [y],
        old.tensor((1, 2, 2, 4), 0.1, 100),
        "Pool2DOptions",
        strideW=1,
        strideH=1,
        filterWidth=2,
        filterHeight=2,
    )
    y = old.node("CONCATENATION", [y, z], old.tensor((1, 2, 2, 8), 0.1, 100), "ConcatenationOptions", axis=3)
    y = old.node("RESHAPE", [y], old.tensor((1, 32), 0.1, 100), "ReshapeOptions", newShape=[1, 32])
    y = old.node(
        "FULLY_CONNECTED",
        [y, old.weights(5, 32), old.bias(5, 0.001)],
        old.tensor((1, 5), 0.2, 128),
        "FullyConnectedOptions",
    )
    y = old.node("ADD", [y, y], old.tensor((1, 5), 0.4, 128), "AddOptions")
    y = old.node("SOFTMAX", [y], old.tensor((1, 5), 1 / 256, 0), "SoftmaxOptions", beta=1.0)
    return old.bytes(old.graph.operators[0].inputs[0], y)


@pytest.mark.parametrize("kind", ["UINT8", "FLOAT32"])
def test_first_files_run_as_officially(kind):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    content = network(kind)
    theirs = peer.Interpreter(model_content=content, experimental_op_resolver_type=peer.OpResolverType.BUILTIN_REF)
    ours, rng = Interpreter(model_content=content), np.random.default_rng(0)
    for _ in range(3):
        x = rng.integers(0, 256, (1, 8, 8, 3)) if kind == "UINT8" else rng.normal(0, 1, (1, 8, 8, 3))
        values = [x.astype(np.uint8 if kind == "UINT8" else np.float32)]
        actual, expected = run(ours, values), run(theirs, values)
        np.testing.assert_allclose(
            actual[0], expected[0], 0 if kind == "UINT8" else 1e-5, 0 if kind == "UINT8" else 1e-6
        )
    assert ours.get_signature_list() == theirs.get_signature_list() == {}


def test_first_files_are_read_with_the_defaults_of_later_fields():
    model = Model.read(network("UINT8"))
    result = [(code.deprecated_builtin_code, int(code.builtin_code), code.version) for code in model.operator_codes]
    assert result[:2] == [(BUILTIN.CONV_2D, 0, 1), (BUILTIN.DEPTHWISE_CONV_2D, 0, 1)]
    assert model.subgraphs[0].operators[1].builtin_options.dilation_w_factor == 1
    assert not model.signature_defs
    assert Model.read(model.to_bytes()) == model
