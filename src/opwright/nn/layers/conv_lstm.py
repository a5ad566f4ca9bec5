"""Long short-term memory over sequences of images, with convolutions in place of matrix products.

Lives here: ConvLSTM1D, ConvLSTM2D, ConvLSTM3D and their cell.
Not here: the loop over time (recurrent.py), the equations of a step (cells.py).

Sequences are [batch, time, *spatial, channels], or with data_format "channels_first" [batch, time, channels, *spatial].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops import array
from ...ops import nn as ops_nn
from ..layer_calls import InputSpec
from .cells import LSTMCell
from .configurable_layer import data_format_name, padding_name, parameter_names, sizes
from .convolution import FORMATS, check_dilation, conv_output_shape
from .recurrent import CellLayer

if TYPE_CHECKING:
    from ...ops.tensor import Tensor, TensorLike


class ConvLSTMCell(LSTMCell):
    """Step of a convolutional LSTM (Shi et al. 2015, without peepholes). States: h, c, images of `filters` channels.

    The equations are those of LSTMCell, with a convolution of the input by `kernel`, of the given window, and of h by
    `recurrent_kernel`, with strides 1 and padding "same", in place of the products. rank: the number of spatial
    dimensions; other arguments: see ConvLSTM2D.
    """

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        dilation_rate: Any = 1,
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
        shared = {name: value for name, value in locals().items() if name in parameter_names(LSTMCell)}
        super().__init__(filters, **shared, **kwargs)
        self._argument_names = tuple(name for name in self._argument_names if name != "units")
        self.rank = rank
        self._set_arguments(
            filters=filters,
            kernel_size=sizes(kernel_size, rank, "kernel_size"),
            strides=sizes(strides, rank, "strides"),
            padding=padding_name(padding),
            data_format=data_format_name(data_format),
            dilation_rate=sizes(dilation_rate, rank, "dilation_rate"),
        )
        check_dilation(self)
        self.gate_axis = -1 if self.data_format == "channels_last" else -1 - rank

    def build(self, input_shape: Any) -> None:
        """Create the weights for images [batch, *spatial, channels], whose sizes are known."""
        shape = tuple(input_shape)
        if None in shape[1:]:
            raise ValueError(
                f"The sizes of the images of a ConvLSTM must be known: they are those of its states. Received {shape}."
            )
        channels, width = int(shape[self.gate_axis]), self.filters * self.gates
        self._input_sizes, self._state_sizes = shape[1:], conv_output_shape(self, shape, self.filters)[1:]
        self.kernel = self._weight("kernel", (*self.kernel_size, channels, width))
        self.recurrent_kernel = self._weight("recurrent_kernel", (*self.kernel_size, self.filters, width), "recurrent")
        self.bias = self._make_bias(width) if self.use_bias else None

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """Return zeros for h and c."""
        return [array.zeros([batch_size, *self._state_sizes], self.compute_dtype) for _ in range(2)]

    def draw_masks(self, batch: Any, width: Any = None) -> None:
        """Draw the dropout masks of all steps, of whole images, until `discard_masks`."""
        self._loop_masks = (
            self._noise([batch, *self._input_sizes], self.dropout),
            self._noise([batch, *self._state_sizes], self.recurrent_dropout),
        )

    def _product(self, x: Any, kernel: Any) -> Tensor:
        """Return the convolution of images, of one step or, with a leading time axis, of all steps."""
        layout, lead = FORMATS[self.rank, self.data_format], x.shape.rank - self.rank - 1
        steps = [array.shape(x)[i] if x.shape[i] is None else x.shape[i] for i in range(lead)]
        images = array.reshape(x, [-1, *x.shape[lead:]]) if lead > 1 else x
        y = ops_nn.convolution(
            images, kernel, list(self.strides), self.padding.upper(), layout, list(self.dilation_rate)
        )
        return array.reshape(y, [*steps, *y.shape[1:]]) if lead > 1 else y

    def _state_product(self, h: Any, kernel: Any) -> Tensor:
        layout = FORMATS[self.rank, self.data_format]
        return ops_nn.convolution(h, kernel, [1] * self.rank, "SAME", layout)

    def _input_bias(self) -> TensorLike | None:
        bias = super()._input_bias()
        return bias if bias is None or self.gate_axis == -1 else array.reshape(bias, [-1] + [1] * self.rank)

    def advance_sequence(self, projected: Any, states: list[Any], drop: bool) -> None:
        """Return None: no operator computes all steps."""


class ConvLSTM(CellLayer):
    """Recurrent layer of convolutional long short-term memory over sequences of images.

    filters: the number of output channels; kernel_size, strides, padding, dilation_rate: the window of the convolution
    of inputs. Output: [batch, *spatial, filters] of the last step, or with return_sequences of all steps. Other
    arguments: see LSTM. raises ValueError for images of unknown size, whose states have none
    source: X. Shi et al., Convolutional LSTM network, 2015
    """

    rank: int

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        dilation_rate: Any = 1,
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
        **kwargs: Any,
    ) -> None:
        super().__init__(ConvLSTMCell, {**locals(), "rank": self.rank})
        self.input_spec = InputSpec(ndim=self.rank + 3)

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the output shape; with return_state, followed by the state shapes."""
        batch, time, *image = sequences_shape
        state = conv_output_shape(self.cell, (batch, *image), self.cell.filters)
        output = (batch, time, *state[1:]) if self.return_sequences else state
        return (output, state, state) if self.return_state else output


class ConvLSTM1D(ConvLSTM):
    __doc__ = ConvLSTM.__doc__
    rank = 1


class ConvLSTM2D(ConvLSTM):
    __doc__ = ConvLSTM.__doc__
    rank = 2


class ConvLSTM3D(ConvLSTM):
    __doc__ = ConvLSTM.__doc__
    rank = 3
