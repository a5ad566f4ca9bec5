"""Layers and models as functions: what calling one does, for inputs of the shapes it was built for.

Lives here: `functions_of`.  Not here: what is saved with them (saving.py), their conversion (lite/).
"""

from __future__ import annotations

from typing import Any

from ..core.specs import TensorSpec
from ..nn.layer import Layer
from ..nn.model import Model
from ..tracing.function import Function

CALL = "__call__"
SERVE = "serve"  # the name that exported models of Keras have for it


def functions_of(value: Any) -> dict[str, Any]:
    """The function `__call__` of a layer or model that knows its inputs' shapes, a model's also as `serve`.

    Nothing for other objects.

    It runs as for inference (training=False) and takes batches of any size.
    """
    if not isinstance(value, Layer) or isinstance(getattr(type(value), CALL, None), Function):
        return {}
    specs = input_specs(value)
    if specs is None:
        return {}
    training = {"training": False} if value._call_spec().training else {}

    def __call__(inputs: Any) -> Any:
        return value(inputs, **training)

    __call__.__name__ = __call__.__qualname__ = f"call_{value.name}"
    function = Function(__call__, input_signature=(specs,))
    names = (CALL, SERVE) if isinstance(value, Model) and not hasattr(value, SERVE) else (CALL,)
    return dict.fromkeys(names, function)


def input_specs(value: Layer) -> Any:
    """The types of a layer's inputs, in their structure, with the first size open; None where they are not known."""
    if isinstance(value, Model):
        try:
            return value.input_specs()
        except ValueError:
            return None
    shapes = getattr(value, "_build_shapes", None)
    if shapes is None or isinstance(shapes, dict):
        return None
    return _specs(shapes, value.compute_dtype, "inputs")


def _specs(shapes: Any, dtype: Any, name: str) -> Any:
    if isinstance(shapes, dict):
        return {k: _specs(v, dtype, str(k)) for k, v in shapes.items()}
    if all(size is None or isinstance(size, int) for size in shapes):
        return TensorSpec([None, *shapes[1:]] if len(shapes) else [], dtype, name)
    return [_specs(s, dtype, f"{name}_{i}") for i, s in enumerate(shapes)]
