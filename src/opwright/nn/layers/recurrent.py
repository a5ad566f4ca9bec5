"""Recurrent layers: a cell carried over time.

Lives here: RNN, SimpleRNN, GRU, LSTM.
Not here: one step (cells.py), Bidirectional and TimeDistributed (recurrent_wrappers.py).

Eagerly, and with unroll, the loop over time is Python's; in a traced function it is one loop in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import nest
from ...eager.variable import Variable
from ...ops import array, dispatch
from ...ops.tensor import TensorLike
from ...tracing.control.higher_order import loop_over
from ...tracing.trace import init_scope
from ..layer import Layer
from .base import Described, in_training
from .cells import GatedCell, GRUCell, LSTMCell, SimpleRNNCell
from .recurrent_wrappers import deserialize, serialize
from .stacked_cells import StackedRNNCells, call_cell, gated, initial_state, masked, size_of_output


class _Kept:
    """Holder of state variables, which are not weights."""

    def __init__(self, states: Any) -> None:
        self.states = states


class RNN(Described):
    """Recurrent layer: a cell, or a stack of cells, run over the steps of sequences.

    inputs: [batch, time, features]; output: the last step's [batch, units], with return_sequences all steps'. With
    return_state the final states follow. mask: [batch, time]; a step that is masked changes nothing and gives the
    output of the one before (zeros with zero_output_for_mask). go_backwards: from the last step to the first, outputs
    in that order. stateful: states go on from call to call, example i's to example i's, until `reset_state`.
    initial_state: a list of states. unroll: the loop is written out step by step in graphs.
    raises ValueError for what is no cell, for unroll without known time, for stateful without known batch
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
        self._take(
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            zero_output_for_mask=zero_output_for_mask,
        )
        self._kept = _Kept(None)
        self.supports_masking = True

    @property
    def state_size(self) -> list[Any]:
        """State sizes of the cell, as a list."""
        size = self.cell.state_size
        return list(size) if isinstance(size, (list, tuple)) else [size]

    @property
    def states(self) -> Any:
        """State variables of a stateful layer, else None."""
        return self._kept.states

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
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
                self._kept.states = nest.map_structure(
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

    def call(self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = False) -> Any:
        """Run the cell over time. See the class."""
        batch, time = sequences.shape[0], sequences.shape[1]
        if self.unroll and time is None:
            raise ValueError(
                "Cannot unroll a RNN if the time dimension is undefined. Give it in the shape of the `Input`."
            )
        if initial_state is None:
            known = array.shape(sequences)[0] if batch is None else batch
            initial_state = self.states if self.stateful else self.get_initial_state(known)
        if self.stateful:
            wanted = nest.flatten(self.states)[0].shape[0]
            if batch is not None and batch != wanted:
                raise ValueError(
                    "If an RNN is stateful, the batch size of the input sequences must be the same as the "
                    f"batch size of the initial state.\n- Expected batch size: {wanted}\n- Received batch "
                    f"size: {batch}"
                )
            if batch is None:  # that of a traced call of any batch: the states have one all the same
                sequences = array.ensure_shape(sequences, [wanted, *sequences.shape[1:]])
        states = list(initial_state) if isinstance(initial_state, (list, tuple)) else [initial_state]
        dtype = getattr(self.cell, "compute_dtype", self.compute_dtype)
        states = nest.map_structure(lambda s: array.cast(s, dtype), states)
        if any(cell._drops for cell in gated(self.cell)) and isinstance(training, TensorLike):
            output, states = in_training(
                training,
                lambda: self._over_time(sequences, states, mask, True),
                lambda: self._over_time(sequences, states, mask, False),
            )
        else:
            output, states = self._over_time(sequences, states, mask, training)
        if self.stateful:
            for kept, state in zip(nest.flatten(self.states), nest.flatten(states)):
                kept.assign(state)
        return (output, *states) if self.return_state else output

    def _over_time(self, sequences: Any, states: list[Any], mask: Any, training: Any) -> tuple[Any, list[Any]]:
        cells = gated(self.cell)
        batch = array.shape(sequences)[0] if sequences.shape[0] is None else sequences.shape[0]
        try:
            for cell in cells:
                cell.read()
                if training and cell._drops:
                    cell.hold(batch, cell.kernel.shape[0])
            return self._run(sequences, states, mask, training)
        finally:
            for cell in cells:
                cell.release()

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
        # The cells of this package give their first state: without masks nothing else need be carried.
        carries = mask is not None or not (own or self.return_sequences)
        start = list(nest.flatten(states))
        if carries:
            batch = array.shape(sequences)[0] if sequences.shape[0] is None else sequences.shape[0]
            start.append(array.zeros([batch, size_of_output(cell)], start[0].dtype))

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
                output = masked(element["mask"], output, before)
                fresh = [masked(element["mask"], n, o) for n, o in zip(fresh, old)]
            return [*fresh, output] if carries else fresh, output if self.return_sequences else ()

        carried, outputs = self._loop(step, steps, start)
        final = nest.pack_sequence_as(states, list(carried[:-1] if carries else carried))
        if self.return_sequences:
            output = array.transpose(outputs, [1, 0, *range(2, outputs.shape.rank)])
        else:
            output = carried[-1] if carries else carried[0]
        final = nest.map_structure(lambda s: array.cast(s, self.compute_dtype), final)
        return array.cast(output, self.compute_dtype), list(final)

    def _loop(self, step: Any, steps: dict[str, Any], start: list[Any]) -> tuple[Any, Any]:
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

    def compute_output_shape(
        self, sequences_shape: Any, initial_state_shape: Any = None
    ) -> tuple[Any, Any, int] | tuple[Any, int] | tuple[Any, ...]:
        """Return the output shape; with return_state, followed by the state shapes."""
        batch, time = sequences_shape[0], sequences_shape[1]
        size = size_of_output(self.cell)
        output = (batch, time, size) if self.return_sequences else (batch, size)
        if not self.return_state:
            return output
        return (
            output,
            *(tuple((batch, n) for n in s) if isinstance(s, (list, tuple)) else (batch, s) for s in self.state_size),
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return the input's mask if all steps are returned; states have none."""
        mask = nest.flatten(mask)[0] if mask is not None else None
        kept = mask if self.return_sequences else None
        return [kept, *(None for _ in self.state_size)] if self.return_state else kept

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {**super().get_config(), "cell": serialize(self.cell)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> RNN:
        """Return a new layer with a new cell."""
        config = dict(config)
        return cls(deserialize(config.pop("cell"), custom_objects), **config)


class _OfCell(RNN):
    """Recurrent layer of one kind of cell, whose arguments it has."""

    def __init__(self, cell: Any, use_cudnn: Any, flags: dict[str, Any], kwargs: dict[str, Any]) -> None:
        zero = kwargs.pop("zero_output_for_mask", False)
        super().__init__(cell, **flags, zero_output_for_mask=zero, **kwargs)
        self.use_cudnn = use_cudnn  # there are no kernels to choose from

    def __getattr__(self, name: str) -> Any:
        cell = self.__dict__.get("cell")
        if cell is not None and name in cell._taken:
            return getattr(cell, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        config = super().get_config()
        del config["cell"]
        of_cell = self.cell.get_config()
        config.update({k: v for k, v in of_cell.items() if k not in ("name", "trainable", "dtype")})
        from .. import regularizers

        config["activity_regularizer"] = regularizers.serialize(self.activity_regularizer)
        if not self.zero_output_for_mask:
            del config["zero_output_for_mask"]
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> _OfCell:
        """Return a new layer with new weights."""
        return cls(**config)


def _flags(
    return_sequences: bool,
    return_state: bool,
    go_backwards: bool,
    stateful: bool,
    unroll: bool,
    activity_regularizer: Any,
) -> dict[str, Any]:
    return {
        "return_sequences": return_sequences,
        "return_state": return_state,
        "go_backwards": go_backwards,
        "stateful": stateful,
        "unroll": unroll,
        "activity_regularizer": activity_regularizer,
    }


def _of_cell(kwargs: dict[str, Any], name: str) -> dict[str, Any]:
    return {"dtype": kwargs.get("dtype"), "trainable": kwargs.get("trainable", True), "name": name}


class SimpleRNN(_OfCell):
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
        cell = SimpleRNNCell(
            units,
            activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            kernel_regularizer,
            recurrent_regularizer,
            bias_regularizer,
            kernel_constraint,
            recurrent_constraint,
            bias_constraint,
            dropout,
            recurrent_dropout,
            seed,
            **_of_cell(kwargs, "simple_rnn_cell"),
        )
        super().__init__(
            cell,
            None,
            _flags(return_sequences, return_state, go_backwards, stateful, unroll, activity_regularizer),
            kwargs,
        )


class GRU(_OfCell):
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
        cell = GRUCell(
            units,
            activation,
            recurrent_activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            kernel_regularizer,
            recurrent_regularizer,
            bias_regularizer,
            kernel_constraint,
            recurrent_constraint,
            bias_constraint,
            dropout,
            recurrent_dropout,
            reset_after,
            seed,
            **_of_cell(kwargs, "gru_cell"),
        )
        super().__init__(
            cell,
            use_cudnn,
            _flags(return_sequences, return_state, go_backwards, stateful, unroll, activity_regularizer),
            kwargs,
        )


class LSTM(_OfCell):
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
        cell = LSTMCell(
            units,
            activation,
            recurrent_activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            unit_forget_bias,
            kernel_regularizer,
            recurrent_regularizer,
            bias_regularizer,
            kernel_constraint,
            recurrent_constraint,
            bias_constraint,
            dropout,
            recurrent_dropout,
            seed,
            **_of_cell(kwargs, "lstm_cell"),
        )
        super().__init__(
            cell,
            use_cudnn,
            _flags(return_sequences, return_state, go_backwards, stateful, unroll, activity_regularizer),
            kwargs,
        )
