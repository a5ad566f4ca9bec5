"""Optimizers whose step depends on a whole matrix: its norms, its rows and columns, or its directions.

Lives here: Adafactor, Lamb, Muon.  Not here: rules by element (rules.py, adam.py).

In all: t counts steps from 1, eta is the learning rate, rms(x) = sqrt(mean(x^2)). Sparse gradients become dense.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ..eager.variable import Variable
from ..ops import array, linalg, math
from .base import CommonArguments, Optimizer
from .gradients import scalar

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


def _rms(x: Any) -> Tensor:
    return math.sqrt(math.reduce_mean(math.square(x)))


class Adafactor(Optimizer):
    """Second moments factored into those of rows and columns (Shazeer and Stern, 2018).

    .. math::

        \\alpha &= \\max(\\epsilon_2, \\text{rms}(w)) \\min(\\eta, t^{-1/2}), \\quad
        \\beta = 1 - t^{\\text{beta\\_2\\_decay}}\\\\
        r &\\leftarrow \\beta r + (1 - \\beta) \\text{mean}_{-1}(g^2 + \\epsilon_1), \\quad
        c \\leftarrow \\beta c + (1 - \\beta) \\text{mean}_{-2}(g^2 + \\epsilon_1), \\quad
        u = g / \\sqrt{r c / \\text{mean}(r)} \\\\
        w &\\leftarrow w - \\alpha u / \\max(1, \\text{rms}(u) / \\text{clip\\_threshold})

    Variables of fewer than two dimensions keep all second moments. relative_step: kept; eta is at most
    t^(-1/2) in any case, as in Keras.
    """

    hyperparameters = ("beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold", "relative_step")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta_2_decay, self.epsilon_1, self.epsilon_2 = beta_2_decay, epsilon_1, epsilon_2
        self.clip_threshold, self.relative_step = clip_threshold, relative_step
        self._moments: list[tuple[Variable | None, Variable | None, Variable]] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create the moments of rows and columns, and of elements, in Keras's order."""
        for v in variables:
            shape = tuple(v.read_array().shape)
            row = column = None
            if len(shape) >= 2:
                row = self.add_variable(shape[:-1], dtype=v.dtype, name=f"{v.name}_row")
                column = self.add_variable((*shape[:-2], shape[-1]), dtype=v.dtype, name=f"{v.name}_column")
            self._moments.append((row, column, self.add_variable_from_reference(v, "velocity")))

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        dtype = variable.dtype
        row, column, velocity = self._moments[self._get_variable_index(variable)]
        g, t = array.cast(gradient, dtype), array.cast(self.iterations + 1, dtype)
        shrinking = 1.0 / math.sqrt(t)
        rate = math.minimum(scalar(learning_rate, dtype), shrinking)
        alpha = math.maximum(scalar(self.epsilon_2, dtype), _rms(variable.value())) * rate
        squares = math.square(g) + scalar(self.epsilon_1, dtype)
        beta = 1.0 - math.pow(t, scalar(self.beta_2_decay, dtype))
        if row is not None and column is not None:
            row.assign(beta * row + (1.0 - beta) * math.reduce_mean(squares, axis=-1))
            column.assign(beta * column + (1.0 - beta) * math.reduce_mean(squares, axis=-2))
            shares = row / math.reduce_mean(row.value(), axis=-1, keepdims=True)
            velocity.assign(array.expand_dims(shares, -1) * array.expand_dims(column.value(), -2))
        else:
            velocity.assign(beta * velocity + (1.0 - beta) * squares)
        step = g / math.sqrt(velocity.value())
        step = step / math.maximum(scalar(1.0, dtype), _rms(step) / self.clip_threshold)
        variable.assign_sub(alpha * step)


class Lamb(Optimizer):
    """Adam with steps in proportion to the norms of the weights (You et al., 2019).

    .. math::

        m &\\leftarrow m + (g - m)(1 - \\beta_1), \\quad v \\leftarrow v + (g^2 - v)(1 - \\beta_2), \\quad
        u = \\frac{m / (1 - \\beta_1^t)}{\\sqrt{v / (1 - \\beta_2^t)} + \\epsilon} \\\\
        w &\\leftarrow w - \\eta \\frac{\\|w\\|}{\\|u\\|} u

    The ratio is 1 where either norm is 0.
    """

    hyperparameters = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(learning_rate, **common)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self._momentums: list[Variable] = []
        self._velocities: list[Variable] = []

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create m and v."""
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i, dtype = self._get_variable_index(variable), variable.dtype
        g, t = array.cast(gradient, dtype), array.cast(self.iterations + 1, dtype)
        m, v = self._momentums[i], self._velocities[i]
        m.assign_add((g - m) * (1 - self.beta_1))
        v.assign_add((math.square(g) - v) * (1 - self.beta_2))
        unbiased = [x / (1.0 - math.pow(scalar(beta, dtype), t)) for x, beta in ((m, self.beta_1), (v, self.beta_2))]
        step = unbiased[0] / (math.sqrt(unbiased[1]) + self.epsilon)
        weight_norm = math.sqrt(math.reduce_sum(math.square(variable.value())))
        step_norm = math.sqrt(math.reduce_sum(math.square(step)))
        both = math.logical_and(weight_norm > 0, step_norm > 0)
        ratio = array.where(both, math.divide_no_nan(weight_norm, step_norm), scalar(1.0, dtype))
        variable.assign_sub(ratio * scalar(learning_rate, dtype) * step)


class Muon(Optimizer):
    """Momentum whose matrices are orthogonalized by Newton and Schulz's iteration (Jordan, 2024).

    Matrices: m = momentum m + g, with nesterov the step is g + momentum m; it is scaled to norm 1 and iterated ns_steps
    times, x = a x + (b x x' + c (x x')^2) x; times eta sqrt(max(n, m)) rms_rate (Liu et al., 2025; None: times eta).
    Other variables, embeddings if exclude_embeddings, and those whose path matches one of the expressions
    exclude_layers take Adam's step with the rate eta adam_lr_ratio and adam_weight_decay.
    """

    hyperparameters = (
        "adam_beta_1",
        "adam_beta_2",
        "adam_weight_decay",
        "epsilon",
        "exclude_layers",
        "exclude_embeddings",
        "muon_a",
        "muon_b",
        "muon_c",
        "adam_lr_ratio",
        "momentum",
        "ns_steps",
        "nesterov",
        "rms_rate",
    )

    def __init__(
        self,
        learning_rate: Any = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        exclude_layers: list[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **common: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **common)
        self.adam_beta_1, self.adam_beta_2, self.adam_weight_decay = adam_beta_1, adam_beta_2, adam_weight_decay
        self.epsilon, self.exclude_layers = epsilon, exclude_layers or []
        self.exclude_embeddings = exclude_embeddings
        self.muon_a, self.muon_b, self.muon_c = muon_a, muon_b, muon_c
        self.adam_lr_ratio, self.momentum = adam_lr_ratio, momentum
        self.ns_steps, self.nesterov, self.rms_rate = ns_steps, nesterov, rms_rate
        self._momentums: list[Variable] = []
        self._velocities: list[Variable | None] = []

    def _takes_adam(self, variable: Variable) -> bool:
        path = getattr(variable, "path", variable.name)
        if len(variable.shape) != 2 or (self.exclude_embeddings and "embedding" in path.lower()):
            return True
        return any(re.search(expression, path) for expression in self.exclude_layers)

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create a momentum for each variable, followed by Adam's second moment where it takes Adam's step."""
        for v in variables:
            self._momentums.append(self.add_variable_from_reference(v, "momentum"))
            adam = self._takes_adam(v)
            self._velocities.append(self.add_variable_from_reference(v, "velocity") if adam else None)

    def decay_of(self, variable: Variable) -> float | None:
        """Return the weight decay of a variable."""
        return self.adam_weight_decay if self._takes_adam(variable) else self.weight_decay

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by the rule of the class."""
        i, dtype = self._get_variable_index(variable), variable.dtype
        m, v = self._momentums[i], self._velocities[i]
        g, rate = array.cast(gradient, dtype), scalar(learning_rate, dtype)
        if v is None:
            m.assign(m * self.momentum + g)
            step = self._orthogonalized(g + self.momentum * m if self.nesterov else m.value())
            scale = 1.0 if self.rms_rate is None else max(variable.read_array().shape) ** 0.5 * self.rms_rate
            variable.assign_sub(rate * step * scale)
            return
        t = array.cast(self.iterations + 1, dtype)
        powers = [math.pow(scalar(b, dtype), t) for b in (self.adam_beta_1, self.adam_beta_2)]
        rate = rate * self.adam_lr_ratio * math.sqrt(1.0 - powers[1]) / (1.0 - powers[0])
        self.update_by("adam", g, variable, [m, v], (rate, 1 - self.adam_beta_1, 1 - self.adam_beta_2, self.epsilon))

    def _orthogonalized(self, x: Any) -> Tensor:
        """Return a matrix with about the directions of x and singular values near 1."""
        tall = x.shape[-2] > x.shape[-1]
        y = array.transpose(x) if tall else x
        y = y / (math.sqrt(math.reduce_sum(math.square(y))) + 1e-7)
        for _ in range(self.ns_steps):
            squares = linalg.matmul(y, y, transpose_b=True)
            y = self.muon_a * y + linalg.matmul(
                self.muon_b * squares + self.muon_c * linalg.matmul(squares, squares), y
            )
        result: Tensor = array.transpose(y) if tall else y
        return result
