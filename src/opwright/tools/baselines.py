"""Other interpreters that `opwright bench --vs` times on the same inputs, in processes of their own.

Lives here: running them, the words for what they cannot run.  Not here: our own figures, tables (benchmark.py).

The official interpreter comes first. It takes no custom operators but its own from Python; where it lacks one the run
time's CompiledModel is tried, which is given the kernels that run here (lite/litert).
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

RIVALS = {"litert": "ai_edge_litert.interpreter"}
"""The modules of other interpreters, which a process of its own imports where they are installed."""

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
class Timed:
    """What a rival took: seconds of each load, allocation and run; how: by which of its interfaces."""

    load: Sequence[float]
    allocate: Sequence[float]
    runs: Sequence[float]
    how: str


def timed(
    rival: str,
    path: str,
    model: Any,
    interpreter: Any,
    *,
    threads: int,
    warmups: int,
    runs: int,
    loads: int,
    customs: Sequence[str],
) -> Timed:
    """Time a rival on the inputs that our interpreter has. customs: as `custom_operators` takes them.

    raises BadFile where it is not installed or cannot run the model, with the operators that it lacks
    """
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, detail in enumerate(interpreter.get_input_details()):
            files.append(str(Path(folder) / f"{i}.npy"))
            np.save(files[-1], interpreter.get_tensor(detail["index"]))
        asked = {
            "module": RIVALS[rival],
            "model": path,
            "threads": threads,
            "warmups": warmups,
            "runs": runs,
            "inputs": files,
            "loads": loads,
            "customs": list(customs),
            "signature": _signature(model),
        }
        found, said = _one(_INTERPRETER, asked)
        lacks = [n.operator for n in requirements(model) if n.custom and n.operator in said]
        if found is None and lacks:
            names = ", ".join(dict.fromkeys(lacks))
            found, said = _one(_COMPILED_MODEL, asked)
            if found is None:
                raise BadFile(f"{path}: {rival} has no custom operator {names}, and cannot be given it: {said}")
            given = found["native"]
            how = f"CompiledModel, given {names}: {sum(given.values())} of {len(given)} nodes as native code"
            return Timed(found["load"], found["allocate"], found["runs"], how)
    if found is None:
        advice = "; pip install ai-edge-litert" if "ModuleNotFoundError" in said else ""
        raise BadFile(f"{path}: {rival} cannot run it: {said}{advice}")
    return Timed(found["load"], found["allocate"], found["runs"], "Interpreter")


def _signature(model: Any) -> str | None:
    keys = [s.signature_key for s in model.signature_defs or () if s.subgraph_index == 0]
    return keys[0] if keys else None


def _one(script: str, asked: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """What a process found; None and its last word where it failed."""
    command = [sys.executable, "-c", script, json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None, _last_word(done.stderr) or f"it ended with status {done.returncode}"
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def _last_word(stderr: str) -> str:
    """The error that a traceback ends with, on one line."""
    lines = stderr.strip().splitlines()
    begins = [i for i, line in enumerate(lines) if line and not line[0].isspace() and "Error" in line.split(":")[0]]
    return " ".join(" ".join(lines[begins[-1] if begins else -1 :]).split())
