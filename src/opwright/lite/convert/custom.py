"""Custom operators in the file: an operator's attributes as its options, by name.

Lives here: which Python value stands for which kind of attribute.  Not here: FlexBuffers (format/flex.py), reading the
options back (lite/registration.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import DType, of_numpy
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...graph import Graph, Node
from ..registration import VERSION_KEY


def custom_options(node: Node, version_inside: bool) -> dict[str, Any]:
    """All attributes of a node, also those with their default: what was meant stays so when a default changes.

    raises InvalidArgumentError for an attribute that options cannot hold
    """
    options = {name: _option(node, name, value) for name, value in node.attrs.items()}
    if version_inside:
        options[VERSION_KEY] = node.op.version
    return options


def _option(node: Node, name: str, value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return None if value.dims is None else list(value.dims)
    if isinstance(value, np.ndarray):
        return {"dtype": of_numpy(value.dtype).name, "shape": list(value.shape), "values": value.reshape(-1).tolist()}
    if isinstance(value, tuple):
        return [_option(node, name, item) for item in value]
    if isinstance(value, Graph):
        raise InvalidArgumentError(what=f"attribute {name!r} is a graph, which custom options cannot hold")
    return value
