"""Metric: a value accumulated over batches in variables, which can be traced.

Lives here: the base class, Mean, Sum, and means of a function.  Not here: the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ...core import nest
from ...core.dtypes import as_dtype
from ...eager.variable import Variable
from ...ops import array, dispatch, math
from ...tracing.name_scopes import name_scope
from .. import configuration, dtype_policies, initializers
from ..layer_calls import mask_of, set_mask
from ..module import Module, root_scope
from ..reduction import apply_weights, as_floating, mask_weights, same_rank

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class Metric(Module):
    """Base class of metrics: override `update_state(y_true, y_pred, sample_weight=None)` and `result()`.

    Create the state with `add_variable`, in the constructor or at the first update.
    """

    is_metric = True

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        self._name = name or configuration.fresh(type(self).__name__)
        self._dtype = dtype_policies.compute_dtype_of(dtype)
        self._state: list[Variable] = []

    @property
    def dtype(self) -> str:
        """Name of the dtype of the computation."""
        return self._dtype.name

    def add_variable(
        self,
        shape: Any = (),
        initializer: Any = None,
        dtype: Any = None,
        aggregation: str = "sum",
        name: str | None = None,
    ) -> Variable:
        """Create a state variable, which `reset_state` sets to zero. Default initializer: "zeros"."""
        make, variable_dtype = (
            initializers.get(initializer or "zeros"),
            as_dtype(dtype) if dtype is not None else self._dtype,
        )
        dims = tuple(shape)
        with root_scope():
            variable = Variable(
                lambda: make(dims, dtype=variable_dtype),
                trainable=False,
                dtype=variable_dtype,
                name=f"{self.name}/{name or 'variable'}",
            )
        self._state.append(variable)
        return variable

    def add_weight(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None, **kwargs: Any
    ) -> Variable:
        """Create a state variable; the name may come first."""
        if isinstance(shape, str):
            shape, name = kwargs.pop("shape", ()), shape
        return self.add_variable(() if shape is None else shape, initializer, dtype, name=name)

    @property
    def variables(self) -> list[Variable]:
        """State variables, including those of nested metrics."""
        variables = {id(v): v for v in self._state}
        for v in self._flatten(lambda leaf: isinstance(leaf, Variable)):
            variables.setdefault(id(v), v)
        return list(variables.values())

    weights = variables

    def reset_state(self) -> None:
        """Set all state to zero."""
        for v in self.variables:
            v.assign(array.zeros_like(v))

    reset_states = reset_state

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Accumulate a batch. Every metric overrides it."""
        raise NotImplementedError(f"{type(self).__name__} has no update_state")

    def result(self) -> Any:
        """Return the accumulated value. Every metric overrides it."""
        raise NotImplementedError(f"{type(self).__name__} has no result")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Accumulate a batch, and return the accumulated value."""
        with name_scope(self.name):
            self.update_state(*args, **kwargs)
            return self.result()

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a metric with these arguments."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def weighted_sample_values(values: Any, sample_weight: Any, dtype: Any) -> tuple[Any, Any]:
    """Return one weighted value per sample, averaged over all axes but the first, and the weights."""
    mask = mask_of(values)
    values = as_floating(values, dtype)
    if sample_weight is None and mask is None:
        return _mean_from(values, 1), None
    weight = None if sample_weight is None else as_floating(sample_weight, dtype)
    values, weight = same_rank(values, mask_weights(weight, mask, dtype, "sum"))
    values = _mean_from(values, weight.shape.rank)
    weight = array.broadcast_to(weight, array.shape(values))  # the sum of weights counts every use
    values = values * weight
    if values.shape.rank is not None and values.shape.rank > 1:
        weight = _mean_from(weight, 1)
    return _mean_from(values, 1), weight


def _mean_from(x: Tensor, axis: int) -> Tensor:
    rank = x.shape.rank
    return x if rank is None or rank <= axis else math.reduce_mean(x, axis=list(range(axis, rank)))


class Mean(Metric):
    """Weighted mean of values. .. math:: sum(w x) / sum(w)"""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Accumulate values. sample_weight: of the values' shape, or one weight per entry of the first axis."""
        values = dispatch.to_tensor(values) if mask_of(values) is None else values
        values, weight = weighted_sample_values(values, sample_weight, self._dtype)
        self.total.assign_add(math.reduce_sum(values))
        if weight is not None:
            self.count.assign_add(math.reduce_sum(weight))
        else:
            self.count.assign_add(array.cast(array.size(values), self._dtype))

    def result(self) -> Tensor:
        """Return the mean; 0 before the first value."""
        return math.divide_no_nan(self.total.value(), self.count.value())


class Sum(Metric):
    """Weighted sum of values. .. math:: sum(w x)"""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable((), "zeros", name="total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Accumulate values. sample_weight: of the values' shape, or one weight per entry of the first axis."""
        values = as_floating(values, self._dtype)
        if sample_weight is not None:
            values = apply_weights(values, as_floating(sample_weight, self._dtype))
        self.total.assign_add(math.reduce_sum(values))

    def result(self) -> Tensor:
        """Return the sum."""
        return array.identity(self.total.value())


class MeanMetricWrapper(Mean):
    """Mean of fn(y_true, y_pred, **kwargs) over the samples."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name or getattr(fn, "__name__", None), dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Accumulate a batch [batch, ...], sample_weight [batch]. Positions masked in y_pred are ignored."""
        mask = mask_of(y_pred)
        cast = lambda x: as_floating(x, self._dtype)  # noqa: E731
        values = self._fn(nest.map_structure(cast, y_true), nest.map_structure(cast, y_pred), **self._fn_kwargs)
        inner = mask_of(values)
        if mask is not None and inner is None and values.shape.rank != 0:  # a function of its own averages already
            values = array.identity(values)
            set_mask(values, mask)
        elif inner is not None and mask is None and sample_weight is None:
            values = array.identity(values)  # as in Keras, an ignored class counts as 0 without weights
        super().update_state(values, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        config = {**super().get_config(), **self._fn_kwargs}
        if type(self) is MeanMetricWrapper:
            config["fn"] = getattr(self._fn, "__name__", str(self._fn))
        return config
