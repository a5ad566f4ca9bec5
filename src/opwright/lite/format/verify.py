"""Validity of a .tflite model beyond being readable, as one table of named rules.

Lives here: `RULES`, `findings`, `verify`.
Not here: the structure of the bytes (reader.py), sizes of constants (constants.py), the order of nodes and the calls of
subgraphs (subgraph_checks.py), whether an operator has a kernel or accepts its inputs (the interpreter's resolver and
operators).

Rules run in order and stop at the first with a finding: a rule may rely on all earlier rules.
Messages are the official run time's, if it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ...core.named_tuples import NamedTuple
from . import constants, schema
from .subgraph_checks import MAX_CALL_DEPTH, Finding, call_depth, no_recursion, subgraph_calls, tensor_flow
from .subgraph_checks import called_subgraphs as called_subgraphs

MAX_FINDINGS = 100
CUSTOM = 32


class ModelRule(NamedTuple):
    """A named check; `demands` describes a valid model."""

    name: str
    check: Callable[[Any], Iterator[Finding]]
    demands: str


def verify(model: Any, flow: bool = True) -> None:
    """Check a model against RULES. flow: include `tensor_flow`.

    raises InvalidArgumentError with the first finding: rule, path, found and wanted
    """
    for rule in RULES:
        if rule.check is tensor_flow and not flow:
            continue
        for finding in rule.check(model):
            raise InvalidArgumentError(
                what=f"{finding.what} ({finding.at})",
                found=finding.found,
                wanted=finding.wanted or rule.demands,
                explain="OW401",
            )


def findings(model: Any) -> list[tuple[ModelRule, Finding]]:
    """Return the findings of the first rule that has some, at most MAX_FINDINGS; an empty list for a valid model."""
    for rule in RULES:
        result = [(rule, finding) for finding, _ in zip(rule.check(model), range(MAX_FINDINGS))]
        if result:
            return result
    return []


def _ints(vector: Any) -> list[int]:
    return vector.tolist() if type(vector) is np.ndarray else [] if vector is None else np.asarray(vector).tolist()


def _tensors(model: Any) -> Iterator[tuple[str, int, Any]]:
    for i, subgraph in enumerate(model.subgraphs):
        for j, tensor in enumerate(subgraph.tensors):
            yield f"subgraphs[{i}].tensors[{j}]", j, tensor


def _operators(model: Any) -> Iterator[tuple[str, Any, Any]]:
    for i, subgraph in enumerate(model.subgraphs):
        for j, operator in enumerate(subgraph.operators):
            yield f"subgraphs[{i}].operators[{j}]", subgraph, operator


def schema_version(model: Any) -> Iterator[Finding]:
    if model.version != schema.VERSION:
        what = f"Model provided is schema version {model.version} not equal to supported version {schema.VERSION}."
        yield Finding("version", what)


def has_subgraph(model: Any) -> Iterator[Finding]:
    if not model.subgraphs:
        yield Finding("subgraphs", "No subgraph in the model.")


def has_buffers(model: Any) -> Iterator[Finding]:
    if not model.buffers:
        yield Finding("buffers", "No buffers in the model.", wanted="buffer 0, which is empty by convention")


def operator_codes(model: Any) -> Iterator[Finding]:
    builtins = schema.enum_members("BuiltinOperator")
    for i, code in enumerate(model.operator_codes):
        number = max(code.builtin_code, code.deprecated_builtin_code)
        if number not in builtins:
            what = f"Op builtin_code out of range: {number}. Are you using old TFLite binary with newer model?"
            yield Finding(f"operator_codes[{i}]", what, wanted=f"0 to {max(builtins)}")
        elif number == CUSTOM and not code.custom_code:
            yield Finding(f"operator_codes[{i}]", "Operator with CUSTOM builtin_code has no custom_code.")


def tensor_types(model: Any) -> Iterator[Finding]:
    types = schema.enum_members("TensorType")
    for path, _, tensor in _tensors(model):
        if tensor.type not in types:
            yield Finding(path, f"Unsupported data type {int(tensor.type)} in tensor", wanted=f"0 to {max(types)}")


def tensor_buffers(model: Any) -> Iterator[Finding]:
    for path, j, tensor in _tensors(model):
        if not 0 <= tensor.buffer < len(model.buffers):
            what = f"Tensor {j} specifies out of range buffer {tensor.buffer} (only {len(model.buffers)} buffers)."
            yield Finding(path, what)


def tensor_shapes(model: Any) -> Iterator[Finding]:
    for path, _, tensor in _tensors(model):
        shape, signature = _ints(tensor.shape), _ints(tensor.shape_signature)
        if shape and min(shape) < 0:
            yield Finding(f"{path}.shape", "negative dimension", found=_brief(shape))
        elif len(shape) > constants.MAX_RANK:
            yield Finding(
                f"{path}.shape",
                "more dimensions than an array can have",
                found=len(shape),
                wanted=f"at most {constants.MAX_RANK}",
            )
        elif shape and max(shape) ** len(shape) >= constants.ALWAYS_COUNTABLE and not constants.countable(shape):
            yield Finding(f"{path}.shape", "shape asks for more elements than can be counted", found=_brief(shape))
        elif signature and len(signature) != len(shape):
            yield Finding(f"{path}.shape_signature", "rank differs from the shape's", found=_brief(signature))
        elif signature and min(signature) < -1:
            yield Finding(f"{path}.shape_signature", "negative dimension other than -1", found=_brief(signature))


def external_buffers(model: Any) -> Iterator[Finding]:
    ids = {buffer.id for buffer in model.external_buffers}
    for i, buffer in enumerate(model.external_buffers):
        if not 0 <= buffer.group < len(model.external_buffer_groups):
            yield Finding(
                f"external_buffers[{i}].group",
                "no such group",
                found=buffer.group,
                wanted=f"below {len(model.external_buffer_groups)}",
            )
    for path, _, tensor in _tensors(model):
        if tensor.external_buffer and tensor.external_buffer not in ids:
            yield Finding(f"{path}.external_buffer", "no external buffer has this id", found=tensor.external_buffer)


def subgraph_interfaces(model: Any) -> Iterator[Finding]:
    for i, subgraph in enumerate(model.subgraphs):
        absent = getattr(subgraph.tensors, "absent", False)
        if not len(subgraph.tensors) and (absent or len(subgraph.inputs) or len(subgraph.outputs)):
            yield Finding(f"subgraphs[{i}].tensors", f"Did not get tensors in subgraph {i}.")
        for side in ("inputs", "outputs"):
            yield from _indices(f"subgraphs[{i}]", subgraph, side, getattr(subgraph, side), 0, f"subgraph {side}")


def opcode_indices(model: Any) -> Iterator[Finding]:
    for path, _, operator in _operators(model):
        if not 0 <= operator.opcode_index < len(model.operator_codes):
            yield Finding(
                path,
                f"Missing registration for opcode_index {operator.opcode_index}",
                wanted=f"below {len(model.operator_codes)}",
            )


def operator_tensors(model: Any) -> Iterator[Finding]:
    for path, subgraph, operator in _operators(model):
        yield from _indices(path, subgraph, "inputs", operator.inputs, -1, "node inputs")
        yield from _indices(path, subgraph, "outputs", operator.outputs, 0, "node outputs")
        yield from _indices(path, subgraph, "intermediates", operator.intermediates, -1, "node intermediates")
        if len(operator.mutating_variable_inputs) > len(operator.inputs):
            count, most = len(operator.mutating_variable_inputs), len(operator.inputs)
            yield Finding(f"{path}.mutating_variable_inputs", "more than inputs", found=count, wanted=f"at most {most}")


def _indices(path: str, subgraph: Any, field: str, vector: Any, least: int, words: str) -> Iterator[Finding]:
    n = len(subgraph.tensors)
    for position, index in enumerate(_ints(vector)):
        if not least <= index < n:
            what = f"Invalid tensor index {index} in {words}. The subgraph has {n} tensors"
            yield Finding(f"{path}.{field}[{position}]", what)


def constant_sizes(model: Any) -> Iterator[Finding]:
    checked: dict[
        int, Finding | None
    ] = {}  # string buffers by index: each is checked once, however many tensors use it
    for path, j, tensor in _tensors(model):
        yield from constants.check(path, j, tensor, model.buffers[tensor.buffer], checked)


def quantizations(model: Any) -> Iterator[Finding]:
    for path, _, tensor in _tensors(model):
        q = tensor.quantization
        if q is None:
            continue
        path, shape, scales, zeros = f"{path}.quantization", _ints(tensor.shape), len(q.scale), len(q.zero_point)
        if scales and zeros != scales:
            what = f"QuantizationParam has {zeros} zero_point values and {scales} scale values. Must have same number."
            yield Finding(path, what)
        elif scales and not 0 <= q.quantized_dimension < (len(shape) or (2**31 if scales == 1 else 0)):
            what = f"quantized_dimension must be in range [0, {len(shape)}). Was {q.quantized_dimension}."
            yield Finding(path, what)
        elif scales > 1 and shape[q.quantized_dimension] != scales:
            yield Finding(
                path,
                "number of scales is neither 1 nor the size of the quantized dimension",
                found=scales,
                wanted=f"1 or {shape[q.quantized_dimension]}",
            )


def block_quantizations(model: Any) -> Iterator[Finding]:
    for i, subgraph in enumerate(model.subgraphs):
        n = len(subgraph.tensors)
        for j, tensor in enumerate(subgraph.tensors):
            details: Any = tensor.quantization.details if tensor.quantization is not None else None
            if getattr(details, "table_name", "") not in ("BlockwiseQuantization", "MultiAxisQuantization"):
                continue
            path = f"subgraphs[{i}].tensors[{j}].quantization.details"
            if not 0 <= details.scales < n:
                yield Finding(f"{path}.scales", "no such tensor", found=details.scales, wanted=f"below {n}")
            if not -1 <= details.zero_points < n:
                yield Finding(f"{path}.zero_points", "no such tensor", found=details.zero_points, wanted=f"below {n}")
            axes = _ints(getattr(details, "quantized_dimensions", ()))
            if details.table_name == "MultiAxisQuantization" and (
                not axes or len(set(axes)) != len(axes) or not 0 <= min(axes) <= max(axes) < len(tensor.shape)
            ):
                yield Finding(
                    f"{path}.quantized_dimensions",
                    "Invalid MultiAxisQuantization parameters.",
                    found=axes,
                    wanted=f"one or more of 0 to {len(tensor.shape) - 1}, each once",
                )
            if details.block_size < 0:
                yield Finding(f"{path}.block_size", "negative block size", found=details.block_size)


def signatures(model: Any) -> Iterator[Finding]:
    seen = set()
    for i, signature in enumerate(model.signature_defs):
        path = f"signature_defs[{i}]"
        if signature.signature_key is None:
            yield Finding(f"{path}.signature_key", "Missing exported method name for SignatureDef")
        if signature.signature_key in seen:
            yield Finding(f"{path}.signature_key", "two signatures have one name", found=repr(signature.signature_key))
        seen.add(signature.signature_key)
        if not 0 <= signature.subgraph_index < len(model.subgraphs):
            yield Finding(
                f"{path}.subgraph_index",
                "no such subgraph",
                found=signature.subgraph_index,
                wanted=f"below {len(model.subgraphs)}",
            )
            continue
        n = len(model.subgraphs[signature.subgraph_index].tensors)
        for side in ("inputs", "outputs"):
            names = set()
            for j, entry in enumerate(getattr(signature, side)):
                if not 0 <= entry.tensor_index < n:
                    yield Finding(
                        f"{path}.{side}[{j}].tensor_index",
                        "no such tensor",
                        found=entry.tensor_index,
                        wanted=f"below {n}",
                    )
                if entry.name is None:
                    yield Finding(f"{path}.{side}[{j}].name", f"one of the {side} has no name")
                if entry.name in names:
                    yield Finding(f"{path}.{side}[{j}].name", f"two {side} have one name", found=repr(entry.name))
                names.add(entry.name)


def metadata_buffers(model: Any) -> Iterator[Finding]:
    n = len(model.buffers)
    for i, entry in enumerate(model.metadata):
        if not 0 <= entry.buffer < n:
            yield Finding(f"metadata[{i}].buffer", "no such buffer", found=entry.buffer, wanted=f"below {n}")
    for i, index in enumerate(_ints(model.metadata_buffer)):
        if not 0 <= index < n:
            yield Finding(f"metadata_buffer[{i}]", "no such buffer", found=index, wanted=f"below {n}")


def _brief(numbers: list[int]) -> str:
    return str(numbers) if len(numbers) <= 8 else f"{str(numbers[:8])[:-1]}, ... {len(numbers)} numbers]"


RULES = tuple(
    ModelRule(check.__name__, check, demands)
    for check, demands in (
        (schema_version, "version 3"),
        (has_subgraph, "at least one subgraph"),
        (has_buffers, "at least one buffer"),
        (operator_codes, "a builtin code of the schema, and a name for a custom operator"),
        (tensor_types, "a type of the schema"),
        (tensor_buffers, "the index of a buffer"),
        (tensor_shapes, "no negative dimension, but -1 in shape_signature; a shape whose elements can be counted"),
        (external_buffers, "an external buffer of the model, in a group of the model"),
        (subgraph_interfaces, "the index of a tensor of the subgraph"),
        (opcode_indices, "the index of an operator code"),
        (operator_tensors, "the index of a tensor of the subgraph; -1 only for an input left out"),
        (tensor_flow, "nodes in an order in which one produces each tensor before others read it"),
        (constant_sizes, "a buffer that holds the elements of every tensor that uses it"),
        (quantizations, "as many zero points as scales: one, or one for each slice of the quantized dimension"),
        (block_quantizations, "scales and zero points in tensors of the same subgraph"),
        (subgraph_calls, "the index of a subgraph"),
        (no_recursion, "subgraphs that do not call themselves, directly or by way of others"),
        (call_depth, f"subgraphs that call others at most {MAX_CALL_DEPTH} levels deep"),
        (signatures, "names used once, for tensors and subgraphs that exist"),
        (metadata_buffers, "the index of a buffer"),
    )
)
