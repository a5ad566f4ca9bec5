"""Operations in functional graphs of Keras, such as `x * 2.0` or `keras.ops.mean(x, axis=1)`, as layers.

Lives here: `KerasOperation`, the table `OPERATIONS`. Not here: their places in graphs (nn/model_config.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import nest
from ...core.errors import InvalidArgumentError
from ...nn import activations
from ...nn.layer import Layer
from ...ops import array, dispatch, linalg, math
from ...ops.array_shapes import axes_moved

OPERATIONS: dict[str, Callable[..., Any]] = {
    "Abs": math.abs,
    "Absolute": math.abs,
    "Add": math.add,
    "All": lambda x, axis=None, keepdims=False: math.reduce_all(x, axis, keepdims),
    "Any": lambda x, axis=None, keepdims=False: math.reduce_any(x, axis, keepdims),
    "Arctan": math.atan,
    "Arctan2": math.atan2,
    "Argmax": lambda x, axis=None, keepdims=False: _first_extreme(math.argmax, x, axis, keepdims),
    "Argmin": lambda x, axis=None, keepdims=False: _first_extreme(math.argmin, x, axis, keepdims),
    "BroadcastTo": lambda x, shape: array.broadcast_to(x, shape),
    "Cast": lambda x, dtype: array.cast(x, dtype),
    "Ceil": math.ceil,
    "Clip": lambda x, x_min, x_max: math.clip_by_value(x, x_min, x_max),
    "Concatenate": lambda xs, axis=0: array.concat(xs, axis),
    "Cos": math.cos,
    "Cosh": math.cosh,
    "Cumprod": lambda x, axis=None, dtype=None: _along(math.cumprod, _cast(x, dtype), axis),
    "Cumsum": lambda x, axis=None, dtype=None: _along(math.cumsum, _cast(x, dtype), axis),
    "Divide": math.divide,
    "Einsum": lambda *xs, subscripts: linalg.einsum(subscripts, *xs),
    "Elu": lambda x, alpha=1.0: activations.elu(x, alpha),
    "Equal": math.equal,
    "Erf": math.erf,
    "Exp": math.exp,
    "ExpandDims": lambda x, axis: _expanded(x, axis),
    "Expm1": math.expm1,
    "Flip": lambda x, axis=None: array.reverse(x, _axes(x, axis)),
    "Floor": math.floor,
    "FloorDivide": math.floordiv,
    "Gelu": lambda x, approximate=True: activations.gelu(x, approximate),
    "Greater": math.greater,
    "GreaterEqual": math.greater_equal,
    "HardSigmoid": activations.hard_sigmoid,
    "HardSilu": activations.hard_silu,
    "LeakyRelu": lambda x, negative_slope=0.2: activations.leaky_relu(x, negative_slope),
    "Less": math.less,
    "LessEqual": math.less_equal,
    "Log": math.log,
    "Log1p": math.log1p,
    "LogSigmoid": activations.log_sigmoid,
    "LogSoftmax": lambda x, axis=-1: activations.log_softmax(x, axis),
    "LogicalAnd": math.logical_and,
    "LogicalNot": math.logical_not,
    "LogicalOr": math.logical_or,
    "LogicalXor": math.logical_xor,
    "Logsumexp": lambda x, axis=None, keepdims=False: math.reduce_logsumexp(x, axis, keepdims),
    "Matmul": linalg.matmul,
    "Max": lambda x, axis=None, keepdims=False, initial=None: (
        math.reduce_max(x, axis, keepdims) if initial is None else _unsupported("initial", initial)
    ),
    "Maximum": math.maximum,
    "Mean": lambda x, axis=None, keepdims=False: math.reduce_mean(x, axis, keepdims),
    "Min": lambda x, axis=None, keepdims=False, initial=None: (
        math.reduce_min(x, axis, keepdims) if initial is None else _unsupported("initial", initial)
    ),
    "Minimum": math.minimum,
    "Mod": math.floormod,
    "Moveaxis": lambda x, source, destination: _moved(x, source, destination),
    "Multiply": math.multiply,
    "Negative": math.negative,
    "NotEqual": math.not_equal,
    "OneHot": lambda x, num_classes, axis=-1, dtype=None: array.one_hot(x, num_classes, axis=axis, dtype=dtype),
    "OnesLike": lambda x, dtype=None: array.ones_like(x, dtype),
    "Power": math.pow,
    "Prod": lambda x, axis=None, keepdims=False, dtype=None: math.reduce_prod(_cast(x, dtype), axis, keepdims),
    "Ravel": lambda x: array.reshape(x, [-1]),
    "Reciprocal": math.reciprocal,
    "Relu": activations.relu,
    "Relu6": activations.relu6,
    "Repeat": lambda x, repeats, axis=None: (
        array.repeat(array.reshape(x, [-1]), repeats, 0) if axis is None else array.repeat(x, repeats, axis)
    ),
    "Reshape": lambda x, newshape: array.reshape(x, newshape),
    "Roll": lambda x, shift, axis=None: _rolled(x, shift, axis),
    "Round": lambda x, decimals=0: math.round(x) if not decimals else _unsupported("decimals", decimals),
    "Rsqrt": math.rsqrt,
    "Selu": activations.selu,
    "Sigmoid": activations.sigmoid,
    "Sign": math.sign,
    "Silu": activations.silu,
    "Sin": math.sin,
    "Sinh": math.sinh,
    "Softmax": lambda x, axis=-1: activations.softmax(x, axis),
    "Softplus": activations.softplus,
    "Softsign": activations.softsign,
    "Split": lambda x, indices_or_sections, axis=0: _parts(x, indices_or_sections, axis),
    "Sqrt": math.sqrt,
    "Square": math.square,
    "Squeeze": lambda x, axis=None: array.squeeze(x, axis),
    "Stack": lambda xs, axis=0: array.stack(xs, axis),
    "Std": lambda x, axis=None, keepdims=False: math.reduce_std(x, axis, keepdims),
    "StopGradient": array.stop_gradient,
    "Subtract": math.subtract,
    "Sum": lambda x, axis=None, keepdims=False: math.reduce_sum(x, axis, keepdims),
    "Swapaxes": lambda x, axis1, axis2: _swapped(x, axis1, axis2),
    "Take": lambda x, indices, axis=None: (
        array.gather(array.reshape(x, [-1]), indices) if axis is None else array.gather(x, indices, axis=axis)
    ),
    "Tan": math.tan,
    "Tanh": math.tanh,
    "Tensordot": lambda x, y, axes=2: linalg.tensordot(x, y, axes),
    "Tile": lambda x, repeats: array.tile(x, [repeats] if isinstance(repeats, int) else repeats),
    "TopK": lambda x, k, sorted=True: tuple(math.top_k(x, k, sorted)),
    "Transpose": lambda x, axes=None: array.transpose(x, axes),
    "TrueDivide": math.divide,
    "Unstack": lambda x, num=None, axis=0: array.unstack(x, num, axis),
    "Var": lambda x, axis=None, keepdims=False: math.reduce_variance(x, axis, keepdims),
    "Where": array.where,
    "ZerosLike": lambda x, dtype=None: array.zeros_like(x, dtype),
    "GetItem": lambda x, key: x[tuple(key) if isinstance(key, list) else key],
}
"""The function of each operation's class in `keras.ops`: operands by position, constructor's arguments by name."""


class KerasOperation(Layer):
    """An operation of `keras.ops` as a layer without weights.

    operation: its class in Keras, a key of OPERATIONS; arguments: of that class's constructor
    """

    def __init__(self, operation: str, arguments: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if operation not in OPERATIONS:
            raise InvalidArgumentError(op="KerasOperation", what="no such operation", found=operation)
        self.operation = operation
        self.arguments = dict(arguments or {})

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the operation. Numbers take the dtype of the first tensor."""
        tensors = [x for x in nest.flatten([args, kwargs]) if hasattr(x, "spec")]
        dtype = tensors[0].dtype if tensors else None

        def operand(x: Any) -> Any:
            is_number = isinstance(x, float) and dtype is not None and dtype.is_floating
            return dispatch.to_tensor(x, dtype) if is_number else x

        args = tuple(operand(x) for x in args)
        return OPERATIONS[self.operation](*args, **{**self.arguments, **kwargs})

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "operation": self.operation, "arguments": self.arguments}


def _unsupported(argument: str, value: Any) -> Any:
    raise InvalidArgumentError(op="KerasOperation", what=f"no such {argument}", found=value)


def _cast(x: Any, dtype: Any) -> Any:
    return x if dtype is None else array.cast(x, dtype)


def _axes(x: Any, axis: Any) -> list[int]:
    return list(range(x.shape.rank)) if axis is None else [axis] if isinstance(axis, int) else list(axis)


def _along(function: Callable[..., Any], x: Any, axis: int | None) -> Any:
    return function(array.reshape(x, [-1]), 0) if axis is None else function(x, axis)


def _first_extreme(function: Callable[..., Any], x: Any, axis: int | None, keepdims: bool) -> Any:
    rank = x.shape.rank
    if axis is None:
        found = function(array.reshape(x, [-1]), 0, "int32")
        return array.reshape(found, [1] * rank) if keepdims else found
    found = function(x, axis, "int32")
    return array.expand_dims(found, axis) if keepdims else found


def _expanded(x: Any, axis: Any) -> Any:
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = x.shape.rank + len(axes)
    for a in sorted(a % rank for a in axes):
        x = array.expand_dims(x, a)
    return x


def _moved(x: Any, source: Any, destination: Any) -> Any:
    return array.transpose(x, axes_moved(source, destination, x.shape.rank))


def _swapped(x: Any, first: int, second: int) -> Any:
    order = list(range(x.shape.rank))
    order[first], order[second] = order[second], order[first]
    return array.transpose(x, order)


def _rolled(x: Any, shift: Any, axis: Any) -> Any:
    if axis is None:
        return array.reshape(array.roll(array.reshape(x, [-1]), shift, 0), array.shape(x))
    return array.roll(x, shift, axis)


def _parts(x: Any, indices_or_sections: Any, axis: int) -> Any:
    if isinstance(indices_or_sections, int):
        return array.split(x, indices_or_sections, axis)
    size = x.shape[axis]
    if size is None:
        return _unsupported("split of an unknown size at indices", indices_or_sections)
    ends = [*indices_or_sections, size]
    return array.split(x, [end - begin for begin, end in zip([0, *ends], ends)], axis)
