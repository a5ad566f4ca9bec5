"""Signatures: what callers of the file call a function's arguments and results.

Lives here: the names.  Not here: their tables in the file (export.py).
"""

from __future__ import annotations

from typing import Any

from ...core import nest
from ...graph import Graph
from ..ops.module import Signature

DEFAULT_KEY = "serving_default"


def signature_of(concrete: Any, graph: Graph, key: str, number: int) -> Signature:
    """Return the signature of a function whose graph has that number in the module.

    Inputs go by the names of the function's parameters; results by their keys where it returns a dict, else output_0,
    output_1 and so on.
    """
    structure = concrete.structured_outputs
    names = [f"output_{i}" for i in range(len(graph.outputs))]
    if isinstance(structure, dict) and all(isinstance(k, str) for k in structure):
        keys = [str(path[0]) for path, leaf in nest.flatten_with_paths(structure) if leaf is not None]
        if len(keys) == len(names) == len(set(keys)):
            names = keys
    inputs = {value.name: i for i, value in enumerate(graph.inputs)}
    return Signature(key, inputs, {name: i for i, name in enumerate(names)}, number)


def keys_of(functions: list[Any]) -> list[str]:
    """The signature key of each function: the usual one where there is one function, else their names, made unique."""
    if len(functions) == 1:
        return [DEFAULT_KEY]
    keys: list[str] = []
    for function in functions:
        wanted, count = function.name, 0
        while wanted in keys:
            count += 1
            wanted = f"{function.name}_{count}"
        keys.append(wanted)
    return keys
