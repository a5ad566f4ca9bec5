"""Layers as one operator: UNIDIRECTIONAL_SEQUENCE_GRU and MeanVarianceNormalization.

Lives here: the GRU, which TensorFlow's converter wrote for fused layers, and the normalisation by its definition in
ONNX (operator set 13), for channels that come last.
Not here: the builtin recurrent operators (lite/ops/lstm.py, lite/ops/rnn.py), L2_NORMALIZATION and
LOCAL_RESPONSE_NORMALIZATION (lite/ops/activation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, at_least
from ...ops.slots import Input, Output
from ..ops.shapes import refuse, same, spec, text
from .definition import custom_operator

_F = (float32,)


@custom_operator("UNIDIRECTIONAL_SEQUENCE_GRU")
class UnidirectionalSequenceGRU:
    """A gated recurrent unit over time; the first rows of gate_weights give the reset gate r, the others the update u.

    .. math:: (r, u) = \\sigma(W_g (x_t, h) + b_g), \\quad c = \\tanh(W_c (x_t, r h) + b_c), \\quad h' = (1 - u) c + u h

    x: [time, batch, inputs]; state: h [batch, units]; gate_weights: [2 units, inputs + units]; gate_bias: [2 units];
    candidate_weights: [units, inputs + units]; candidate_bias: [units]; y: [time, batch, units]; last: the last h'
    """

    x = Input(_F, rank=3)
    state = Input(_F, rank=2)
    gate_weights = Input(_F, rank=2)
    gate_bias = Input(_F, rank=1)
    candidate_weights = Input(_F, rank=2)
    candidate_bias = Input(_F, rank=1)
    y = Output(dtype=float32)
    last = Output(dtype=float32)

    def infer(op: Any) -> Any:
        time, batch, inputs = op.x.spec.shape.dims or (None,) * 3
        units = op.state.spec.shape[1] if op.state.spec.shape.rank else None
        if not same(batch, op.state.spec.shape[0]):
            raise refuse("state has another batch size", found=text(op.state.spec.shape), wanted=f"[{batch},units]")
        if units is not None and inputs is not None:
            wanted = {
                "gate_weights": (2 * units, inputs + units),
                "gate_bias": (2 * units,),
                "candidate_weights": (units, inputs + units),
                "candidate_bias": (units,),
            }
            for name, dims in wanted.items():
                found = getattr(op, name).spec.shape
                if not all(map(same, found.dims or dims, dims)):
                    raise refuse(f"{name} does not fit x and state", found=text(found), wanted=text(dims))
        return spec((time, batch, units), float32), TensorSpec(op.state.spec.shape, float32)

    def compute(
        op: Any, x: Any, state: Any, gate_weights: Any, gate_bias: Any, candidate_weights: Any, candidate_bias: Any
    ) -> Any:
        h, units = state, state.shape[1]
        y = np.empty((*x.shape[:2], units), np.float32)
        one = np.float32(1)
        for t, now in enumerate(x):
            gates = one / (one + np.exp(-(np.concatenate([now, h], 1) @ gate_weights.T + gate_bias)))
            reset, update = gates[:, :units], gates[:, units:]
            candidate = np.tanh(np.concatenate([now, reset * h], 1) @ candidate_weights.T + candidate_bias)
            h = y[t] = (one - update) * candidate + update * h
        return y, np.array(h)


@custom_operator("MeanVarianceNormalization")
class MeanVarianceNormalization:
    """Elements less the mean over some axes, over their standard deviation.

    .. math:: y = (x - E x) / (\\sqrt{E (x - E x)^2} + eps)

    x: float32 of any rank from 1. axes: over which the mean goes, negative ones from the end; by default all but the
    last (each channel of [batch, height, width, channels] by itself). normalize_variance: else y = x - E x
    """

    x = Input(float32)
    y = Output(like="x")
    axes = Attr([int], default=())
    normalize_variance = Attr(bool, default=True)
    eps = Attr(float, default=1e-9, check=at_least(0.0))

    def infer(op: Any) -> TensorSpec:
        rank = op.x.spec.shape.rank
        if rank == 0:
            raise refuse("x is a scalar", wanted="1 dimension or more")
        if rank is not None and any(not -rank <= axis < rank for axis in op.axes):
            raise refuse("an axis is out of range for x", found=list(op.axes), wanted=f"-{rank} to {rank - 1}")
        if rank is not None and len({axis % rank for axis in op.axes}) != len(op.axes):
            raise refuse("an axis is named twice", found=list(op.axes), wanted="each once")
        return op.x.spec

    def compute(op: Any, x: Any) -> Any:
        axes = op.axes or tuple(range(max(x.ndim - 1, 1)))
        wide = x.astype(np.float64)
        less = wide - wide.mean(axes, keepdims=True)
        if op.normalize_variance:
            less = less / (np.sqrt(np.square(less).mean(axes, keepdims=True)) + op.eps)
        return less.astype(np.float32)
