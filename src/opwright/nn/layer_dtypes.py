"""LayerDTypes: the dtype policy of a layer, and the dtypes that follow from it.

Lives here: setting a policy, which may quantize the layer.
Not here: policies (dtype_policies.py), modes of quantized weights (layers/quantization_modes.py), casts (layer.py).
"""

from __future__ import annotations

from typing import Any

from ..core.dtypes import DType, as_dtype
from . import dtype_policies


class LayerDTypes:
    """Dtypes of weights and computation of a layer; a base of Layer."""

    built: bool
    path: Any
    _dtype_policy: Any
    _variable_dtype: DType
    _compute_dtype: DType

    def _set_dtype(self, dtype: Any) -> None:
        self._dtype_policy = dtype_policies.get(dtype)
        self._apply_policy()

    def _apply_policy(self) -> None:
        policy = self.dtype_policy
        self._variable_dtype, self._compute_dtype = as_dtype(policy.variable_dtype), as_dtype(policy.compute_dtype)

    def _set_policy(self, policy: dtype_policies.DTypePolicy) -> None:
        """Set the policy; in a map of policies, that of the layer's path."""
        policies = self._dtype_policy
        if isinstance(policies, dtype_policies.DTypePolicyMap):
            if self.path in policies:
                del policies[self.path]
            policies[self.path] = policy
            self._apply_policy()
        else:
            self._set_dtype(policy)

    @property
    def dtype_policy(self) -> dtype_policies.DTypePolicy:
        """The dtypes of weights and computation; setting a quantized policy quantizes a layer that is built."""
        policy = self._dtype_policy
        return policy[self.path] if isinstance(policy, dtype_policies.DTypePolicyMap) else policy

    @dtype_policy.setter
    def dtype_policy(self, value: Any) -> None:
        policy = dtype_policies.get(value)
        if policy.quantization_mode is not None and self.built and self.dtype_policy.quantization_mode is None:
            if policy.quantization_mode in ("gptq", "awq"):
                raise ValueError(
                    f"Implicitly enabling {policy.quantization_mode.upper()} quantization by setting `dtype_policy` to "
                    f"'{value}' is not supported: it chooses weights by data. Use "
                    f"`.quantize('{policy.quantization_mode}', config=...)` of the layer or model"
                )
            self.quantize(policy.quantization_mode)
        else:
            self._set_policy(policy)

    @property
    def quantization_mode(self) -> str | None:
        """The name of the mode after `quantize`, else None."""
        return self.dtype_policy.quantization_mode

    def quantize(self, mode: str | None = None, type_check: bool = True, config: Any = None) -> None:
        """Convert the weights to integers; layers that can, override it. Raises NotImplementedError."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `quantize` method implemented.")

    @property
    def dtype(self) -> str:
        """Name of the dtype of the weights."""
        return self._variable_dtype.name

    variable_dtype = dtype

    @property
    def compute_dtype(self) -> str:
        """Name of the dtype of the computation, to which floating-point inputs are cast."""
        return self._compute_dtype.name

    input_dtype = compute_dtype
