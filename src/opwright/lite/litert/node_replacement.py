"""Replacement of a model's custom operators by names under which the official run time calls Opwright.

Lives here: `replace_custom_nodes`, `ReplacedNode`, the single-node model of a node.
Not here: the computation of a node (custom_op_nodes.py).

The run time identifies an operator by name only: it assumes version 1 whatever the file declares, passes the options to
the operator and not to the node, and passes one pointer to all nodes of that name. Therefore each node gets a unique
name, and a model that consists of this node alone holds its options, version and constants. Two kinds of inputs stay in
that model: omitted ones (the run time would dereference null) and constants (their memory has the file's alignment).
A file in which none of this matters is passed unchanged.
"""

from __future__ import annotations

import collections
import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import UnimplementedError
from ..format import Model, objects, schema
from ..format.runtime_requirements import OFFICIAL_CUSTOMS
from ..ops import types
from ..registration import Registration
from ..resolver import CustomOps, OpResolver, default_resolver, with_customs
from ..runtime.model_loader import Missing, Resolved, node_location, resolve, unresolved
from .library import element_type

_STUBS = frozenset({"Convolution2DTransposeBias", "MaxPoolingWithArgmax2D", "MaxUnpooling2D", "Resampler"})
"""Names for which it always registers its own stubs, for accelerators."""
_ELSEWHERE = "lite.Interpreter runs the model"
_CUSTOM = int(schema.BuiltinOperator.CUSTOM)


class ReplacedNode(NamedTuple):
    """A node that the run time calls Opwright for.

    code: its unique name. name: of its operator. place: its position as text.

    model: of this node alone; its inputs are the tensors whose values the run time passes. passed: for each argument of
    the run time, the index of the model's input: one tensor may be passed several times.
    """

    code: str
    name: str
    number: int
    place: str
    model: Model
    passed: tuple[int, ...]


class PreparedModel(NamedTuple):
    """A model for the run time. model. changed: whether it differs from the original. resolver: with the operators."""

    model: Model
    changed: bool
    nodes: list[ReplacedNode]
    resolver: OpResolver


def replace_custom_nodes(model: Model, custom_ops: CustomOps) -> PreparedModel:
    """Return the form of a verified model for the official run time, with the nodes that Opwright computes.

    raises NotFoundError (a RuntimeError, too) listing custom operators without a kernel in the file's version,
    UnimplementedError for tensors that the run time does not pass
    """
    user_ops = with_customs(_EmptyResolver(), custom_ops)
    resolver = with_customs(default_resolver(), custom_ops)
    codes = resolve(model, _CustomOpsOnly(resolver))
    ours = [_is_ours(r, user_ops) for r in codes]
    _check_resolved(model, codes, resolver)
    nodes: list[ReplacedNode] = []
    names = {code.custom_code for code in model.operator_codes}
    uses = collections.Counter(codes[op.opcode_index].name for s in model.subgraphs for op in s.operators)
    operator_codes = list(model.operator_codes)
    subgraphs = []
    changed = False
    for index, subgraph in enumerate(model.subgraphs):
        operators = []
        for number, op in enumerate(subgraph.operators):
            if ours[op.opcode_index]:
                where = node_location(number, index)
                name = codes[op.opcode_index].name
                passed, single = _single_node_model(model, subgraph, op, name, where)
                alone = uses[name] == 1 and model.operator_codes[op.opcode_index].version == 1
                new = name
                if not alone or passed != list(op.inputs) or _is_taken(name):
                    new, changed = _new_name(f"{name}@{number}.{index}", names), True
                    op = copy.copy(op)
                    op.opcode_index, op.inputs = len(operator_codes), np.array(passed, np.int32)
                    operator_codes.append(
                        objects.OperatorCode(
                            builtin_code=_CUSTOM, deprecated_builtin_code=_CUSTOM, custom_code=new, version=1
                        )
                    )
                first = list(dict.fromkeys(passed))
                nodes.append(ReplacedNode(new, name, number, where, single, tuple(map(first.index, passed))))
            operators.append(op)
        subgraph = copy.copy(subgraph)
        subgraph.operators = operators
        subgraphs.append(subgraph)
    if changed:
        model = copy.copy(model)
        model.operator_codes, model.subgraphs = operator_codes, subgraphs
    return PreparedModel(model, changed, nodes, resolver)


class _EmptyResolver(OpResolver):
    """A resolver without operators."""

    def find_op(self, op: Any, version: int = 1) -> None:
        return None


class _CustomOpsOnly(OpResolver):
    """The custom operators of another resolver; builtin ones belong to the official run time."""

    def __init__(self, resolver: OpResolver) -> None:
        self._resolver = resolver

    def find_op(self, op: Any, version: int = 1) -> Registration:
        return _THEIRS

    def find_custom(self, name: str, version: int = 1) -> Registration | None:
        return self._resolver.find_custom(name, version)


_THEIRS = Registration()


def _is_ours(code: Resolved, user_ops: OpResolver) -> bool:
    """Return whether Opwright computes the nodes of an operator code; their options may specify the version."""
    if not code.is_custom:
        return False
    if code.name not in OFFICIAL_CUSTOMS:
        return True
    return any(user_ops.find_custom(code.name, v) is not None for v in (code.version, *code.carried))


def _check_resolved(model: Model, codes: list[Resolved], resolver: OpResolver) -> None:
    missing: dict[tuple[str, int], list[str]] = {}
    for index, subgraph in enumerate(model.subgraphs):
        for number, op in enumerate(subgraph.operators):
            code = codes[op.opcode_index]
            if code.is_custom:
                code = code.of(b"" if op.custom_options is None else bytes(op.custom_options))
                if code.registration is None and code.name not in OFFICIAL_CUSTOMS:
                    missing.setdefault((code.name, code.version), []).append(node_location(number, index))
    if missing:
        error = unresolved([Missing(*what, True, where) for what, where in missing.items()], resolver)
        error.args = (error.message.replace("Interpreter(..., custom_ops", "CompiledModel(..., custom_ops"),)
        raise error


def _is_taken(name: str) -> bool:
    """Return whether the run time treats a name specially: for Flex operators it requires another library."""
    return name in OFFICIAL_CUSTOMS or name in _STUBS or name.startswith("Flex")


def _new_name(name: str, names: set[str | None]) -> str:
    name = f"ow.{name}" if name.startswith("Flex") else name
    while name in names:
        name += "'"
    names.add(name)
    return name


def _single_node_model(model: Model, subgraph: Any, op: Any, name: str, where: str) -> tuple[list[int], Model]:
    """Return the inputs of a node that the run time passes, and the model of this node, with these inputs."""
    buffers = [objects.Buffer()]
    tensors: list[Any] = []
    new_index: dict[int, int] = {-1: -1}
    indices = [int(i) for i in (*op.inputs, *op.outputs, *op.intermediates)]
    for i in dict.fromkeys(i for i in indices if i >= 0):
        t = copy.copy(subgraph.tensors[i])
        data = model.tensor_data(t)
        t.buffer = 0
        if data is not None:
            t.buffer = len(buffers)
            buffers.append(objects.Buffer(data=data))
        new_index[i] = len(tensors)
        tensors.append(t)
        _check_kept(t, name, where)
        if data is None:
            _check_passed(t, name, where)
    passed = [i for i in map(int, op.inputs) if i >= 0 and not tensors[new_index[i]].buffer]
    alone = copy.copy(op)
    alone.opcode_index = 0
    alone.inputs, alone.outputs, alone.intermediates = (
        _mapped(part, new_index) for part in (op.inputs, op.outputs, op.intermediates)
    )
    single = objects.SubGraph(
        tensors=tensors,
        inputs=_mapped(dict.fromkeys(passed), new_index),
        outputs=alone.outputs,
        operators=[alone],
        name=f"{name} {where}",
    )
    code = copy.copy(model.operator_codes[op.opcode_index])
    return passed, Model(operator_codes=[code], subgraphs=[single], buffers=buffers)


def _mapped(indices: Iterable[Any], new_index: dict[int, int]) -> np.ndarray:
    return np.array([new_index[int(i)] for i in indices], np.int32)


def _check_kept(t: Any, name: str, where: str) -> None:
    """Raise UnimplementedError for a tensor that a model of one node cannot have."""
    why = None
    if t.is_variable:
        why = "keeps its elements from run to run"
    elif getattr(getattr(t.quantization, "details", None), "table_name", "") == "BlockwiseQuantization":
        why = "is quantised by block"
    if why:
        raise UnimplementedError(
            op=name,
            at=where,
            what=f"tensor {t.name!r} {why}",
            do=_ELSEWHERE,
            wanted="a tensor that the official run time passes to operators",
        )


def _check_passed(t: Any, name: str, where: str) -> None:
    """Raise UnimplementedError for a tensor that the run time does not pass to custom operators."""
    kind = getattr(t.type, "name", str(t.type))
    dtype = types.BY_NAME.get(kind)
    if dtype is None or element_type(dtype) is None:
        raise UnimplementedError(
            op=name,
            at=where,
            what=f"tensor {t.name!r} is of type {kind}, which the official run time does not pass to custom operators",
            do=_ELSEWHERE,
        )
