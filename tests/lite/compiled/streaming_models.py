"""Streaming models written by hand, as wake-word detectors are: every layer keeps its last rows in a variable.

Each invoke takes a few new rows of features. A layer reads its variable, joins the new rows to it, keeps the last ones
by ASSIGN_VARIABLE and convolves the whole. CALL_ONCE clears all variables at the first invoke.

Not here: the checks (test_streaming.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from state_harness import Build

from opwright.lite.format import objects
from opwright.lite.ops import get

ACTIVATION = {"scale": 0.05, "zero": -3}


def scales(scale: Any, zero: int = 0, axis: int = 0) -> dict[str, Any]:
    values = np.float32(np.atleast_1d(scale))
    return {
        "quantization": objects.QuantizationParameters(
            scale=values, zero_point=np.full(values.shape, zero, np.int64), quantized_dimension=axis
        )
    }


class Streaming(Build):
    """Layers of a streaming network, int8. `rows`: how many rows each variable keeps, in order."""

    def __init__(self, seed: int = 3) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.kept: list[tuple[int, int]] = []  # rows and channels of each variable
        self.subgraph("main").once()

    def options(self, name: str, inputs: str, outputs: str, **options: Any) -> Streaming:
        self.op(name, inputs, outputs, get(name).to_options(options))
        return self

    def activation(self, name: str, shape: Any) -> str:
        self.tensor(name, shape, "INT8", **scales(ACTIVATION["scale"], ACTIVATION["zero"]))
        return name

    def integers(self, name: str, *values: int) -> str:
        self.tensor(name, (), "INT32", np.int32(values))
        return name

    def ring(self, x: str, new: int, rows: int, channels: int) -> str:
        """The rows that a variable keeps, and the new ones after them; the last of both are kept."""
        n = len(self.kept)
        self.kept.append((rows, channels))
        whole, read, last = f"ring{n}", f"read{n}", f"last{n}"
        self.handle(f"h{n}", f"stream_{n}")
        self.activation(read, (1, rows, 1, channels))
        self.activation(whole, (1, rows + new, 1, channels))
        self.activation(last, (1, rows, 1, channels))
        self.op("READ_VARIABLE", f"h{n}", read)
        self.options("CONCATENATION", f"{read} {x}", whole, axis=1)
        begin = self.integers(f"begin{n}", 0, new, 0, 0)
        end = self.integers(f"end{n}", 0, new + rows, 0, 0)
        step = self.integers(f"step{n}", 1, 1, 1, 1)
        self.options("STRIDED_SLICE", f"{whole} {begin} {end} {step}", last, begin_mask=13, end_mask=13)
        self.op("ASSIGN_VARIABLE", f"h{n} {last}")
        return whole

    def weights(self, name: str, shape: tuple[int, ...], outputs: int, axis: int) -> str:
        fan = int(np.prod(shape)) // outputs
        result = self.rng.integers(-127, 128, shape).astype(np.int8)
        each = self.rng.uniform(0.5, 1, outputs) * 0.02 / np.sqrt(fan)
        self.tensor(f"{name}.w", (), "INT8", result, **scales(each, 0, axis))
        bias = self.rng.integers(-500, 500, outputs).astype(np.int32)
        self.tensor(f"{name}.b", (), "INT32", bias, **scales(each * ACTIVATION["scale"]))
        return f"{name}.w {name}.b"

    def convolution(self, x: str, name: str, taps: int, cin: int, cout: int, stride: int = 1) -> str:
        """taps x 1 over the rows, of which one is left."""
        weights = self.weights(name, (cout, taps, 1, cin), cout, 0)
        self.activation(name, (1, 1, 1, cout))
        self.options(
            "CONV_2D",
            f"{x} {weights}",
            name,
            padding="VALID",
            stride_w=1,
            stride_h=stride,
            fused_activation_function="RELU",
        )
        return name

    def depthwise(self, x: str, name: str, taps: int, channels: int) -> str:
        weights = self.weights(name, (1, taps, 1, channels), channels, 3)
        self.activation(name, (1, 1, 1, channels))
        self.options(
            "DEPTHWISE_CONV_2D", f"{x} {weights}", name, padding="VALID", stride_w=1, stride_h=1, depth_multiplier=1
        )
        return name

    def finish(self, inputs: str, outputs: str) -> bytes:
        """The file, with the subgraph that clears the variables."""
        self.ends(inputs, outputs)
        self.subgraph("NoOp")
        for n, (rows, channels) in enumerate(self.kept):
            zeros = np.full((1, rows, 1, channels), ACTIVATION["zero"], np.int8)
            self.handle(f"h{n}", f"stream_{n}").tensor(
                f"zeros{n}", (), "INT8", zeros, **scales(ACTIVATION["scale"], ACTIVATION["zero"])
            )
            self.op("ASSIGN_VARIABLE", f"h{n} zeros{n}")
        self.ends()
        return self.done()


WHOLE = ([5], [7, 11], [9, 15], [23])


def wake_word(blocks: Sequence[Sequence[int]] = WHOLE, filters: int = 64) -> bytes:
    """A detector: a convolution, blocks of depthwise ones of so many rows and a pointwise one, and a dense layer. WHOLE
    has eight variables."""
    new, features = 3, 40
    b = Streaming()
    b.activation("x", (1, new, features))
    b.tensor("shape", (), "INT32", np.int32([1, new, 1, features]))
    b.activation("image", (1, new, 1, features))
    b.options("RESHAPE", "x shape", "image")
    x = b.convolution(b.ring("image", new, 2, features), "first", 5, features, 32, new)
    channels = 32
    for block, kernels in enumerate(blocks):
        parts = [x]
        if len(kernels) > 1:
            each = channels // len(kernels)
            parts = [b.activation(f"part{block}.{i}", (1, 1, 1, each)) for i in range(len(kernels))]
            axis = f"axis{block}"
            b.tensor(axis, (), "INT32", np.int32(3))
            sizes = b.integers(f"sizes{block}", *[each] * len(kernels))
            b.options("SPLIT_V", f"{x} {sizes} {axis}", " ".join(parts), num_splits=len(kernels))
        width = channels // len(kernels)
        result = [
            b.depthwise(b.ring(part, 1, k - 1, width), f"block{block}.{k}", k, width) for part, k in zip(parts, kernels)
        ]
        x = result[0]
        if len(result) > 1:
            x = b.activation(f"mixed{block}", (1, 1, 1, channels))
            b.options("CONCATENATION", " ".join(result), x, axis=3)
        x = b.convolution(x, f"point{block}", 1, channels, filters)
        channels = filters
    last = b.ring(x, 1, 4, channels)
    b.tensor("flat.shape", (), "INT32", np.int32([1, 5 * channels]))
    b.activation("flat", (1, 5 * channels))
    b.options("RESHAPE", f"{last} flat.shape", "flat")
    weights = b.weights("dense", (1, 5 * channels), 1, 0)
    b.activation("score", (1, 1))
    b.options("FULLY_CONNECTED", f"flat {weights}", "score")
    b.tensor("chance", (1, 1), "INT8", **scales(1 / 256, -128)).op("LOGISTIC", "score", "chance")
    b.tensor("y", (1, 1), "UINT8", **scales(1 / 256)).options("QUANTIZE", "chance", "y")
    return b.finish("x", "y")
