"""Layers as one operator: attention with its key-value caches, UNIDIRECTIONAL_SEQUENCE_GRU, MeanVarianceNormalization.

Lives here: attention of generative models, the GRU that TensorFlow's converter writes for fused layers, and the
normalization as ONNX defines it (operator set 13), for channels that come last.
Not here: the builtin recurrent operators (lite/ops/lstm.py, lite/ops/rnn.py), L2_NORMALIZATION and
LOCAL_RESPONSE_NORMALIZATION (lite/ops/activation.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, int64
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, at_least
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.shapes import bounded, broadcast, refuse, same, spec, text
from ..registration import OperatorRegistration, Registration
from .definition import custom_operator

_F = (float32,)


@custom_operator("UNIDIRECTIONAL_SEQUENCE_GRU")
class UnidirectionalSequenceGRUOp(LiteDefinition):
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

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        time, batch, inputs = op.x.spec.shape.dims or (None,) * 3
        units = op.state.spec.shape[1] if op.state.spec.shape.rank else None
        if not same(batch, op.state.spec.shape[0]):
            raise refuse("state has another batch size", found=text(op.state.spec.shape), wanted=f"[{batch},units]")
        if units is not None and inputs is not None:
            expected = {
                "gate_weights": (2 * units, inputs + units),
                "gate_bias": (2 * units,),
                "candidate_weights": (units, inputs + units),
                "candidate_bias": (units,),
            }
            for name, dims in expected.items():
                shape = getattr(op, name).spec.shape
                if not all(map(same, shape.dims or dims, dims)):
                    raise refuse(f"{name} does not fit x and state", found=text(shape), wanted=text(dims))
        return spec((time, batch, units), float32), TensorSpec(op.state.spec.shape, float32)

    def compute(
        op: Any,
        x: np.ndarray,
        state: np.ndarray,
        gate_weights: np.ndarray,
        gate_bias: np.ndarray,
        candidate_weights: np.ndarray,
        candidate_bias: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
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
class MeanVarianceNormalizationOp(LiteDefinition):
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
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        axes = op.axes or tuple(range(max(x.ndim - 1, 1)))
        wide = x.astype(np.float64)
        less = wide - wide.mean(axes, keepdims=True)
        if op.normalize_variance:
            less = less / (np.sqrt(np.square(less).mean(axes, keepdims=True)) + op.eps)
        result: np.ndarray = less.astype(np.float32)
        return result


class _Scores:
    """The scores of attention, as shape rules see an operand."""

    def __init__(self, dims: Any) -> None:
        self.spec = TensorSpec(TensorShape(dims), float32)


@custom_operator("odml.scaled_dot_product_attention")
class ScaledDotProductAttentionOp(LiteDefinition):
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
            raise refuse(
                "queries, keys and values do not fit each other",
                found={"q": text(q), "k": text(k), "v": text(v)},
                wanted="[b,s,n,h] and [b,t,m,h], m a divisor of n",
            )
        if 0 in (t, m, h):
            raise refuse("there are no keys", found=text(k), wanted="at least one key")
        scores = _Scores((b, n, s, t))
        if not broadcast(scores, op.mask).is_compatible_with(scores.spec.shape):
            raise refuse("the mask does not fit the scores", found=text(mask), wanted=text(scores.spec.shape))
        if None not in (b, n, s, t):
            bounded((b, n, s, t), float32, "the scores")
        result: TensorSpec = op.q.spec
        return result

    def compute(op: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
        (b, s, n, h), (_, t, m, _) = q.shape, k.shape
        scale = np.float32(op.scale if op.scale > 0 else 1.0 / np.sqrt(h))
        queries = (q * scale).transpose(0, 2, 1, 3).reshape(b, m, n // m * s, h)  # the queries of one head together
        scores = (queries @ k.transpose(0, 2, 3, 1)).reshape(b, n, s, t)
        scores += mask
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        y = scores.reshape(b, m, n // m * s, t) @ v.transpose(0, 2, 1, 3)
        return np.ascontiguousarray(y.reshape(b, n, s, h).transpose(0, 2, 1, 3))


_F = (float32,)
ENTRIES, LAYERS = 2048, 32
"""Default number of entries of a cache."""


@custom_operator("odml.update_external_kv_cache")
class UpdateExternalKVCacheOp(LiteDefinition):
    """The caches with slices in place of some of their entries.

    .. math:: y_{0, position_i} = slice_{0, i}

    keys, values: [1, entries, heads, size]; position: int32 [n]; the slices: [1, n, heads, size]. A position below the
    one before it ends the list: it and what comes after it count nothing.
    """

    keys = Input(_F, rank=4)
    values = Input(_F, rank=4)
    position = Input((int32,), rank=1)
    key_slice = Input(_F, rank=4)
    value_slice = Input(_F, rank=4)
    new_keys = Output(dtype=float32)
    new_values = Output(dtype=float32)

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        cache, part = op.keys.spec.shape, op.key_slice.spec.shape
        if not cache.is_compatible_with(op.values.spec.shape) or not part.is_compatible_with(op.value_slice.spec.shape):
            raise refuse(
                "keys and values differ in shape",
                found={n: text(getattr(op, n).spec.shape) for n in ("keys", "values", "key_slice", "value_slice")},
                wanted="one shape",
            )
        if not same(part[0], cache[0], 1) or not all(map(same, (cache.dims or ())[2:], (part.dims or ())[2:])):
            raise refuse(
                "the slices do not fit the caches",
                found={"keys": text(cache), "key_slice": text(part)},
                wanted="[1,entries,heads,size] and [1,n,heads,size]",
            )
        if not same(op.position.spec.shape[0], part[1]):
            raise refuse(
                "there are not as many positions as entries in the slices",
                found=text(op.position.spec.shape),
                wanted=f"[{part[1]}]",
            )
        return op.keys.spec, op.values.spec

    def compute(
        op: Any,
        keys: np.ndarray,
        values: np.ndarray,
        position: np.ndarray,
        key_slice: np.ndarray,
        value_slice: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        falls = np.flatnonzero(np.diff(position) < 0)
        at = position[: int(falls[0]) + 1] if len(falls) else position
        if len(at) and (at.min() < 0 or at.max() >= keys.shape[1]):
            raise refuse(
                "a position is outside the cache", found=f"{at.min()} to {at.max()}", wanted=f"0 to {keys.shape[1] - 1}"
            )
        caches = keys.copy(), values.copy()
        for cache, part in zip(caches, (key_slice, value_slice)):
            cache[0, at] = part[0, : len(at)]
        return caches


@custom_operator("odml.update_kv_cache")
class UpdateKVCacheOp(LiteDefinition):
    """Keys and values put into a cache that stays from run to run, and the whole cache; the oldest entries make room.

    .. math:: cache_{position_0 - first + i} = keys_i

    position: int64 [n], of which the first counts; keys, values: [1, n, heads, size]; y: [1, kv_cache_max, heads, size]
    each. layer_index: which of the interpreter's caches, one for all its subgraphs. An entry beyond the last
    shifts the cache, whose first entry (first) then represents a later position.
    """

    position = Input((int64,), rank=1)
    keys = Input(_F, rank=4)
    values = Input(_F, rank=4)
    all_keys = Output(dtype=float32)
    all_values = Output(dtype=float32)
    kv_cache_max = Attr(int, default=ENTRIES)
    num_layers = Attr(int, default=LAYERS)
    layer_index = Attr(int, default=0)
    effect = "write"

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        keys, entries = op.keys.spec.shape, entries_of(op)
        if not keys.is_compatible_with(op.values.spec.shape) or not same(keys[0], 1):
            raise refuse(
                "keys and values do not fit each other",
                found={"keys": text(keys), "values": text(op.values.spec.shape)},
                wanted="[1,n,heads,size] each",
            )
        if not same(op.position.spec.shape[0], keys[1]):
            raise refuse(
                "there are not as many positions as keys", found=text(op.position.spec.shape), wanted=f"[{keys[1]}]"
            )
        if keys[1] is not None and not 0 < keys[1] <= entries:
            raise refuse("more keys at once than the cache holds", found=keys[1], wanted=f"1 to {entries}")
        if op.layer() >= layers_of(op):
            raise refuse("layer_index is out of range", found=op.layer_index, wanted=f"0 to {layers_of(op) - 1}")
        dims = (1, entries, keys[2], keys[3])
        if None not in dims:
            bounded((2, *dims), float32, "the cache")
        return spec(dims, float32), spec(dims, float32)

    def layer(op: Any) -> int:
        """Return the number of the layer whose cache it is."""
        number: int = max(op.layer_index, 0)
        return number

    def registration(operator: Any) -> Registration:
        return CacheRegistration(operator)


def entries_of(op: Any) -> int:
    """Return the number of keys in a layer's cache."""
    return op.kv_cache_max if op.kv_cache_max > 0 else ENTRIES


def layers_of(op: Any) -> int:
    """Return the number of layers of the model."""
    return op.num_layers if op.num_layers > 0 else LAYERS


class CacheRegistration(OperatorRegistration):
    """The operator's shape rules, and its cache in place of `compute`."""

    __slots__ = ()

    def bind(self, context: Any, node: Any) -> Callable[[], Any]:
        return functools.partial(self._invoke, context, node)

    def _invoke(self, context: Any, node: Any) -> None:
        """Put keys and values into the layer's cache and return all of it."""
        position, keys, values = (t.readonly for t in node.tensors_in)
        call: Any = self._call(node)
        all_keys, all_values = node.tensors_out
        cache = node.subgraph.resources.cache(call.layer(), all_keys.shape[1:])
        entries, n = all_keys.shape[1], keys.shape[1]
        begin, counted = int(position[0]), cache.first(node.subgraph.index, node.number)
        first = 0 if counted.value is None else int(counted.value[0])
        if begin < first:
            raise refuse("the position is before the first entry of the cache", found=begin, wanted=f"{first} or more")
        shift = max(0, begin + n - first - entries)
        if 0 < shift < entries:
            for kept in (cache.keys, cache.values):
                kept[: entries - shift] = kept[shift:].copy()
        counted.assign(np.array([first + shift]))
        at = slice(begin - first - shift, begin - first - shift + n)
        cache.keys[at], cache.values[at] = keys[0], values[0]
        np.copyto(all_keys.array[0], cache.keys)
        np.copyto(all_values.array[0], cache.values)
