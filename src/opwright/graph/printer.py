"""The printer of graph text.

Lives here: `text(graph)`.  Not here: the syntax, parsing (parser.py).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.deferred import DeferredArray
from ..core.dtypes import DType
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec

if TYPE_CHECKING:
    from .ir import Graph, Operand, Value

INLINE_ELEMENTS = 16  # longer constants print as base64, to keep lines readable

Store = Callable[[np.ndarray], "str | None"]


def text(graph: Graph, indent: str = "", store: Store | None = None) -> str:
    """Return the graph as text.

    store: for text that is to be parsed in another process. It receives arrays that may be stored separately and
    returns their names, None for the others; source lines name the file without its folder.
    raises TypeError, with a store, for a node whose attributes have no text
    """
    inside = indent + "  "

    def typed(value: Value) -> str:
        return f"{value.name}: {spec_text(value.spec, inside, store)}"

    args = ", ".join(map(typed, graph.inputs))
    lines = [f"graph {_word(graph.name)}({args}) {{"]
    for node in graph.nodes:
        parts = [_operand(o) for o in node.inputs]
        try:
            parts += [f"{k}={_attr(v, inside, store)}" for k, v in node.attrs.items()]
        except _NoText as error:
            raise TypeError(f"node {node.name!r} ({node.op.name}) holds {error}") from None
        left = ", ".join(map(typed, node.outputs)) or f"{node.name}: ()"
        at = f"  # {node.at if store is None else _file_only(node.at)}" if node.at else ""
        op = getattr(node.op, "text_name", node.op.name)
        lines.append(f"{inside}{left} = {op}({', '.join(parts)}){at}")
    lines.append(f"{inside}return {', '.join(v.name for v in graph.outputs)}".rstrip())
    lines.append(indent + "}")
    return "\n".join(lines)


def spec_text(spec: TensorSpec, indent: str = "", store: Store | None = None) -> str:
    """Return a type as graph text: `f32[2,?]`, with the details of a dialect in braces."""
    details = ", ".join(f"{name}={_attr(value, indent, store)}" for name, value in spec.details.items())
    return f"{spec.short()}{{{details}}}" if details else spec.short()


def _word(name: str) -> str:
    """Return a name unchanged if it is one word of the text, otherwise as a string."""
    return name if re.fullmatch(r"[A-Za-z_][\w./@\-]*", name) else repr(name)


def _operand(operand: Operand) -> str:
    if operand is None:
        return "_"
    if isinstance(operand, tuple):
        return f"[{', '.join(v.name for v in operand)}]"
    return operand.name


class _NoText(Exception):
    """A value without a text form."""


def _file_only(at: str) -> str:
    return " ".join(re.split(r"[/\\]", at)[-1].split())


def _attr(value: Any, indent: str, store: Store | None = None) -> str:
    if isinstance(value, DType):
        return f"dtype({value.short})"
    if isinstance(value, TensorShape):
        return f"shape({TensorSpec(value).short()[3:].strip('[]')})"
    if isinstance(value, TensorSpec):
        return f"type({spec_text(value, indent, store)})"
    if isinstance(value, DeferredArray):
        value = value.compute()
    if isinstance(value, np.ndarray):
        spec = TensorSpec(value.shape, dtypes.of_stored(value.dtype))
        name = None if store is None else store(value)
        if name is not None:
            return f"stored({spec.short()}, {name!r})"
        return f"tensor({spec.short()}, {_elements(value, spec.dtype)})"
    if hasattr(value, "to_text"):  # a graph
        return str(value.to_text(indent, store))
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_attr(v, indent, store) for v in value)}]"
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if store is not None:
        raise _NoText(f"a Python object of type {type(value).__name__}")
    return f"opaque({type(value).__name__})"  # Python callables: printed, but such a graph does not parse back


def _elements(array: np.ndarray, dtype: DType) -> str:
    flat = array.reshape(-1)
    if dtype is dtypes.string or (array.size <= INLINE_ELEMENTS and not dtype.is_complex):
        items = flat.tolist() if dtype is dtypes.string or dtype.np.kind in "iub" else [float(x) for x in flat]
        if dtype.is_integer:
            items = [int(x) for x in items]
        if not any(isinstance(x, float) and x != x for x in items):  # a NaN's bits would be lost
            return repr(items)
    return repr(base64.b64encode(np.ascontiguousarray(array).tobytes()).decode())
