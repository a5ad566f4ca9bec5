"""Write files of models: `opwright convert`.

Lives here: converting a saved model with settings from the command line and samples from a file; the report.
Not here: files of single operators (operator_files.py), the converter (lite/convert), operators named on the command
line (model_runner.py).
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from .. import lite
from ..core import dtypes
from ..core.errors import InvalidArgumentError, OpError
from ..frontends.keras import from_keras
from ..frontends.onnx.model import from_onnx
from ..frontends.stablehlo.program import from_stablehlo
from ..frontends.torch.importer import from_torch
from ..lite.format import versions
from ..lite.format.runtime_requirements import requirements
from .array_files import checked_arrays
from .inspection import is_model
from .model_runner import patterns_of
from .report import BadFile, notes, out, print_json

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
    converter = converter_of(folder, signatures)
    converter.target_spec.runtime = runtime
    converter.allow_custom_ops = customs
    converter.patterns = chosen
    if quantize is not None:
        sets, types, needed = QUANTIZE[quantize]
        converter.optimizations = [lite.Optimize.DEFAULT]
        converter.target_spec.supported_ops, converter.target_spec.supported_types = [*sets], [*types]
        if needed:
            samples = samples_of(str(data), converter)
            converter.representative_dataset = lambda: samples
        if io != "float32":
            converter.inference_input_type = converter.inference_output_type = dtypes.as_dtype(io)
    if flex:
        converter.target_spec.supported_ops.append(lite.OpsSet.SELECT_TF_OPS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pattern .* was not found", RuntimeWarning)  # reported below
        _write_converted(converter, output)
    report_file(output, as_json, converter.patterns_found)


def _write_converted(converter: lite.TFLiteConverter, path: str) -> None:
    """Write the file of a converter, whose weights are never copied together. Raises BadFile."""
    try:
        converter.write(path)
    except OSError as error:
        raise BadFile(f"{path} cannot be written: {error.strerror or error}") from error


READERS: dict[str, Callable[[str], Any]] = {
    ".keras": from_keras,
    ".mlir": from_stablehlo,
    ".onnx": from_onnx,
    ".pt2": from_torch,
    ".stablehlo": from_stablehlo,
}
"""The importer of a file of another framework, by its suffix."""


def converter_of(folder: str, signatures: Sequence[str] = ()) -> lite.TFLiteConverter:
    """Return the converter of a saved model, or of a file of another framework. Raises BadFile, OpError for what cannot
    be imported."""
    suffix = Path(folder).suffix
    if suffix in READERS:
        try:
            return _converter_of_file(folder, suffix)
        except OSError as error:
            raise BadFile(f"{folder}: {error}") from error
    try:
        return lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(signatures) or None)
    except (OSError, OpError) as error:
        raise BadFile(f"{folder}: {error}") from error
    except ValueError as error:  # no such signature
        raise InvalidArgumentError(what=str(error)) from None


def _converter_of_file(path: str, suffix: str) -> lite.TFLiteConverter:
    imported = READERS[suffix](path)
    if suffix == ".keras":
        return lite.TFLiteConverter.from_keras_model(imported)
    if imported.input_signature is None:
        option = "sizes" if READERS[suffix] is from_stablehlo else "values"
        do = f"import it by ow.{READERS[suffix].__name__}({option}=...)"
        raise BadFile(f"{path}: sizes or values of inputs decide about the graph; {do}")
    return lite.TFLiteConverter.from_concrete_functions([imported.named().get_concrete_function()])


def tflite_file(path: str, folder: str) -> str:
    """Return the path of a model as a .tflite file: the path itself, or that of a conversion in a folder.

    raises BadFile, OpError as `converter_of`
    """
    if Path(path).suffix not in READERS:
        return path
    converter = converter_of(path)
    converter.allow_custom_ops = True
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pattern .* was not found", RuntimeWarning)
        file = str(Path(folder) / f"{Path(path).stem}.tflite")
        _write_converted(converter, file)
    return file


def samples_of(path: str, converter: Any) -> list[dict[str, np.ndarray]]:
    """Return inputs by name, one dict per sample, from a .npz file with an array for each input, or a folder of them.

    An array of the input's own rank is split along its first axis; one of rank + 1 is a list of inputs. In a folder,
    .npy files are arrays of a model's only input. raises BadFile, InvalidArgumentError if the model has several
    signatures
    """
    if len(converter.functions) != 1:
        raise InvalidArgumentError(
            what="--data is for one signature",
            found=", ".join(converter.signature_keys),
            do="choose one by --signature",
        )
    (function,) = converter.functions
    shapes = {v.name: v.spec.shape for v in function.graph.inputs[: len(function.tensor_specs)]}
    files = [path]
    if Path(path).is_dir():
        files = sorted(str(f) for f in Path(path).iterdir() if f.suffix in (".npz", ".npy"))
        if not files:
            raise BadFile(f"{path}: no .npz or .npy files in the folder")
    return [sample for file in files for sample in _samples_of_file(file, shapes)]


def _samples_of_file(path: str, shapes: dict[str, Any]) -> list[dict[str, np.ndarray]]:
    content = checked_arrays(path)
    arrays = dict.fromkeys(shapes if len(shapes) == 1 else (), content) if isinstance(content, np.ndarray) else content
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


def report_file(path: str, as_json: bool, patterns: Sequence[Any] = ()) -> None:
    """Print the contents of a written file. patterns: the matches of each."""
    model, size = lite.Model.read(path), Path(path).stat().st_size
    counts: dict[tuple[str, int], int] = {}
    for need in requirements(model):
        counts[need.operator, need.version] = counts.get((need.operator, need.version), 0) + 1
    minimum = versions.min_runtime_of_model(model)
    keys = [s.signature_key for s in model.signature_defs]
    if as_json:
        rows = [{"operator": name, "version": version, "nodes": n} for (name, version), n in counts.items()]
        document = {"file": path, "bytes": size, "signatures": keys, "min_runtime": minimum, "operators": rows}
        print_json({**document, "patterns": [dataclasses.asdict(p) for p in patterns]} if patterns else document)
        return
    table = Table("operator", "version", "nodes")
    for (name, version), count in counts.items():
        table.add_row(name, str(version), str(count))
    out().print(table)
    for match in patterns:
        notes().print(f"pattern {match}", markup=False)
    notes().print(f"{path}: {size} bytes, signatures {', '.join(keys)}; needs run time {minimum or 'any'}")
