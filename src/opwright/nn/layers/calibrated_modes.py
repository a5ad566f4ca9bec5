"""Weights of layers whose codes are chosen by calibration: GPTQ and AWQ, as Keras's files have them.

Lives here: the modes.  Not here: how codes are chosen, and models (../calibration.py), other modes
(quantization_modes.py).

Until the codes are known, from calibration or from a file, a layer multiplies by its floating-point kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops import array, dispatch
from ...ops.tensor import Tensor
from ..calibration import ChosenCodes, Magnitudes, Moments
from ..quantization_functions import dequantize_with_sz_map, pack_int4, unpack_int4
from .quantization_modes import Table, WeightMode, add_weight, labels


class Calibrated(WeightMode):
    """Integers from 0 to 2**bits - 1 [outputs, inputs], two a byte of 4 bits, with scale and zero point of groups."""

    files: tuple[str, ...] = ("bias", "quantized_{}", "{}_scale", "{}_zero", "g_idx")
    keeps_kernel = True
    statistics: type[Moments] | type[Magnitudes]

    def policy(self, layer: Any, config: Any) -> str:
        return str(config.dtype_policy_string())

    def build(self, layer: Any, table: Table) -> None:
        inputs, outputs = table.matrix()
        size = layer.dtype_policy.group_size
        groups = 1 if size == -1 else -(-inputs // size)
        rows = -(-outputs // 2) if self._is_packed(layer) else outputs
        add_weight(layer, f"quantized_{table.name}", table.name, (rows, inputs), "uint8")
        add_weight(layer, f"{table.name}_scale", f"{table.name}_scale", (outputs, groups), None, "ones")
        add_weight(layer, f"{table.name}_zero", f"{table.name}_zero", (outputs, groups), "uint8")
        add_weight(layer, "g_idx", "g_idx", (inputs,), "float32")

    def encoded(self, layer: Any, table: Table, values: np.ndarray) -> dict[str, np.ndarray]:
        return {}

    def has_codes(self, layer: Any, table: Table) -> bool:
        """Return whether the layer has codes instead of its floating-point kernel."""
        return table.attribute not in vars(layer)

    def observe(self, layer: Any, table: Table, inputs: Tensor, statistics: Any) -> None:
        """Add the inputs of a product to statistics."""
        statistics.observe(np.asarray(inputs.numpy()).reshape(-1, table.matrix()[0]).astype(np.float32))

    def encode(self, layer: Any, table: Table, values: np.ndarray, statistics: Any) -> dict[str, np.ndarray]:
        """Return the values of the weights, by attribute, for a floating-point table and statistics of its inputs."""
        codes = statistics.codes(values.reshape(table.matrix()).T, layer.quantization_config)
        whole = codes.whole.astype(np.uint8)
        if self._is_packed(layer):
            whole = pack_int4(np.ascontiguousarray(whole), 0, "uint8")[0].numpy()
        return {
            f"quantized_{table.name}": whole,
            f"{table.name}_scale": codes.scale,
            f"{table.name}_zero": codes.zero.astype(np.uint8),
            "g_idx": codes.groups.astype(np.float32),
            **self._others(codes),
        }

    def _others(self, codes: ChosenCodes) -> dict[str, np.ndarray]:
        return {}

    def integers(self, layer: Any, table: Table) -> Tensor:
        """Return the integers [outputs, inputs]."""
        whole = dispatch.to_tensor(getattr(layer, f"quantized_{table.name}"))
        return unpack_int4(whole, table.matrix()[1], 0, "uint8") if self._is_packed(layer) else whole

    def decoded(self, layer: Any, table: Table) -> Tensor:
        if not self.has_codes(layer, table):
            kernel: Tensor = layer._cast(getattr(layer, table.attribute))
            return kernel
        scale, zero = (dispatch.to_tensor(getattr(layer, f"{table.name}_{part}")) for part in ("scale", "zero"))
        matrix = array.transpose(dequantize_with_sz_map(self.integers(layer, table), scale, zero, layer.g_idx))
        return array.reshape(array.cast(self._unscaled(layer, matrix), layer.compute_dtype), table.shape)

    def _unscaled(self, layer: Any, matrix: Tensor) -> Tensor:
        return matrix

    def product(self, layer: Any, table: Table, inputs: Tensor, plain: Callable[..., Tensor], training: Any) -> Tensor:
        if layer._statistics is not None:
            self.observe(layer, table, inputs, layer._statistics)
        return plain(inputs, self.decoded(layer, table))

    def _is_packed(self, layer: Any) -> bool:
        return bool(layer.dtype_policy.weight_bits == 4)


def check_kernel(einsum: str) -> None:
    """Raise NotImplementedError unless a kernel is a matrix whose rows are the last axes of the inputs, in order."""
    x, w, y = labels(einsum)
    summed = "".join(label for label in w if label not in y)
    if not w.startswith(summed) or not x.endswith(summed):
        raise NotImplementedError(
            f"GPTQ and AWQ need a kernel whose summed axes are its first and the last of the inputs. Received: {einsum}"
        )


class GPTQ(Calibrated):
    """Weights that are rounded one after the other."""

    statistics = Moments


class AWQ(Calibrated):
    """Weights that are scaled by input before they are rounded."""

    files = (*Calibrated.files[:-1], "awq_scales", "g_idx")
    statistics = Magnitudes

    def build(self, layer: Any, table: Table) -> None:
        super().build(layer, table)
        add_weight(layer, "awq_scales", "awq_scales", (table.matrix()[0],), None, "ones")

    def _others(self, codes: ChosenCodes) -> dict[str, np.ndarray]:
        assert codes.factors is not None
        return {"awq_scales": codes.factors}

    def _unscaled(self, layer: Any, matrix: Tensor) -> Tensor:
        unscaled: Tensor = matrix / array.expand_dims(dispatch.to_tensor(layer.awq_scales), -1)
        return unscaled
