"""Time other interpreters for `opwright bench --vs`, on the same inputs, in separate processes.

Lives here: running them, errors for models that they cannot run.  Not here: our own figures, tables (benchmark.py).

The official interpreter is tried first. From Python it accepts only its own custom operators; if it lacks one, the run
time's CompiledModel is tried, with the kernels that run here registered (lite/litert).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..lite.format.runtime_requirements import requirements
from .report import BadFile

BASELINES = {"litert": "ai_edge_litert.interpreter"}
"""The modules of other interpreters, imported in a separate process if installed."""

_INTERPRETER = """
import importlib, json, sys, time
import numpy as np
asked = json.loads(sys.argv[1])
peer = importlib.import_module(asked["module"])
seconds = {"load": [], "allocate": [], "runs": []}
for _ in range(asked["loads"]):
    start = time.perf_counter()
    interpreter = peer.Interpreter(model_path=asked["model"], num_threads=asked["threads"])
    middle = time.perf_counter()
    interpreter.allocate_tensors()
    seconds["load"].append(middle - start)
    seconds["allocate"].append(time.perf_counter() - middle)
values = [np.load(file, allow_pickle=True) for file in asked["inputs"]]
details = interpreter.get_input_details()
for detail, value in zip(details, values):
    if list(detail["shape"]) != list(value.shape):
        interpreter.resize_tensor_input(detail["index"], value.shape)
interpreter.allocate_tensors()
for detail, value in zip(details, values):
    interpreter.set_tensor(detail["index"], value)
for i in range(asked["warmups"] + asked["runs"]):
    start = time.perf_counter()
    interpreter.invoke()
    if i >= asked["warmups"]:
        seconds["runs"].append(time.perf_counter() - start)
print(json.dumps(seconds))
"""

_COMPILED_MODEL = """
import json, sys, time
import numpy as np
from opwright.lite import Model
from opwright.lite.litert import CompiledModel
from opwright.tools.custom_arguments import operators_for
asked = json.loads(sys.argv[1])
custom_ops = operators_for(Model.read(asked["model"]), asked["customs"])
seconds = {"load": [], "allocate": [], "runs": []}
values = [np.load(file, allow_pickle=True) for file in asked["inputs"]]
for _ in range(asked["loads"]):
    start = time.perf_counter()
    model = CompiledModel(asked["model"], custom_ops, num_threads=asked["threads"])
    middle = time.perf_counter()
    for i, value in enumerate(values):
        if value.shape != tuple(model.get_input_details(asked["signature"])[i]["shape"]):
            model.resize_input_tensor(i, value.shape, 0, False)
    outputs = model.create_output_buffers(0)
    seconds["load"].append(middle - start)
    seconds["allocate"].append(time.perf_counter() - middle)
inputs = model.create_input_buffers(0)
for buffer, value in zip(inputs, values):
    buffer.write(value)
for i in range(asked["warmups"] + asked["runs"]):
    start = time.perf_counter()
    model.run_by_index(0, inputs, outputs)
    if i >= asked["warmups"]:
        seconds["runs"].append(time.perf_counter() - start)
print(json.dumps(seconds | {"native": model.native_nodes}))
"""


@dataclass(frozen=True)
class BaselineTimes:
    """A baseline's times: seconds of each load, allocation and run; how: the interface used."""

    load: Sequence[float]
    allocate: Sequence[float]
    runs: Sequence[float]
    how: str


def time_baseline(
    baseline: str,
    path: str,
    model: Any,
    interpreter: Any,
    *,
    threads: int,
    warmups: int,
    runs: int,
    loads: int,
    customs: Sequence[str],
) -> BaselineTimes:
    """Time a baseline on the inputs that our interpreter has. customs: as for `custom_operators`.

    raises BadFile if it is not installed or cannot run the model, with the operators that it lacks
    """
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, detail in enumerate(interpreter.get_input_details()):
            files.append(str(Path(folder) / f"{i}.npy"))
            np.save(files[-1], interpreter.get_tensor(detail["index"]))
        request = {
            "module": BASELINES[baseline],
            "model": path,
            "threads": threads,
            "warmups": warmups,
            "runs": runs,
            "inputs": files,
            "loads": loads,
            "customs": list(customs),
            "signature": _signature(model),
        }
        times, message = _run_script(_INTERPRETER, request)
        missing = [n.operator for n in requirements(model) if n.custom and n.operator in message]
        if times is None and missing:
            names = ", ".join(dict.fromkeys(missing))
            times, message = _run_script(_COMPILED_MODEL, request)
            if times is None:
                raise BadFile(f"{path}: {baseline} has no custom operator {names}, and cannot be given it: {message}")
            is_native = times["native"].values()
            how = f"CompiledModel, given {names}: {sum(is_native)} of {len(is_native)} nodes as native code"
            return BaselineTimes(times["load"], times["allocate"], times["runs"], how)
    if times is None:
        advice = "; pip install ai-edge-litert" if "ModuleNotFoundError" in message else ""
        raise BadFile(f"{path}: {baseline} cannot run it: {message}{advice}")
    return BaselineTimes(times["load"], times["allocate"], times["runs"], "Interpreter")


def _signature(model: Any) -> str | None:
    keys = [s.signature_key for s in model.signature_defs or () if s.subgraph_index == 0]
    return keys[0] if keys else None


def _run_script(script: str, request: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the result of a script; None and its error message if it failed."""
    command = [sys.executable, "-c", script, json.dumps(request)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        return None, _last_error(process.stderr) or f"it ended with status {process.returncode}"
    return json.loads(process.stdout.strip().splitlines()[-1]), ""


def _last_error(stderr: str) -> str:
    """Return the error at the end of a traceback, on one line."""
    lines = stderr.strip().splitlines()
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace() and "Error" in line.split(":")[0]]
    return " ".join(" ".join(lines[starts[-1] if starts else -1 :]).split())
