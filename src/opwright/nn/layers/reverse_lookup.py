"""ReversibleEmbedding: an embedding whose table maps rows back to logits.

Lives here: the layer.  Not here: Embedding (core.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import as_dtype
from ...ops import array, linalg, math
from ..layer_calls import set_mask
from ..quantizers import AbsMaxQuantizer
from .core import Embedding
from .quantization_modes import MATMUL, Table, int8_einsum, rounded_inputs
from .quantized_weights import MODES

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

    def build(self, input_shape: Any = None) -> None:
        """Create the embedding table, and the other one unless weights are tied."""
        super().build(input_shape)
        if not self.tie_weights and self.quantization_mode is None:
            self.reverse_embeddings = self.add_weight(
                name="reverse_embeddings",
                shape=(self.output_dim, self.input_dim),
                initializer=self.embeddings_initializer,
            )

    def _tables(self) -> list[Table]:
        tables = super()._tables()
        if not self.tie_weights:
            shape = (self.output_dim, self.input_dim)
            tables.append(Table("reverse_embeddings", "reverse_embeddings", shape, MATMUL, packed=0))
        return tables

    def call(self, inputs: Any, reverse: bool = False) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Look up rows, or return the logits of rows."""
        if not reverse:
            rows = super().call(inputs)
            mask = super().compute_mask(inputs)
            if mask is not None:
                set_mask(rows, mask)
            return rows
        logits = self._logits(inputs)
        if self.logit_soft_cap is not None:
            logits = math.tanh(logits / self.logit_soft_cap) * self.logit_soft_cap
        return logits

    def _logits(self, inputs: Any) -> Tensor:
        if self.quantization_mode is not None:
            return self._quantized_logits(array.cast(inputs, self.compute_dtype))
        kernel = array.transpose(self.embeddings) if self.tie_weights else self.reverse_embeddings
        dtype = as_dtype(self.reverse_dtype or self.compute_dtype)
        return linalg.tensordot(array.cast(inputs, dtype), array.cast(kernel, dtype), 1)

    def _quantized_logits(self, inputs: Any) -> Tensor:
        def plain(x: Any, kernel: Any) -> Tensor:
            return linalg.tensordot(x, kernel, 1)

        mode, table = MODES[str(self.quantization_mode)], self._tables()[-1]
        if not self.tie_weights:
            return mode.product(self, table, inputs, plain, None)
        quantizer = self.activation_quantizer(AbsMaxQuantizer())
        if self.quantization_mode == "int8" and quantizer is not None:
            logits = int8_einsum(MATMUL, inputs, array.transpose(self._kernel), self.embeddings_scale, quantizer)
        else:
            logits = plain(rounded_inputs(self, MATMUL, inputs), array.transpose(mode.decoded(self, table)))
        if self.lora_enabled:
            logits = logits + plain(inputs, array.cast(array.transpose(self._low_rank()), inputs.dtype))
        return logits

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return None: `call` sets the mask of looked-up rows."""
        return

    def compute_output_shape(self, input_shape: Any, reverse: bool = False) -> tuple[Any, ...]:
        """Return the shape of rows, or of logits."""
        return (*input_shape[:-1], self.input_dim) if reverse else (*input_shape, self.output_dim)
