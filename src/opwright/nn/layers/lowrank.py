"""LoRA: training a product of two narrow matrices beside a kernel that stays (Hu et al. 2021).

Lives here: what Dense, EinsumDense, Embedding and convolutions share of it.  Not here: the layers.
"""

from __future__ import annotations

from typing import Any

from ...ops import array, linalg
from .. import initializers


class LowRank:
    """A layer with `_kernel`, to which `enable_lora` adds (alpha / rank) A @ B."""

    _lora_kernel = "kernel"  # the argument names' beginning

    def _init_lora(self, rank: int | None, alpha: float | None, quantization_config: Any = None) -> None:
        if quantization_config is not None:
            raise ValueError("`quantization_config` is not supported: convert the model with ow.lite.TFLiteConverter "
                             "and "
                             f"its `optimizations` instead. Received: {quantization_config}")  # fmt: skip
        self.lora_rank, self.lora_enabled = rank, False
        self.lora_alpha = alpha if alpha is not None else rank

    def _build_lora(self) -> None:
        self.built = True
        if self.lora_rank:
            self.enable_lora(self.lora_rank, lora_alpha=self.lora_alpha)

    def _whole_kernel(self) -> Any:
        layer: Any = self
        if not layer.built:
            raise AttributeError(f"You must build the layer before accessing `{self._lora_kernel}`.")
        kernel = layer._kernel
        if self.lora_enabled:
            rank: Any = self.lora_rank
            product = linalg.tensordot(layer.lora_kernel_a, layer.lora_kernel_b, 1)
            kernel = kernel + array.cast((self.lora_alpha / rank) * product, kernel.dtype)
        return kernel

    @property
    def kernel(self) -> Any:
        """The kernel: the variable, or with the product added where there is one."""
        return self._whole_kernel()

    def enable_lora(self, rank: int, lora_alpha: float | None = None, a_initializer: Any = "he_uniform",
                    b_initializer: Any = "zeros") -> None:  # fmt: skip
        """Stop training the kernel, and train A [..., rank] and B [rank, last size of the kernel] instead.

        raises ValueError where the kernel has a constraint, the layer is not built, or this was done before
        """
        layer: Any = self
        if getattr(layer, f"{self._lora_kernel}_constraint", None):
            raise ValueError("Lora is incompatible with kernel constraints. In order to enable lora on this layer, "
                             "remove "
                             f"the `{self._lora_kernel}_constraint` argument.")  # fmt: skip
        if not layer.built:
            raise ValueError("Cannot enable lora on a layer that isn't yet built.")
        if self.lora_enabled:
            raise ValueError("lora is already enabled. This can only be done once per layer.")
        shape = tuple(layer._kernel.shape)
        regularizer = getattr(layer, f"{self._lora_kernel}_regularizer", None)
        parts = ("a", (*shape[:-1], rank), a_initializer), ("b", (rank, shape[-1]), b_initializer)
        for end, dims, initializer in parts:
            weight = layer.add_weight(name=f"lora_{self._lora_kernel}_{end}", shape=dims, regularizer=regularizer,
                                      initializer=initializers.get(initializer))  # fmt: skip
            setattr(layer, f"lora_kernel_{end}", weight)
        layer._kernel.trainable = False
        self.lora_enabled, self.lora_rank = True, rank
        self.lora_alpha = lora_alpha if lora_alpha is not None else rank

    def get_config(self) -> dict[str, Any]:
        """The layer's, and the rank where there is one."""
        config: dict[str, Any] = super().get_config()  # type: ignore[misc]
        if self.lora_rank:
            config.update(lora_rank=self.lora_rank, lora_alpha=self.lora_alpha)
        return config
