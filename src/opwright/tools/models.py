"""`opwright inspect | check | run | bench`: what is in a model file, whether it runs, what it gives, how fast.

Lives here: the four reports.  Not here: reading (lite/format), running (lite/interpreter).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from rich.table import Table

from .. import lite
from ..core.errors import InvalidArgumentError, NotFoundError
from ..lite.format import schema, versions
from .report import notes, out, print_json


def _read(path: str) -> Any:
    """The verified model of a file. Raises FileNotFoundError, DataLossError, InvalidArgumentError."""
    model = lite.Model.read(path)
    model.verify()
    return model


def _type_name(code: int) -> str:
    return schema.TensorType(code).name.lower()


def _operators(model: Any) -> list[dict[str, Any]]:
    """One entry for each operator code: name, version, nodes, range of the official resolver, minimum run time."""
    counts: Counter[int] = Counter(op.opcode_index for g in model.subgraphs for op in g.operators)
    rows = []
    for i, code in enumerate(model.operator_codes):
        name = versions.op_name(code)
        custom = code.custom_code
        found = {"operator": custom or name, "custom": bool(custom), "version": code.version, "nodes": counts[i]}
        if not custom:
            found["official"] = versions.resolver_range(name)
            found["min_runtime"] = versions.min_runtime(name, code.version)
        rows.append(found)
    return rows


def inspect_model(path: str, as_json: bool) -> None:
    """Print signatures, operators, tensors, metadata."""
    model = _read(path)
    operators = _operators(model)
    graphs = []
    for g in model.subgraphs:
        tensors = [
            {"index": i, "name": t.name, "type": _type_name(t.type), "shape": list(map(int, t.shape)),
             "bytes": 0 if model.buffers[t.buffer].data is None else len(model.buffers[t.buffer].data)}
            for i, t in enumerate(g.tensors)
        ]  # fmt: skip
        graphs.append({"name": g.name, "inputs": list(map(int, g.inputs)), "outputs": list(map(int, g.outputs)),
                       "operators": len(g.operators), "tensors": tensors})  # fmt: skip
    signatures = [
        {"key": s.signature_key, "inputs": [m.name for m in s.inputs], "outputs": [m.name for m in s.outputs]}
        for s in model.signature_defs or []
    ]
    metadata = [m.name for m in model.metadata or []]
    if as_json:
        return print_json({"file": path, "bytes": os.path.getsize(path), "version": model.version,
                           "description": model.description, "signatures": signatures, "operators": operators,
                           "subgraphs": graphs, "metadata": metadata})  # fmt: skip
    console = out()
    console.print(f"{path}: {os.path.getsize(path)} bytes, schema {model.version}, {model.description or 'no description'}",
                  highlight=False)  # fmt: skip
    for s in signatures:
        console.print(f"signature {s['key']}: {', '.join(s['inputs'])} -> {', '.join(s['outputs'])}", highlight=False)
    table = Table("operator", "version", "nodes", "needs run time")
    for row in operators:
        table.add_row(row["operator"], str(row["version"]), str(row["nodes"]), "custom" if row["custom"] else row["min_runtime"] or "?")
    console.print(table)
    for g in graphs:
        table = Table("tensor", "name", "type", "shape", "constant bytes", title=f"sub-graph {g['name'] or ''}".strip())
        for t in g["tensors"]:
            mark = " (input)" if t["index"] in g["inputs"] else " (output)" if t["index"] in g["outputs"] else ""
            table.add_row(str(t["index"]) + mark, t["name"], t["type"], str(t["shape"]), str(t["bytes"] or ""))
        console.print(table)
    if metadata:
        console.print(f"metadata: {', '.join(metadata)}", highlight=False)
    return None


def check_model(path: str, runtime: str | None, as_json: bool) -> bool:
    """Print what the model needs; True if it runs here (custom operators apart) and on `runtime` if given."""
    model = _read(path)
    operators = _operators(model)
    resolver = lite.BuiltinOpResolver()
    problems = []
    for row in operators:
        if row["custom"]:
            row["here"] = "needs your definition"
            problems.append(f"custom operator {row['operator']}: pass it as custom_ops=[{row['operator']}]")
        else:
            row["here"] = "yes" if resolver.find_op(row["operator"], row["version"]) is not None else "no"
            if row["here"] == "no":
                problems.append(f"{row['operator']} version {row['version']} is not in this interpreter")
    unresolved = [row for row in operators if row["here"] == "no"]
    minimum = versions.min_runtime_of_model(model)
    ok = not unresolved
    if runtime is not None:
        late = [r for r in operators if not r["custom"] and r["min_runtime"]
                and versions.runtime_key(r["min_runtime"]) > versions.runtime_key(runtime)]  # fmt: skip
        for row in late:
            node = _first_node(model, row)
            problems.append(f"needs {row['min_runtime']}; {runtime} stops at {row['operator']} version {row['version']}, node {node}")
        ok = ok and not late
    if as_json:
        print_json({"file": path, "verified": True, "operators": operators, "min_runtime": minimum, "problems": problems, "ok": ok})
        return ok
    table = Table("operator", "version", "nodes", "here", "official versions", "needs run time")
    for row in operators:
        official = row.get("official")
        table.add_row(row["operator"], str(row["version"]), str(row["nodes"]), row["here"],
                      "custom" if row["custom"] else f"{official[0]}..{official[1]}" if official else "none",
                      row.get("min_runtime") or "")  # fmt: skip
    console = out()
    console.print(f"{path}: verified; needs run time {minimum or 'any'}", highlight=False)
    console.print(table)
    for problem in problems:
        console.print(f"- {problem}", markup=False, highlight=False)
    return ok


def _first_node(model: Any, row: dict[str, Any]) -> int | str:
    for g in model.subgraphs:
        for i, op in enumerate(g.operators):
            code = model.operator_codes[op.opcode_index]
            if versions.op_name(code) == row["operator"] and code.version == row["version"]:
                return i
    return "none"


def _random_input(detail: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    dtype, shape = np.dtype(detail["dtype"]), tuple(detail["shape"])
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 10, shape).astype(dtype)
    if dtype.kind in "OS":
        return np.full(shape, b"text", object)
    return rng.standard_normal(shape).astype(dtype)


def _interpreter(path: str, threads: int = 1) -> Any:
    if not Path(path).exists():
        raise FileNotFoundError(f"Could not open '{path}'.")
    interpreter = lite.Interpreter(model_path=path, num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


def _load_input(text: str, details: list[dict[str, Any]], order: int) -> tuple[dict[str, Any], np.ndarray]:
    name, equals, file = text.partition("=")
    if not equals:
        file = name
        if order >= len(details):
            raise InvalidArgumentError(what=f"input {order} is one too many", wanted=f"at most {len(details)} inputs")
        detail = details[order]
    else:
        matches = [d for d in details if name in (d["name"], d["name"].partition(":")[0])]
        if not matches:
            raise NotFoundError(what=f"the model has no input {name!r}", wanted=f"one of {', '.join(d['name'] for d in details)}")
        detail = matches[0]
    try:
        return detail, np.load(file, allow_pickle=False)
    except ValueError as error:
        raise InvalidArgumentError(what=f"{file}: {error}", wanted="a .npy file as np.save writes it") from None


def run_model(path: str, inputs: Sequence[str], folder: str | None, seed: int, as_json: bool) -> None:
    """Run once, print the outputs, save them where asked."""
    interpreter = _interpreter(path)
    details = interpreter.get_input_details()
    rng = np.random.default_rng(seed)
    given: dict[int, np.ndarray] = {}
    for i, text in enumerate(inputs):
        detail, array = _load_input(text, details, i)
        given[detail["index"]] = array
        if array.shape != tuple(detail["shape"]):
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        value = given.get(detail["index"])
        if value is None:
            notes().print(f"input {detail['name']}: random, seed {seed}")
            value = _random_input(detail, rng)
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    results = []
    for i, detail in enumerate(interpreter.get_output_details()):
        array = interpreter.get_tensor(detail["index"])
        results.append((detail["name"], array))
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            target = Path(folder) / f"{i}.npy"
            temporary = target.with_suffix(".tmp.npy")
            np.save(temporary, array)
            os.replace(temporary, target)
            notes().print(f"output {detail['name']}: {target}")
    if as_json:
        return print_json({name: {"shape": list(a.shape), "dtype": str(a.dtype), "values": a.tolist()} for name, a in results})
    for name, array in results:
        out().print(f"{name}: {array.dtype}{list(array.shape)}\n{np.array2string(array, threshold=40)}", markup=False, highlight=False)
    return None


def bench_model(path: str, runs: int, threads: int, by_operator: bool, as_json: bool) -> None:
    """Time loading, allocation and runs."""
    loads, allocations = [], []
    for _ in range(5):
        start = time.perf_counter()
        interpreter = lite.Interpreter(model_path=path, num_threads=threads)
        middle = time.perf_counter()
        interpreter.allocate_tensors()
        loads.append(middle - start)
        allocations.append(time.perf_counter() - middle)
    rng = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], _random_input(detail, rng))
    for _ in range(max(3, runs // 20)):
        interpreter.invoke()
    times = []
    for _ in track(range(runs), "running", console=notes(), transient=True, disable=not notes().is_terminal):
        start = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - start)
    figures = {
        "load": float(np.median(loads)), "allocate": float(np.median(allocations)), "invoke_median": float(np.median(times)),
        "invoke_fastest": min(times), "invoke_slowest": max(times), "runs": runs,
    }  # fmt: skip
    profile = interpreter.profile(runs=max(10, runs // 10)) if by_operator else []
    if as_json:
        return print_json({"file": path, "seconds": figures, "operators": profile})
    table = Table("", "time", title=path)
    for name, seconds in figures.items():
        if name != "runs":
            table.add_row(name.replace("_", " "), f"{seconds * 1e6:.1f} us")
    out().print(table)
    if profile:
        table = Table("node", "operator", "median", "share")
        total = sum(p["seconds"] for p in profile) or 1.0
        for p in profile:
            table.add_row(str(p["node"]), p["operator"], f"{p['seconds'] * 1e6:.2f} us", f"{100 * p['seconds'] / total:.1f} %")
        out().print(table)
    return None


