"""Recurrent cells: one step of a recurrent layer, stacks of cells, and the interface of any cell to the loop over time.

Lives here: SimpleRNNCell, GRUCell, LSTMCell, StackedRNNCells; output size, initial state and call of a cell, masks of
a step.
Not here: the loop over time (recurrent.py).

A cell maps the inputs of one step [batch, features] and a list of states to its output and the new states. It has
`state_size`, one integer or a list, and may have `output_size` and `get_initial_state(batch_size)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...autograph.api import convert_if_enabled
from ...core import nest
from ...ops import array, linalg
from ...ops.nn.gru import GRUSequence
from ...ops.nn.lstm import LSTMSequence
from .. import activations
from ..layer import Layer
from ..random import SeedGenerator
from .configurable_layer import ConfigurableLayer, if_training
from .regularization import apply_dropout
from .wrappers import deserialize, serialize

if TYPE_CHECKING:
    from ...eager.variable import Variable
    from ...ops.tensor import Tensor, TensorLike


class GatedCell(ConfigurableLayer):
    """Base class of gated cells: weights of `gates` gates in one kernel, dropout masks shared by all steps.

    The input projection of a step does not depend on the states: a layer computes it for all steps at once (`project`)
    and then steps through the states (`advance`).
    """

    gates: ClassVar[int] = 1
    gate_axis = -1
    """The axis along which gates lie side by side, in the last axis of kernels."""

    def _init(self, constructor_locals: dict[str, Any]) -> None:
        units, seed = constructor_locals["units"], constructor_locals["seed"]
        if not isinstance(units, int) or units <= 0:
            raise ValueError(
                f"Received an invalid value for argument `units`, expected a positive integer, got {units}."
            )
        self._set_arguments(
            constructor_locals,
            dropout=min(1.0, max(0.0, constructor_locals["dropout"])),
            recurrent_dropout=min(1.0, max(0.0, constructor_locals["recurrent_dropout"])),
        )
        self.seed_generator = SeedGenerator(seed)
        self.state_size: Any = units
        self.output_size = units
        self._loop_masks: tuple[Any, Any] | None = None
        self._loop_weights: dict[Any, Any] = {}  # weight values while a loop over time runs

    def build(self, input_shape: Any) -> None:
        """Create the weights."""
        width = self.units * self.gates
        self.kernel = self._weight("kernel", (input_shape[-1], width))
        self.recurrent_kernel = self._weight("recurrent_kernel", (self.units, width), "recurrent")
        self.bias = self._make_bias(width) if self.use_bias else None

    def _make_bias(self, width: int) -> Variable:
        return self._weight("bias", (width,))

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """Return zeros for each state."""
        count = len(self.state_size) if isinstance(self.state_size, list) else 1
        return [array.zeros([batch_size, self.units], self.compute_dtype) for _ in range(count)]

    # ---- dropout ----------------------------------------------------------------------------------------------------

    def _noise(self, shape: Sequence[Any], rate: float) -> list[Any] | None:
        """Return dropout masks: one shared by all gates, or one per gate if states are dropped too."""
        if not rate:
            return None
        ones = array.ones(shape, self.compute_dtype)
        count = self.gates if self.recurrent_dropout else 1
        return [apply_dropout(ones, rate, None, self.seed_generator) for _ in range(count)]

    def draw_masks(self, batch: Any, width: Any) -> None:
        """Draw the dropout masks of all steps until `discard_masks`."""
        self._loop_masks = (
            self._noise([batch, width], self.dropout),
            self._noise([batch, self.units], self.recurrent_dropout),
        )

    def read(self) -> None:
        """Read the weights once for all steps until `discard_masks`; graph loops then read no variables."""
        weights = [w for w in (self.kernel, self.recurrent_kernel, self.bias) if w is not None]
        self._loop_weights = {id(w): array.identity(super(GatedCell, self)._cast(w)) for w in weights}

    def discard_masks(self) -> None:
        """Discard the dropout masks and weight values of the loop."""
        self._loop_masks, self._loop_weights = None, {}

    def _cast(self, weight: TensorLike) -> TensorLike:
        value = self._loop_weights.get(id(weight))
        return super()._cast(weight) if value is None else value

    reset_dropout_mask = reset_recurrent_dropout_mask = discard_masks

    @property
    def _has_dropout(self) -> bool:
        return bool(self.dropout or self.recurrent_dropout)

    # ---- computing --------------------------------------------------------------------------------------------------

    def call(self, inputs: Any, states: Any, training: Any = False) -> tuple[Any, list[Any]] | tuple[Any, Any]:
        """Compute one step: return its output and the new states."""
        nested = isinstance(states, (list, tuple))
        flat = list(states) if nested else [states]

        def step(drop: bool) -> tuple[Any, list[Any]]:
            masks = self._loop_masks
            if drop and masks is None:
                self.draw_masks(array.shape(inputs)[0], inputs.shape[-1])
            try:
                return self.advance(self.project(inputs, drop), flat, drop)
            finally:
                self._loop_masks = masks

        if self._has_dropout:
            output, new = if_training(training, lambda: step(True), lambda: step(False))
        else:
            output, new = step(False)
        return output, new if nested else new[0]

    def _product(self, x: Any, kernel: Any) -> Tensor:
        """Return the product of inputs, of one step or of all, and their kernel."""
        return _matmul(x, kernel)

    def _state_product(self, h: Any, kernel: Any) -> Tensor:
        """Return the product of a state and its kernel."""
        return _matmul(h, kernel)

    def _multiply_by_gate(
        self, x: Any, kernel: Any, masks: list[Any] | None, product: Callable[[Any, Any], Tensor]
    ) -> Tensor:
        """Return the product of x and the kernel, with a separate mask of x for each gate."""
        if masks is None or len(masks) == 1:
            return product(x if masks is None else x * masks[0], kernel)
        parts = array.split(kernel, self.gates, axis=-1)
        return array.concat([product(x * m, k) for m, k in zip(masks, parts)], self.gate_axis)

    def project(self, inputs: Any, drop: bool) -> Tensor:
        """Return the input projection of one step or, with a leading time axis, of all steps."""
        masks = self._loop_masks[0] if drop and self._loop_masks is not None else None
        x = self._multiply_by_gate(inputs, self._cast(self.kernel), masks, self._product)
        bias = self._input_bias()
        return x if bias is None else x + bias

    def _input_bias(self) -> TensorLike | None:
        return None if self.bias is None else self._cast(self.bias)

    def _project_state(self, h: Any, drop: bool, kernel: Any = None) -> Tensor:
        """Return the recurrent projection of the state."""
        masks = self._loop_masks[1] if drop and self._loop_masks is not None else None
        kernel = self._cast(self.recurrent_kernel) if kernel is None else kernel
        return self._multiply_by_gate(h, kernel, masks, self._state_product)

    def advance(self, projected: Any, states: list[Any], drop: bool) -> tuple[Any, list[Any]]:
        """Compute output and new states from the input projection and the states."""
        raise NotImplementedError(f"{type(self).__name__} has no advance(projected, states, drop)")

    def advance_sequence(self, projected: Any, states: list[Any], drop: bool) -> tuple[Any, list[Any]] | None:
        """Compute all steps by one operator; None if there is none for this cell and its arguments.

        projected: [time, batch, units of all gates]. Returns the outputs [time, batch, units] and the final states.
        """
        return None

    def _has_sequence(self, cell: type[GatedCell], drop: bool) -> bool:
        """Return whether all steps are one operator: the class's own step, of tanh and sigmoid, on whole states."""
        functions = self.activation, self.recurrent_activation
        own_step = type(self).advance is cell.advance
        return (
            own_step and functions == (activations.tanh, activations.sigmoid) and not (drop and self.recurrent_dropout)
        )


def _matmul(x: Any, kernel: Any) -> Tensor:
    rank = x.shape.rank
    return linalg.matmul(x, kernel) if rank == 2 else linalg.tensordot(x, kernel, [[rank - 1], [0]])


class SimpleRNNCell(GatedCell):
    """Simple recurrent cell: h = activation(x @ kernel + h_before @ recurrent_kernel + bias)."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._init(locals())

    def advance(self, projected: Any, states: list[Any], drop: bool) -> tuple[Any, list[Any]]:
        """Compute output and new states."""
        h = self.activation(projected + self._project_state(states[0], drop))
        return h, [h]


class GRUCell(GatedCell):
    """Gated recurrent unit (Cho et al. 2014).

    .. math:: z = \\sigma(x W_z + h U_z), \\quad r = \\sigma(x W_r + h U_r), \\quad
              h' = z h + (1 - z) \\tanh(x W_h + r (h U_h))

    reset_after: as above, with two biases [2, 3 units]; False: r multiplies h before the product, one bias [3 units].
    The columns of the kernels are z, r, h. sigma is recurrent_activation, tanh activation.
    """

    gates = 3

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        reset_after: bool = True,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("implementation", None)  # selects an implementation in Keras, with equal results
        super().__init__(**kwargs)
        self._init(locals())

    def _make_bias(self, width: int) -> Variable:
        return self._weight("bias", (2, width) if self.reset_after else (width,))

    def _input_bias(self) -> TensorLike | None:
        if self.bias is None or not self.reset_after:
            return super()._input_bias()
        return self._cast(self.bias)[0]

    def read(self) -> None:
        """Read the weights once, and the recurrent bias separately from the input bias."""
        super().read()
        if self.bias is not None and self.reset_after:
            self._loop_weights["recurrent"] = self._cast(self.bias)[1]

    def advance(self, projected: Any, states: list[Any], drop: bool) -> tuple[Any, list[Any]]:
        """Compute output and new states."""
        h, n = states[0], self.units
        x_z, x_r, x_h = array.split(projected, 3, axis=-1)
        if self.reset_after:
            inner = self._project_state(h, drop)
            if self.bias is not None:
                bias = self._loop_weights.get("recurrent")
                inner = inner + (self._cast(self.bias)[1] if bias is None else bias)
            h_z, h_r, h_h = array.split(inner, 3, axis=-1)
            z, r = self.recurrent_activation(x_z + h_z), self.recurrent_activation(x_r + h_r)
            candidate = self.activation(x_h + r * h_h)
        else:
            kernel = self._cast(self.recurrent_kernel)
            masks = self._loop_masks[1] if drop and self._loop_masks is not None else None
            m_z, m_r, m_h = (h, h, h) if masks is None else (h * m for m in masks)
            if masks is None:
                h_z, h_r = array.split(linalg.matmul(h, kernel[:, : 2 * n]), 2, axis=-1)
            else:
                h_z, h_r = linalg.matmul(m_z, kernel[:, :n]), linalg.matmul(m_r, kernel[:, n : 2 * n])
            z, r = self.recurrent_activation(x_z + h_z), self.recurrent_activation(x_r + h_r)
            candidate = self.activation(x_h + linalg.matmul(r * m_h, kernel[:, 2 * n :]))
        h = z * h + (1.0 - z) * candidate
        return h, [h]

    def advance_sequence(self, projected: Any, states: list[Any], drop: bool) -> tuple[Any, list[Any]] | None:
        """Compute all steps by GRUSequence, with reset_after, for the activations that it has, and if states are not
        dropped."""
        if not (self.reset_after and self._has_sequence(GRUCell, drop)):
            return None
        bias = array.zeros([3 * self.units], projected.dtype)
        if self.bias is not None:
            recurrent = self._loop_weights.get("recurrent")
            bias = self._cast(self.bias)[1] if recurrent is None else recurrent
        h, last_h = GRUSequence(projected, self._cast(self.recurrent_kernel), bias, *states)
        return h, [last_h]


class LSTMCell(GatedCell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997). States: h, c.

    .. math:: i, f, o = \\sigma(x W + h U + b), \\quad c' = f c + i \\tanh(x W_c + h U_c + b_c), \\quad
              h' = o \\tanh(c')

    The columns of the kernels are i, f, c, o. sigma is recurrent_activation, tanh activation. unit_forget_bias: the
    forget gate's bias begins at 1.
    """

    gates = 4

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("implementation", None)
        super().__init__(**kwargs)
        self._init(locals())
        self.state_size = [units, units]

    def _make_bias(self, width: int) -> Variable:
        if not self.unit_forget_bias:
            return super()._make_bias(width)
        n, initializer = self.units, self.bias_initializer

        def with_unit_forget_gate(shape: Any, dtype: Any = None) -> Tensor:
            return array.concat(
                [initializer((n,), dtype=dtype), array.ones((n,), dtype), initializer((2 * n,), dtype=dtype)], 0
            )

        return self.add_weight(
            name="bias",
            shape=(width,),
            initializer=with_unit_forget_gate,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )

    def advance(self, projected: Any, states: list[Any], drop: bool) -> tuple[Any, list[Any]]:
        """Compute output and new states."""
        h, c = states
        i, f, candidate, o = array.split(projected + self._project_state(h, drop), 4, axis=self.gate_axis)
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(candidate)
        h = self.recurrent_activation(o) * self.activation(c)
        return h, [h, c]

    def advance_sequence(self, projected: Any, states: list[Any], drop: bool) -> tuple[Any, list[Any]] | None:
        """Compute all steps by LSTMSequence, for the activations that it has, and if states are not dropped."""
        if not self._has_sequence(LSTMCell, drop):
            return None
        h, last_h, last_c = LSTMSequence(projected, self._cast(self.recurrent_kernel), *states)
        return h, [last_h, last_c]


def output_size_of(cell: Any) -> int:
    """Return the last size of a cell's output."""
    size = getattr(cell, "output_size", None)
    if size is None:
        size = cell.state_size[0] if isinstance(cell.state_size, (list, tuple)) else cell.state_size
    return int(size)


def initial_state(cell: Any, batch_size: Any) -> list[Any]:
    """Return a cell's states before the first step, as a list."""
    make = getattr(cell, "get_initial_state", None)
    if make is not None:
        states = make(batch_size=batch_size)
        return list(states) if isinstance(states, (list, tuple)) else [states]
    sizes = cell.state_size if isinstance(cell.state_size, (list, tuple)) else [cell.state_size]
    return [array.zeros([batch_size, n], getattr(cell, "compute_dtype", "float32")) for n in sizes]


class StackedRNNCells(ConfigurableLayer):
    """Stack of cells, each fed by the output of the previous one. States: a list with each cell's.

    raises ValueError for other objects than cells
    """

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            for needed in ("call", "state_size"):
                if not hasattr(cell, needed):
                    raise ValueError(f"All cells must have a `{needed}` attribute. Received cell without it: {cell}")
        self.cells = list(cells)

    @property
    def state_size(self) -> list[Any]:
        """State sizes of every cell."""
        return [c.state_size for c in self.cells]

    @property
    def output_size(self) -> int:
        """Output size of the last cell."""
        return output_size_of(self.cells[-1])

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """Return the initial states of every cell."""
        return [
            initial_state(c, batch_size) if nest.is_nested(c.state_size) else initial_state(c, batch_size)[0]
            for c in self.cells
        ]

    def build(self, input_shape: Any) -> None:
        """Build the cells."""
        shape = tuple(input_shape)
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(shape)
                cell.built = True
            shape = (shape[0], output_size_of(cell))

    def call(self, inputs: Any, states: Any, training: Any = False, **kwargs: Any) -> tuple[Any, list[list[Any] | Any]]:
        """Compute one step through all cells."""
        new = []
        for cell, state in zip(self.cells, states):
            nested = isinstance(state, (list, tuple))
            inputs, after = call_cell(cell, inputs, list(state) if nested else [state], training, **kwargs)
            new.append(list(after) if nested else after[0] if isinstance(after, (list, tuple)) else after)
        return inputs, new

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {**super().get_config(), "cells": [serialize(c) for c in self.cells]}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> StackedRNNCells:
        """Return a new stack with new cells."""
        config = dict(config)
        return cls([deserialize(c, custom_objects) for c in config.pop("cells")], **config)


def call_cell(cell: Any, inputs: Any, states: Any, training: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Compute one step of any cell; pass `training` to layers whose `call` has it."""
    if isinstance(cell, Layer):
        if cell._call_spec().training:
            kwargs["training"] = training
        step: Callable[..., tuple[Any, Any]] = cell
    else:
        step = convert_if_enabled(cell if callable(cell) else cell.call)
    return step(inputs, states, **kwargs)


def gated_cells(cell: Any) -> list[GatedCell]:
    """Return the gated cells in a cell or a stack of cells."""
    if isinstance(cell, StackedRNNCells):
        return [g for c in cell.cells for g in gated_cells(c)]
    return [cell] if isinstance(cell, GatedCell) else []


def select_by_mask(mask: Any, new: Any, old: Any) -> Tensor:
    """Select `new` where the mask [batch] is true, else `old`."""
    for _ in range((new.shape.rank or 1) - (mask.shape.rank or 1)):
        mask = array.expand_dims(mask, -1)
    return array.where(mask, new, old)
