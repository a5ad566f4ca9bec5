"""Import: a `format.Model` becomes graphs of the lite dialect, the inverse of `convert.export`.

Lives here: `import_model`, `import_graph`, `operator_of`; `Importer`, which they use.
Not here: reading and checking bytes (format/), tables of tensors (ops/specs.py), shapes of other sizes
(shape_inference.py).

A tensor becomes a Value: an input of its graph, the output of the operator that writes it, of a Const node (a view of
the file's buffer), or of a VARIABLE. Its type carries the rest of its table: scales, sparsity, the name in the file.
`at` of every node states its operator in the file. A subgraph that nodes run is imported once and is an
attribute of each of them. Not kept, as nothing depends on it: tensors that no operator reads or writes, whether an
operator's options are left out or zeros, absent operands at the end, versions above those needed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dtypes import resource
from ..core.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError
from ..core.specs import TensorSpec
from ..graph import Graph, Node, Value
from ..graph.builder import GraphBuilder
from ..graph.ir import Operand
from ..ops import registry
from ..ops.definition import Operator
from .custom_options import bind_options, group_inputs
from .format import Model, verify, versions
from .format.flexbuffers import custom_version
from .format.model import refuse_external
from .ops import get
from .ops.definition import LiteOperator
from .ops.module import VARIABLE, ExternalOp, GraphSignature, LiteModule, external_attrs
from .ops.specs import LiteTensorSpec, ints, spec_of, tensors_of_scales
from .runtime.constants import tensor_from_file
from .runtime.tensor import CONSTANT, Tensor

Definitions = Callable[[str, int], "Operator | None"]
"""Returns the definition of a custom operator of a name and version, None for one without."""


def import_model(model: Model, definitions: Definitions | None = None) -> LiteModule:
    """Read a whole model into graphs, one for each subgraph, in the file's order.

    definitions: of custom operators; all others are external operators.
    raises InvalidArgumentError for what `Model.verify` refuses, for options that are not the operator's and for other
    numbers of operands; UnimplementedError for weights in other files and for operators that nothing computes
    """
    _check(model)
    importer = Importer(model, definitions)
    graphs = [importer.graph(i) for i in range(len(model.subgraphs))]
    metadata = [
        (entry.name or "", b"" if (data := model.buffers[entry.buffer].data) is None else bytes(data))
        for entry in model.metadata
    ]
    signatures = [_signature(model, definition) for definition in model.signature_defs]
    return LiteModule(graphs, signatures, model.description, metadata, model.attachment)


def import_graph(model: Model, index: int = 0, definitions: Definitions | None = None) -> Graph:
    """Read one subgraph and the subgraphs that its nodes run. Arguments and errors as for `import_model`."""
    _check(model)
    return Importer(model, definitions).graph(index)


def operator_of(node: Node) -> tuple[int, int] | None:
    """Return the subgraph and the number of the operator that an imported node came from; None for other nodes."""
    match = _PLACE.fullmatch(node.at or "")
    return None if match is None else (int(match["subgraph"] or 0), int(match["number"]))


def place_of(subgraph: int, number: int) -> str:
    """Return where an operator is in its file, as nodes say it in `at`."""
    return f"node {number}" + (f" of subgraph {subgraph}" if subgraph else "")


_PLACE = re.compile(r"node (?P<number>\d+)(?: of subgraph (?P<subgraph>\d+))?")


def _signature(model: Model, definition: Any) -> GraphSignature:
    index = int(definition.subgraph_index)
    subgraph = model.subgraphs[index]

    def positions(side: str) -> dict[str, int]:
        tensors, indices = ints(getattr(subgraph, side)), {}
        for entry in getattr(definition, side):
            if int(entry.tensor_index) not in tensors:
                raise InvalidArgumentError(
                    what=f"signature {definition.signature_key!r} names a tensor that is none of its subgraph's {side}",
                    found=f"{entry.name!r}: tensor {int(entry.tensor_index)}",
                    wanted=f"one of {tensors}",
                )
            indices[entry.name] = tensors.index(int(entry.tensor_index))
        return indices

    return GraphSignature(definition.signature_key, positions("inputs"), positions("outputs"), index)


class _Call(NamedTuple):
    """Facts about an operator for reading its operands and options."""

    name: str
    version: int
    options: Any


def _check(model: Model) -> None:
    verify.verify(model)
    refuse_external(model)


class ImportedSubgraph(NamedTuple):
    """A subgraph's graph. tensors: by value, the number of its tensor."""

    graph: Graph
    tensors: Mapping[Value, int]


class Importer:
    """A verified model and its graphs so far. Subclasses read models that an interpreter has loaded."""

    def __init__(self, model: Model, definitions: Definitions | None) -> None:
        self.model, self.definitions = model, definitions
        self._subgraphs: dict[int, ImportedSubgraph] = {}

    def subgraph(self, index: int) -> ImportedSubgraph:
        """Return a subgraph's graph. Calls nest at most `calls.MAX_CALL_DEPTH` deep, as the verifier has seen."""
        if index not in self._subgraphs:
            subgraph = _Subgraph(self, index)
            self._subgraphs[index] = ImportedSubgraph(subgraph.imported(), subgraph.numbers)
        return self._subgraphs[index]

    def graph(self, index: int) -> Graph:
        """Return the graph of `subgraph` alone."""
        return self.subgraph(index).graph

    @functools.cached_property
    def const(self) -> Any:
        """The operator of constants."""
        return registry.get("Const")

    def definition(self, subgraph: int, number: int, name: str, version: int) -> Operator | None:
        """Return the definition of a custom operator, None for one without."""
        return None if self.definitions is None else self.definitions(name, version)

    def tensors(self, index: int) -> list[Tensor]:
        """Return a subgraph's tensors as the file declares them."""
        buffers = self.model.buffers
        return [tensor_from_file(i, t, buffers[t.buffer]) for i, t in enumerate(self.model.subgraphs[index].tensors)]

    def unreadable(self, error: OpError) -> None:
        """Raise the error about an operator or a tensor, unless graphs may do without it."""
        raise error


class _Subgraph:
    """One subgraph on its way to a graph."""

    def __init__(self, importer: Importer, index: int) -> None:
        self.importer, self.index = importer, index
        self.source = importer.model.subgraphs[index]
        self.tensors = importer.tensors(index)
        self.builder = GraphBuilder(self.source.name or "")
        self.builder.name = self.source.name or ""  # unchanged: text quotes it if necessary
        self.values: dict[int, Value] = {}
        self.numbers: dict[Value, int] = {}
        written = {int(t) for op in self.source.operators for t in ints(op.outputs)}
        scales = {t for tensor in self.source.tensors for t in tensors_of_scales(tensor)}
        self.sources = [
            t
            for t in range(len(self.source.tensors))
            if t not in written and (self.tensors[t].kind == CONSTANT or self.tensors[t].is_variable)
        ]
        self.scales = scales - {int(t) for op in self.source.operators for t in ints(op.inputs)}

    def imported(self) -> Graph:
        """Return the graph.

        Constants come before the first operator that reads them or writes a tensor of a greater number, so that
        tensors are numbered again as they are when the graph is written.
        """
        inputs = ints(self.source.inputs)
        if len(set(inputs)) != len(inputs):
            self.importer.unreadable(
                UnimplementedError(
                    what=f"subgraph {self.index} takes one tensor as several inputs",
                    found=inputs,
                    wanted="each input once",
                )
            )
        for t in inputs:
            name = self.builder.unique(self._name(t))
            self.values[t] = Value(name, self.spec(t, name))
            self.numbers[self.values[t]] = t
            self.builder.inputs.append(self.values[t])
        waiting = [t for t in self.sources if t not in self.values and t not in self.scales]
        waiting.reverse()
        for number, operator in enumerate(self.source.operators):
            first = min(ints(operator.outputs), default=-1)
            while waiting and waiting[-1] < first:
                self._born(waiting.pop())
            for t in ints(operator.inputs):
                if t >= 0 and t not in self.values:
                    self._born(t)
            self._operator(number, operator)
        for t in reversed(waiting):
            self._born(t)
        for t in ints(self.source.outputs):
            if t not in self.values:
                self.importer.unreadable(
                    InvalidArgumentError(
                        what=f"subgraph {self.index} returns a tensor that nothing writes",
                        found=f"tensor {t}, {self._name(t)!r}",
                        wanted="an input, a constant, a variable or the output of an operator",
                    )
                )
                self._born(t)
        return self.builder.build([self.values[t] for t in ints(self.source.outputs)])

    def _name(self, t: int) -> str:
        return self.tensors[t].name or f"tensor_{t}"

    def _born(self, t: int) -> None:
        """Add the node of a constant or a variable."""
        if t in self.values:
            return
        tensor = self.tensors[t]
        if tensor.kind == CONSTANT:
            op, attrs = self.importer.const, {"value": tensor.array}
        else:
            op, attrs = VARIABLE, {}
        self._add(op, (), attrs, [t], None)

    def _add(
        self, op: Any, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: Sequence[int], at: str | None
    ) -> None:
        unique, name = self.builder.unique, self._name
        names = [unique(name(t)) for t in outputs]
        specs = [self.spec(t, n) for t, n in zip(outputs, names)]
        node = Node(op, inputs, attrs, specs, names[0] if names else unique(op.name), at, names)
        self.builder.nodes.append(node)
        self.values.update(zip(outputs, node.outputs))
        self.numbers.update(zip(node.outputs, outputs))

    # ---- types ----------------------------------------------------------------------------------------------------

    def spec(self, t: int, name: str | None = None) -> TensorSpec:
        """Return the type of a tensor, whose value has this name."""
        try:
            return spec_of(self.source.tensors[t], self.tensors[t].kind == CONSTANT, self._scales, name)
        except UnimplementedError as error:
            self.importer.unreadable(error)
            return TensorSpec(None, resource)

    def _scales(self, t: int) -> tuple[np.ndarray, str]:
        """Return the elements of a tensor of scales by block, and its name."""
        tensor = self.tensors[t]
        if tensor.kind != CONSTANT or tensor.array is None:
            raise UnimplementedError(
                what=f"tensor {tensor.name!r}, of scales by block, is not a constant",
                found=repr(tensor),
                wanted="scales in the file",
            )
        return tensor.array, tensor.name

    # ---- operators ------------------------------------------------------------------------------------------------

    def _operator(self, number: int, operator: Any) -> None:
        code = self.importer.model.operator_codes[operator.opcode_index]
        flat = [None if t < 0 else self.values[t] for t in ints(operator.inputs)]
        outputs = ints(operator.outputs)
        at = place_of(self.index, number)
        name = versions.op_name(code)
        op: Any
        inputs: Sequence[Operand]
        attrs: Mapping[str, Any]
        try:
            if name == "CUSTOM":
                op, inputs, attrs = self._custom(code, number, operator, flat, outputs)
            else:
                op, inputs, attrs = self._builtin(name, int(code.version), operator, flat, at)
        except OpError as error:
            self.importer.unreadable(error)
            op, inputs, attrs = ExternalOp(name), flat, external_attrs(None, "write", int(code.version))
        self._add(op, inputs, attrs, outputs, at)

    def _builtin(
        self, name: str, version: int, operator: Any, flat: Sequence[Value | None], at: str
    ) -> tuple[Any, Any, dict[str, Any]]:
        op = _builtin(name, at)
        options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
        dtypes = [self.tensors[t].dtype for t in ints(operator.outputs)] if op.typed_by else ()
        attrs = dict(op.from_options(options, dtypes, self.importer.graph).attrs)
        if INTERMEDIATES in op.attr_defs:
            between = ints(operator.intermediates)
            attrs[INTERMEDIATES] = tuple(None if t < 0 else self._intermediate(t) for t in between)
        inputs = group_inputs(op, flat, _Call(name, version, options))
        for declared, operand in zip(op.inputs, inputs):
            if operand is None and not declared.optional:
                raise InvalidArgumentError(op=name, node=at, what=f"input {declared.name!r} is left out")
        return op, inputs, attrs

    def _custom(
        self, code: Any, number: int, operator: Any, flat: Sequence[Value | None], outputs: Sequence[int]
    ) -> tuple[Any, Any, dict[str, Any]]:
        name = code.custom_code or ""
        options = None if operator.custom_options is None else bytes(operator.custom_options)
        version = custom_version(int(code.version), options)
        op = self.importer.definition(self.index, number, name, version)
        if op is None:
            return ExternalOp(name), flat, external_attrs(options, "write", int(code.version))
        if isinstance(op, LiteOperator):
            attrs = op.from_options(options, [self.tensors[t].dtype for t in outputs]).attrs
        else:
            attrs = bind_options(op, options or b"", int(code.version)).attrs
        return op, group_inputs(op, flat, _Call(name, int(code.version), options or b"")), dict(attrs)

    def _intermediate(self, t: int) -> TensorSpec:
        spec = self.spec(t)
        return spec if isinstance(spec, LiteTensorSpec) else LiteTensorSpec(spec.shape, spec.dtype)


INTERMEDIATES = "intermediates"
"""The attribute of operators that have tensors of scales between their steps: the types of these, None for absent."""


def _builtin(name: str, at: str) -> LiteOperator:
    try:
        return get(name)
    except NotFoundError:
        raise UnimplementedError(
            op=name,
            node=at,
            what="no run time computes this operator",
            do="convert the model into operators that have a kernel",
        ) from None
