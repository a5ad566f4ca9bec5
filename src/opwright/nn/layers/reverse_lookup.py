"""ReversibleEmbedding: an embedding whose table maps rows back to logits.

Lives here: the layer.  Not here: Embedding (core.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import as_dtype
from ...ops import array, linalg, math
from ..layer_calls import set_mask
from .core import Embedding

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class ReversibleEmbedding(Embedding):
    """Embedding that, called with reverse=True, maps [..., output_dim] to logits [..., input_dim].

    tie_weights: whether both directions use the table; else `reverse_embeddings` [output_dim, input_dim] is a weight.
    reverse_dtype: dtype of the product. logit_soft_cap: limit of logits, as cap * tanh(logits / cap).
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: bool = True,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        reverse_dtype: Any = None,
        logit_soft_cap: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            input_dim,
            output_dim,
            embeddings_initializer=embeddings_initializer,
            embeddings_regularizer=embeddings_regularizer,
            embeddings_constraint=embeddings_constraint,
            mask_zero=mask_zero,
            **kwargs,
        )
        self._set_arguments(tie_weights=tie_weights, reverse_dtype=reverse_dtype, logit_soft_cap=logit_soft_cap)

    def quantize(self, mode: str = "int8", type_check: bool = True, config: Any = None) -> None:
        """Raise NotImplementedError: the products of the other direction are those of a floating-point table."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `quantize()` method implemented.")

    def build(self, input_shape: Any = None) -> None:
        """Create the embedding table, and the other one unless weights are tied."""
        if self.quantization_mode is not None:
            self.quantize()
        super().build(input_shape)
        if not self.tie_weights:
            self.reverse_embeddings = self.add_weight(
                name="reverse_embeddings",
                shape=(self.output_dim, self.input_dim),
                initializer=self.embeddings_initializer,
            )

    def call(self, inputs: Any, reverse: bool = False) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Look up rows, or return the logits of rows."""
        if not reverse:
            rows = super().call(inputs)
            mask = super().compute_mask(inputs)
            if mask is not None:
                set_mask(rows, mask)
            return rows
        kernel = array.transpose(self.embeddings) if self.tie_weights else self.reverse_embeddings
        dtype = as_dtype(self.reverse_dtype or self.compute_dtype)
        logits = linalg.tensordot(array.cast(inputs, dtype), array.cast(kernel, dtype), 1)
        if self.logit_soft_cap is not None:
            logits = math.tanh(logits / self.logit_soft_cap) * self.logit_soft_cap
        return logits

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return None: `call` sets the mask of looked-up rows."""
        return

    def compute_output_shape(self, input_shape: Any, reverse: bool = False) -> tuple[Any, ...]:
        """Return the shape of rows, or of logits."""
        return (*input_shape[:-1], self.input_dim) if reverse else (*input_shape, self.output_dim)
