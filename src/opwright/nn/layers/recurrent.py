"""Recurrent layers: a cell run over time.

Lives here: RNN, SimpleRNN, GRU, LSTM.
Not here: one step (cells.py), Bidirectional and TimeDistributed (wrappers.py).

Eagerly, and with unroll, the loop over time is a Python loop; in a traced function it is a loop of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core import nest
from ...eager.variable import Variable
from ...ops import array, dispatch
from ...ops.tensor import TensorLike
from ...tracing.control.higher_order import loop_over
from ...tracing.trace import init_scope
from .. import regularizers
from ..configuration import registry_name
from ..layer import Layer
from .cells import (
    GatedCell,
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
    StackedRNNCells,
    call_cell,
    gated_cells,
    initial_state,
    output_size_of,
    select_by_mask,
)
from .configurable_layer import ConfigurableLayer, if_training, parameter_names
from .wrappers import deserialize, serialize

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class _StateHolder:
    """Holder of state variables, which are not weights."""

    def __init__(self, states: Any) -> None:
        self.states = states


class RNN(ConfigurableLayer):
    """Recurrent layer: a cell, or a stack of cells, run over the steps of sequences.

    inputs: [batch, time, features]; output: of the last step [batch, units], or with return_sequences of all steps.
    return_state: whether to append the final states. mask: [batch, time]; a masked step keeps the states and repeats
    the previous output (zeros with zero_output_for_mask). go_backwards: process steps in reverse, with outputs in that
    order. stateful: whether the states of example i continue in the next call, until `reset_state`.
    initial_state: a list of states. unroll: whether to unroll the loop in graphs.
    raises ValueError for an invalid cell, for unroll with unknown time, for stateful with unknown batch size
    """

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Any,
    ) -> None:
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        if not hasattr(cell, "call"):
            raise ValueError(f"Argument `cell` should have a `call` method. Received: cell={cell}")
        if getattr(cell, "state_size", None) is None:
            raise ValueError(
                "The RNN cell should have a `state_size` attribute (single integer or list of integers, "
                "one "
                f"integer per RNN state). Received: cell={cell}"
            )
        super().__init__(**kwargs)
        self.cell = cell
        self._set_arguments(locals(), omit=("cell",))
        self._state_holder = _StateHolder(None)
        self.supports_masking = True

    @property
    def state_size(self) -> list[Any]:
        """State sizes of the cell, as a list."""
        size = self.cell.state_size
        return list(size) if isinstance(size, (list, tuple)) else [size]

    @property
    def states(self) -> Any:
        """State variables of a stateful layer, else None."""
        return self._state_holder.states

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Build the cell, and create the state variables of a stateful layer."""
        batch = sequences_shape[0]
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((batch, *sequences_shape[2:]))
            self.cell.built = True
        if self.stateful and self.states is None:
            if batch is None:
                raise ValueError(
                    "When using `stateful=True` in a RNN, the batch size must be static. Found dynamic "
                    "batch "
                    f"size: sequence.shape={tuple(sequences_shape)}"
                )
            with init_scope():
                self._state_holder.states = nest.map_structure(
                    lambda s: Variable(s, trainable=False, name="rnn_state"), self.get_initial_state(batch)
                )

    def get_initial_state(self, batch_size: Any) -> list[Any]:
        """Return the states before the first step."""
        return initial_state(self.cell, batch_size)

    def reset_state(self) -> None:
        """Set the state variables to zero."""
        for v in nest.flatten(self.states or []):
            v.assign(array.zeros(v.shape.as_list(), v.dtype))

    reset_states = reset_state

    # ---- calling ----------------------------------------------------------------------------------------------------

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = False
    ) -> Tensor | tuple[Any, ...]:
        """Run the cell over time. See the class."""
        batch, time = sequences.shape[0], sequences.shape[1]
        if self.unroll and time is None:
            raise ValueError(
                "Cannot unroll a RNN if the time dimension is undefined. Give it in the shape of the `Input`."
            )
        if initial_state is None:
            batch_size = array.shape(sequences)[0] if batch is None else batch
            initial_state = self.states if self.stateful else self.get_initial_state(batch_size)
        if self.stateful:
            state_batch = nest.flatten(self.states)[0].shape[0]
            if batch is not None and batch != state_batch:
                raise ValueError(
                    "If an RNN is stateful, the batch size of the input sequences must be the same as the "
                    f"batch size of the initial state.\n- Expected batch size: {state_batch}\n- Received batch "
                    f"size: {batch}"
                )
            if batch is None:  # a traced call for any batch size; the states fix it
                sequences = array.ensure_shape(sequences, [state_batch, *sequences.shape[1:]])
        states = list(initial_state) if isinstance(initial_state, (list, tuple)) else [initial_state]
        dtype = getattr(self.cell, "compute_dtype", self.compute_dtype)
        states = nest.map_structure(lambda s: array.cast(s, dtype), states)
        if any(cell._has_dropout for cell in gated_cells(self.cell)) and isinstance(training, TensorLike):
            output, states = if_training(
                training,
                lambda: self._run_over_time(sequences, states, mask, True),
                lambda: self._run_over_time(sequences, states, mask, False),
            )
        else:
            output, states = self._run_over_time(sequences, states, mask, training)
        if self.stateful:
            for variable, state in zip(nest.flatten(self.states), nest.flatten(states)):
                variable.assign(state)
        return (output, *states) if self.return_state else output

    def _run_over_time(self, sequences: Any, states: list[Any], mask: Any, training: Any) -> tuple[Any, list[Any]]:
        cells = gated_cells(self.cell)
        batch = array.shape(sequences)[0] if sequences.shape[0] is None else sequences.shape[0]
        try:
            for cell in cells:
                cell.read()
                if training and cell._has_dropout:
                    cell.draw_masks(batch, cell.kernel.shape[0])
            return self._run(sequences, states, mask, training)
        finally:
            for cell in cells:
                cell.discard_masks()

    def _run(self, sequences: Any, states: list[Any], mask: Any, training: Any) -> tuple[Any, list[Any]]:
        cell = self.cell
        order = [1, 0, *range(2, sequences.shape.rank)]
        x = array.transpose(sequences, order)
        steps = {"x": x}
        if mask is not None:
            mask = mask[0] if isinstance(mask, (list, tuple)) else mask
            mask = array.cast(mask, "bool")
            steps["mask"] = array.transpose(mask, [1, 0, *range(2, mask.shape.rank)])
        if self.go_backwards:
            steps = {k: array.reverse(v, [0]) for k, v in steps.items()}
        own = isinstance(cell, GatedCell) and type(cell).call is GatedCell.call
        if own:
            steps["x"] = cell.project(steps["x"], bool(training))
            if mask is None and not self.unroll:
                packed = nest.flatten(states)
                whole = cell.advance_sequence(steps["x"], packed, bool(training))
                if whole is not None:
                    outputs, packed = whole
                    output = array.transpose(outputs, [1, 0, 2]) if self.return_sequences else packed[0]
                    return self._cast_results(output, nest.pack_sequence_as(states, packed))
        # Cells of this package output their first state: without masks, the loop carries only states.
        carries = mask is not None or not (own or self.return_sequences)
        start = list(nest.flatten(states))
        if carries:
            if own:
                start.append(array.zeros_like(start[0]))
            else:
                batch = array.shape(sequences)[0] if sequences.shape[0] is None else sequences.shape[0]
                start.append(array.zeros([batch, output_size_of(cell)], start[0].dtype))

        def step(element: Any, carried: Sequence[Any]) -> tuple[Sequence[Any], Any]:
            old = list(carried[:-1] if carries else carried)
            packed = nest.pack_sequence_as(states, old)
            if own:
                output, new = cell.advance(element["x"], packed, bool(training))
            else:
                output, new = call_cell(cell, element["x"], packed, training)
            fresh = nest.flatten(new)
            if mask is not None:
                before = array.zeros_like(output) if self.zero_output_for_mask else carried[-1]
                output = select_by_mask(element["mask"], output, before)
                fresh = [select_by_mask(element["mask"], n, o) for n, o in zip(fresh, old)]
            return [*fresh, output] if carries else fresh, output if self.return_sequences else ()

        carried, outputs = self._loop_over_steps(step, steps, start)
        final = nest.pack_sequence_as(states, list(carried[:-1] if carries else carried))
        if self.return_sequences:
            output = array.transpose(outputs, [1, 0, *range(2, outputs.shape.rank)])
        else:
            output = carried[-1] if carries else carried[0]
        return self._cast_results(output, final)

    def _cast_results(self, output: Any, states: Any) -> tuple[Any, list[Any]]:
        """Cast the output and the final states to the compute dtype."""
        final = nest.map_structure(lambda s: array.cast(s, self.compute_dtype), states)
        return array.cast(output, self.compute_dtype), list(final)

    def _loop_over_steps(self, step: Any, steps: dict[str, Any], start: list[Any]) -> tuple[Any, Any]:
        time = steps["x"].shape[0]
        if time == 0 or (dispatch.state.trace is not None and not self.unroll):
            flat = nest.flatten(steps)
            count = array.shape(steps["x"])[0] if time is None else time
            return loop_over(step, steps, flat, count, start, False)
        columns = {k: array.unstack(v, num=time) for k, v in steps.items()}
        carried: Any = start
        outputs = []
        for i in range(time):
            carried, output = step({k: v[i] for k, v in columns.items()}, carried)
            outputs.append(output)
        return carried, array.stack(outputs) if self.return_sequences else None

    # ---- shapes, masks, configuration -------------------------------------------------------------------------------

    def compute_output_shape(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sequences_shape: Any, initial_state_shape: Any = None
    ) -> tuple[Any, Any, int] | tuple[Any, int] | tuple[Any, ...]:
        """Return the output shape; with return_state, followed by the state shapes."""
        batch, time = sequences_shape[0], sequences_shape[1]
        size = output_size_of(self.cell)
        output = (batch, time, size) if self.return_sequences else (batch, size)
        if not self.return_state:
            return output
        return (
            output,
            *(tuple((batch, n) for n in s) if isinstance(s, (list, tuple)) else (batch, s) for s in self.state_size),
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> list[Tensor | None] | Tensor | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the input's mask if all steps are returned; states have none."""
        mask = nest.flatten(mask)[0] if mask is not None else None
        output_mask = mask if self.return_sequences else None
        return [output_mask, *(None for _ in self.state_size)] if self.return_state else output_mask

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {**super().get_config(), "cell": serialize(self.cell)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> RNN:
        """Return a new layer with a new cell."""
        config = dict(config)
        return cls(deserialize(config.pop("cell"), custom_objects), **config)


_LAYER_ARGUMENTS = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "activity_regularizer")


class CellLayer(RNN):
    """Recurrent layer of one kind of cell, whose arguments it has."""

    def __init__(self, cell_class: type[GatedCell], constructor_locals: dict[str, Any]) -> None:
        """Create the cell and the layer from `locals()` of the constructor of a subclass."""
        kwargs = constructor_locals["kwargs"]
        cell = cell_class(
            **{name: constructor_locals[name] for name in parameter_names(cell_class)},
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
            name=registry_name(cell_class.__name__),
        )
        super().__init__(cell, **{name: constructor_locals[name] for name in _LAYER_ARGUMENTS}, **kwargs)
        if "use_cudnn" in constructor_locals:
            self.use_cudnn = constructor_locals["use_cudnn"]  # ignored: there is one implementation

    def __getattr__(self, name: str) -> Any:
        cell = self.__dict__.get("cell")
        if cell is not None and name in cell._argument_names:
            return getattr(cell, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        config = super().get_config()
        del config["cell"]
        of_cell = self.cell.get_config()
        config.update({k: v for k, v in of_cell.items() if k not in ("name", "trainable", "dtype")})
        config["activity_regularizer"] = regularizers.serialize(self.activity_regularizer)
        if "use_cudnn" in self.__dict__:
            config["use_cudnn"] = self.use_cudnn
        if not self.zero_output_for_mask:
            del config["zero_output_for_mask"]
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> CellLayer:
        """Return a new layer with new weights."""
        return cls(**config)


class SimpleRNN(CellLayer):
    """Recurrent layer of a SimpleRNNCell. See RNN for inputs, outputs and masks."""

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
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(SimpleRNNCell, locals())


class GRU(CellLayer):
    """Recurrent layer of a GRUCell. See RNN for inputs, outputs and masks."""

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
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: Any = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        reset_after: bool = True,
        use_cudnn: Any = "auto",
        **kwargs: Any,
    ) -> None:
        kwargs.pop("implementation", None)
        super().__init__(GRUCell, locals())


class LSTM(CellLayer):
    """Recurrent layer of an LSTMCell. See RNN for inputs, outputs and masks."""

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
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: Any = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        use_cudnn: Any = "auto",
        **kwargs: Any,
    ) -> None:
        kwargs.pop("implementation", None)
        super().__init__(LSTMCell, locals())
