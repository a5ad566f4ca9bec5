"""Weights in files of their own: a model may name them, and this version reads none.

Lives here: the error that says so.  Not here: the tables that name them (objects.py), their checks (verify.py).
"""

from __future__ import annotations

from typing import Any

from opwright.core.errors import UnimplementedError


def refuse_external(model: Any) -> None:
    """Raises UnimplementedError for the first tensor whose data is in another file."""
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            if tensor.external_buffer:
                raise refusal(model, tensor)


def refusal(model: Any, tensor: Any) -> UnimplementedError:
    """The error for a tensor whose data is asked for and lies in another file."""
    buffer = next((b for b in model.external_buffers if b.id == tensor.external_buffer), None)
    found = f"external buffer {tensor.external_buffer}"
    if buffer is not None:
        groups = model.external_buffer_groups
        group = groups[buffer.group].name if buffer.group < len(groups) else None
        found += f" of group {group!r}, {buffer.length} bytes at offset {buffer.offset}"
        if buffer.packing:
            found += f", packed as {buffer.packing!r}"
    return UnimplementedError(
        what=f"the data of tensor {tensor.name or ''!r} is in another file, which this version does not read",
        found=found,
        wanted="data in the buffers of the model",
        do="convert the model with its weights inside",
    )
