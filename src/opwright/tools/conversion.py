"""Write files of models and operators: `opwright convert`, `opwright op model`, `opwright op export`.

Lives here: converting a saved model with settings from the command line and samples from a file; a .tflite file of one
operator, for timing, checks and inspection; an operator as C source; parsing of attribute values, the report.
Not here: the converter (lite/convert), the C (lite/export), operators named on the command line (model_runner.py).
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from .. import lite
from ..aot.model_runs import random_input
from ..core import dtypes, introspection
from ..core.dtypes import DType, as_dtype, float32, int32
from ..core.errors import InvalidArgumentError, OpError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..frontends.keras import from_keras
from ..frontends.onnx.model import from_onnx
from ..frontends.stablehlo.program import from_stablehlo
from ..frontends.torch.importer import from_torch
from ..lite import customs as shipped
from ..lite import ops as dialect
from ..lite.convert.converter import single_operator
from ..lite.export.c_export import export_c
from ..lite.format import versions
from ..lite.format.runtime_requirements import requirements
from ..ops import registry
from ..ops.definition import Operator
from .inspection import is_model
from .model_runner import custom_operators, patterns_of, sizes_of
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


def _find_operator(name: str, customs: Sequence[str]) -> Operator:
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
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            arrays = dict.fromkeys(shapes if len(shapes) == 1 else (), content)
        else:
            with content as archive:
                arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, AttributeError) as error:
        raise BadFile(f"{path}: no .npz file of samples: {error}") from error
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


def write_model(
    name: str,
    output: str,
    *,
    shapes: Sequence[str],
    types: Sequence[str],
    attrs: Sequence[str],
    constants: Sequence[str],
    values: Sequence[str],
    customs: Sequence[str],
    seed: int,
    as_json: bool,
) -> None:
    """Write the file and print its contents.

    raises BadFile for invalid files and an unknown name, click.UsageError for arguments that the operator does not
    take, OpError as its call does
    """
    operator = _operator(name, customs)
    dtypes = _dtypes(operator, types)
    inputs = _InputArguments(operator, dtypes.get(""), {k: v for k, v in dtypes.items() if k})
    rng = np.random.default_rng(seed)
    inputs.take(shapes, lambda declared, text: TensorSpec(sizes_of(text), inputs.dtype(declared)))
    inputs.take(
        constants,
        lambda declared, text: random_input({"dtype": inputs.dtype(declared).np, "shape": sizes_of(text)}, rng),
    )
    inputs.take(values, inputs.value)
    content = single_operator(operator, inputs.operands(), _attributes(operator, attrs))
    write_file(output, content)
    report_file(output, as_json)
    notes().print(f"opwright bench {output} --ops" + "".join(f" --custom {c}" for c in customs))


def _operator(name: str, customs: Sequence[str]) -> object:
    """Find an operator: --custom first, then the dialect's, the catalogue's and installed packages'. Raises BadFile."""
    custom = [op for op in custom_operators(customs) if isinstance(op, Operator)]
    match = next((op for op in custom if op.name == name), None)
    if match is not None:
        return match
    if name in dialect.list_names():
        return dialect.get(name)
    try:
        return registry.get(name)
    except KeyError as error:
        if name in shipped.list_names():
            raise BadFile(f"{name} is read from files of other converters and never written") from None
        there = f"; --custom has {', '.join(op.name for op in custom)}" if custom else ""
        raise BadFile(f"{error}{there}") from None


class _InputArguments:
    """The command line arguments of each declared input, in order if they have no name."""

    def __init__(self, operator: Any, dtype: DType | None, dtypes: dict[str, DType]) -> None:
        self.operator, self.all, self.dtypes = operator, dtype, dtypes
        self.found: dict[str, list[Any]] = {i.name: [] for i in operator.inputs}
        if dtype is not None and not any(dtype in i.dtypes for i in operator.inputs):
            takes = "; ".join(f"{i.name}: {', '.join(d.name for d in i.dtypes)}" for i in operator.inputs)
            raise click.UsageError(f"{operator.name} has no input that takes {dtype.name}; {takes}")

    def dtype(self, declared: Any) -> DType:
        """Return the input's dtype: its own, the common one, float32, or the first supported; `like` inputs follow."""
        if declared.name in self.dtypes:
            return self.dtypes[declared.name]
        if declared.like in self.dtypes:
            return self.dtypes[declared.like]
        preferred = [d for d in (self.all, float32) if d is not None and d in declared.dtypes]
        return preferred[0] if preferred else next(iter(declared.dtypes))

    def take(self, texts: Sequence[str], read: Callable[[Any, str], Any]) -> None:
        """Parse [NAME=]WHAT, by name or for the next input without one (the last again if it is repeated)."""
        for text in texts:
            name, equals, what = text.partition("=")
            if not equals:
                declared = next((i for i in self.operator.inputs if not self.found[i.name] or i.repeated), None)
                name, what = (declared.name if declared else ""), text
            if name not in self.found:
                what = f"has no input {name!r}" if name else f"takes no more inputs, {text!r} is one too many"
                raise click.UsageError(f"{self.operator.name} {what}: {self.operator.signature()}")
            (declared,) = [i for i in self.operator.inputs if i.name == name]
            if self.found[name] and not declared.repeated:
                raise click.UsageError(f"input {name!r} is given twice")
            self.found[name].append(read(declared, what))

    def value(self, declared: Any, text: str) -> np.ndarray:
        """Return a constant: integers are int32 if the input takes that and follows no other. Raises UsageError."""
        dtype = self.dtype(declared)
        try:
            parsed = np.array(json.loads(text))
            free = declared.like is None and self.all is None and declared.name not in self.dtypes
            if free and parsed.dtype.kind == "i" and int32 in declared.dtypes:
                dtype = int32
            return parsed.astype(dtype.np)
        except (ValueError, TypeError, OverflowError):
            raise click.UsageError(
                f"{text!r} is no value of input {declared.name!r}; wanted {dtype.name} such as [1, 2] or 3"
            ) from None

    def operands(self) -> list[Any]:
        """Return an operand for each declared input. Raises click.UsageError for a missing one."""
        missing = [i.name for i in self.operator.inputs if not self.found[i.name] and not i.optional]
        if missing:
            raise click.UsageError(
                f"no shape is given for input {missing[0]!r} of {self.operator.signature()}; "
                f"--shape {missing[0]}=1,224,224,3"
            )
        return [
            tuple(self.found[i.name]) if i.repeated else (self.found[i.name] or [None])[0] for i in self.operator.inputs
        ]


def _dtypes(operator: Any, texts: Sequence[str]) -> dict[str, DType]:
    """Parse [NAME=]DTYPE by input name, "" for all inputs. Raises click.UsageError."""
    result = {}
    for text in texts:
        name, _, what = text.rpartition("=")
        if name and name not in operator.input_names:
            raise click.UsageError(f"{operator.name} has no input {name!r}: {operator.signature()}")
        try:
            result[name] = as_dtype(what)
        except TypeError:
            raise click.UsageError(f"{what!r} is no dtype such as int8") from None
    return result


def _attributes(operator: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE by the attribute's type."""
    result = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in operator.attr_defs:
            there = ", ".join(f"{k}: {a.type_name()}" for k, a in operator.attr_defs.items())
            raise click.UsageError(f"{text!r} is no attribute of {operator.name}; it has {there or 'none'}")
        try:
            result[name] = read_value(operator.attr_defs[name].type, value)
        except (ValueError, TypeError):
            type_name = operator.attr_defs[name].type_name()
            raise click.UsageError(f"{value!r} is no value of attribute {name!r}; wanted {type_name}") from None
    return result


_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_READ: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: float,
    str: str,
    bytes: str.encode,
    DType: as_dtype,
    object: json.loads,
    np.ndarray: lambda text: np.array(json.loads(text)),
    TensorShape: lambda text: TensorShape([None if n in ("?", "None") else int(n) for n in text.split(",") if n]),
}


def read_value(kind: Any, text: str) -> Any:
    """Parse an attribute of that type: 3, 0.5, true, SAME, int8, 1,2,3. Raises ValueError, TypeError."""
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if isinstance(kind, list):
        return [read_value(kind[0], part) for part in text.strip("[]()").split(",") if part.strip()]
    return _READ.get(kind, json.loads)(text)
