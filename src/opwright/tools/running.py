"""`opwright run | bench`: what a model file gives, and how fast.

Lives here: the two reports and the inputs they take.  Not here: running itself (lite/interpreter).
"""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.progress import track
from rich.table import Table

from .. import lite
from .models import read_model
from .report import BadFile, notes, out, print_json

Detail = dict[str, Any]


def _random_input(detail: Detail, rng: np.random.Generator) -> np.ndarray:
    """Normal numbers; bytes over their range; wider integers 0 or 1, which are indices almost everywhere."""
    dtype: Any = np.dtype(detail["dtype"])
    shape = tuple(detail["shape"])
    if dtype.kind in "OS":
        return np.full(shape, b"text", object)
    if dtype.kind in "iu" and dtype.itemsize == 1:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype.kind in "biu":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _load(file: str) -> np.ndarray:
    """The array of an .npy file. Raises BadFile."""
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, MemoryError) as error:
        raise BadFile(f"{file}: {error}") from error
    except (EOFError, ValueError, zipfile.BadZipFile) as error:  # NumPy would advise to trust it as a pickle
        raise BadFile(f"{file}: no .npy file as np.save writes it") from error
    if not isinstance(array, np.ndarray):
        raise BadFile(f"{file}: several arrays in one file; wanted an .npy file as np.save writes it")
    return array


def _match_inputs(texts: Sequence[str], details: Sequence[Detail], model: Any) -> dict[int, str]:
    """The file of each input by tensor index: NAME=FILE by name, others in order. Raises click.UsageError."""
    by_name = {d["name"]: d["index"] for d in details}
    by_name |= {m.name: m.tensor_index for s in model.signature_defs or [] if not s.subgraph_index for m in s.inputs}
    files: dict[int, str] = {}
    in_order = []
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or (name not in by_name and Path(text).exists()):
            in_order.append(text)
        elif name not in by_name:
            raise click.UsageError(f"the model has no input {name!r}; its inputs: {', '.join(by_name) or 'none'}")
        elif by_name[name] in files:
            raise click.UsageError(f"input {name!r} is given twice")
        else:
            files[by_name[name]] = file
    left = [d["index"] for d in details if d["index"] not in files]
    if len(in_order) > len(left):
        raise click.UsageError(f"{len(texts)} inputs are given, and the model has {len(details)}")
    return files | dict(zip(left, in_order))


def run_model(path: str, inputs: Sequence[str], folder: str | None, seed: int, as_json: bool) -> None:
    """Run once, print the outputs, save them where asked."""
    model = read_model(path)
    interpreter = lite.Interpreter(model_content=model)
    details = interpreter.get_input_details()
    given = {index: _load(file) for index, file in _match_inputs(inputs, details, model).items()}
    for detail in details:
        array, shape = given.get(detail["index"]), np.asarray(detail["shape"]).tolist()
        if array is not None and list(array.shape) != shape:
            notes().print(f"input {detail['name']}: resized from {shape} to {list(array.shape)}")
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        value = given.get(detail["index"])
        if value is None:
            notes().print(f"input {detail['name']}: random, seed {seed}")
            value = _random_input(detail, rng)
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    results = [(d["name"], interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]
    if folder is not None:
        _save(results, Path(folder))
    if as_json:
        print_json([{"name": name, "shape": a.shape, "dtype": a.dtype.name, "values": a} for name, a in results])
        return
    for name, array in results:
        out().print(f"{name}: {array.dtype.name}{list(array.shape)}\n{np.array2string(array, threshold=40)}")


def _save(results: Sequence[tuple[str, np.ndarray]], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for i, (name, array) in enumerate(results):
            target = folder / f"{i}.npy"
            temporary = folder / f".{i}.tmp.npy"
            np.save(temporary, _storable(array), allow_pickle=False)
            os.replace(temporary, target)
            notes().print(f"output {name}: {target}")
    except OSError as error:
        raise BadFile(f"{folder}: {error}") from error


def _storable(array: np.ndarray) -> np.ndarray:
    """As .npy files can hold it: strings as fixed-width bytes, bfloat16 as float32, int4 as int8."""
    if array.dtype.kind == "O":
        return array.astype(bytes)
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.int8 if "int" in array.dtype.name else np.float32)


def bench_model(path: str, runs: int, threads: int, by_operator: bool, as_json: bool) -> None:
    """Time loading, allocation and runs."""
    read_model(path)  # a bad file is told of as such
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
        "load": float(np.median(loads)), "allocate": float(np.median(allocations)),
        "invoke_median": float(np.median(times)), "invoke_fastest": min(times), "invoke_slowest": max(times),
    }  # fmt: skip
    profile = interpreter.profile(runs=max(10, runs // 10)) if by_operator else []
    if as_json:
        print_json({"file": path, "runs": runs, "threads": threads, "seconds": figures, "operators": profile})
        return
    table = Table("", "time", title=path)
    for name, seconds in figures.items():
        table.add_row(name.replace("_", " "), f"{seconds * 1e6:.1f} us")
    out().print(table)
    if profile:
        out().print(_profile_table(profile))


def _profile_table(profile: Sequence[dict[str, Any]]) -> Table:
    table = Table("node", "operator", "median", "share")
    total = sum(p["seconds"] for p in profile) or 1.0
    for p in profile:
        share = f"{100 * p['seconds'] / total:.1f} %"
        table.add_row(str(p["node"]), p["operator"], f"{p['seconds'] * 1e6:.2f} us", share)
    return table
