"""`opwright run`: run a model file and print its outputs; inputs and custom operators of models, for other commands.

Lives here: the report, inputs from files and random ones; custom operators and patterns named on the command line:
`--custom FILE.py`, `MODULE[:NAME]`, a library in C; `--pattern FILE.py`, `MODULE[:NAME]`.
Not here: the interpreter (lite/interpreter), running a Python file (catalogue.py), loading a library (lite/native),
operators of installed packages, which need not be named (ops/registry.py).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from .. import lite
from ..aot.model_runs import random_input
from ..core.errors import OpError
from ..core.files import replacing
from ..distribute.sinks import storable
from ..lite.resolver import default_resolver, with_customs
from ..ops import registry
from ..ops.definition import Operator
from .array_files import read_array
from .catalogue import names_in, operators_in
from .inspection import read_model
from .report import BadFile, notes, out, print_json

if TYPE_CHECKING:
    pass

LIBRARY = re.compile(r"(?P<path>.+?\.(so(\.[0-9]+)*|dylib|dll))(:(?P<names>.*))?")
MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ")  # shared libraries on Linux, macOS and Windows


def custom_operators(texts: Sequence[str]) -> list[Any]:
    """Return custom_ops for an interpreter, from each text: the operators of a Python file; the one (or all) that
    `module:Name` (or `module`) names; the registrations of a library, or the ones named by `lib.so:Name=Entry,...`.

    raises BadFile for an invalid argument
    """
    return [op for text in texts for op in _operators_named(text)]


def operators_for(model: Any, texts: Sequence[str]) -> list[Any]:
    """Return the custom_ops that a model needs: those named, and the catalogue's for custom operators that are
    otherwise unresolved. Raises BadFile as custom_operators.
    """
    named = custom_operators(texts)
    resolver = with_customs(default_resolver(), named)
    used = {(code.custom_code, int(code.version)) for code in model.operator_codes if code.custom_code}
    missing = sorted({name for name, version in used if resolver.find_custom(name, version) is None})
    missing = [name for name in missing if not resolver.custom_versions(name)]
    return [*named, *(found for name in missing if (found := in_catalogue(name)) is not None)]


def in_catalogue(name: str) -> Operator | None:
    """Return the catalogue's operator of that name, if it can run by itself, else None."""
    operator = registry.catalogue().get(name)
    return operator if operator is not None and (operator.compute_rule is not None or operator.kernels) else None


def _operators_named(text: str) -> list[Any]:
    library = LIBRARY.fullmatch(text)
    if library or _is_library(text):
        return [_load_library(text, library["path"] if library else text, (library and library["names"]) or "")]
    if text.endswith(".py") or os.path.sep in text:
        return operators_in(text)
    module, name, names = _module(text, "--custom")
    candidates = [names.get(name)] if name else list(names.values())
    operators = [op for op in candidates if isinstance(op, Operator)]
    if not operators and name and isinstance(candidates[0], Mapping | lite.OpResolver):
        return candidates
    if not operators:
        raise BadFile(f"--custom {text}: {module} has no operator {name or 'made by @ow.operator'}")
    return list(dict.fromkeys(operators))


def patterns_of(texts: Sequence[str]) -> list[Any]:
    """Return the patterns that each text names: all of a Python file or of a `module`, or the one of `module:name`.

    raises BadFile for an invalid argument
    """
    patterns: list[Any] = []
    for text in texts:
        if text.endswith(".py") or os.path.sep in text:
            name, names = "", names_in(text)
        else:
            _, name, names = _module(text, "--pattern")
        candidates = [names.get(name)] if name else names.values()
        selected = [item for item in candidates if isinstance(item, lite.Pattern)]
        if not selected:
            raise BadFile(f"--pattern {text}: no pattern {name or 'made by @lite.pattern'}")
        patterns += selected
    return list(dict.fromkeys(patterns))


def imported_module(text: str, option: str) -> Any:
    """Return a module, or the names of a Python file as one. Raises BadFile if it cannot be imported."""
    if text.endswith(".py") or os.path.sep in text:
        return types.SimpleNamespace(**names_in(text))
    module, _, _ = _module(text, option)
    return sys.modules[module]


def _module(text: str, option: str) -> tuple[str, str, dict[str, Any]]:
    """Return the module and name of `module[:name]`, and the module's contents. Raises BadFile if the import fails."""
    module, _, name = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m does
    try:
        return module, name, dict(vars(importlib.import_module(module)))
    except (Exception, SystemExit) as error:  # the user's program may raise any error
        raise BadFile(f"{option} {text}: {type(error).__name__}: {error}") from error


def _is_library(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4).startswith(MAGIC)
    except OSError:
        return False


def _load_library(text: str, path: str, names: str) -> object:
    """Return the registrations of a library by name. names: `Name=Entry,...`, or empty for all."""
    pairs = [part.partition("=") for part in names.split(",") if part]
    if any(not name or not entry for name, _, entry in pairs):
        raise BadFile(f"--custom {text}: wanted {path}:Name=EntryPoint,...")
    entries = {name: entry for name, _, entry in pairs} or None
    try:
        return lite.load_custom_ops(path, entries)
    except (OSError, OpError) as error:
        raise BadFile(f"--custom {text}: {error}") from error


Detail = dict[str, Any]


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
    arrays = {index: read_array(file) for index, file in _match_inputs(inputs, details, model).items()}
    sizes = {index: sizes_of(text) for index, text in _match_inputs(shapes, details, model).items()}
    for detail in details:
        array, shape = arrays.get(detail["index"]), np.asarray(detail["shape"]).tolist()
        wanted = sizes.get(detail["index"], shape) if array is None else list(array.shape)
        if wanted != shape:
            notes().print(f"input {detail['name']}: resized from {shape} to {wanted}")
            interpreter.resize_tensor_input(detail["index"], wanted)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        value = arrays.get(detail["index"])
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
        raise click.UsageError(f"{text!r} is not a shape such as 1,224,224,3") from None


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
                np.save(file, storable(array), allow_pickle=False)
            notes().print(f"output {name}: {target}")
    except OSError as error:
        raise BadFile(f"{folder}: {error}") from error
