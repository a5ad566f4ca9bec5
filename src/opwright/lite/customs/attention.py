"""Attention as one operator: odml.scaled_dot_product_attention.

Lives here: the operator, of generative models.  Not here: the caches of keys and values (caches.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.definition import Input, Output
from ..ops.shapes import bounded, broadcast, refuse, same, text
from .definition import custom_operator

_F = (float32,)


class _Scores:
    """The scores of attention, as shape rules see an operand."""

    def __init__(self, dims: Any) -> None:
        self.spec = TensorSpec(TensorShape(dims), float32)


@custom_operator("odml.scaled_dot_product_attention")
class ScaledDotProductAttention:
    """For each query a mean of the values, weighted by how well their keys fit it.

    .. math:: y_{bsn} = \\sum_t \\operatorname{softmax}_t(scale \\cdot q_{bsn} \\cdot k_{btn} + mask_{bnst}) v_{btn}

    q: [b, s, n, h]; k, v: [b, t, m, h], where m is n, or divides it: each head then serves n / m queries, one after
    the other; mask: broadcast to [b, n, s, t]; y: [b, s, n, h]. scale: where it is not positive, 1 / sqrt(h).
    """

    q = Input(_F, rank=4)
    k = Input(_F, rank=4)
    v = Input(_F, rank=4)
    mask = Input(_F, rank=4)
    y = Output(dtype=float32)
    scale = Attr(float, default=0.0)

    def infer(op: Any) -> TensorSpec:
        q, k, v, mask = (o.spec.shape for o in (op.q, op.k, op.v, op.mask))
        b, s, n, h = q.dims or (None,) * 4
        kb, t, m, kh = k.dims or (None,) * 4
        if not k.is_compatible_with(v) or not same(b, kb) or not same(h, kh) or (n is not None and m and n % m):
            raise refuse("queries, keys and values do not fit each other",
                         found={"q": text(q), "k": text(k), "v": text(v)},
                         wanted="[b,s,n,h] and [b,t,m,h], m a divisor of n")  # fmt: skip
        if 0 in (t, m, h):
            raise refuse("there are no keys", found=text(k), wanted="at least one key")
        scores = _Scores((b, n, s, t))
        if not broadcast(scores, op.mask).is_compatible_with(scores.spec.shape):
            raise refuse("the mask does not fit the scores", found=text(mask), wanted=text(scores.spec.shape))
        if None not in (b, n, s, t):
            bounded((b, n, s, t), float32, "the scores")
        return op.q.spec

    def compute(op: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        (b, s, n, h), (_, t, m, _) = q.shape, k.shape
        scale = np.float32(op.scale if op.scale > 0 else 1.0 / np.sqrt(h))
        queries = (q * scale).transpose(0, 2, 1, 3).reshape(b, m, n // m * s, h)  # the queries of one head together
        scores = (queries @ k.transpose(0, 2, 3, 1)).reshape(b, n, s, t)
        scores += mask
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        found = scores.reshape(b, m, n // m * s, t) @ v.transpose(0, 2, 1, 3)
        return np.ascontiguousarray(found.reshape(b, n, s, h).transpose(0, 2, 1, 3))
