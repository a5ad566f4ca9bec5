"""`opwright inspect`: what is in a model file.

Lives here: the report, `read_model`.  Not here: reading (lite/format), where it runs (checking.py), running it
(running.py).
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from rich.table import Table

from .. import lite
from ..core.errors import OpError
from ..lite.format import schema, versions
from .report import BadFile, out, print_json


def read_model(path: str) -> Any:
    """The verified model of a file. Raises BadFile."""
    try:
        model = lite.Model.read(path)
        model.verify()
        for code in model.operator_codes:
            versions.op_name(code)
    except (OSError, OpError) as error:
        raise BadFile(f"{path}: {error}") from error
    return model


def _operators(model: Any) -> list[dict[str, Any]]:
    """One entry for each operator code: name, version, nodes, range of the official resolver, minimum run time."""
    counts: Counter[int] = Counter(op.opcode_index for g in model.subgraphs for op in g.operators)
    rows = []
    for i, code in enumerate(model.operator_codes):
        name, custom = versions.op_name(code), code.custom_code
        found = {"operator": custom or name, "custom": bool(custom), "version": int(code.version), "nodes": counts[i]}
        if not custom:
            found["official"] = versions.resolver_range(name)
            found["min_runtime"] = versions.min_runtime(name, code.version)
        rows.append(found)
    return rows


def _subgraph(model: Any, g: Any) -> dict[str, Any]:
    def constant_bytes(tensor: Any) -> int:
        data = model.buffers[tensor.buffer].data
        return 0 if data is None else len(data)

    tensors = [
        {"index": i, "name": t.name or "", "type": schema.TensorType(t.type).name.lower(),
         "shape": list(map(int, t.shape)), "bytes": constant_bytes(t)}
        for i, t in enumerate(g.tensors)
    ]  # fmt: skip
    return {"name": g.name or "", "inputs": list(map(int, g.inputs)), "outputs": list(map(int, g.outputs)),
            "operators": len(g.operators), "tensors": tensors}  # fmt: skip


def inspect_model(path: str, as_json: bool) -> None:
    """Print signatures, operators, tensors, metadata."""
    model = read_model(path)
    operators, subgraphs = _operators(model), [_subgraph(model, g) for g in model.subgraphs]
    size = os.path.getsize(path)
    signatures = [
        {"key": s.signature_key, "inputs": [m.name or "" for m in s.inputs],
         "outputs": [m.name or "" for m in s.outputs]}
        for s in model.signature_defs or []
    ]
    metadata = [m.name or "" for m in model.metadata or []]
    if as_json:
        print_json({"file": path, "bytes": size, "version": model.version, "description": model.description,
                    "signatures": signatures, "operators": operators, "subgraphs": subgraphs,
                    "metadata": metadata})  # fmt: skip
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
        table = Table("tensor", "name", "type", "shape", "constant bytes", title=f"subgraph {g['name']}".strip())
        for t in g["tensors"]:
            mark = " (input)" if t["index"] in g["inputs"] else " (output)" if t["index"] in g["outputs"] else ""
            table.add_row(f"{t['index']}{mark}", t["name"], t["type"], str(t["shape"]), str(t["bytes"] or ""))
        console.print(table)
    if metadata:
        console.print(f"metadata: {', '.join(metadata)}")
