"""Attention with several heads.

Lives here: MultiHeadAttention, GroupQueryAttention.
Not here: attention without projections (dot_product_attention.py).
"""

from __future__ import annotations

import math as python_math
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from ...ops import array, linalg, math
from ...ops import nn as ops_nn
from .. import regularizers
from ..layer_calls import mask_of, set_mask
from .activation import Softmax, large_negative
from .configurable_layer import ConfigurableLayer
from .core import EinsumDense
from .regularization import Dropout

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _indices(x: Any, axis: int = 1) -> Tensor:
    """Return the indices 0, 1, ... along an axis of x."""
    size = x.shape[axis]
    return array.range(array.shape(x)[axis] if size is None else size)


def causal_mask(query: Any, value: Any, axis: int = 1) -> Tensor:
    """Return the causal mask [1, T, S]: position t attends to positions up to t."""
    rows, columns = _indices(query, axis), _indices(value, axis)
    return array.expand_dims(array.expand_dims(rows, 1) >= array.expand_dims(columns, 0), 0)


def window_mask(query: Any, value: Any, width: int) -> Tensor:
    """Return the sliding-window mask [1, T, S]: position t attends to positions at a distance below `width`."""
    rows, columns = _indices(query), _indices(value)
    return array.expand_dims(math.abs(array.expand_dims(rows, 1) - array.expand_dims(columns, 0)) < width, 0)


def combine_masks(
    query: Any,
    value: Any,
    query_mask: Any,
    value_mask: Any,
    key_mask: Any,
    attention_mask: Any,
    use_causal_mask: bool,
    sliding_window: int | None,
) -> Tensor | None:
    """Return the conjunction of all masks, [B or 1, T or 1, S]; None without any."""
    parts = []
    if query_mask is not None:
        parts.append(array.expand_dims(array.cast(query_mask, "bool"), -1))
    parts += [array.expand_dims(array.cast(m, "bool"), -2) for m in (value_mask, key_mask) if m is not None]
    if use_causal_mask:
        parts.append(causal_mask(query, value))
    if sliding_window is not None:
        parts.append(window_mask(query, value, sliding_window))
    if attention_mask is not None:
        parts.append(array.cast(attention_mask, "bool"))
    mask = None
    for part in parts:
        mask = part if mask is None else math.logical_and(mask, part)
    return mask


class _ProjectedAttention(ConfigurableLayer):
    """Base class of attention with projections."""

    def _options(self) -> dict[str, Any]:
        """Return the arguments shared by all projections; initializers are copied so that their values differ."""

        def copy_of(initializer: Any) -> Any:
            config = getattr(initializer, "get_config", None)
            return initializer if config is None else type(initializer).from_config(config())

        return {
            "kernel_initializer": copy_of(self.kernel_initializer),
            "bias_initializer": copy_of(self.bias_initializer),
            "kernel_regularizer": self.kernel_regularizer,
            "bias_regularizer": self.bias_regularizer,
            "activity_regularizer": self.activity_regularizer,
            "kernel_constraint": self.kernel_constraint,
            "bias_constraint": self.bias_constraint,
            "dtype": self._dtype_policy,
        }

    def _projection(
        self, name: str, equation: str, output: Any, bias: str, shape: Any, activation: Any = None
    ) -> EinsumDense:
        layer = EinsumDense(equation, output, activation, bias if self.use_bias else None, name=name, **self._options())
        layer.build(tuple(shape))
        return layer

    def _masked_softmax(self, scores: Tensor, mask: Tensor | None, depth: int) -> Tensor:
        """Return attention probabilities, 0 at masked positions. depth: the number of attention axes."""
        probabilities: Tensor = self._softmax(scores, mask=_expand_for_heads(mask, scores, depth))
        return probabilities


def _check_counts(**arguments: Any) -> None:
    """Raise ValueError unless arguments are positive integers."""
    for name, value in arguments.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"The argument `{name}` must be a positive integer. Received: {name}={value!r}")


def _check_shapes(value_shape: Any, key_shape: Any) -> None:
    """Raise ValueError unless the sizes of value and key are equal, but for the features."""
    if tuple(value_shape[1:-1]) != tuple(key_shape[1:-1]):
        raise ValueError(
            "All dimensions of `value` and `key`, except the last one, must be equal. Received: "
            f"value_shape={tuple(value_shape)} and key_shape={tuple(key_shape)}"
        )


def _expand_for_heads(mask: Any, scores: Any, depth: int) -> Tensor | None:
    if mask is None:
        return None
    expanded: Tensor = mask
    for _ in range(scores.shape.rank - mask.shape.rank):
        expanded = array.expand_dims(expanded, -2 * depth - 1)
    return expanded


def _softmax_or_uniform(scores: Any, mask: Any) -> Tensor:
    """Return probabilities over the last axis; uniform where all positions are masked."""
    if mask is not None:
        low = array.cast(0.7 * large_negative(scores.dtype), scores.dtype)
        scores = array.where(mask, scores, low)
    return ops_nn.softmax(scores, -1)


class MultiHeadAttention(_ProjectedAttention):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017).

    .. math:: softmax(Q K^T / \\sqrt{key\\_dim}) V, \\quad Q = query W_q, \\; K = key W_k, \\; V = value W_v

    query: [B, T, dim], value and key (by default value): [B, S, dim]; output: [B, T, dim], or with the last sizes
    output_shape. attention_axes: the axes of attention, by default all between batch and features.
    query_mask [B, T], value_mask, key_mask [B, S], attention_mask [B, T, S]: False for positions to ignore.
    use_causal_mask: attend only to earlier positions. sliding_window: attend only to positions within this distance.
    return_attention_scores: also return the weights [B, heads, T, S]. use_gate: multiply heads by a sigmoid gate.
    Weights: kernels and biases of query, key, (gate,) value, attention_output.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: Any = None,
        attention_axes: Any = None,
        sliding_window: int | None = None,
        flash_attention: Any = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=None, **kwargs)
        _check_counts(num_heads=num_heads, key_dim=key_dim, value_dim=key_dim if value_dim is None else value_dim)
        if sliding_window is not None:
            _check_counts(sliding_window=sliding_window)
        if isinstance(attention_axes, int):
            attention_axes = (attention_axes,)
        if output_shape is not None:
            if not isinstance(output_shape, (int, list, tuple)):
                raise ValueError(
                    "Invalid `output_shape`: expected an integer or a tuple of integers. Received: "
                    f"output_shape={output_shape!r}"
                )
            output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        self._set_arguments(locals(), omit=("output_shape", "flash_attention"), value_dim=value_dim or key_dim)
        self._output_shape = output_shape
        self._output_regularizer = activity_regularizer
        self.supports_masking = True

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "activity_regularizer": self._output_regularizer}

    def build(self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:  # type: ignore[override]
        """Create the projections."""
        key_shape = value_shape if key_shape is None else key_shape
        _check_shapes(value_shape, key_shape)

        def heads(name: str, shape: Any, size: int, activation: Any = None) -> EinsumDense:
            free = ascii_lowercase[: len(shape) - 1]
            x, n, h = list(ascii_lowercase[len(shape) - 1 : len(shape) + 2])
            between = [None] * (len(shape) - 2)
            return self._projection(
                name, f"{free}{x},{x}{n}{h}->{free}{n}{h}", [*between, self.num_heads, size], n + h, shape, activation
            )

        self.query_dense = heads("query", query_shape, self.key_dim)
        self.key_dense = heads("key", key_shape, self.key_dim)
        if self.use_gate:
            self.gate_dense = heads("gate", query_shape, self.value_dim, "sigmoid")
        self.value_dense = heads("value", value_shape, self.value_dim)
        rank = len(value_shape) + 1
        axes = (
            tuple(range(1, rank - 2))
            if self.attention_axes is None
            else tuple(a if a >= 0 else rank - 1 + a for a in self.attention_axes)
        )
        self._axes = axes
        self._equations(rank, axes)
        self._softmax = Softmax(axis=tuple(range(-len(axes), 0)), dtype=self._dtype_policy)
        self._dropout_layer = Dropout(self.dropout, dtype=self._dtype_policy, seed=self.seed)
        output = list(self._output_shape or [query_shape[-1]])
        free = ascii_lowercase[: len(query_shape) - 1]
        n, h, *output_labels = list(ascii_lowercase[len(query_shape) - 1 : len(query_shape) + 1 + len(output)])
        last = "".join(output_labels)
        self.output_dense = self._projection(
            "attention_output",
            f"{free}{n}{h},{n}{h}{last}->{free}{last}",
            [*[None] * (len(query_shape) - 2), *output],
            last,
            (*query_shape[:-1], self.num_heads, self.value_dim),
        )

    def _equations(self, rank: int, axes: tuple[int, ...]) -> None:
        """Set the einsum equations of scores and of weighted values, for tensors [batch, ..., heads, features]."""
        target = ascii_lowercase[:rank]
        others = iter(ascii_lowercase[rank:])
        source = "".join(next(others) if i in axes else c for i, c in enumerate(target))
        batch_labels = [c for i, c in enumerate(target) if i not in axes and i != rank - 1]
        scores = "".join([*batch_labels, *(target[i] for i in axes), *(source[i] for i in axes)])
        self._score_equation = f"{source},{target}->{scores}"
        self._combine_equation = f"{scores},{source}->{target}"

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: Any = None,
        use_causal_mask: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute attention. See the class."""
        key = value if key is None else key
        output_mask = mask_of(query) if query_mask is None else query_mask
        mask = combine_masks(
            query, value, query_mask, value_mask, key_mask, attention_mask, use_causal_mask, self.sliding_window
        )
        gate = self.gate_dense(query) if self.use_gate else None
        q, k, v = self.query_dense(query), self.key_dense(key), self.value_dense(value)
        mixed, scores = self._compute_attention(q, k, v, mask, training, return_attention_scores)
        output = self.output_dense(mixed if gate is None else mixed * gate)
        if output_mask is not None:
            set_mask(output, output_mask)
        return (output, scores) if return_attention_scores else output

    def _compute_attention(
        self,
        query: Any,
        key: Any,
        value: Any,
        attention_mask: Any = None,
        training: Any = None,
        return_attention_scores: bool = False,
    ) -> tuple[Any, Any]:
        """Return the weighted values and the scores of projected tensors."""
        query = query * (1.0 / python_math.sqrt(float(self.key_dim)))
        scores = linalg.einsum(self._score_equation, key, query)
        if query.shape.rank == 4 and not self.dropout and not return_attention_scores:
            scores = _softmax_or_uniform(scores, _expand_for_heads(attention_mask, scores, 1))
        else:
            scores = self._masked_softmax(scores, attention_mask, len(self._axes))
        weights = self._dropout_layer(scores, training=training) if self.dropout else scores
        return linalg.einsum(self._combine_equation, weights, value), scores

    def compute_output_shape(  # type: ignore[override]
        self, query_shape: Any, value_shape: Any, key_shape: Any = None
    ) -> tuple[Any, ...]:
        """Return the query's shape, with the last sizes from output_shape. Raises ValueError for other shapes."""
        _check_shapes(value_shape, value_shape if key_shape is None else key_shape)
        return (*query_shape[:-1], *(self._output_shape or (query_shape[-1],)))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {
            **super().get_config(),
            "output_shape": self._output_shape,
            "activity_regularizer": regularizers.serialize(self._output_regularizer),
        }


class GroupQueryAttention(_ProjectedAttention):
    """Attention whose query heads share heads of keys and values in groups (Ainslie et al. 2023).

    head_dim: features of a head. num_query_heads: a multiple of num_key_value_heads. Calls, masks and output are
    MultiHeadAttention's. Weights: kernels and biases of query, key, (gate,) value, attention_output.
    raises ValueError unless the query heads divide evenly
    """

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        flash_attention: Any = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        _check_counts(head_dim=head_dim, num_query_heads=num_query_heads, num_key_value_heads=num_key_value_heads)
        if sliding_window is not None:
            _check_counts(sliding_window=sliding_window)
        if num_query_heads % num_key_value_heads:
            raise ValueError(
                "`num_query_heads` must be divisible by `num_key_value_heads`. Received: "
                f"{num_query_heads} and {num_key_value_heads}"
            )
        self._set_arguments(locals(), omit=("flash_attention", "activity_regularizer"))
        self._output_regularizer = activity_regularizer
        self.supports_masking = True

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "activity_regularizer": self._output_regularizer}

    def build(self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:  # type: ignore[override]
        """Create the projections."""
        key_shape = value_shape if key_shape is None else key_shape
        _check_shapes(value_shape, key_shape)
        many, few, n = self.num_query_heads, self.num_key_value_heads, self.head_dim
        self._query_dense = self._projection("query", "bqm,muh->bquh", (None, many, n), "uh", query_shape)
        self._key_dense = self._projection("key", "bkm,mvh->bkvh", (None, few, n), "vh", key_shape)
        if self.use_gate:
            self._gate_dense = self._projection("gate", "bqm,muh->bquh", (None, many, n), "uh", query_shape, "sigmoid")
        self._value_dense = self._projection("value", "bkm,mvh->bkvh", (None, few, n), "vh", value_shape)
        self._softmax = Softmax(axis=-1, dtype=self._dtype_policy)
        self._dropout_layer = Dropout(self.dropout, dtype=self._dtype_policy, seed=self.seed)
        self._output_dense = self._projection(
            "attention_output", "bquh,uhm->bqm", (None, query_shape[-1]), "m", (None, None, many, n)
        )

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: Any = None,
        use_causal_mask: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute attention. See MultiHeadAttention."""
        key = value if key is None else key
        mask = combine_masks(
            query, value, query_mask, value_mask, key_mask, attention_mask, use_causal_mask, self.sliding_window
        )
        gate = self._gate_dense(query) if self.use_gate else None
        q, k, v = self._query_dense(query), self._key_dense(key), self._value_dense(value)
        shared = self.num_query_heads // self.num_key_value_heads
        if shared > 1:
            k, v = array.repeat(k, shared, axis=2), array.repeat(v, shared, axis=2)
        q = q * (1.0 / python_math.sqrt(float(self.head_dim)))
        scores = linalg.einsum("bquh,bkuh->buqk", q, k)
        if self.dropout or return_attention_scores:
            scores = self._masked_softmax(scores, mask, 1)
        else:
            scores = _softmax_or_uniform(scores, _expand_for_heads(mask, scores, 1))
        weights = self._dropout_layer(scores, training=training) if self.dropout else scores
        mixed = linalg.einsum("buqk,bkuh->bquh", weights, v)
        output = self._output_dense(mixed if gate is None else mixed * gate)
        return (output, scores) if return_attention_scores else output

    def compute_output_shape(  # type: ignore[override]
        self, query_shape: Any, value_shape: Any, key_shape: Any = None
    ) -> tuple[Any, ...]:
        """Return the query's shape. Raises ValueError for other shapes."""
        if query_shape[-1] != value_shape[-1]:
            raise ValueError(
                f"The last dimensions of query and value must be equal. Received: query_shape={tuple(query_shape)} and "
                f"value_shape={tuple(value_shape)}"
            )
        _check_shapes(value_shape, value_shape if key_shape is None else key_shape)
        return tuple(query_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {**super().get_config(), "activity_regularizer": regularizers.serialize(self._output_regularizer)}


GroupedQueryAttention = GroupQueryAttention
