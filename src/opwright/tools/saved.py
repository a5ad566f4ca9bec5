"""`opwright inspect FOLDER | CHECKPOINT`: what is in a saved model or a checkpoint.

Lives here: the two reports.  Not here: reading (saved/), .tflite files (models.py).
"""

from __future__ import annotations

import os
from typing import Any

from rich.table import Table

from ..core.errors import OpError
from ..core.specs import TensorSpec
from ..saved import manifest
from ..saved.index import SUFFIX, CheckpointReader
from ..saved.loaded import LoadedFunction
from ..saved.loading import load
from .report import BadFile, out, print_json


def is_saved(path: str) -> bool:
    """Whether `path` is the folder of a saved model, or a checkpoint's name or index file."""
    return os.path.isdir(path) or path.endswith(SUFFIX) or os.path.isfile(path + SUFFIX)


def inspect_saved(path: str, as_json: bool) -> None:
    """Print what is there. Raises BadFile."""
    try:
        found = _saved_model(path) if os.path.isdir(path) else _checkpoint(path.removesuffix(SUFFIX))
    except (OSError, OpError) as error:
        raise BadFile(f"{path}: {error}") from error
    if as_json:
        print_json(found)
        return
    console = out()
    console.print(f"{path}: {found['kind']}, format version {found['version']}, by opwright {found['producer']}")
    for s in found.get("signatures", []):
        console.print(f"signature {s['key']}: {_pairs(s['inputs'])} -> {_pairs(s['outputs'])}")
    if found.get("functions"):
        table = Table("function", "trace")
        for f in found["functions"]:
            for i, trace in enumerate(f["traces"] or ["(no traces)"]):
                table.add_row("" if i else f["name"], trace)
        console.print(table)
    table = Table("variable", "type", "trainable") if "functions" in found else Table("value", "type")
    for v in found["variables"]:
        table.add_row(*[str(x) for x in v.values()])
    console.print(table)
    if found.get("operators"):
        console.print("operators: " + ", ".join(f"{k} x{n}" if n > 1 else k for k, n in found["operators"].items()))


def _pairs(types: dict[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in types.items()) or "nothing"


def _saved_model(path: str) -> dict[str, Any]:
    content, _ = manifest.read_manifest(path)
    loaded = load(path)
    signatures = []
    for key, trace in loaded.signatures.items():
        inputs = {n: s.short() for n, s in trace.structured_input_signature[1].items()}
        signatures.append({"key": key, "inputs": inputs,
                           "outputs": {n: s.short() for n, s in trace.structured_outputs.items()}})  # fmt: skip
    functions: list[dict[str, Any]] = []
    variables: list[dict[str, Any]] = []
    operators: dict[str, int] = {}
    seen: set[int] = set()
    waiting = [("", loaded)]
    for name, one in waiting:
        for key, child in _children(one):
            if id(child) in seen:
                continue
            seen.add(id(child))
            below = f"{name}.{key}" if name else key
            if isinstance(child, LoadedFunction):
                traces = [_trace_text(t) for t in child.concrete_functions]
                functions.append({"name": below, "traces": traces})
                for trace in child.concrete_functions:
                    for node in manifest.every_node(trace.optimized_graph):
                        operators[node.op.name] = operators.get(node.op.name, 0) + 1
            elif hasattr(child, "read_array"):
                variables.append({"name": below, "type": TensorSpec(child.shape, child.dtype).short(),
                                  "trainable": child.trainable})  # fmt: skip
            else:
                waiting.append((below, child))
    return {"path": path, "kind": "saved model", "version": content["version"], "producer": content.get("producer"),
            "signatures": signatures, "functions": functions, "variables": variables,
            "operators": dict(sorted(operators.items()))}  # fmt: skip


def _trace_text(trace: Any) -> str:
    args, kwargs = trace.structured_input_signature
    given = [*zip(trace._names, args), *kwargs.items()]
    results = [t.spec.short() for t in trace.outputs]
    shown = ", ".join(f"{n}: {v.short()}" if isinstance(v, TensorSpec) else f"{n}={v!r}" for n, v in given)
    return f"({shown}) -> {', '.join(results) or 'nothing'}"


def _children(value: Any) -> list[tuple[str, Any]]:
    from ..saved.objects import FUNCTIONS, children

    return [(k, v) for k, v in children(value, FUNCTIONS).items() if k != "signatures"]


def _checkpoint(prefix: str) -> dict[str, Any]:
    from ..saved.files import read_json

    content = read_json(prefix + SUFFIX, "a checkpoint's index")
    reader = CheckpointReader(prefix)
    values = [{"name": n, "type": reader.spec(n).short()} for n in sorted(reader.get_variable_to_shape_map())]
    return {"path": prefix, "kind": "checkpoint", "version": content["version"], "producer": content.get("producer"),
            "variables": values}  # fmt: skip
