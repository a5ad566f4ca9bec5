"""Attention without projections and heads.

Lives here: Attention, AdditiveAttention.  Not here: attention with projections (multi_head_attention.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ops import array, linalg, math
from ...ops import nn as ops_nn
from ..random import SeedGenerator
from . import multi_head_attention
from .configurable_layer import ConfigurableLayer, if_training
from .regularization import apply_dropout

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class Attention(ConfigurableLayer):
    """Dot-product attention without projections (Luong et al. 2015).

    inputs: [query [B, T, dim], value [B, S, dim], and optionally key [B, S, dim], by default value]; output
    [B, T, dim]. score_mode: "dot" for products, "concat" for sums of tanh(query + key). mask: a list of the query's
    [B, T] and value's [B, S]. use_scale: a trained factor. use_causal_mask: attend only to earlier positions.
    return_attention_scores: also return the weights [B, T, S].
    raises ValueError for other inputs, masks or modes
    """

    def __init__(
        self, use_scale: bool = False, score_mode: str = "dot", dropout: float = 0.0, seed: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                "Invalid value for argument score_mode. Expected one of {'dot', 'concat'}. Received: "
                f"score_mode={score_mode}"
            )
        self._set_arguments(locals())
        self.seed_generator = SeedGenerator(seed)
        self.scale: Any = None
        self.concat_score_weight: Any = None
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create the scale factors."""
        self._check(input_shape)
        if self.use_scale:
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight(name="concat_score_weight", shape=(), initializer="ones")

    def _check(self, inputs: Any, mask: Any = None) -> None:
        name = type(self).__name__
        is_list = isinstance(inputs, (list, tuple)) and bool(inputs)
        if not is_list or isinstance(inputs[0], int) or inputs[0] is None:
            raise ValueError(
                f"{name} layer must be called on a list of inputs, namely [query, value] or [query, value, key]. "
                f"Received: inputs={inputs}."
            )
        if not 2 <= len(inputs) <= 3:
            raise ValueError(f"{name} layer accepts inputs list of length 2 or 3. Received length: {len(inputs)}.")
        if mask is not None:
            if not isinstance(mask, (list, tuple)):
                raise ValueError(
                    f"{name} layer mask must be a list, namely [query_mask, value_mask]. Received: mask={mask}."
                )
            if not 2 <= len(mask) <= 3:
                raise ValueError(f"{name} layer accepts mask list of length 2 or 3. Received length: {len(mask)}.")

    def _calculate_scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [B, T, S] of query [B, T, dim] and key [B, S, dim]."""
        if self.score_mode == "dot":
            scores = linalg.matmul(query, key, transpose_b=True)
            return scores if self.scale is None else scores * self._cast(self.scale)
        together = array.expand_dims(query, -2) + array.expand_dims(key, -3)
        if self.scale is not None:
            together = self._cast(self.scale) * together
        return self._cast(self.concat_score_weight) * math.reduce_sum(math.tanh(together), axis=-1)

    def call(
        self,
        inputs: Sequence[Tensor],
        mask: Any = None,
        training: Any = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute attention. See the class."""
        self._check(inputs, mask)
        query, value = inputs[0], inputs[1]
        key = inputs[2] if len(inputs) > 2 else value
        query_mask, value_mask = (mask[0], mask[1]) if mask else (None, None)
        scores = self._calculate_scores(query, key)
        visible = None if value_mask is None else array.expand_dims(array.cast(value_mask, "bool"), -2)
        if use_causal_mask:
            earlier = multi_head_attention.causal_mask(scores, array.transpose(scores, [0, 2, 1]))
            visible = earlier if visible is None else math.logical_and(visible, earlier)
        if visible is not None:
            penalty = 65504.0 if scores.dtype.name == "float16" else 1.0e9
            scores = array.where(visible, scores, scores - penalty)
        weights = ops_nn.softmax(scores, -1)
        if self.dropout:
            probabilities = weights
            weights = if_training(
                training,
                lambda: apply_dropout(probabilities, self.dropout, None, self.seed_generator),
                lambda: array.identity(probabilities),
            )
        output = linalg.matmul(weights, value)
        if query_mask is not None:
            query_rows = array.expand_dims(array.cast(query_mask, "bool"), -1)
            output = array.where(query_rows, output, array.zeros_like(output))
        return (output, weights) if return_attention_scores else output

    def compute_mask(self, inputs: Any, mask: Any = None) -> Tensor | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the query's mask."""
        self._check(inputs, mask)
        query_mask: Tensor | None = None if mask is None else mask[0]
        return query_mask

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return [B, T, dim of the value]."""
        return (*input_shape[0][:-1], input_shape[1][-1])


class AdditiveAttention(Attention):
    """Attention with additive scores, weighted sums of tanh(query + key) (Bahdanau et al. 2014).

    Calls are Attention's. Weights: scale [dim], with use_scale.
    """

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(use_scale=use_scale, dropout=dropout, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Create the scale."""
        self._check(input_shape)
        if self.use_scale:
            self.scale = self.add_weight(name="scale", shape=(input_shape[0][-1],), initializer="glorot_uniform")

    def _calculate_scores(self, query: Any, key: Any) -> Tensor:
        bent = math.tanh(array.expand_dims(query, -2) + array.expand_dims(key, -3))
        return math.reduce_sum(bent if self.scale is None else self._cast(self.scale) * bent, axis=-1)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        config = super().get_config()
        del config["score_mode"]
        return config
