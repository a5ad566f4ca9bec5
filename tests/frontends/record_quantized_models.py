"""Record quantized ONNX models and the results of onnxruntime: `python tests/frontends/record_quantized_models.py`.

Needs onnxruntime. Writes quantized_models.npz: by name the bytes of a model, its result, and the scale of the result.
Inputs follow from `inputs_of`. Not a test: test_onnx_quantized.py reads the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FILE = Path(__file__).parent / "quantized_models.npz"
RNG = np.random.default_rng(0)


def inputs_of(model, seed=99):
    """Return an array for each input of a model, by name."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for info in model.graph.input:
        tensor = info.type.tensor_type
        shape = [d.dim_value for d in tensor.shape.dim]
        if tensor.elem_type == TensorProto.FLOAT:
            arrays[info.name] = rng.normal(size=shape).astype(np.float32)
        else:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            arrays[info.name] = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape).astype(dtype)
    return arrays


class Network:
    """A float network under construction: nodes, weights."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, *shape, scale=None):
        scale = scale or (2 / np.prod(shape[1:])) ** 0.5
        self.weights.append(numpy_helper.from_array((RNG.normal(size=shape) * scale).astype("f4"), name))
        return name

    def node(self, operator, inputs, output, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [output], name=f"/{output}/{operator}", **attributes))
        return output

    def conv(self, x, y, channels, size=1, stride=1, groups=1, act=None):
        before, after = channels
        inputs = [
            x,
            self.weight(f"{y}_w", after, before // groups, size, size),
            self.weight(f"{y}_b", after, scale=0.1),
        ]
        attributes = {"strides": [stride] * 2, "group": groups, "pads": [size // 2] * 4}
        self.node("Conv", inputs, f"{y}_c" if act else y, kernel_shape=[size] * 2, **attributes)
        if act == "Clip":
            self.node("Clip", [f"{y}_c", "zero", "six"], y)
        elif act:
            self.node(act, [f"{y}_c"], y)
        return y

    def model(self, x, y):
        ends = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s)] for n, s in (("x", x), ("y", y))]
        numbers = [numpy_helper.from_array(np.float32(n), name) for n, name in ((0, "zero"), (6, "six"))]
        graph = helper.make_graph(self.nodes, "net", *ends, [*self.weights, *numbers])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        return model


def mobile():
    """Return a small network of MobileNet's kind, with branches."""
    net = Network()
    h = net.conv("x", "stem", (3, 8), 3, 2, act="Clip")
    h = net.conv(h, "dw1", (8, 8), 3, groups=8, act="Clip")
    h = net.conv(h, "pw1", (8, 8))
    e = net.conv(h, "ex", (8, 24), act="Clip")
    e = net.conv(e, "dw2", (24, 24), 3, groups=24, act="Clip")
    e = net.conv(e, "pj", (24, 8))
    net.node("Add", [h, e], "res")
    net.conv("res", "br1", (8, 8), 3, act="Relu")
    net.conv("res", "br2", (8, 8), act="LeakyRelu")
    net.node("Concat", ["br1", "br2"], "cat", axis=1)
    net.node("MaxPool", ["cat"], "mp", kernel_shape=[2, 2], strides=[2, 2])
    net.node("Sigmoid", ["mp"], "sg")
    net.node("Mul", ["mp", "sg"], "sw")
    net.node("GlobalAveragePool", ["sw"], "gap")
    net.node("Flatten", ["gap"], "fl")
    net.node("Gemm", ["fl", net.weight("fc_w", 10, 16), net.weight("fc_b", 10, scale=0.1)], "fc", transB=1)
    net.node("Softmax", ["fc"], "y")
    return net.model([1, 3, 32, 32], [1, 10])


def quantized(model, form, activations, weights, per_channel):
    """Return a model as onnxruntime quantizes it."""
    import tempfile

    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.samples = iter([inputs_of(model, seed) for seed in range(8)])

        def get_next(self):
            return next(self.samples, None)

    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/a.onnx", f"{folder}/b.onnx"
        onnx.save(model, source)
        quantize_static(
            source,
            target,
            Reader(),
            quant_format=QuantFormat[form],
            activation_type=QuantType[activations],
            weight_type=QuantType[weights],
            per_channel=per_channel,
            extra_options={"ActivationSymmetric": activations == "QInt16"},
        )
        return onnx.load(target)


def pair(nodes, name, scale, zero, weights, dtype=np.int8):
    """Append a pair after a value; return its result."""
    weights[f"{name}_s"], weights[f"{name}_z"] = np.float32(scale), dtype(zero)
    nodes.append(helper.make_node("QuantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_q"]))
    nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [f"{name}_d"]))
    return f"{name}_d"


def operator(name, shapes, scales, weights=(), dtype=np.int8, **attributes):
    """Return a model of one operator between pairs.

    scales: scale and zero point of each input, then of the result. weights: further inputs: (integers, scales, axis).
    """
    nodes, constants, reads = [], {}, []
    for i, (_shape, (scale, zero)) in enumerate(zip(shapes, scales)):
        reads.append(pair(nodes, f"x{i}", scale, zero, constants, dtype))
    for i, (integers, scale, axis) in enumerate(weights):
        if scale is None:
            constants[f"w{i}"] = integers
            reads.append(f"w{i}" if integers is not None else "")
            continue
        constants |= {f"w{i}_q": integers, f"w{i}_s": np.float32(scale)}
        constants[f"w{i}_z"] = np.zeros(np.shape(scale), integers.dtype)
        names = [f"w{i}_q", f"w{i}_s", f"w{i}_z"]
        nodes.append(helper.make_node("DequantizeLinear", names, [f"w{i}"], axis=axis))
        reads.append(f"w{i}")
    nodes.append(helper.make_node(name, reads, ["h"], **attributes))
    nodes[-1].name = f"/{name}"
    nodes.append(helper.make_node("Identity", [pair(nodes, "h", *scales[-1], constants, dtype)], ["y"]))
    initializers = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items() if v is not None]
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, s) for i, s in enumerate(shapes)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    return model


def integers(*shape, dtype=np.int8, most=127):
    return RNG.integers(-most, most + 1, shape).astype(dtype)


def operators():
    """Return models of one operator by name, and the scale of each result."""
    image, x, y = [1, 4, 9, 9], (0.03, 3), (0.05, -10)
    channels = [0.01, 0.02, 0.005, 0.013, 0.004, 0.03]
    bias = (integers(6, dtype=np.int32, most=400), np.float32([0.03 * c for c in channels]), 0)
    rows = {
        "conv": ("Conv", [image], [x, y], [(integers(6, 4, 3, 3), channels, 0), bias], {"pads": [1] * 4}),
        "conv_tensor": ("Conv", [image], [x, y], [(integers(6, 4, 3, 3), 0.01, 0)], {}),
        "conv_even": ("Conv", [image], [x, y], [(2 * integers(6, 4, 3, 3, most=40), channels, 0), bias], {}),
        "conv_groups": ("Conv", [image], [x, y], [(integers(4, 1, 3, 3), channels[:4], 0)], {"group": 4}),
        "conv_transpose": ("ConvTranspose", [image], [x, y], [(integers(4, 6, 2, 2), 0.01, 1)], {"strides": [2, 2]}),
        "conv_1d": ("Conv", [[2, 4, 17]], [x, y], [(integers(6, 4, 3), channels, 0), bias], {"pads": [1, 1]}),
        "matmul": ("MatMul", [[5, 16]], [x, y], [(integers(16, 6), channels, 1)], {}),
        "matmul_of_two": ("MatMul", [[2, 5, 16], [2, 16, 3]], [x, (0.02, -5), y], [], {}),
        "gemm": ("Gemm", [[5, 16]], [x, y], [(integers(6, 16), channels, 0), bias], {"transB": 1}),
        "add": ("Add", [image, image], [x, (0.02, -5), y], [], {}),
        "add_row": ("Add", [image], [x, y], [(integers(4, 1, 1), 0.02, 0)], {}),
        "sub": ("Sub", [image, image], [x, (0.02, -5), y], [], {}),
        "mul": ("Mul", [image, image], [x, (0.02, -5), y], [], {}),
        "relu": ("Relu", [image], [x, (0.012, -128)], [], {}),
        "leaky": ("LeakyRelu", [image], [x, y], [], {"alpha": 0.1}),
        "sigmoid": ("Sigmoid", [image], [x, (1 / 256, -128)], [], {}),
        "tanh": ("Tanh", [image], [x, (1 / 128, 0)], [], {}),
        "softmax": ("Softmax", [[3, 10]], [x, (1 / 256, -128)], [], {}),
        "max_pool": ("MaxPool", [image], [x, x], [], {"kernel_shape": [3, 3], "pads": [1] * 4}),
        "average_pool": ("AveragePool", [image], [x, x], [], {"kernel_shape": [3, 3]}),
        "average_pool_finer": ("AveragePool", [image], [x, (0.011, 0)], [], {"kernel_shape": [3, 3]}),
        "mean": ("GlobalAveragePool", [image], [x, (0.006, 2)], [], {}),
        "concat": ("Concat", [image, image], [x, (0.02, -5), x], [], {"axis": 1}),
        "transpose": ("Transpose", [image], [x, x], [], {"perm": [0, 3, 1, 2]}),
        "reshape": ("Reshape", [image], [x, x], [(np.int64([4, -1]), None, 0)], {}),
        "gather": ("Gather", [image], [x, x], [(np.int64([2, 0]), None, 0)], {"axis": 1}),
        "slice": ("Slice", [image], [x, x], [(np.int64(v), None, 0) for v in ([1], [7], [2], [2])], {}),
        "pad": ("Pad", [image], [x, x], [(np.int64([0, 0, 1, 2, 0, 0, 3, 1]), None, 0)], {}),
        "exp_of_reals": ("Exp", [image], [x, (0.08, -128)], [], {}),
        "elu_of_reals": ("Elu", [image], [x, (0.02, -60)], [], {}),
    }
    return {k: (operator(r[0], *r[1:4], **r[4]), r[2][-1][0]) for k, r in rows.items()}


def of_integers():
    """Return a model from uint8 to int8 whose operators read and write integers."""
    weights = {
        "s": np.float32(0.02),
        "z": np.uint8(120),
        "w": integers(4, 3, 3, 3, most=60),  # sums of two products of 8 bits saturate on AVX2 in onnxruntime
        "ws": np.float32([0.01, 0.02, 0.03, 0.01]),
        "wz": np.zeros(4, np.int8),
        "ys": np.float32(0.04),
        "yz": np.uint8(100),
        "b": integers(4, dtype=np.int32, most=300),
        "zs": np.float32(0.05),
        "zz": np.int8(-7),
        "shape": np.int64([1, -1]),
    }
    nodes = [
        helper.make_node("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "ys", "yz", "b"], ["h"], pads=[1] * 4),
        helper.make_node("MaxPool", ["h"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("DequantizeLinear", ["f", "ys", "yz"], ["d"]),
        helper.make_node("QuantizeLinear", ["d", "zs", "zz"], ["y"]),
    ]
    ends = [
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 64])],
    ]
    graph = helper.make_graph(nodes, "integers", *ends, [numpy_helper.from_array(v, n) for n, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    return model


def main():
    """Write the file."""
    import onnxruntime

    float_model = mobile()
    last = 1 / 256
    models = {
        "mobile_qdq_int8": (quantized(float_model, "QDQ", "QInt8", "QInt8", True), last),
        "mobile_qdq_uint8": (quantized(float_model, "QDQ", "QUInt8", "QInt8", False), last),
        "mobile_qdq_uint8_weights": (quantized(float_model, "QDQ", "QUInt8", "QUInt8", False), last),
        "mobile_qdq_int16": (quantized(float_model, "QDQ", "QInt16", "QInt8", True), 1 / 32768),
        "mobile_qoperator": (quantized(float_model, "QOperator", "QInt8", "QInt8", True), last),
        "integers": (of_integers(), 1),
    } | operators()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # as the model is written
    arrays = {}
    for name, (model, step) in models.items():
        content = model.SerializeToString()
        (result,) = onnxruntime.InferenceSession(content, options).run(None, inputs_of(model))
        arrays |= {f"{name}.model": np.frombuffer(content, np.uint8), f"{name}.y": result, f"{name}.step": step}
    np.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    main()
