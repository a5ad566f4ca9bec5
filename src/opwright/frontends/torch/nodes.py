"""Nodes of programs: names of their operators, their places in modules and source, their types.

Lives here: what is read from one node, or one of PyTorch's types. Not here: programs (decomposition.py, importer.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.dtypes import DType, as_dtype
from ...core.errors import UnimplementedError
from .control_flow import CONTROL
from .rules import TABLE, AtenCall

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

NEAREST_FIRST = 'File "([^"]+)", line (\\d+)'

# ---- names ------------------------------------------------------------------------------------------------------


def operator_name(target: Any, custom: Mapping[str, Any] | None = None) -> str:
    """Return the name of a node's operator: of its overload if that has a rule, else of all its overloads.

    An operator in place without a rule of its own has the rule of the operator without the underscore.
    """
    schema = getattr(target, "_schema", None)
    if schema is not None:
        suffix = f".{schema.overload_name}" if schema.overload_name else ""
        names = [schema.name, schema.name[:-1]] if schema.is_mutable and schema.name.endswith("_") else [schema.name]
        for candidate in (name for base in names for name in (base + suffix, base)):
            if (custom and candidate in custom) or TABLE.find(candidate) is not None:
                return str(candidate)
        return str(schema.name + suffix)
    name = getattr(target, "__name__", str(target))
    return f"operator::{name}"


def is_control(target: Any) -> bool:
    """Return whether a node's operator is control flow that the importer executes itself."""
    import torch

    return isinstance(target, torch._ops.HigherOrderOperator) and target.name() in CONTROL


def ordered_operator(node: Node) -> Any | None:
    """Return the operator of a call that PyTorch keeps in order by tokens, such as a check of errors; else None."""
    return node.args[1] if getattr(node.target, "__name__", "") == "with_effects" else None


def is_choice(target: Any) -> bool:
    """Return whether a node chooses one of several results."""
    return getattr(target, "__name__", "") == "getitem"


# ---- places of nodes ---------------------------------------------------------------------------------------------


def module_path(node: Node) -> str:
    """Return the module that a node belongs to and its name, such as "layer3.0.conv2"; the node's without a module."""
    stack = node.meta.get("nn_module_stack")
    path = str(list(stack.values())[-1][0]) if stack else ""
    path = re.sub(r"^(L\['self'\]|L__self__)\.?", "", path)
    return path or str(node.name)


def source_line(node: Node) -> str | None:
    """Return "file:line" of the innermost frame outside of torch that recorded a node."""
    frames = re.findall(NEAREST_FIRST, node.meta.get("stack_trace") or "")
    own = [f for f in frames if f"{os.sep}torch{os.sep}" not in f[0]]
    return f"{own[-1][0]}:{own[-1][1]}" if own else None


# ---- values -----------------------------------------------------------------------------------------------------


def dtype_of(dtype: torch.dtype) -> DType:
    """Return the dtype of the same name. Raises UnimplementedError for one that this package does not have."""
    name = str(dtype).removeprefix("torch.")
    try:
        return as_dtype(name)
    except TypeError as error:
        raise UnimplementedError(what="the catalogue has no such dtype", found=name) from error


def dims_of(val: Any) -> list[int | None]:
    """Return the sizes of a tensor, None for symbolic ones."""
    return [int(d) if isinstance(d, int) else None for d in val.shape]


def attribute(module: Any, path: str) -> Any:
    """Return a submodule, or a tensor of a module, by its path."""
    for part in path.split("."):
        module = getattr(module, part)
    return module


def context_of(node: Node) -> AtenCall:
    """Return the types of a node's results, as its rule needs them."""
    import torch

    val = node.meta.get("val")
    several = val if isinstance(val, (list, tuple)) else (val,)
    kinds: list[DType] = []
    shapes: list[Any] = []
    for value in several:
        if isinstance(value, torch.Tensor):
            kinds.append(dtype_of(value.dtype))
            shapes.append(dims_of(value))
        else:
            kinds.append(dtypes.float32 if isinstance(value, (float, torch.SymFloat)) else dtypes.int64)
            shapes.append([])
    promoted = None
    if kinds and kinds[0] is dtypes.bool and node.args:
        values = [a.meta.get("val") if hasattr(a, "meta") else a for a in node.args[:2]]
        values = [v for v in values if isinstance(v, (torch.Tensor, int, float, torch.SymInt, torch.SymFloat))]
        if len(values) == 2:
            promoted = dtype_of(
                torch.result_type(*(v if isinstance(v, (torch.Tensor, bool, int, float)) else 1 for v in values))
            )
    first = node.args[0].meta.get("val") if node.args and hasattr(node.args[0], "meta") else None
    strides = None
    if isinstance(first, torch.Tensor) and first.layout is torch.strided:
        steps = first.stride()
        if all(isinstance(s, int) for s in (*steps, *first.shape)) and not first.is_contiguous():
            strides = tuple(steps)
    return AtenCall(tuple(kinds), tuple(shapes), promoted, strides)
