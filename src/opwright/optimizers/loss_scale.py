"""`LossScaleOptimizer`: gradients of float16 models, scaled so that small ones are not lost.

Lives here: the optimizer.  Not here: policies of dtypes (nn/dtype_policies.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.lazy_imports import later
from ..eager.variable import Variable
from ..ops import dispatch, math
from ..tracing.control import cond
from . import gradients
from .base import Optimizer

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


_optimizers: Any = later("opwright.optimizers", "opwright")
MISSING = object()
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "ema_overwrite_frequency")),
    **dict.fromkeys(("loss_scale_factor", "gradient_accumulation_steps")),
    "use_ema": False,
    "ema_momentum": 0.99,
    "dynamic": True,
}
"""Arguments that other optimizers have, with the values that this one takes."""


class LossScaleOptimizer(Optimizer):
    """An optimizer's steps, with the loss times a scale that adapts (Micikevicius et al., 2018).

    inner_optimizer: an optimizer, or its configuration: makes the steps, with gradients divided by the scale. A step
    with a gradient that is not finite is left out, and the scale halved; after dynamic_growth_steps steps without one
    it is doubled.
    raises ValueError for arguments of other optimizers, which belong to the inner one
    """

    def __init__(
        self,
        inner_optimizer: Any,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **unknown: Any,
    ) -> None:
        others = {k: v for k, v in unknown.items() if v != DEFAULTS.get(k, MISSING)}
        if others:
            names = ", ".join(f"`{name}`" for name in others)
            way = "set `loss_scale_factor`" if "dynamic" in others else f"set {names}"
            raise ValueError(
                f"LossScaleOptimizer does not support arguments: {names}. Instead, {way} on the `inner_optimizer`."
            )
        if isinstance(inner_optimizer, dict):
            inner_optimizer = _optimizers.deserialize(inner_optimizer)
        super().__init__(0.0, name=name)
        self.inner_optimizer = inner_optimizer
        self.initial_scale, self.dynamic_growth_steps = float(initial_scale), int(dynamic_growth_steps)
        inner_optimizer.loss_scale_factor = None

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create the scale and the steps since it changed, and the inner optimizer's state."""
        self.step_counter = self.add_variable((), dtype="int32", name="step_counter")
        self.dynamic_scale = self.add_variable((), self.initial_scale, "float32", name="dynamic_scale")
        self.inner_optimizer.build(variables)

    @property
    def variables(self) -> list[Variable]:
        """All state: own, then the inner optimizer's."""
        return [*self._variables, *self.inner_optimizer.variables]

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.inner_optimizer.learning_rate = learning_rate

    @property
    def iterations(self) -> Any:
        """The number of steps of the inner optimizer."""
        return self.inner_optimizer.iterations

    def scale_loss(self, loss: Tensor) -> Tensor:
        """Return the loss times the scale."""
        scale = self.dynamic_scale if self.built else self.initial_scale
        loss = dispatch.to_tensor(loss)
        return loss * gradients.scalar(scale, loss.dtype)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> None:
        """Run the inner optimizer's step if all gradients are finite, and adapt the scale."""
        grads = list(grads)
        variables = self._built_variables(len(grads)) if trainable_variables is None else list(trainable_variables)
        self.build(variables)
        values = [getattr(g, "values", g) for g in grads if g is not None]
        finite = math.reduce_all([math.reduce_all(math.is_finite(g)) for g in values])

        def step() -> None:
            scale = self.dynamic_scale.value()
            self.inner_optimizer.apply(
                [
                    None if g is None else gradients.on_values(lambda x: x / gradients.scalar(scale, x.dtype), g)
                    for g in grads
                ],
                variables,
            )
            grow = math.equal(self.step_counter.value(), self.dynamic_growth_steps - 1)

            def double() -> None:
                self.step_counter.assign(0)
                self.dynamic_scale.assign(self.dynamic_scale * 2.0)

            def count() -> None:
                self.step_counter.assign_add(1)

            cond(grow, double, count)

        def halve() -> None:
            self.step_counter.assign(0)
            self.dynamic_scale.assign(self.dynamic_scale * 0.5)

        cond(finite, step, halve)

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Set the variables to the inner optimizer's averages, if it keeps them."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        inner = self.inner_optimizer
        return {
            "name": self.name,
            "inner_optimizer": {
                "module": "keras.optimizers",
                "class_name": type(inner).__name__,
                "config": inner.get_config(),
                "registered_name": None,
            },
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }
