"""`opwright convert`: convert a saved model to a .tflite file; `opwright op export`: write an operator as C source.

Lives here: settings from the command line, samples from a file, parsing of attribute values, the report. Not here: the
converter (lite/convert), the C (lite/export), operators named on the command line (custom_arguments.py).
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import click
import numpy as np
from rich.table import Table

from .. import lite
from ..core import dtypes, introspection
from ..core.errors import InvalidArgumentError, OpError
from ..lite.export.c_export import export_c
from ..lite.format import versions
from ..lite.format.runtime_requirements import requirements
from ..ops import registry
from ..ops.definition import Operator
from .custom_arguments import custom_operators, patterns_of
from .inspection import is_model
from .report import BadFile, notes, out, print_json, write_file


def export_operator(
    name: str, folder: str, customs: Sequence[str], api: str, attrs: Sequence[str], as_json: bool
) -> None:
    """Write the files, print their names. Raises BadFile for an invalid operator or file, OpError as export_c."""
    operator = _find_operator(name, customs)
    try:
        files = export_c(operator, folder, api=api, attrs=_values(attrs))
    except OSError as error:
        raise BadFile(f"{error.filename or folder} cannot be written: {error.strerror or error}") from error
    if as_json:
        print_json({"operator": operator.name, "version": operator.version, "api": api, "files": list(map(str, files))})
        return
    for file in files:
        out().print(str(file))
    notes().print(f"{operator.name} version {operator.version} as C; README.md says how to build and register it")


def _find_operator(name: str, customs: Sequence[str]) -> Any:
    operators = [op for op in custom_operators(customs) if isinstance(op, Operator)]
    matches = [op for op in operators if op.name == name]
    if matches:
        return matches[-1]
    if customs and name not in registry.users():
        there = ", ".join(op.name for op in operators) or "none"
        raise BadFile(f"no operator {name!r} in {', '.join(customs)}; there are {there}")
    try:
        return registry.get(name)
    except KeyError as error:
        raise BadFile(str(error.args[0])) from None


def _values(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `name=value` with Python literals; other words are text. Repeated names form a list."""
    result: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"wanted NAME=VALUE, found {text!r}", param_hint="--attr")
        try:
            result.setdefault(name, []).append(introspection.literal(value))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            result.setdefault(name, []).append(value)
    return dict(result)


_INT8 = lite.OpsSet.TFLITE_BUILTINS_INT8
_INT16 = lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
_FLOAT = lite.OpsSet.TFLITE_BUILTINS
# name: (operator sets, types of weights, whether samples are needed)
QUANTIZE: dict[str, tuple[list[Any], list[Any], bool]] = {
    "float16": ([_FLOAT], [dtypes.float16], False),
    "dynamic": ([_FLOAT], [], False),
    "int8": ([_FLOAT], [], True),
    "int8-only": ([_INT8], [], True),
    "int16x8": ([_INT16, _FLOAT], [], True),
}


def convert_saved(
    folder: str,
    output: str,
    *,
    signatures: Sequence[str],
    runtime: str | None,
    customs: bool,
    flex: bool,
    patterns: Sequence[str],
    quantize: str | None,
    data: str | None,
    io: str,
    as_json: bool,
) -> None:
    """Write the file and print its contents. Raises BadFile for invalid files, OpError from the converter."""
    if is_model(folder):
        raise BadFile(
            f"{folder} is a .tflite file already\n  wanted  the folder of a saved model\n  try     "
            "opwright inspect, check, run or bench for this file; to quantise it, convert its saved model "
            "again with --quantize"
        )
    chosen = patterns_of(patterns)  # first: the file may define operators of the saved model
    try:
        converter = lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(signatures) or None)
    except (OSError, OpError) as error:
        raise BadFile(f"{folder}: {error}") from error
    except ValueError as error:  # no such signature
        raise InvalidArgumentError(what=str(error)) from None
    converter.target_spec.runtime = runtime
    converter.allow_custom_ops = customs
    converter.patterns = chosen
    if quantize is not None:
        sets, types, needed = QUANTIZE[quantize]
        converter.optimizations = [lite.Optimize.DEFAULT]
        converter.target_spec.supported_ops, converter.target_spec.supported_types = [*sets], [*types]
        if needed:
            samples = _samples(str(data), converter)
            converter.representative_dataset = lambda: samples
        if io != "float32":
            converter.inference_input_type = converter.inference_output_type = dtypes.as_dtype(io)
    if flex:
        converter.target_spec.supported_ops.append(lite.OpsSet.SELECT_TF_OPS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pattern .* was not found", RuntimeWarning)  # reported below
        content = converter.convert()
    write_file(output, content)
    report_file(output, content, as_json, converter.patterns_found)


def _samples(path: str, converter: Any) -> list[dict[str, np.ndarray]]:
    """Return inputs by name, one dict per sample, from a .npz file with an array for each input.

    An array of the input's own rank is split along its first axis; one of rank + 1 is a list of inputs. raises BadFile,
    InvalidArgumentError if the model has several signatures
    """
    if len(converter.functions) != 1:
        raise InvalidArgumentError(
            what="--data is for one signature",
            found=", ".join(converter.signature_keys),
            do="choose one by --signature",
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, AttributeError) as error:
        raise BadFile(f"{path}: no .npz file of samples: {error}") from error
    (function,) = converter.functions
    shapes = {v.name: v.spec.shape for v in function.graph.inputs[: len(function.tensor_specs)]}
    if arrays.keys() != shapes.keys():
        raise BadFile(
            f"{path}: found arrays {', '.join(arrays) or 'none'}; wanted one for each input: {', '.join(shapes)}"
        )
    parts = {name: _split_samples(array, shapes[name], f"{path}: {name}") for name, array in arrays.items()}
    if len({len(items) for items in parts.values()}) != 1 or not all(parts.values()):
        counts = ", ".join(f"{name} {len(items)}" for name, items in parts.items())
        raise BadFile(f"{path}: wanted as many samples of each input, one at least; found {counts}")
    return [dict(zip(parts, sample)) for sample in zip(*parts.values())]


def _split_samples(array: np.ndarray, shape: Any, what: str) -> list[np.ndarray]:
    if shape.rank is None or array.ndim == shape.rank + 1:
        return list(array)
    if array.ndim != shape.rank or not array.ndim:
        raise BadFile(f"{what}: found an array of shape {list(array.shape)}; the input has shape {shape}")
    size = shape.dims[0] or 1
    return [array[i : i + size] for i in range(0, len(array) - size + 1, size)]


def report_file(path: str, content: bytes, as_json: bool, patterns: Sequence[Any] = ()) -> None:
    """Print the contents of a written file. patterns: the matches of each."""
    model = lite.Model.read(content)
    counts: dict[tuple[str, int], int] = {}
    for need in requirements(model):
        counts[need.operator, need.version] = counts.get((need.operator, need.version), 0) + 1
    minimum = versions.min_runtime_of_model(model)
    keys = [s.signature_key for s in model.signature_defs]
    if as_json:
        rows = [{"operator": name, "version": version, "nodes": n} for (name, version), n in counts.items()]
        document = {"file": path, "bytes": len(content), "signatures": keys, "min_runtime": minimum, "operators": rows}
        print_json({**document, "patterns": [dataclasses.asdict(p) for p in patterns]} if patterns else document)
        return
    table = Table("operator", "version", "nodes")
    for (name, version), count in counts.items():
        table.add_row(name, str(version), str(count))
    out().print(table)
    for match in patterns:
        notes().print(f"pattern {match}", markup=False)
    notes().print(f"{path}: {len(content)} bytes, signatures {', '.join(keys)}; needs run time {minimum or 'any'}")
