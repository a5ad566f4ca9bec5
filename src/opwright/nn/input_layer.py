"""Input: the inputs of functional models.

Lives here: `Input` and its layer.  Not here: models (model.py).
"""

from __future__ import annotations

from typing import Any

from ..core.dtypes import as_dtype
from . import backend
from .keras_tensor import KerasTensor, OperationNode
from .layer import Layer


class InputLayer(Layer):
    """Layer of an input; `output` is its KerasTensor. Arguments: see `Input`."""

    def __init__(
        self,
        shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        sparse: Any = None,
        ragged: Any = None,
        batch_shape: Any = None,
        input_tensor: Any = None,
        optional: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if "input_shape" in kwargs:
            shape = kwargs.pop("input_shape")
        if "batch_input_shape" in kwargs:
            batch_shape = kwargs.pop("batch_input_shape")
        if shape is not None and batch_shape is not None:
            raise ValueError("You cannot pass both `shape` and `batch_shape` at the same time.")
        if shape is None and batch_shape is None:
            raise ValueError("You must pass a `shape` argument.")
        if sparse or ragged:
            raise ValueError("Inputs are dense: `sparse` and `ragged` cannot be True. Pass dense tensors and masks")
        super().__init__(name=name, **kwargs)
        if batch_shape is None:
            batch_shape = (batch_size, *((shape,) if isinstance(shape, int) else tuple(shape)))
        self.batch_shape = tuple(batch_shape)
        self._input_dtype = as_dtype(backend.floatx() if dtype is None else dtype)
        self.optional = optional
        self.built = True
        tensor = KerasTensor(self.batch_shape, self._input_dtype, self.name)
        OperationNode(self, (), {}, tensor)

    @property
    def dtype(self) -> str:
        """Name of the input's dtype."""
        return self._input_dtype.name

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Return the input itself."""
        return args[0]

    @property
    def output(self) -> Any:
        """The KerasTensor of the input."""
        return self.nodes[0].outputs

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"batch_shape": self.batch_shape, "dtype": self.dtype, "sparse": False, "name": self.name}


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
    sparse: Any = None,
    ragged: Any = None,
    batch_shape: Any = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> KerasTensor:
    """Return a KerasTensor, an input of a functional model.

    shape: without the batch, None for unknown sizes; batch_size: the batch size, if it is fixed; or batch_shape: both.
    dtype: by default "float32". name: the key of its data in dicts.
    raises ValueError unless exactly one of `shape` and `batch_shape` is passed

    >>> x = ow.keras.Input((3,)); x.shape
    TensorShape([None, 3])
    """
    layer = InputLayer(shape, batch_size, dtype, sparse, ragged, batch_shape, tensor, optional, name=name)
    result: KerasTensor = layer.output
    return result
