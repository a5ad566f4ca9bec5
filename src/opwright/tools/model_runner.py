"""`opwright run`: run a model file and print its outputs; inputs for `opwright bench` too.

Lives here: the report, inputs from files and random ones.  Not here: the interpreter (lite/interpreter).
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import lite
from ..core.files import replacing
from .custom_arguments import operators_for
from .inspection import read_model
from .report import BadFile, notes, out, print_json

Detail = dict[str, Any]


def random_input(detail: Detail, rng: np.random.Generator) -> np.ndarray:
    """Return normal numbers; bytes over their range; wider integers 0 or 1, valid as indices almost everywhere."""
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
    """Return the array of an .npy file. Raises BadFile."""
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, MemoryError) as error:
        raise BadFile(f"{file}: {error}") from error
    except (EOFError, ValueError, zipfile.BadZipFile) as error:  # NumPy's message would suggest to allow pickles
        raise BadFile(f"{file}: no .npy file as np.save writes it") from error
    if not isinstance(array, np.ndarray):
        raise BadFile(f"{file}: several arrays in one file; wanted an .npy file as np.save writes it")
    return array


def _match_inputs(texts: Sequence[str], details: Sequence[Detail], model: Any) -> dict[int, str]:
    """Map tensor indices to inputs: NAME=WHAT by name, others in order. Raises click.UsageError."""
    by_name = {d["name"]: d["index"] for d in details}
    by_name |= {m.name: m.tensor_index for s in model.signature_defs or [] if not s.subgraph_index for m in s.inputs}
    by_index: dict[int, str] = {}
    in_order = []
    for text in texts:
        name, equals, what = text.partition("=")
        if not equals or (name not in by_name and Path(text).exists()):
            in_order.append(text)
        elif name not in by_name:
            raise click.UsageError(f"the model has no input {name!r}; its inputs: {', '.join(by_name) or 'none'}")
        elif by_name[name] in by_index:
            raise click.UsageError(f"input {name!r} is given twice")
        else:
            by_index[by_name[name]] = what
    left = [d["index"] for d in details if d["index"] not in by_index]
    if len(in_order) > len(left):
        raise click.UsageError(f"{len(texts)} inputs are given, and the model has {len(details)}")
    return by_index | dict(zip(left, in_order))


def feed(
    interpreter: lite.Interpreter, model: Any, inputs: Sequence[str], seed: int, shapes: Sequence[str] = ()
) -> None:
    """Set every input to the contents of its file, else to random elements, and allocate tensors.

    inputs: [NAME=]FILE.npy; shapes: [NAME=]SIZES, such as x=1,224,224,3, for those without a file. raises BadFile,
    click.UsageError
    """
    details = interpreter.get_input_details()
    given = {index: _load(file) for index, file in _match_inputs(inputs, details, model).items()}
    sizes = {index: sizes_of(text) for index, text in _match_inputs(shapes, details, model).items()}
    for detail in details:
        array, shape = given.get(detail["index"]), np.asarray(detail["shape"]).tolist()
        wanted = sizes.get(detail["index"], shape) if array is None else list(array.shape)
        if wanted != shape:
            notes().print(f"input {detail['name']}: resized from {shape} to {wanted}")
            interpreter.resize_tensor_input(detail["index"], wanted)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        value = given.get(detail["index"])
        if value is None:
            notes().print(f"input {detail['name']}: random, seed {seed}")
            value = random_input(detail, rng)
        interpreter.set_tensor(detail["index"], value)


def sizes_of(text: str) -> list[int]:
    """Parse 1,224,224,3; the empty text is a scalar. Raises click.UsageError."""
    try:
        sizes = [int(size) for size in text.split(",")] if text else []
        if any(size < 0 for size in sizes):
            raise ValueError(text)
        return sizes
    except ValueError:
        raise click.UsageError(f"{text!r} is no shape such as 1,224,224,3") from None


def run_model(
    path: str, inputs: Sequence[str], folder: str | None, seed: int, customs: Sequence[str], as_json: bool
) -> None:
    """Run once, print the outputs, save them if requested."""
    model = read_model(path)
    interpreter = lite.Interpreter(model_content=model, custom_ops=operators_for(model, customs))
    feed(interpreter, model, inputs, seed)
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
            with replacing(target) as file:
                np.save(file, _storable(array), allow_pickle=False)
            notes().print(f"output {name}: {target}")
    except OSError as error:
        raise BadFile(f"{folder}: {error}") from error


def _storable(array: np.ndarray) -> np.ndarray:
    """Convert to a dtype of .npy files: strings to fixed-width bytes, bfloat16 to float32, int4 to int8."""
    if array.dtype.kind == "O":
        return array.astype(bytes)
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.int8 if "int" in array.dtype.name else np.float32)
