"""Models of one operator, drawn at random, and how our answers compare with the official kernels'.

Lives here: `Row` (an operator, its types, how to draw a model of it), tensors, the builder, the comparison.
Not here: the rows (drawn_rows_*.py), the tests (test_drawn_ops.py, test_quantized_ops.py), the table over all of them
(drawn_table.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from lite_kit import run
from one_operator import official_interpreter

from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, pack_strings, schema, versions
from opwright.lite.ops import get

NUMPY = {
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "FLOAT16": np.float16,
    "FLOAT32": np.float32,
    "FLOAT64": np.float64,
    "BFLOAT16": ml_dtypes.bfloat16,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
    "COMPLEX128": np.complex128,
    "INT4": np.int8,
    "INT2": np.int8,
    "UINT4": np.uint8,
    "STRING": object,
}
LIMITS = {
    "INT8": (-128, 127),
    "UINT8": (0, 255),
    "INT16": (-32768, 32767),
    "UINT16": (0, 65535),
    "INT4": (-8, 7),
    "INT2": (-2, 1),
    "UINT4": (0, 15),
    "BOOL": (0, 1),
}
PACKED = {"INT4": 4, "UINT4": 4, "INT2": 2}
"""Bits an element, of the types that share bytes."""


@dataclass
class T:
    """A tensor: its type, shape and elements; constant: in the file; scale None: not quantised."""

    type: str
    shape: tuple[int, ...]
    scale: Any = None
    zero: Any = 0
    axis: int = 0
    values: Any = None
    constant: bool = False


@dataclass
class Drawn:
    """A model to try: inputs, outputs (their shape is for prepare to find), options."""

    inputs: list[T | None]
    outputs: list[T]
    options: dict[str, Any] = field(default_factory=dict)
    model: Model | None = None
    """Where the operator needs more than that: the whole model, of which `inputs` that are not constant are fed."""
    custom: bytes | None = None
    """The option bytes, where it is a custom operator."""
    defined: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None
    """Of the answers, what the operator says: where official ones also hold what happened to be in their memory."""
    runs: int = 1
    """How often it runs, on the same inputs: answers of operators with state change."""


@dataclass
class Row:
    """One operator, the types it is tried with and how to draw a model of it.

    within: how far answers may be from the official ones: 0, equal; of integers in steps, of floats relative to the
    greatest of the output. path: REF, the official reference kernels; OPT, the optimised ones (where the reference
    kernel is known to be wrong or is not registered); AUTO, with XNNPACK. label: tells rows of one operator apart.
    """

    name: str
    kinds: tuple[str, ...]
    draw: Callable[[Draw], Drawn]
    within: float = 0
    path: str = "REF"
    label: str = ""

    def __post_init__(self) -> None:
        self.label = self.label or self.name

    def __str__(self) -> str:
        return self.label


class Draw:
    """Random tensors of one type of activations, from one seed."""

    def __init__(self, seed: int, kind: str) -> None:
        self.rng, self.kind = np.random.default_rng(seed), kind
        self.low, self.high = LIMITS.get(kind, (0, 0))
        self.weights = "INT8" if kind in ("INT16", "FLOAT32") else kind

    def one(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def size(self, low: int = 1, high: int = 6) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def shape(self, rank: int = 4) -> tuple[int, ...]:
        return tuple(self.size(1, 5) for _ in range(rank))

    def scale(self, low: float = 0.005, high: float = 0.1) -> float:
        result = float(np.exp(self.rng.uniform(np.log(low), np.log(high))))
        return float(np.float32(result / 256 if self.kind == "INT16" else result))

    def zero(self) -> int:
        return 0 if self.kind == "INT16" else int(self.rng.integers(self.low, self.high, endpoint=True))

    def integers(self, kind: str, shape: tuple[int, ...], narrow: bool = False) -> np.ndarray:
        low, high = LIMITS[kind]
        return self.rng.integers(low + narrow, high, shape, endpoint=True).astype(NUMPY[kind])

    def x(self, *shape: int, scale: float | None = None, zero: int | None = None) -> T:
        """An activation that is given when the model runs."""
        values = self.integers(self.kind, shape)
        return T(self.kind, shape, scale or self.scale(), self.zero() if zero is None else zero, values=values)

    def values(self, kind: str, shape: Sequence[int], low: float = -9, high: float = 9) -> np.ndarray:
        """Elements of any type; numbers between low and high, as far as the type goes."""
        if kind == "STRING":
            words = np.empty(tuple(shape), object)
            flat = words.reshape(-1)
            flat[:] = [bytes(self.rng.integers(97, 100, self.size(0, 3)).astype(np.uint8)) for _ in range(flat.size)]
            return words
        dtype = np.dtype(NUMPY[kind])
        if kind == "BOOL":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            least, most = LIMITS.get(kind, (np.iinfo(dtype).min, np.iinfo(dtype).max))
            return self.rng.integers(max(int(low), least), min(int(high), most), shape, endpoint=True).astype(dtype)
        real = self.rng.uniform(low, high, shape)
        return (real + 1j * self.rng.uniform(low, high, shape) if dtype.kind == "c" else real).astype(dtype)

    def t(self, *shape: int, kind: str | None = None, low: float = -9, high: float = 9, constant: bool = False) -> T:
        """A tensor without scale, of the row's type or another."""
        kind = kind or self.kind
        return T(kind, tuple(shape), values=self.values(kind, shape, low, high), constant=constant)

    def real(self, *shape: int, spread: float = 2.0) -> T:
        return T("FLOAT32", shape, values=self.rng.normal(0, spread, shape).astype(np.float32))

    def w(self, *shape: int, axis: int | None = None, kind: str | None = None) -> T:
        """Constant weights: by channel along `axis`, else of one scale; uint8 with a zero point."""
        kind = kind or self.weights
        legacy = kind == "UINT8"
        scale = self.rng.uniform(0.005, 0.03, 1 if axis is None or legacy else shape[axis]).astype(np.float32)
        values = self.integers(kind, shape, narrow=True)
        return T(kind, shape, scale, self.zero() if legacy else 0, axis or 0, values, True)

    def bias(self, x: T, w: T, n: int, kind: str | None = None) -> T:
        kind = kind or ("INT64" if self.kind == "INT16" else "INT32")
        scale = np.float32(x.scale) * np.asarray(w.scale, np.float32)
        values = self.rng.integers(-4000, 4000, n).astype(NUMPY[kind])
        return T(kind, (n,), scale, 0, 0, values, True)

    def y(self, spread: float, kind: str | None = None) -> T:
        """An output whose range holds about that many real numbers either way."""
        kind = kind or self.kind
        most = LIMITS[kind][1] - LIMITS[kind][0]
        scale = float(np.float32(spread * self.rng.uniform(1.0, 3.0) / most))
        return T(kind, (), scale, 0 if kind == "INT16" else int(self.rng.integers(*LIMITS[kind])))

    def activation(self) -> str:
        return self.one("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def const(*values: Any, kind: Any = np.int32) -> T:
    array = np.array(values, kind)
    return T("INT32" if kind is np.int32 else "INT64", array.shape, values=array, constant=True)


def like(x: T) -> T:
    """An output with the parameters of a tensor."""
    return T(x.type, (), x.scale, x.zero)


def plain(kind: str) -> T:
    """An output without scale."""
    return T(kind, ())


def _bytes(t: T) -> np.ndarray:
    if t.type in PACKED:
        bits = PACKED[t.type]
        parts = np.zeros((-(-t.values.size * bits // 8), 8 // bits), np.uint8)
        parts.reshape(-1)[: t.values.size] = t.values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
        return np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype=np.uint8), 1)
    if t.type == "STRING":
        return np.frombuffer(pack_strings(t.values.reshape(-1).tolist()), np.uint8)
    return np.frombuffer(np.ascontiguousarray(t.values).tobytes(), np.uint8)


def model_of(name: str, drawn: Drawn, all_dynamic: bool = False) -> Model:
    """A model of the operator alone. all_dynamic: integers that are not quantised are given when it runs, too."""
    if drawn.model is not None:
        return drawn.model
    buffers, tensors, indices, inputs = [objects.Buffer()], [], [], []

    def add(t: T, label: str, place: int = 0) -> int:
        q = None
        if t.scale is not None:
            scales = np.atleast_1d(np.asarray(t.scale, np.float32))
            zeros = np.resize(np.asarray(t.zero, np.int64), len(scales))
            q = objects.QuantizationParameters(scale=scales, zero_point=zeros, quantized_dimension=t.axis)
        kind = schema.TensorType[t.type]
        tensors.append(objects.Tensor(shape=list(t.shape), type=kind, name=label, buffer=place, quantization=q))
        return len(tensors) - 1

    for t in drawn.inputs:
        if t is None:
            indices.append(-1)
            continue
        fixed = t.constant and not (all_dynamic and t.scale is None and t.type in ("INT32", "INT64"))
        if fixed:
            buffers.append(objects.Buffer(data=_bytes(t)))
        indices.append(add(t, f"x{len(tensors)}", len(buffers) - 1 if fixed else 0))
        if not fixed:
            inputs.append(indices[-1])
    results = [add(t, f"y{i}") for i, t in enumerate(drawn.outputs)]
    operator = objects.Operator(inputs=indices, outputs=results)
    if drawn.custom is None:
        set_options(operator, get(name).to_options(drawn.options))
        code = versions.operator_code(name)
    else:
        operator.custom_options = np.frombuffer(drawn.custom, np.uint8)
        code = versions.operator_code("CUSTOM", custom_code=name)
    main = objects.SubGraph(tensors=tensors, inputs=inputs, outputs=results, operators=[operator], name="main")
    model = Model(operator_codes=[code], subgraphs=[main], buffers=buffers)
    versions.stamp_model(model)
    return model


def feeds(drawn: Drawn, all_dynamic: bool = False) -> list[np.ndarray]:
    inputs = [t for t in drawn.inputs if t is not None]
    return [t.values for t in inputs if not t.constant or (all_dynamic and t.scale is None and t.type[:3] == "INT")]


def set_options(operator: Any, options: Any) -> None:
    """Put an options table into the union that has it."""
    if options is None or options.table_name in schema.union_tags("BuiltinOptions"):
        operator.builtin_options = options
    else:
        operator.builtin_options_2 = options


def ours(model: Model, values: list[np.ndarray]) -> list[np.ndarray]:
    return run(Interpreter(model_content=model.to_bytes()), values)


def answers(interpreter: Any, values: list[np.ndarray], runs: int) -> list[np.ndarray]:
    """The outputs of each run, one after the other."""
    result = run(interpreter, values)
    for _ in range(runs - 1):
        interpreter.invoke()
        result += [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]
    return result


def gap_of(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """|found - wanted|; of floats in units of the greatest of wanted's magnitudes (at least 1), and 0 where both are
    NaN or the same infinity; of strings 0 or 1."""
    if actual.dtype.kind in "OSU":
        return np.array([float(a != b) for a, b in zip(actual.reshape(-1), expected.reshape(-1), strict=True)])
    if actual.dtype.kind in "iub":
        exact = object if actual.dtype.itemsize == 8 else np.int64
        return np.abs(actual.astype(exact) - expected.astype(exact)).astype(np.float64)
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    a, b = (np.atleast_1d(x).astype(wide) for x in (actual, expected))
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        gap[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        gap[np.isnan(gap)] = np.inf
        magnitudes = np.abs(b)[np.isfinite(b)]
    return gap / max(1.0, float(magnitudes.max(initial=0)))


def differences(row: Row, kind: str, seed: int) -> list[np.ndarray]:
    """The gaps of each output of each run of one drawn model. Fails where shapes or dtypes differ."""
    drawn = row.draw(Draw(seed, kind))
    model = model_of(row.name, drawn)
    content = model.to_bytes()
    actual = answers(Interpreter(model_content=content), feeds(drawn), drawn.runs)
    expected = answers(official_interpreter(model, row.path, content=content), feeds(drawn), drawn.runs)
    if drawn.defined is not None:
        actual, expected = drawn.defined(actual), drawn.defined(expected)
    for a, b in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype.kind) == (b.shape, b.dtype.kind), (a.shape, a.dtype, b.shape, b.dtype)
        assert a.dtype == b.dtype or a.dtype.kind in "OS", (a.dtype, b.dtype)
    return [gap_of(a, b) for a, b in zip(actual, expected, strict=True)]
