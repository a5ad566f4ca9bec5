"""`from_stablehlo`: a StableHLO module as an `ImportedFunction`.

Lives here: files and texts, names of inputs and results. Not here: reading (text.py, bytecode.py), operations
(execution.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ..importing import ImportedFunction, tensor_of
from ..jax.operands import broadcast
from .bytecode import MAGIC, read_bytecode
from .execution import ModuleContext, calls, load_rules
from .module import HloFunction, HloModule, TensorType
from .text import read_text


def from_stablehlo(
    source: Any, *, custom: Mapping[str, Any] | None = None, sizes: Mapping[str, Sequence[int]] | None = None
) -> ImportedFunction:
    """Return a StableHLO module as a `Function` of catalogue operators, which runs, differentiates and converts.

    source: the path of a file, a text, or bytes, as jax.export and torch_xla write them: MLIR's textual form, or its
    bytecode as a portable artifact (`Exported.mlir_module()`, `.mlir_module_serialized`, `.serialize()`). The
    program is the function @main, or the only public one. custom: by the name of an operation
    ("stablehlo.all_reduce"), of a composite, or of a custom call's target, an `@ow.operator` or a function of the
    operands and, by keyword, the attributes. sizes: by the name of an input, its shape, where the module leaves sizes
    open; without it, each type of arguments has a trace of its own.
    Results are a tensor, or a tuple of them in the module's order.
    raises MissingOperators, which lists every operation without a rule; InvalidArgumentError for damaged modules, with
    the line; types that the catalogue lacks, such as float8
    """
    module = read_module(source)
    function = module.main()
    load_rules().check(calls(module, function, custom), custom)
    arguments = function.body.arguments
    types = [_tensor(v.type, f"input {i}") for i, v in enumerate(arguments)]
    names = _input_names(module, function)
    specs = [TensorSpec(list(_shape(t, n, sizes)), t.dtype, name=n) for t, n in zip(types, names)]
    unknown = set(sizes or ()) - set(names)
    if unknown:
        raise InvalidArgumentError(
            op="from_stablehlo",
            what="no inputs of these names",
            found=", ".join(sorted(unknown)),
            wanted=", ".join(names),
        )

    def body(*tensors: Any) -> Any:
        context = ModuleContext(module, custom)
        results = [tensor_of(v) for v in context.execute(function.body, tensors)]
        results = [
            broadcast(r, v.type.shape) if None not in v.type.shape else r
            for r, v in zip(results, function.body.outputs)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    typed = all(s.shape.is_fully_defined() for s in specs)
    return ImportedFunction(
        body,
        specs if typed else None,
        name=module.name if module.name.isidentifier() else "stablehlo_module",
        source=f"the StableHLO module {module.name or function.name}",
        parameters=names,
        output_names=_output_names(function),
    )


def read_module(source: Any) -> HloModule:
    """Return a module of a path, a text or bytes. Raises InvalidArgumentError for what is none, OSError."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _read_bytes(bytes(source))
    if isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source and "{" not in source):
        return _read_bytes(Path(source).read_bytes())
    if isinstance(source, str):
        return read_text(source)
    raise InvalidArgumentError(
        op="from_stablehlo", what="no module", found=type(source).__name__, wanted="a path, a text, or bytes"
    )


def _read_bytes(content: bytes) -> HloModule:
    """Return the module of a text, of bytecode, or of what `jax.export.Exported.serialize` writes around bytecode."""
    begin = content.find(MAGIC)
    if begin == 0:
        return read_bytecode(content)
    if begin >= 4:  # a vector of bytes in a FlatBuffer: its length stands before it
        end = begin + int.from_bytes(content[begin - 4 : begin], "little")
        if end <= len(content):
            return read_bytecode(content[begin:end])
    try:
        return read_text(content.decode())
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            op="from_stablehlo",
            what="neither a text nor MLIR's bytecode",
            found=repr(content[:8]),
            wanted="bytes that begin with b'ML\\xefR', or a module's text",
        ) from None


def _tensor(kind: Any, what: str) -> TensorType:
    if not isinstance(kind, TensorType) or kind.dtype is None:
        raise InvalidArgumentError(
            op="from_stablehlo", what=f"{what} of the program is not a tensor", wanted="tensors; no tokens, no tuples"
        )
    return kind


def _shape(kind: TensorType, name: str, sizes: Mapping[str, Sequence[int]] | None) -> Sequence[int | None]:
    chosen = None if sizes is None else sizes.get(name)
    if chosen is None:
        return kind.shape
    if len(chosen) != len(kind.shape) or any(d not in (None, int(c)) for d, c in zip(kind.shape, chosen)):
        raise InvalidArgumentError(
            op="from_stablehlo", what=f"sizes that input {name!r} cannot have", found=list(chosen), wanted=kind.shape
        )
    return [int(c) for c in chosen]


def _input_names(module: HloModule, function: HloFunction) -> list[str]:
    """Return the names that the arguments' locations have, such as "x"; numbered ones for others."""
    names: list[str] = []
    for i, value in enumerate(function.body.arguments):
        name = module.place(value.location)[0] if value.location else ""
        name = "".join(c if c.isalnum() else "_" for c in name).strip("_")
        names.append(name if name.isidentifier() and name not in names else f"input_{i}")
    return names


def _output_names(function: HloFunction) -> list[str]:
    names: list[str] = []
    for i, _ in enumerate(function.body.outputs):
        attributes = function.result_attributes[i] if i < len(function.result_attributes) else {}
        name = str(attributes.get("jax.result_info", "")).removeprefix("result").strip("[].'\"")
        names.append(name if name.isidentifier() and name not in names else f"output_{i}")
    return names
