"""Models of one operator on quantised tensors, drawn at random, and how its answers compare with the official kernels'.

Lives here: tensors with scales, the builder, the comparison, and the table that
`PYTHONPATH=tests/lite python tests/lite/ops/quantized_models.py [models]` prints: operator, types, elements compared,
how many differ, the greatest difference.
Not here: the rows (quantized_rows.py), the tests (test_quantized_ops.py).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_kit import run
from one_operator import official

from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, schema, versions
from opwright.lite.ops import get

NUMPY = {"INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64,
         "FLOAT32": np.float32, "FLOAT16": np.float16, "BOOL": np.bool_, "INT4": np.int8, "INT2": np.int8}  # fmt: skip
LIMITS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767), "INT4": (-8, 7), "INT2": (-2, 1),
          "BOOL": (0, 1)}  # fmt: skip


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
        found = float(np.exp(self.rng.uniform(np.log(low), np.log(high))))
        return float(np.float32(found / 256 if self.kind == "INT16" else found))

    def zero(self) -> int:
        return 0 if self.kind == "INT16" else int(self.rng.integers(self.low, self.high, endpoint=True))

    def integers(self, kind: str, shape: tuple[int, ...], narrow: bool = False) -> np.ndarray:
        low, high = LIMITS[kind]
        return self.rng.integers(low + narrow, high, shape, endpoint=True).astype(NUMPY[kind])

    def x(self, *shape: int, scale: float | None = None, zero: int | None = None) -> T:
        """An activation that is given when the model runs."""
        values = self.integers(self.kind, shape)
        return T(self.kind, shape, scale or self.scale(), self.zero() if zero is None else zero, values=values)

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
    if t.type in ("INT4", "INT2"):
        bits = int(t.type[3:])
        parts = np.zeros((-(-t.values.size * bits // 8), 8 // bits), np.uint8)
        parts.reshape(-1)[: t.values.size] = t.values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
        return np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype=np.uint8), 1)
    return np.frombuffer(np.ascontiguousarray(t.values).tobytes(), np.uint8)


def model_of(name: str, drawn: Drawn, all_dynamic: bool = False) -> Model:
    """A model of the operator alone. all_dynamic: integers that are not quantised are given when it runs, too."""
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
    operator = objects.Operator(inputs=indices, outputs=results, builtin_options=get(name).to_options(drawn.options))
    main = objects.SubGraph(tensors=tensors, inputs=inputs, outputs=results, operators=[operator], name="main")
    model = Model(operator_codes=[versions.operator_code(name)], subgraphs=[main], buffers=buffers)
    versions.stamp_model(model)
    return model


def feeds(drawn: Drawn, all_dynamic: bool = False) -> list[np.ndarray]:
    given = [t for t in drawn.inputs if t is not None]
    return [t.values for t in given if not t.constant or (all_dynamic and t.scale is None and t.type[:3] == "INT")]


def ours(model: Model, values: list[np.ndarray]) -> list[np.ndarray]:
    return run(Interpreter(model_content=model.to_bytes()), values)


def differences(name: str, drawn: Drawn, path: str) -> list[np.ndarray]:
    """|ours - official| of each output; of floats in units of the greatest of the two's magnitude."""
    model = model_of(name, drawn)
    found, wanted = ours(model, feeds(drawn)), official(model, feeds(drawn), path)
    gaps = []
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (a.shape, a.dtype, b.shape, b.dtype)
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
        gaps.append(gap / max(1.0, float(np.abs(b).max(initial=0))) if a.dtype.kind == "f" else gap)
    return gaps


def main(models: int) -> None:
    """Print the table over so many models a row."""
    from quantized_rows import ROWS

    print(f"{'operator':28}{'types':10}{'path':5}{'elements':>10}{'differ':>8}{'most':>10}{'allowed':>10}")
    for row in ROWS:
        for kind in row.kinds:
            gaps = [g for seed in range(models) for g in differences(row.name, row.draw(Draw(seed, kind)), row.path)]
            flat = np.concatenate([g.reshape(-1) for g in gaps])
            counted = f"{flat.size:10}{(flat > 0).sum():8}{flat.max(initial=0):10.2g}"
            print(f"{row.label:28}{kind:10}{row.path:5}{counted}{row.within:10.2g}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
