"""Models of one recurrent operator, drawn at random: float, hybrid (int8 weights) and on integers.

Lives here: drawing, and running a model some times here and in the official interpreter.
Not here: the checks (test_recurrent.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwright.lite.format import Model, objects, schema, versions
from opwright.lite.ops import get

GATES = ("input", "forget", "cell", "output")


class Builder:
    """A model of one operator, by its inputs in order; `add` None for one left out."""

    def __init__(self, seed: int, kind: str) -> None:
        self.rng, self.kind = np.random.default_rng(seed), kind
        self.tensors: list[Any] = []
        self.buffers, self.inputs, self.fed = [objects.Buffer()], [], []
        self.intermediates: list[int] = []

    def one(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def size(self, low: int = 1, high: int = 5) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def width(self, low: int = 1) -> int:
        """Of inputs or cells: small, or now and then so many that official kernels take several at a time."""
        return self.size(low, 5) if self.rng.integers(4) else self.size(8, 40)

    def flag(self) -> bool:
        return bool(self.rng.integers(2))

    def tensor(self, shape: Any, kind: str = "FLOAT32", scale: Any = None, zero: int = 0, **other: Any) -> int:
        quantization = None
        if scale is not None:
            quantization = objects.QuantizationParameters(scale=np.float32([scale]), zero_point=np.int64([zero]))
        result = objects.Tensor(shape=list(shape), type=schema.TensorType[kind], quantization=quantization, **other)
        result.name = f"t{len(self.tensors)}"
        self.tensors.append(result)
        return len(self.tensors) - 1

    def fed_input(self, shape: Any, scale: Any = None, zero: int = 0, kind: str = "FLOAT32") -> None:
        self.fed.append(self.tensor(shape, kind, scale, zero))
        self.inputs.append(self.fed[-1])

    def constant(self, values: Any, kind: str = "FLOAT32", scale: Any = None, zero: int = 0) -> None:
        self.buffers.append(objects.Buffer(data=np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)))
        self.inputs.append(self.tensor(values.shape, kind, scale, zero, buffer=len(self.buffers) - 1))

    def weights(self, *shape: int) -> None:
        """A matrix (or a peephole) in the type that weights have; smaller weights in long rows, so that sums stay."""
        shrink = min(1.0, 2 / np.sqrt(shape[-1])) if len(shape) > 1 else 1.0
        if self.kind == "float":
            self.constant(self.rng.normal(0, 0.7 * shrink, shape).astype(np.float32))
        else:  # of "legacy" the bytes of int8 in a tensor that says uint8
            self.constant(
                self.rng.integers(-127, 127, shape, endpoint=True).astype(np.int8),
                "UINT8" if self.kind == "legacy" else "INT8",
                float(np.float32(self.rng.uniform(0.002, 0.02) * shrink)),
            )

    def bias(self, *shape: int, low: float = -1.0) -> None:
        self.constant(self.rng.uniform(low, 1, shape).astype(np.float32))

    def state(self, *shape: int, kind: str = "FLOAT32", scale: Any = None, zero: int = 0) -> None:
        self.inputs.append(self.tensor(shape, kind, scale, zero, is_variable=True))

    def none(self, n: int = 1) -> None:
        self.inputs += [-1] * n

    def model(self, name: str, outputs: list[int], **options: Any) -> Model:
        operator = objects.Operator(
            inputs=self.inputs,
            outputs=outputs,
            intermediates=self.intermediates,
            builtin_options=get(name).to_options(options),
        )
        main = objects.SubGraph(tensors=self.tensors, inputs=self.fed, outputs=outputs, operators=[operator], name="m")
        model = Model(operator_codes=[versions.operator_code(name)], subgraphs=[main], buffers=self.buffers)
        versions.stamp_model(model)
        return model

    def activation(self, none: str = "NONE") -> str:
        """none: what stands for NONE, of which the official LSTM takes what its scratch memory holds."""
        return self.one("TANH", "TANH", "RELU", "RELU6", "RELU_N1_TO_1", none)

    def batch_and_shape(self, time_major: bool, n: int) -> tuple[int, tuple[int, ...]]:
        batch, steps = self.size(1, 3), self.size(1, 4)
        return batch, (steps, batch, n) if time_major else (batch, steps, n)


def _lstm_weights(
    b: Builder,
    n: int,
    cells: int,
    out: int,
    *,
    cifg: bool,
    peephole: bool,
    projection: bool,
    norm: bool = False,
    diagonal: bool = False,
) -> None:
    """Inputs 1 to 17 of an LSTM with float biases."""
    for shape in ((cells, n), (cells,) if diagonal else (cells, out)):
        for gate in GATES:
            b.none() if cifg and gate == "input" else b.weights(*shape)
    for gate in ("input", "forget", "output"):
        b.weights(cells) if peephole and not (cifg and gate == "input") else b.none()
    for gate in GATES:
        b.none() if cifg and gate == "input" else b.bias(cells)
    if projection:
        b.weights(out, cells)
        b.bias(out) if b.flag() else b.none()
    else:
        b.none(2)


def lstm(seed: int, kind: str, name: str = "UNIDIRECTIONAL_SEQUENCE_LSTM") -> Model:
    b = Builder(seed, kind)
    n, cells = b.width(), b.width(2)
    diagonal = kind == "float" and "SEQUENCE" in name and seed % 5 == 0
    projection = b.flag() and not diagonal
    out = b.size(1, cells) if projection else cells  # more outputs than cells pass the official kernel's scratch memory
    cifg, peephole, norm, time_major = b.flag(), b.flag(), b.flag(), b.flag()
    batch, shape = b.batch_and_shape(time_major, n)
    b.fed_input(shape if "SEQUENCE" in name else (batch, n))
    _lstm_weights(b, n, cells, out, cifg=cifg, peephole=peephole, projection=projection, diagonal=diagonal)
    b.state(batch, out)
    b.state(batch, cells)
    for gate in GATES:
        b.bias(cells, low=0.2) if norm and not (cifg and gate == "input") else b.none()
    options = {
        "fused_activation_function": "TANH" if seed % 3 else b.activation("TANH"),
        "cell_clip": b.one(0.0, 0.5),
        "proj_clip": b.one(0.0, 0.4),
        "asymmetric_quantize_inputs": kind in ("hybrid", "legacy") and b.flag(),
    }
    if "SEQUENCE" in name:
        options |= {"time_major": time_major, "diagonal_recurrent_tensors": diagonal}
    return b.model(name, [b.tensor((1,))], **options)


def one_lstm(seed: int, kind: str) -> Model:
    return lstm(seed, kind, "LSTM")


def basic_lstm(seed: int, kind: str) -> Model:
    b = Builder(seed, kind)
    batch, n, out = b.size(1, 3), b.size(), b.size()
    if kind == "float":
        b.fed_input((batch, n))
        b.state(batch, out)
        b.weights(4 * out, n + out)
        b.bias(4 * out)
        b.state(batch, out)
        outputs = [b.tensor((1,)) for _ in range(4)]
    else:
        n, out = 8 * b.size(1, 2) - out % 2 * 0, 8  # what the official kernel asks
        by = {"kind": "UINT8", "scale": 1 / 128, "zero": 128}
        b.fed_input((batch, n), **by)
        b.state(batch, out, **by)
        scale = float(np.float32(b.rng.uniform(0.005, 0.02)))
        b.constant(b.rng.integers(0, 256, (4 * out, n + out)).astype(np.uint8), "UINT8", scale, b.size(100, 150))
        b.constant(b.rng.integers(-3000, 3000, (4 * out,)).astype(np.int32), "INT32", float(np.float32(scale / 128)))
        b.state(batch, out, kind="INT16", scale=2.0**-11)
        outputs = [
            b.tensor((1,), "UINT8", 1 / 128, 128),
            b.tensor((1,), "INT16", 2.0**-11),
            b.tensor((1,), "UINT8", 1 / 128, 128),
            b.tensor((1,), "INT16", 2.0**-12),
        ]
    return b.model("LSTM", outputs, fused_activation_function="TANH", kernel_type="BASIC")


def both_lstm(seed: int, kind: str) -> Model:
    b = Builder(seed, kind)
    n, time_major, merge, aux, aux_weights = b.width(), b.flag(), b.flag(), b.flag(), b.flag()
    batch, shape = b.batch_and_shape(time_major, n)
    merge = merge and (time_major or batch == 1)  # else the official kernel reads the state of another place
    b.fed_input(shape)
    sizes = []
    cifg, peephole, projection, cells = b.flag(), b.flag(), b.flag(), b.width(2)
    for _ in range(2):  # the official kernel wants both of one size
        sizes.append((sizes[0][0] if sizes else b.size(1, cells) if projection else cells, cells))
        _lstm_weights(b, n, cells, sizes[-1][0], cifg=cifg, peephole=peephole, projection=projection)
    for out, cells in sizes:
        b.state(batch, out)
        b.state(batch, cells)
    b.fed_input(shape) if aux else b.none()
    for _, cells in sizes:
        for gate in GATES:
            b.weights(cells, n) if aux and aux_weights and not (cifg and gate == "input") else b.none()
    outputs = [b.tensor((1,)) for _ in range(1 if merge else 2)]
    return b.model(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        outputs,
        fused_activation_function="TANH",
        merge_outputs=merge,
        time_major=time_major,
        cell_clip=b.one(0.0, 0.5),
        proj_clip=b.one(0.0, 0.4),
        asymmetric_quantize_inputs=kind in ("hybrid", "legacy") and b.flag(),
    )


def rnn(seed: int, kind: str, name: str = "UNIDIRECTIONAL_SEQUENCE_RNN") -> Model:
    b = Builder(seed, kind)
    n, units, time_major = b.width(), b.width(), b.flag()
    batch, shape = b.batch_and_shape(time_major, n)
    b.fed_input(shape if "SEQUENCE" in name else (batch, n))
    b.weights(units, n)
    b.weights(units, units)
    b.bias(units)
    b.state(batch, units)
    options = {"time_major": time_major} if "SEQUENCE" in name else {}
    return b.model(
        name,
        [b.tensor((1,))],
        fused_activation_function=b.activation(),
        asymmetric_quantize_inputs=kind in ("hybrid", "legacy") and b.flag(),
        **options,
    )


def one_rnn(seed: int, kind: str) -> Model:
    return rnn(seed, kind, "RNN")


def both_rnn(seed: int, kind: str) -> Model:
    b = Builder(seed, kind)
    n, time_major, merge, aux, aux_weights = b.width(), b.flag(), b.flag(), b.flag(), b.flag()
    if kind != "float":  # the official kernel crashes elsewhere, or is at odds with its float kernel
        merge = aux = time_major = False
    batch, shape = b.batch_and_shape(time_major, n)
    sizes = [b.width(), b.width()]
    b.fed_input(shape)
    for units in sizes:
        b.weights(units, n)
        b.weights(units, units)
        b.bias(units)
        b.state(batch, units)
    b.fed_input(shape) if aux else b.none()
    for units in sizes:
        b.weights(units, n) if aux and aux_weights else b.none()
    outputs = [b.tensor((1,)) for _ in range(1 if merge else 2)]
    return b.model(
        "BIDIRECTIONAL_SEQUENCE_RNN",
        outputs,
        fused_activation_function=b.activation(),
        merge_outputs=merge,
        time_major=time_major,
        asymmetric_quantize_inputs=kind in ("hybrid", "legacy") and b.flag(),
    )


def svdf(seed: int, kind: str) -> Model:
    b = Builder(seed, kind)
    batch, n, rank, units, memory = b.size(1, 3), b.width(), b.size(1, 2), b.width(), b.size()
    filters = rank * units
    if kind == "integer":
        b.fed_input((batch, n), 0.03, b.size(-20, 20), "INT8")
        b.weights(filters, n)
        b.constant(b.rng.integers(-32767, 32767, (filters, memory)).astype(np.int16), "INT16", 2e-5)
        b.constant(b.rng.integers(-3000, 3000, (units,)).astype(np.int32), "INT32", 2e-7)
        b.state(batch, memory * filters, kind="INT16", scale=1e-3)
        return b.model(
            "SVDF", [b.tensor((1,), "INT8", 0.05, b.size(-20, 20))], rank=rank, fused_activation_function="RELU"
        )
    b.fed_input((batch, n))
    b.weights(filters, n)
    b.weights(filters, memory)
    b.bias(units) if b.flag() else b.none()
    b.state(batch, memory * filters)
    return b.model(
        "SVDF",
        [b.tensor((1,))],
        rank=rank,
        fused_activation_function=b.one("NONE", "RELU"),
        asymmetric_quantize_inputs=kind in ("hybrid", "legacy") and b.flag(),
    )


def integer_lstm(seed: int, kind: str, name: str = "UNIDIRECTIONAL_SEQUENCE_LSTM") -> Model:
    """int8 with int16 cells; the scales of the gates of intermediate tensors. LSTM: one step."""
    b = Builder(seed, "integer")
    n, cells, batch = b.width(), b.width(2), b.size(1, 3)
    projection, cifg, peephole, norm, time_major = b.flag(), b.flag(), b.flag(), b.flag(), b.flag()
    out = b.size(2, 5) if projection else cells
    if peephole:
        out = cells  # of peepholes the official kernel takes as many as there are outputs, and not as there are cells
    steps = b.size(1, 4)
    scale_x, scale_h, power = 0.02, 0.008, b.one(-11, -12, -13)
    zero_x, zero_h, zero_hidden = b.size(-20, 20), b.size(-20, 20), b.size(-20, 20)
    scale_hidden = 0.008 if projection else scale_h
    zero_hidden = zero_hidden if projection else zero_h
    shape: tuple[int, ...] = (steps, batch, n) if time_major else (batch, steps, n)
    if name == "LSTM":
        shape = (batch, n)
    b.fed_input(shape, scale_x, zero_x, "INT8")
    for shape in ((cells, n), (cells, out)):
        for gate in GATES:
            b.none() if cifg and gate == "input" else b.weights(*shape)
    for gate in ("input", "forget", "output"):
        if peephole and not (cifg and gate == "input"):
            b.constant(b.rng.integers(-32767, 32767, (cells,)).astype(np.int16), "INT16", 3e-5)
        else:
            b.none()
    for gate in GATES:
        scale = 1.5e-6 if norm else scale_x * 0.01
        reach = 30000 if norm else 4000
        values = b.rng.integers(-reach, reach, (cells,)).astype(np.int32)
        b.none() if cifg and gate == "input" else b.constant(values, "INT32", scale)
    if projection:
        b.weights(out, cells)
        b.constant(b.rng.integers(-2000, 2000, (out,)).astype(np.int32), "INT32", 1e-4)
    else:
        b.none(2)
    b.state(batch, out, kind="INT8", scale=scale_h, zero=zero_h)
    b.state(batch, cells, kind="INT16", scale=2.0**power)
    if norm:
        for gate in GATES:
            if cifg and gate == "input":
                b.none()
                continue
            b.constant(b.rng.integers(8000, 32767, (cells,)).astype(np.int16), "INT16", 4e-5)
    else:
        b.none(4)
    for _ in GATES:
        b.intermediates.append(b.tensor((0,), "INT16", 0.003, 0) if norm else b.tensor((0,)))
    b.intermediates.append(b.tensor((0,), "INT8", scale_hidden, zero_hidden))
    options = {} if name == "LSTM" else {"time_major": time_major}
    return b.model(
        name,
        [b.tensor((1,), "INT8", scale_h, zero_h)],
        fused_activation_function="TANH",
        cell_clip=b.one(0.0, 0.5),
        proj_clip=b.one(0.0, 0.4),
        **options,
    )


def one_integer_lstm(seed: int, kind: str) -> Model:
    return integer_lstm(seed, kind, "LSTM")


def narrow_lstm(seed: int, kind: str) -> Model:
    """int8 with int8 gates: twelve intermediates, no input gate, always normalisation and projection.

    The output gate's recurrent weights are 0: of their sum's scale the official kernel reads outside its list.
    """
    b = Builder(seed, "integer")
    n, cells, batch = b.width(), b.width(2), b.size(1, 3)
    out, scale_h, zero_h = b.size(1, cells), 0.008, b.size(-20, 20)
    b.fed_input((batch, n), 0.02, b.size(-20, 20), "INT8")
    for k, columns in enumerate((n, out)):
        b.none()
        b.weights(cells, columns)
        b.weights(cells, columns)
        b.constant(np.zeros((cells, out), np.int8), "INT8", 0.01) if k else b.weights(cells, n)
    b.none(4)
    for _ in GATES[1:]:
        b.constant(b.rng.integers(-30000, 30000, (cells,)).astype(np.int32), "INT32", 1e-6)
    b.weights(out, cells)
    b.constant(b.rng.integers(-2000, 2000, (out,)).astype(np.int32), "INT32", 1e-4)
    b.state(batch, out, kind="INT8", scale=scale_h, zero=zero_h)
    b.state(batch, cells, kind="INT16", scale=2.0**-15)
    b.none()
    for _ in GATES[1:]:
        b.constant(b.rng.integers(8000, 32767, (cells,)).astype(np.int16), "INT16", 4e-5)
    for _ in range(12):
        scale = float(np.float32(b.rng.uniform(0.02, 0.1)))
        b.intermediates.append(b.tensor((0,), "INT8", scale, b.size(-10, 10)))
    return b.model(
        "LSTM",
        [b.tensor((1,), "INT8", scale_h, zero_h)],
        fused_activation_function="TANH",
        cell_clip=b.one(0.0, 0.5),
        proj_clip=b.one(0.0, 0.4),
    )


MODELS = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (lstm, ("float", "hybrid", "legacy")),
    "LSTM": (one_lstm, ("float", "hybrid", "legacy")),
    "LSTM of kernel_type BASIC": (basic_lstm, ("float", "integer")),
    "BIDIRECTIONAL_SEQUENCE_LSTM": (both_lstm, ("float", "hybrid", "legacy")),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (rnn, ("float", "hybrid", "legacy")),
    "RNN": (one_rnn, ("float", "hybrid", "legacy")),
    "BIDIRECTIONAL_SEQUENCE_RNN": (both_rnn, ("float", "hybrid", "legacy")),
    "SVDF": (svdf, ("float", "hybrid", "legacy", "integer")),
    "LSTM of int8": (integer_lstm, ("integer",)),
    "LSTM of int8, one step": (one_integer_lstm, ("integer",)),
    "LSTM of int8, gates of int8": (narrow_lstm, ("integer",)),
}
ROWS = [(name, kind) for name, (_, kinds) in MODELS.items() for kind in kinds]


def answers(interpreter: Any, runs: int = 3, allocate: bool = True) -> list[np.ndarray]:
    """The outputs of some runs in a row, on inputs that are the same for every interpreter."""
    if allocate:
        interpreter.allocate_tensors()
    rng, kept = np.random.default_rng(5), []
    for _ in range(runs):
        for detail in interpreter.get_input_details():
            kind, shape = np.dtype(detail["dtype"]), detail["shape"]
            if kind.kind == "f":
                value = rng.normal(0, 1, shape).astype(kind)
            else:
                value = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, endpoint=True).astype(kind)
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        kept += [interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()]
    return kept
