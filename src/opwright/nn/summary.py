"""The table that `Model.summary` prints.

Lives here: its rows and totals.  Not here: the rendering, by rich.
"""

from __future__ import annotations

import io
import shutil
from typing import Any

import numpy as np

from ..core import nest
from .keras_tensor import KerasTensor, OperatorCall
from .layer_shapes import keras_tensors
from .operations import OperationCall


def _count(variables: Any) -> tuple[int, int]:
    """Return the number of parameters and their size in bytes."""
    sizes = [(int(np.prod(v.read_array().shape, dtype=np.int64)), v.dtype.np.itemsize) for v in variables]
    return sum(n for n, _ in sizes), sum(n * b for n, b in sizes)


def _format_size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            return f"{value:.2f} {unit}"
        value /= 1024
    return ""


def _shape_text(layer: Any) -> str:
    shapes = getattr(layer, "_seen_shapes", None)
    if layer.nodes:
        tensors = [t for t in nest.flatten(layer.nodes[0].outputs) if isinstance(t, KerasTensor)]
        shapes = [t.shape.dims for t in tensors]
    elif shapes is None and (built := getattr(layer, "_build_shapes", None)) is not None and not layer.is_model:
        try:
            infer = layer.compute_output_shape
            result = infer(**built) if isinstance(built, dict) else infer(built)
            shapes = [t.shape.dims for t in nest.flatten(keras_tensors(result, "float32"))]
        except (NotImplementedError, TypeError, ValueError):  # a layer of a user without such a method
            return "?"
    if not shapes:
        return "?"
    texts = ["(" + ", ".join(map(str, s)) + ("," if len(s) == 1 else "") + ")" for s in shapes if s is not None]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _rows(model: Any, nested: bool, depth: int = 0) -> list[tuple[str, Any, str]]:
    rows = []
    stack = getattr(model, "_stack", None)
    listed = model.operations if model._network is not None and stack is None else model.layers
    for layer in listed:
        indent = " " * 3 * depth + "└ " if depth else ""
        rows.append((f"{indent}{layer.name} ({_class_label(layer)})", layer, _input_labels(layer, model)))
        if nested and layer.is_model:
            rows += _rows(layer, nested, depth + 1)
    return rows


def _input_labels(layer: Any, model: Any) -> str:
    if model._network is None:
        return ""
    network_nodes = {id(n) for n in model._network.nodes}
    names = [
        f"{t.history[0].name}[{t.history[1]}][{t.history[2]}]"
        for n in layer.nodes
        if id(n) in network_nodes
        for t in n.inputs
        if t.history
    ]
    return ", ".join(names) or "-"


def _is_branching(model: Any) -> bool:
    """Return whether the layers form more than a chain."""
    if model._network is None or getattr(model, "_stack", None) is not None:
        return False
    fed = [n for n in model._network.nodes if n.inputs]
    sources = [id(t.node) for n in fed for t in n.inputs if t.history]
    return (
        any(len(n.inputs) > 1 for n in fed) or len(sources) != len(set(sources)) or len(model._network.flat_inputs) > 1
    )


def _class_label(layer: Any) -> str:
    if isinstance(layer, OperationCall):
        return layer.operation.name
    name: str = layer.op.name if isinstance(layer, OperatorCall) else type(layer).__name__
    return "Functional" if layer.is_model and name == "Model" and layer._network is not None else name


def _columns(branching: bool, show_trainable: bool) -> list[tuple[str, Any]]:
    titles = [("Layer (type)", "left"), ("Output Shape", "left"), ("Param #", "right")]
    titles += [("Connected to", "left")] if branching else []
    return titles + ([("Trainable", "center")] if show_trainable else [])


def _widths(width: int, branching: bool, show_trainable: bool) -> list[int]:
    """Return the column widths. Raises ValueError if the table is too narrow."""
    ends = [0.3, 0.56, 0.74, 1.0] if branching else [0.45, 0.80, 1.0]
    ends = [*(e * 0.9 for e in ends), 1.0] if show_trainable else ends
    column_ends = [int(e * width) for e in ends]
    sizes = [b - a for a, b in zip([0, *column_ends], column_ends)]
    if min(sizes) < 4:
        raise ValueError(f"Insufficient console width to print summary: {width}")
    return sizes


def text_of(model: Any, line_length: int | None, nested: bool, show_trainable: bool, layer_range: Any) -> str:
    """Return the table as text. Raises ValueError for unknown names in layer_range."""
    from rich.console import Console
    from rich.table import Table

    rows = _rows(model, nested)
    if layer_range is not None:
        names = [layer.name for _, layer, _ in rows]
        for name in layer_range:
            if name not in names:
                raise ValueError(f"layer_range names no layer of the model: {name!r}; there are {names}")
        rows = rows[names.index(layer_range[0]) : names.index(layer_range[1]) + 1]
    branching = _is_branching(model)
    buffer = io.StringIO()
    width = line_length or min(
        (108 if branching else 88) + (12 if show_trainable else 0), shutil.get_terminal_size().columns - 4
    )
    console = Console(file=buffer, width=width, force_terminal=False, color_system=None, markup=False, highlight=False)
    table = Table(width=width, show_lines=True)
    for (title, justify), size in zip(_columns(branching, show_trainable), _widths(width, branching, show_trainable)):
        table.add_column(title, justify=justify, width=size, overflow="fold")
    for label, layer, source in rows:
        weights = getattr(layer, "weights", [])
        params = f"{_count(weights)[0]:,}" if getattr(layer, "built", True) else "0 (unbuilt)"
        row = [label, _shape_text(layer), params]
        row += [source] if branching else []
        row += [{True: "Y", False: "N"}[layer.trainable] if weights else "-"] if show_trainable else []
        table.add_row(*row)
    console.print(f'Model: "{model.name}"')
    console.print(table)
    trained, fixed = _count(model.trainable_weights), _count(model.non_trainable_weights)
    state = _count(model.optimizer.variables) if model.optimizer is not None and model.optimizer.built else (0, 0)
    total = trained[0] + fixed[0] + state[0], trained[1] + fixed[1] + state[1]
    console.print(f" Total params: {total[0]:,} ({_format_size(total[1])})")
    console.print(f" Trainable params: {trained[0]:,} ({_format_size(trained[1])})")
    console.print(f" Non-trainable params: {fixed[0]:,} ({_format_size(fixed[1])})")
    if state[0]:
        console.print(f" Optimizer params: {state[0]:,} ({_format_size(state[1])})")
    return buffer.getvalue().rstrip("\n")
