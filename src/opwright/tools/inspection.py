"""`opwright inspect`: the contents of a model file, a saved model or a checkpoint.

Lives here: the reports, `read_model`. Not here: reading (lite/format, saved/), where a model runs (compatibility.py),
running it (model_runner.py).
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.table import Table

from .. import lite
from ..core.errors import OpError
from ..core.specs import TensorSpec
from ..lite.format import schema, versions
from ..saved import manifest
from ..saved.checkpoint_files import SUFFIX, CheckpointReader
from ..saved.json_files import read_json
from ..saved.loader import load
from ..saved.object_graph import FUNCTIONS, LoadedFunction, children
from .report import BadFile, out, print_json

if TYPE_CHECKING:
    from ..lite.format.model import Model


def is_saved(path: str) -> bool:
    """Return whether `path` is the folder of a saved model, or a checkpoint's name or index file."""
    return os.path.isdir(path) or path.endswith(SUFFIX) or os.path.isfile(path + SUFFIX)


def inspect_saved(path: str, as_json: bool) -> None:
    """Print the contents of a saved model or checkpoint. Raises BadFile."""
    try:
        contents = _saved_model(path) if os.path.isdir(path) else _checkpoint(path.removesuffix(SUFFIX))
    except (OSError, OpError) as error:
        raise BadFile(f"{path}: {error}") from error
    if as_json:
        print_json(contents)
        return
    console = out()
    console.print(
        f"{path}: {contents['kind']}, format version {contents['version']}, by opwright {contents['producer']}"
    )
    for s in contents.get("signatures", []):
        console.print(f"signature {s['key']}: {_pairs(s['inputs'])} -> {_pairs(s['outputs'])}")
    if contents.get("functions"):
        table = Table("function", "trace")
        for f in contents["functions"]:
            for i, trace in enumerate(f["traces"] or ["(no traces)"]):
                table.add_row("" if i else f["name"], trace)
        console.print(table)
    table = Table("variable", "type", "trainable") if "functions" in contents else Table("value", "type")
    for v in contents["variables"]:
        table.add_row(*[str(x) for x in v.values()])
    console.print(table)
    if contents.get("operators"):
        console.print("operators: " + ", ".join(f"{k} x{n}" if n > 1 else k for k, n in contents["operators"].items()))


def _pairs(types: dict[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in types.items()) or "nothing"


def _saved_model(path: str) -> dict[str, Any]:
    content, _ = manifest.read_manifest(path)
    loaded = load(path)
    signatures = []
    for key, trace in loaded.signatures.items():
        inputs = {n: s.short() for n, s in trace.structured_input_signature[1].items()}
        signatures.append(
            {"key": key, "inputs": inputs, "outputs": {n: s.short() for n, s in trace.structured_outputs.items()}}
        )
    functions: list[dict[str, Any]] = []
    variables: list[dict[str, Any]] = []
    operators: dict[str, int] = {}
    seen: set[int] = set()
    waiting = [("", loaded)]
    for name, current in waiting:
        for key, child in _children(current):
            if id(child) in seen:
                continue
            seen.add(id(child))
            path_of_child = f"{name}.{key}" if name else key
            if isinstance(child, LoadedFunction):
                traces = [_trace_text(t) for t in child.concrete_functions]
                functions.append({"name": path_of_child, "traces": traces})
                for trace in child.concrete_functions:
                    for node in manifest.every_node(trace.optimized_graph):
                        operators[node.op.name] = operators.get(node.op.name, 0) + 1
            elif hasattr(child, "read_array"):
                variables.append(
                    {
                        "name": path_of_child,
                        "type": TensorSpec(child.shape, child.dtype).short(),
                        "trainable": child.trainable,
                    }
                )
            else:
                waiting.append((path_of_child, child))
    return {
        "path": path,
        "kind": "saved model",
        "version": content["version"],
        "producer": content.get("producer"),
        "signatures": signatures,
        "functions": functions,
        "variables": variables,
        "operators": dict(sorted(operators.items())),
    }


def _trace_text(trace: Any) -> str:
    args, kwargs = trace.structured_input_signature
    arguments = [*zip(trace._names, args), *kwargs.items()]
    results = [t.spec.short() for t in trace.outputs]
    shown = ", ".join(f"{n}: {v.short()}" if isinstance(v, TensorSpec) else f"{n}={v!r}" for n, v in arguments)
    return f"({shown}) -> {', '.join(results) or 'nothing'}"


def _children(value: Any) -> list[tuple[str, Any]]:
    return [(k, v) for k, v in children(value, FUNCTIONS).items() if k != "signatures"]


def _checkpoint(prefix: str) -> dict[str, Any]:
    content = read_json(prefix + SUFFIX, "a checkpoint's index")
    reader = CheckpointReader(prefix)
    values = [{"name": n, "type": reader.spec(n).short()} for n in sorted(reader.get_variable_to_shape_map())]
    return {
        "path": prefix,
        "kind": "checkpoint",
        "version": content["version"],
        "producer": content.get("producer"),
        "variables": values,
    }


MIN_NAME_WIDTH = 16  # columns


def is_model(path: str) -> bool:
    """Return whether a path is a .tflite file, by its identifier."""
    try:
        with open(path, "rb") as file:
            return file.read(8)[schema.FILE_IDENTIFIER_AT :] == schema.FILE_IDENTIFIER
    except OSError:
        return False


def _print_tensors(g: dict[str, Any], short: bool, width: int) -> None:
    """Print the table of a subgraph's tensors, or of its inputs and outputs, in lines of at most `width` columns."""
    ends = {*g["inputs"], *g["outputs"]}
    rows = []
    for t in g["tensors"]:
        mark = " (input)" if t["index"] in g["inputs"] else " (output)" if t["index"] in g["outputs"] else ""
        if t["index"] in ends or not short:
            rows.append((f"{t['index']}{mark}", t["name"], t["type"], str(t["shape"]), str(t["bytes"] or "")))
    columns = ("tensor", "name", "type", "shape", "constant bytes")
    others = sum(max(len(row[i]) for row in (columns, *rows)) for i in (0, 2, 3, 4))
    room = max(MIN_NAME_WIDTH, width - others - 3 * len(columns) - 1) if width else 0
    constants = sum(t["bytes"] for t in g["tensors"])
    about = f": {g['operators']} nodes, {len(g['tensors'])} tensors, {constants} bytes of constants" if short else ""
    table = Table(*columns, title=f"subgraph {g['name']}".strip() + about)
    for index, name, *cells in rows:
        table.add_row(index, shorten(name, room), *cells)
    console = out()
    console.print(table, width=max(width, others + room + 3 * len(columns) + 1) if width else None, crop=False)


def shorten(name: str, room: int) -> str:
    """Shorten a name to `room` characters by omitting its middle; 0 returns it unchanged."""
    if not room or len(name) <= room:
        return name
    tail = (room - 3) // 2
    return f"{name[: room - 3 - tail]}...{name[len(name) - tail :]}"


def read_model(path: str) -> Model:
    """Return the verified model of a file. Raises BadFile."""
    try:
        model = lite.Model.read(path)
        model.verify()
        for code in model.operator_codes:
            versions.op_name(code)
    except (OSError, OpError) as error:
        raise BadFile(f"{path}: {error}") from error
    return model


def _operators(model: Any) -> list[dict[str, Any]]:
    """Return an entry for each operator code: name, version, nodes, official versions, minimum run time."""
    counts: Counter[int] = Counter(op.opcode_index for g in model.subgraphs for op in g.operators)
    rows = []
    for i, code in enumerate(model.operator_codes):
        name, custom = versions.op_name(code), code.custom_code
        row = {"operator": custom or name, "custom": bool(custom), "version": int(code.version), "nodes": counts[i]}
        if not custom:
            row["official"] = versions.resolver_range(name)
            row["min_runtime"] = versions.min_runtime(name, code.version)
        rows.append(row)
    return rows


def _subgraph(model: Any, g: Any) -> dict[str, Any]:
    def constant_bytes(tensor: Any) -> int:
        data = model.buffers[tensor.buffer].data
        return 0 if data is None else len(data)

    tensors = [
        {
            "index": i,
            "name": t.name or "",
            "type": schema.TensorType(t.type).name.lower(),
            "shape": list(map(int, t.shape)),
            "bytes": constant_bytes(t),
        }
        for i, t in enumerate(g.tensors)
    ]
    return {
        "name": g.name or "",
        "inputs": list(map(int, g.inputs)),
        "outputs": list(map(int, g.outputs)),
        "operators": len(g.operators),
        "tensors": tensors,
    }


def inspect_model(path: str, as_json: bool, short: bool = False, width: int | None = None) -> None:
    """Print signatures, operators, tensors, metadata.

    short: only inputs and outputs among the tensors. width: columns of a line in tables of tensors, whose names are
    shortened to fit; None for the terminal's, 0 for full names. JSON always has everything. Raises BadFile.
    """
    model = read_model(path)
    operators, subgraphs = _operators(model), [_subgraph(model, g) for g in model.subgraphs]
    size = os.path.getsize(path)
    signatures = [
        {
            "key": s.signature_key,
            "inputs": [m.name or "" for m in s.inputs],
            "outputs": [m.name or "" for m in s.outputs],
        }
        for s in model.signature_defs or []
    ]
    metadata = [m.name or "" for m in model.metadata or []]
    if as_json:
        print_json(
            {
                "file": path,
                "bytes": size,
                "version": model.version,
                "description": model.description,
                "signatures": signatures,
                "operators": operators,
                "subgraphs": subgraphs,
                "metadata": metadata,
            }
        )
        return
    console = out()
    console.print(f"{path}: {size} bytes, schema {model.version}, {model.description or 'no description'}")
    for s in signatures:
        console.print(f"signature {s['key']}: {', '.join(s['inputs'])} -> {', '.join(s['outputs'])}")
    table = Table("operator", "version", "nodes", "needs run time")
    for row in operators:
        runtime = "custom" if row["custom"] else row["min_runtime"] or "?"
        table.add_row(row["operator"], str(row["version"]), str(row["nodes"]), runtime)
    console.print(table)
    for g in subgraphs:
        _print_tensors(g, short, shutil.get_terminal_size().columns if width is None else width)
    if metadata:
        console.print(f"metadata: {', '.join(metadata)}")
