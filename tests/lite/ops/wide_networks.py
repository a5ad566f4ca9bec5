"""Networks of one to six operators, drawn with channels and sizes at and around every threshold of the kernels.

Lives here: `KINDS`, `drawn`, which returns a model and its inputs.  Not here: one operator alone, small and of any
options (drawn_rows_*.py), the comparison (test_wide_networks.py).

Scales follow the values: an output's range holds two to four standard deviations of what is computed, as calibration
would find it, so that errors neither vanish nor saturate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from drawn import set_options
from lite_kit import Build

from opwright.lite.format import objects, versions
from opwright.lite.ops import get

KINDS = ("FLOAT32", "FLOAT16", "DYNAMIC", "INT8", "INT16")
"""FLOAT16: constants of float16, dequantized. DYNAMIC: weights of int8, activations of float32."""
WIDTHS = (1, 3, 8, 12, 16, 31, 32, 33, 48, 64, 96, 129, 256)
MOST_PRODUCTS = 6_000_000  # of an operator: the official reference kernels take some 10 ms for these
MOST_ELEMENTS = 150_000
LARGE = 1e4  # values that are not squared again: scales of no network


@dataclass(frozen=True)
class Activation:
    """A tensor of the network: name, shape, and of integers scale, zero point and standard deviation in steps."""

    name: str
    shape: tuple[int, ...]
    scale: float = 1.0
    zero: int = 0
    steps: float = 73.0

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape))


class Draw:
    """A network being drawn."""

    def __init__(self, seed: int, kind: str) -> None:
        self.rng, self.kind, self.build, self.count = np.random.default_rng(seed), kind, Build(), 0
        self.integer = kind in ("INT8", "INT16")
        self.type = kind if self.integer else "FLOAT32"
        self.activations: list[Activation] = []

    def one(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def constant(self, values: np.ndarray, kind: str, scale: Any = None, axis: int = 0) -> str:
        name, quantization = self.name(), None
        if scale is not None:
            scales = np.atleast_1d(np.float32(scale))
            quantization = objects.QuantizationParameters(
                scale=scales, zero_point=np.zeros(len(scales), np.int64), quantized_dimension=axis
            )
        self.build.tensor(name, type=kind, data=values, quantization=quantization)
        return name

    def tensor(self, shape: tuple[int, ...], scale: float = 1.0, zero: int = 0, steps: float = 73.0) -> Activation:
        name, quantization = self.name(), None
        if self.integer:
            quantization = objects.QuantizationParameters(scale=np.float32([scale]), zero_point=np.int64([zero]))
        self.build.tensor(name, shape, self.type, quantization=quantization)
        return Activation(name, shape, float(np.float32(scale)), zero, steps)

    def operator(self, code: str, inputs: str, y: Activation, **options: Any) -> Activation:
        table = get(code).to_options(options)
        self.build.operator(versions.operator_code(code), inputs, y.name)
        set_options(self.build.main.operators[-1], table)
        self.activations.append(y)
        return y

    def result(self, shape: tuple[int, ...], deviation: float) -> Activation:
        """A tensor for values of that standard deviation around zero."""
        most = 127 if self.kind == "INT8" else 32767
        steps = most / self.rng.uniform(2, 4)
        zero = int(self.rng.integers(-60, 60)) if self.kind == "INT8" else 0
        return self.tensor(shape, deviation / steps, zero, min(steps, 0.6 * most))

    def weights(self, x: Activation, shape: tuple[int, ...], axis: int, depth: int, out: int) -> tuple[str, str, float]:
        """Names of weights and of a bias, and the standard deviation of the sums. depth: products in a sum."""
        if not self.integer:
            w = (self.rng.normal(0, 1, shape) / np.sqrt(depth)).astype(np.float32)
            bias = self.constant(self.rng.normal(0, 0.3, out).astype(np.float32), "FLOAT32")
            if self.kind == "DYNAMIC":
                others = None if axis < 0 else tuple(i for i in range(len(shape)) if i != axis)
                scale = np.abs(w).max(others) / np.float32(127)
                steps = np.round(w / np.expand_dims(scale, others or ())).astype(np.int8)
                return self.constant(steps, "INT8", scale, max(axis, 0)), bias, 1.0
            if self.kind == "FLOAT16":
                half, name = self.constant(w.astype(np.float16), "FLOAT16"), self.name()
                self.build.tensor(name, shape)
                self.build.operator(versions.operator_code("DEQUANTIZE"), half, name)
                return name, bias, 1.0
            return self.constant(w, "FLOAT32"), bias, 1.0
        scales = self.rng.uniform(0.004, 0.02, shape[axis] if axis >= 0 else 1).astype(np.float32)
        w = self.rng.integers(-127, 127, shape, endpoint=True).astype(np.int8)
        name = self.constant(w, "INT8", scales, max(axis, 0))
        deviation = float(np.sqrt(depth)) * 73 * x.steps * x.scale * float(np.mean(scales))
        by = np.float32(x.scale) * (scales if len(scales) > 1 else np.repeat(scales, 1))
        limit = int(min(0.3 * np.sqrt(depth) * 73 * x.steps, 2**30)) + 1
        kind = "INT64" if self.kind == "INT16" else "INT32"
        values = self.rng.integers(-limit, limit, out).astype(np.int64 if kind == "INT64" else np.int32)
        return name, self.constant(values, kind, by), deviation

    def activation(self) -> str:
        return self.one("NONE", "NONE", "RELU", "RELU6")


def _reach(d: Draw) -> tuple[int, int]:
    """Height and width of a window."""
    k = d.one(1, 1, 2, 3, 3, 5)
    return d.one((k, k), (k, k), (k, k), (1, k), (k, 1))


def _positions(size: int, window: int, stride: int, padding: str) -> int:
    return -(-size // stride) if padding == "SAME" else (size - window) // stride + 1


def _windows(d: Draw, x: Activation, dilated: bool) -> tuple[dict[str, Any], tuple[int, int], tuple[int, int]]:
    """Options, the window and the positions of a convolution or pool."""
    (h, w), (sh, sw) = _reach(d), d.one((1, 1), (1, 1), (2, 2), (1, 2), (3, 1))
    dh, dw = d.one((1, 1), (1, 1), (2, 2), (1, 2)) if dilated and (sh, sw) == (1, 1) else (1, 1)
    eh, ew = (h - 1) * dh + 1, (w - 1) * dw + 1
    fits = eh <= x.shape[1] and ew <= x.shape[2]
    padding = d.one("SAME", "VALID") if fits else "SAME"
    options = {"padding": padding, "stride_h": sh, "stride_w": sw}
    if dilated:
        options |= {"dilation_h_factor": dh, "dilation_w_factor": dw}
    positions = _positions(x.shape[1], eh, sh, padding), _positions(x.shape[2], ew, sw, padding)
    return options, (h, w), positions


def conv(d: Draw, x: Activation) -> Activation | None:
    options, window, positions = _windows(d, x, True)
    c, out = x.shape[3], d.one(*WIDTHS)
    divisors = [g for g in (2, 3, 4, 8, 16, 32, 43, c) if c % g == 0 and c > 1]
    groups = d.one(1, 1, *divisors) if d.kind != "DYNAMIC" and divisors else 1
    out = max(1, out // groups) * groups
    depth = window[0] * window[1] * (c // groups)
    if _too_large(x.shape[0], positions, out, depth):
        return None
    axis = d.one(0, 0, -1)
    w, bias, deviation = d.weights(x, (out, *window, c // groups), axis, depth, out)
    y = d.result((x.shape[0], *positions, out), deviation)
    if d.kind == "INT16":
        options["quantized_bias_type"] = "INT64"
    return d.operator("CONV_2D", f"{x.name} {w} {bias}", y, **options, fused_activation_function=d.activation())


def depthwise(d: Draw, x: Activation) -> Activation | None:
    options, window, positions = _windows(d, x, True)
    times = d.one(1, 1, 1, 2, 3, 4, 6, 8)
    out, depth = x.shape[3] * times, window[0] * window[1]
    if _too_large(x.shape[0], positions, out, depth):
        return None
    axis = 3 if d.kind == "DYNAMIC" else d.one(3, 3, -1)  # the official kernel reads a scale for each channel
    w, bias, deviation = d.weights(x, (1, *window, out), axis, depth, out)
    y = d.result((x.shape[0], *positions, out), deviation)
    options |= {"depth_multiplier": times, "fused_activation_function": d.activation()}
    return d.operator("DEPTHWISE_CONV_2D", f"{x.name} {w} {bias}", y, **options)


def transpose_conv(d: Draw, x: Activation) -> Activation | None:
    (h, w), stride, padding, out = _reach(d), d.one(1, 2, 2, 3), d.one("SAME", "VALID"), d.one(*WIDTHS)
    n, high, wide, c = x.shape
    sizes = [s * stride if padding == "SAME" else (s - 1) * stride + k for s, k in ((high, h), (wide, w))]
    if _too_large(n, (high, wide), out, h * w * c) or n * sizes[0] * sizes[1] * out > MOST_ELEMENTS:
        return None
    weights, bias, deviation = d.weights(x, (out, h, w, c), d.one(0, 0, -1), max(1, h * w * c // stride**2), out)
    shape = d.constant(np.array([n, *sizes, out], np.int32), "INT32")
    y = d.result((n, *sizes, out), deviation)
    options = {"padding": padding, "stride_h": stride, "stride_w": stride}
    if d.kind == "INT16":
        options["quantized_bias_type"] = "INT64"
    operands = f"{shape} {weights} {x.name}" + d.one("", f" {bias}")
    return d.operator("TRANSPOSE_CONV", operands, y, **options)


def dense(d: Draw, x: Activation) -> Activation | None:
    keep, out = d.one(True, False), d.one(*WIDTHS)
    depth = x.shape[-1] if keep else x.elements // x.shape[0]
    rows = x.elements // depth
    if _too_large(rows, (1, 1), out, depth):
        return None
    w, bias, deviation = d.weights(x, (out, depth), -1, depth, out)
    y = d.result((*x.shape[:-1], out) if keep else (rows, out), deviation)
    options: dict[str, Any] = {"keep_num_dims": keep, "fused_activation_function": d.activation()}
    if d.kind == "DYNAMIC":
        options["asymmetric_quantize_inputs"] = d.one(True, False)
    if d.kind == "INT16":
        options["quantized_bias_type"] = "INT64"
    if not keep and len(x.shape) != 2:
        x = reshape(d, x, (rows, depth))
    return d.operator("FULLY_CONNECTED", f"{x.name} {w} {bias}", y, **options)


def gram(d: Draw, x: Activation) -> Activation | None:
    """The products of each image's pixels, or of its channels."""
    n, c = x.shape[0], x.shape[-1]
    rows = x.elements // n // c
    by_pixel = d.one(True, False)
    size, depth = (rows, c) if by_pixel else (c, rows)
    if _too_large(n, (size, 1), size, depth) or x.steps * x.scale > LARGE:
        return None
    left = reshape(d, x, (n, rows, c))
    y = d.result((n, size, size), float(np.sqrt(depth)) * (x.steps * x.scale) ** 2)
    return d.operator("BATCH_MATMUL", f"{left.name} {left.name}", y, adj_x=not by_pixel, adj_y=by_pixel)


def matmul(d: Draw, x: Activation) -> Activation | None:
    """A batch of rows with constant columns."""
    depth, out = x.shape[-1], d.one(*WIDTHS)
    rows = x.elements // x.shape[0] // depth
    if d.kind not in ("FLOAT32", "DYNAMIC") or _too_large(x.shape[0], (rows, 1), out, depth):
        return None
    left = reshape(d, x, (x.shape[0], rows, depth))
    transposed = d.kind == "DYNAMIC" or d.one(True, False)
    w, _, deviation = d.weights(x, (out, depth) if transposed else (depth, out), -1, depth, out)
    y = d.result((x.shape[0], rows, out), deviation)
    return d.operator("BATCH_MATMUL", f"{left.name} {w}", y, adj_y=transposed)


def pool(d: Draw, x: Activation) -> Activation | None:
    options, window, positions = _windows(d, x, False)
    options |= {"filter_height": window[0], "filter_width": window[1]}
    y = d.tensor((x.shape[0], *positions, x.shape[3]), x.scale, x.zero, x.steps)
    return d.operator(d.one("AVERAGE_POOL_2D", "MAX_POOL_2D"), x.name, y, **options)


def arithmetic(d: Draw, x: Activation) -> Activation | None:
    """With another activation of that shape, or a constant for each channel."""
    code = d.one("ADD", "ADD", "MUL", "SUB")
    others = [a for a in d.activations if a.shape == x.shape]
    if others and d.one(True, True, False):
        other = d.one(*others)
    else:
        shape = d.one((x.shape[-1],), (1,) * (len(x.shape) - 1) + (x.shape[-1],), (1,))
        if d.integer:
            most = 127 if d.kind == "INT8" else 32767
            scale = float(np.float32(x.scale * d.rng.uniform(0.5, 2)))
            values = d.rng.integers(-most, most, shape).astype(np.int8 if d.kind == "INT8" else np.int16)
            other = Activation(d.constant(values, d.kind, scale), shape, scale, 0, 0.58 * most)
        else:
            other = Activation(d.constant(d.rng.normal(0, 1, shape).astype(np.float32), "FLOAT32"), shape)
    spreads = [a.steps * a.scale for a in (x, other)]
    if max(spreads) > LARGE:
        return None
    y = d.result(x.shape, spreads[0] * spreads[1] if code == "MUL" else float(np.hypot(*spreads)))
    pair = d.one(f"{x.name} {other.name}", f"{other.name} {x.name}")
    options = {"fused_activation_function": d.activation()}
    if code != "MUL":
        options["pot_scale_int16"] = False
    return d.operator(code, pair, y, **options)


def concat(d: Draw, x: Activation) -> Activation | None:
    """Activations with the same scale, which the official kernels want."""
    alike = [
        a
        for a in d.activations
        if len(a.shape) == len(x.shape) and a.shape[:-1] == x.shape[:-1] and (a.scale, a.zero) == (x.scale, x.zero)
    ]
    parts = [x, d.one(*alike), *([d.one(*alike)] if d.one(True, False) else [])]
    width = sum(a.shape[-1] for a in parts)
    if x.elements // x.shape[-1] * width > MOST_ELEMENTS:
        return None
    y = d.tensor((*x.shape[:-1], width), x.scale, x.zero, x.steps)
    return d.operator("CONCATENATION", " ".join(a.name for a in parts), y, axis=d.one(-1, len(x.shape) - 1))


def pad(d: Draw, x: Activation) -> Activation | None:
    amounts = np.array([[0, 0], *(d.rng.integers(0, 4, 2) for _ in range(2)), [0, d.one(0, 0, 1, 5)]], np.int32)
    y = d.tensor(tuple(int(s + sum(p)) for s, p in zip(x.shape, amounts)), x.scale, x.zero, x.steps)
    if y.elements > MOST_ELEMENTS:
        return None
    return d.operator("PAD", f"{x.name} {d.constant(amounts, 'INT32')}", y)


def resize(d: Draw, x: Activation) -> Activation | None:
    sizes = [max(1, min(64, int(s * d.one(0.5, 1.5, 2, 2)))) for s in x.shape[1:3]]
    if x.shape[0] * sizes[0] * sizes[1] * x.shape[3] > MOST_ELEMENTS:
        return None
    options = d.one({}, {"half_pixel_centers": True}, {"align_corners": True})
    y = d.tensor((x.shape[0], *sizes, x.shape[3]), x.scale, x.zero, x.steps)
    code = d.one("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    return d.operator(code, f"{x.name} {d.constant(np.array(sizes, np.int32), 'INT32')}", y, **options)


def mean(d: Draw, x: Activation) -> Activation | None:
    keep = d.one(True, False)
    n, high, wide, c = x.shape
    y = d.result((n, 1, 1, c) if keep else (n, c), x.steps * x.scale / np.sqrt(high * wide))
    return d.operator("MEAN", f"{x.name} {d.constant(np.array([1, 2], np.int32), 'INT32')}", y, keep_dims=keep)


def reshape(d: Draw, x: Activation, shape: tuple[int, ...]) -> Activation:
    y = replace(d.tensor(shape, x.scale, x.zero, x.steps))
    return d.operator("RESHAPE", f"{x.name} {d.constant(np.array(shape, np.int32), 'INT32')}", y, new_shape=shape)


def _too_large(batch: int, positions: tuple[int, int], out: int, depth: int) -> bool:
    results = batch * positions[0] * positions[1] * out
    return results > MOST_ELEMENTS or results * depth > MOST_PRODUCTS


SHARES: dict[Callable[[Draw, Activation], Activation | None], int] = {
    conv: 4,
    depthwise: 3,
    transpose_conv: 2,
    **dict.fromkeys((dense, gram, matmul), 1),
    **dict.fromkeys((pool, arithmetic), 2),
    concat: 1,
    pad: 2,
    **dict.fromkeys((resize, mean), 1),
}
IMAGES = tuple(make for make, share in SHARES.items() for _ in range(share))
ROWS: tuple[Callable[[Draw, Activation], Activation | None], ...] = (dense, dense, gram, matmul, arithmetic, concat)


def drawn(seed: int, kind: str) -> tuple[bytes, np.ndarray, list[str]]:
    """Return a model's file, its input and what it computes in words."""
    d = Draw(seed, kind)
    while True:
        shape = (d.one(1, 1, 2, 3), int(d.rng.integers(1, 65)), int(d.rng.integers(1, 65)), d.one(*WIDTHS))
        if np.prod(shape) <= MOST_ELEMENTS:
            break
    x = d.tensor(shape, float(d.rng.uniform(0.01, 0.03)), 0 if kind == "INT16" else int(d.rng.integers(-90, 90)))
    if kind == "INT16":
        x = replace(x, steps=18000.0)
    first = x
    d.activations.append(x)
    words, operators = [str(shape)], int(d.rng.integers(1, 7))
    while len(words) <= operators:
        make = d.one(*(IMAGES if len(x.shape) == 4 else ROWS))
        y = make(d, x)
        if y is not None:
            x = y
            words.append(f"{make.__name__} {'x'.join(map(str, y.shape))}")
    main = d.build.main
    main.inputs, main.outputs = [d.build.names[first.name]], [d.build.names[x.name]]
    versions.stamp_model(d.build.model)
    if d.integer:
        low, high, dtype = (-128, 127, np.int8) if kind == "INT8" else (-32768, 32767, np.int16)
        values = d.rng.integers(low, high, shape, endpoint=True).astype(dtype)
    else:
        values = d.rng.normal(0, 1, shape).astype(np.float32)
    return d.build.model.to_bytes(), values, words
