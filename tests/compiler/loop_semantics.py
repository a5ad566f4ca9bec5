"""The semantics of loop graphs in NumPy: the oracle of fusion and of plans.

Lives here: `meaning`, the table of forms.  Not here: fusion (loops/test_fusion_rules.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwright.compiler.loops import ops as f
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import evaluate_arrays
from opwright.compiler.loops.graph import LoopGraph

Values = dict[Any, np.ndarray]


def meaning(graph: LoopGraph, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs for these inputs."""
    values: Values = dict(zip(graph.inputs, inputs))
    for form in graph.ops:
        result = FORMS[type(form)](form, lambda b: value(b, values)).reshape(form.output.shape)
        out = form.output
        if out.parent is None:
            values[out] = result.astype(out.dtype.np)
            continue
        whole = values.setdefault(out.parent, np.zeros(out.parent.shape, out.dtype.np))
        whole[..., out.start : out.start + out.shape[-1]] = result
    return [value(b, values) for b in graph.outputs]


def value(b: Buffer, values: Values) -> np.ndarray:
    if b.constant is not None:
        return b.constant
    if b.parent is not None:
        return value(b.parent, values)[..., b.start : b.start + b.shape[-1]]
    return values[b]


def _map(form: f.Map, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    return np.broadcast_to(evaluate_arrays(form.expr, [of(b) for b in form.operands]), form.output.shape)


def _patches(x: np.ndarray, w: Window, zero: float, sizes: tuple[int, int]) -> np.ndarray:
    """[N, OH, OW, KH, KW, C]: what each window sees."""
    top, bottom, left, right = w.padding
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=zero)
    result = np.empty((x.shape[0], *sizes, *w.size, x.shape[3]), x.dtype)
    for i in range(w.size[0]):
        for j in range(w.size[1]):
            a, b = i * w.dilations[0], j * w.dilations[1]
            rows = x[:, a : a + (sizes[0] - 1) * w.strides[0] + 1 : w.strides[0]]
            result[:, :, :, i, j] = rows[:, :, b : b + (sizes[1] - 1) * w.strides[1] + 1 : w.strides[1]]
    return result


def _wide(x: np.ndarray, zero: int = 0) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64) - zero


def _contract(form: f.Contract, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    x, w = _wide(of(form.input), form.input_zero), _wide(of(form.filter), form.filter_zero)
    p = _patches(x, form.window, 0, form.output.shape[1:3])
    parts = zip(np.split(p, form.groups, -1), np.split(w, form.groups, 0))
    total = np.concatenate([np.einsum("nhwijc,fijc->nhwf", a, b) for a, b in parts], -1)
    return _finished(form, total, of)


def _depthwise(form: f.Depthwise, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    x, w = _wide(of(form.input), form.input_zero), _wide(of(form.filter), form.filter_zero)
    p = np.repeat(_patches(x, form.window, 0, form.output.shape[1:3]), form.multiplier, -1)
    return _finished(form, np.einsum("nhwijc,ijc->nhwc", p, w), of)


def _finished(form: Any, total: np.ndarray, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    kind = np.float32 if total.dtype.kind == "f" else np.int32
    return evaluate_arrays(form.expr, [total.astype(kind), *(of(b) for b in form.operands)])


def _pool(form: f.Pool, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    x, sizes = of(form.input), form.output.shape[1:3]
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    inside = _patches(np.ones(x.shape, np.int64), form.window, 0, sizes)
    seen = _patches(x, form.window, least, sizes)
    if form.kind == "max":
        return evaluate_arrays(form.expr, [seen.max((3, 4))])
    total = np.where(inside, seen, 0).sum((3, 4), dtype=np.float64 if x.dtype.kind == "f" else np.int64)
    kind = np.float32 if x.dtype.kind == "f" else np.int32
    return evaluate_arrays(form.expr, [total.astype(kind), inside.sum((3, 4)).astype(np.float32)])


def _reduce(form: f.Reduce, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    x = evaluate_arrays(form.before, [of(form.input)])
    total = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[form.kind](x, axis=form.axes)
    return evaluate_arrays(form.expr, [np.asarray(total).reshape(form.output.shape)])


def _move(form: f.Move, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    out = np.full(form.output.shape, 0 if form.fill is None else form.fill, form.output.dtype.np)
    for b, box in zip(form.operands, form.maps):
        flat = np.ascontiguousarray(of(b)).reshape(-1)
        places = np.full((), box.offset)
        for n, stride in zip(box.extent, box.strides):
            places = places[..., None] + np.arange(n) * stride
        out[tuple(slice(s, s + n) for s, n in zip(box.start, box.extent))] = flat[places]
    return out


def _matmul(form: f.MatMul, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    a, b = _wide(of(form.a), form.a_zero), _wide(of(form.b), form.b_zero)
    a = a.swapaxes(-1, -2) if form.transpose_a else a
    b = b.swapaxes(-1, -2) if form.transpose_b else b
    return _finished(form, a @ b, of)


def _transposed(form: f.TransposedContract, of: Callable[[Buffer], np.ndarray]) -> np.ndarray:
    x, w = _wide(of(form.input), form.input_zero), _wide(of(form.filter), form.filter_zero)
    (n, height, width, _), (features, kh, kw, _), (_, down, across, _) = x.shape, w.shape, form.output.shape
    (sh, sw), (dh, dw), (top, _, left, _) = form.window.strides, form.window.dilations, form.window.padding
    size = max(down + top, (height - 1) * sh + kh * dh), max(across + left, (width - 1) * sw + kw * dw)
    sums = np.zeros((n, *size, features), x.dtype)
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dh, i * dh + (height - 1) * sh + 1, sh)
            sums[:, rows, j * dw : j * dw + (width - 1) * sw + 1 : sw] += x @ w[:, i, j].T
    return _finished(form, sums[:, top : top + down, left : left + across], of)


FORMS: dict[type[f.LoopOp], Callable[..., np.ndarray]] = {
    f.Map: _map,
    f.Contract: _contract,
    f.Depthwise: _depthwise,
    f.Pool: _pool,
    f.Reduce: _reduce,
    f.Move: _move,
    f.View: lambda form, of: of(form.input),
    f.MatMul: _matmul,
    f.TransposedContract: _transposed,
}
