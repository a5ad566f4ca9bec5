"""Write a network's .tflite file as ONNX, for run times that take nothing else: `MODEL.tflite MODEL.onnx`.

Lives here: the operators of MobileNetV2, in float32 and, as pairs of QuantizeLinear and DequantizeLinear, in int8.
Not here: the run times (libraries.py). Images become channels-first; the input is float32, or int8 as in the file.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from opwright.lite.format import Model, schema

Builtin, Activation = schema.BuiltinOperator, schema.ActivationFunctionType
CONV, DEPTHWISE, ADD = Builtin.CONV_2D, Builtin.DEPTHWISE_CONV_2D, Builtin.ADD
MEAN, DENSE, SOFTMAX = Builtin.MEAN, Builtin.FULLY_CONNECTED, Builtin.SOFTMAX


class Writer:
    """The nodes and constants of a graph. values: names of the float32 values of tensors."""

    def __init__(self, model: Model) -> None:
        self.model, self.graph = model, model.subgraphs[0]
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.values: dict[int, str] = {}

    def constant(self, array: np.ndarray) -> str:
        """Return the name of a new constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def add(self, operator: str, inputs: list[str], **attributes: Any) -> str:
        """Return the result of a new node."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def elements(self, index: int) -> np.ndarray:
        """Return the elements of a constant tensor."""
        t = self.graph.tensors[index]
        dtype = {0: np.float32, 2: np.int32, 9: np.int8}[int(t.type)]
        return np.frombuffer(bytes(self.model.buffers[t.buffer].data), dtype).reshape(t.shape)

    def scales(self, index: int) -> np.ndarray | None:
        """Return the scales of a quantized tensor."""
        q = self.graph.tensors[index].quantization
        return None if q is None or q.scale is None or not len(q.scale) else np.asarray(q.scale, np.float32)

    def parameter(self, index: int, array: np.ndarray, like: tuple[int, int] | None = None) -> str:
        """Return the float32 value of weights, per channel of the first axis. like: input and filter of a bias."""
        scales = self.scales(index)
        if like is not None and (x := self.scales(like[0])) is not None and (w := self.scales(like[1])) is not None:
            scales = x[0] * w
        if scales is None:
            return self.constant(array)
        zeros = self.constant(np.zeros(scales.shape, array.dtype))
        return self.add("DequantizeLinear", [self.constant(array), self.constant(scales), zeros], axis=0)

    def scaled(self, index: int) -> list[str]:
        scales, points = self.scales(index), self.graph.tensors[index].quantization.zero_point
        assert scales is not None
        return [self.constant(scales[0].reshape(())), self.constant(np.asarray(points[0], np.int8).reshape(()))]

    def set(self, index: int, value: str) -> None:
        """Set the value of a tensor, rounded to its integers if it is quantized."""
        if self.scales(index) is not None:
            both = self.scaled(index)
            value = self.add("DequantizeLinear", [self.add("QuantizeLinear", [value, *both]), *both])
        self.values[index] = value

    def write(self, op: Any) -> None:
        """Add the nodes of an operator. Raises ValueError for one that MobileNetV2 does not have."""
        kind, inputs = int(self.model.operator_codes[op.opcode_index].builtin_code), [*map(int, op.inputs)]
        x, options = self.values[inputs[0]], op.builtin_options
        if kind in (CONV, DEPTHWISE, DENSE):
            w = self.elements(inputs[1])
            w = w if kind == DENSE else w.transpose(0, 3, 1, 2) if kind == CONV else w.transpose(3, 0, 1, 2)
            both = [x, self.parameter(inputs[1], w)]
            if inputs[2:] and inputs[2] >= 0:
                both.append(self.parameter(inputs[2], self.elements(inputs[2]), (inputs[0], inputs[1])))
            if kind == DENSE:
                value = self.add("Gemm", both, transB=1)
            else:
                strides = [options.stride_h, options.stride_w]
                group = 1 if kind == CONV else len(w)
                padding = "SAME_UPPER" if options.padding == schema.Padding.SAME else "VALID"
                value = self.add("Conv", both, auto_pad=padding, strides=strides, group=group)
        elif kind == ADD:
            value = self.add("Add", [x, self.values[inputs[1]]])
        elif kind == MEAN:
            value = self.add("Flatten", [self.add("GlobalAveragePool", [x])])
        elif kind == SOFTMAX:
            value = self.add("Softmax", [x], axis=-1)
        else:
            raise ValueError(f"operator {kind}")
        activation = getattr(options, "fused_activation_function", Activation.NONE)
        if activation == Activation.RELU6:
            value = self.add("Clip", [value, self.constant(np.float32(0)), self.constant(np.float32(6))])
        elif activation != Activation.NONE:
            raise ValueError(f"operator {kind} with activation {activation}")
        self.set(int(op.outputs[0]), value)


def convert(path: str) -> onnx.ModelProto:
    """Return a file as ONNX."""
    writer = Writer(Model.read(path))
    graph = writer.graph
    (first,), (last,) = map(int, graph.inputs), map(int, graph.outputs)
    n, h, w, c = map(int, graph.tensors[first].shape)
    is_quantized = writer.scales(first) is not None
    writer.values[first] = "x"
    if is_quantized:
        writer.values[first] = writer.add("DequantizeLinear", ["x", *writer.scaled(first)])
    for op in graph.operators:
        writer.write(op)
    result = writer.nodes[-1].output[0]
    if is_quantized:  # the caller takes the integers
        result = writer.nodes.pop().input[0]
    kind = TensorProto.INT8 if is_quantized else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("x", kind, [n, c, h, w])]
    outputs = [helper.make_tensor_value_info(result, kind, [*map(int, graph.tensors[last].shape)])]
    made = helper.make_graph(writer.nodes, "network", inputs, outputs, writer.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    onnx.save(convert(sys.argv[1]), sys.argv[2])
