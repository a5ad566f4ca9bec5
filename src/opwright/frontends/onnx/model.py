"""`from_onnx`: an ONNX model as a function of catalogue operators.

Lives here: the types of a model's inputs, tracing, inputs whose values are parts of the graph.
Not here: reading (files.py), execution (execution.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core import nest
from ...core.dtypes import string
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...ops.tensor import TensorLike
from ..image_layout import are_channels_last, channels_first, channels_last, images_last
from ..importing import ImportedFunction, tensor_of
from ..missing_operators import spec_text
from .execution import GraphContext, OnnxProgram, ValueRequired
from .files import dtype_of_code, read_model

MAX_VALUES = 1024
"""Greatest number of elements of an input that calls may be specialised to: axes, shapes, scales."""


class KnownArray:
    """An input whose value is a part of the graph: calls with equal arrays share a trace."""

    __slots__ = ("_key", "array")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        content = array.tolist() if array.dtype == object else array.tobytes()
        self._key = (array.shape, array.dtype.str, str(content) if isinstance(content, list) else content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownArray) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class OnnxFunction(ImportedFunction):
    """An ONNX model. specialised: the positions of inputs whose values are parts of the graph (axes, shapes)."""

    specialised: frozenset[int] = frozenset()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.specialised:
            try:
                return super().__call__(*args, **kwargs)
            except ValueRequired as error:
                if self.input_signature is not None or not error.inputs:
                    raise
        (bound, _) = self.signature.bind(args, kwargs)
        if not self.specialised:  # a model whose inputs have no types before a call
            self.specialised = frozenset(i for i, a in enumerate(bound) if _is_small_array(a))
        return super().__call__(
            *(KnownArray(_array(a)) if i in self.specialised and a is not None else a for i, a in enumerate(bound))
        )


def _is_small_array(value: Any) -> bool:
    return hasattr(value, "shape") and _array(value).ndim <= 1 and _array(value).size <= MAX_VALUES


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if isinstance(value, TensorLike) else value)


def _graph_inputs(graph: Any, fixed: Mapping[str, np.ndarray]) -> list[Any]:
    """Return the inputs of a graph without an initial or fixed value.

    raises InvalidArgumentError for repeated names, nameless outputs, and fixed values that are of no input
    """
    initial = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    if len({i.name for i in graph.input}) < len(graph.input):
        raise InvalidArgumentError(
            op="from_onnx", what="two inputs of one name", found=", ".join(i.name for i in graph.input)
        )
    if any(not o.name for o in graph.output):
        raise InvalidArgumentError(op="from_onnx", what="an output has no name", node=graph.name)
    unknown = fixed.keys() - {i.name for i in graph.input}
    if unknown:
        raise InvalidArgumentError(
            op="from_onnx",
            what="no inputs of these names",
            found=", ".join(sorted(unknown)),
            wanted=", ".join(i.name for i in graph.input),
        )
    return [i for i in graph.input if i.name not in initial and i.name not in fixed]


def from_onnx(
    model: Any,
    *,
    custom: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    input_layout: str | None = None,
    output_layout: str | None = None,
) -> ImportedFunction:
    """Return an ONNX model as a `Function` of catalogue operators, which runs, differentiates, converts and is saved.

    model: the path of a .onnx file, its bytes, or a ModelProto; opsets 7 to 28. Needs the package `onnx`
    (`pip install 'opwright[onnx]'`) during the import only. External data is read from the model's folder and mapped.
    custom: operators by foreign name, such as {"my::op": MyOp}: an `@ow.operator`, or a function of the inputs and, by
    keyword, the attributes. values: inputs that are always the same, by name; they become constants.
    input_layout, output_layout: "nhwc" lets the function take, and return, images of rank 4 as [n, h, w, c].
    Inputs have the model's names and shapes; symbolic dimensions may have any size. Results are a tensor, or a tuple of
    them in the model's order. An input whose value decides about the graph (axes, a shape) specialises the function:
    each value has its own trace.
    raises MissingOperators, which lists every operator without a rule; InvalidArgumentError for damaged files, and with
    the node's name for operators that do not fit their inputs; FailedPreconditionError without the package `onnx`
    """
    nhwc, returns_last = are_channels_last("from_onnx", input_layout=input_layout, output_layout=output_layout)
    proto, reader = read_model(model)
    program = OnnxProgram(proto, reader, custom)
    graph = proto.graph
    fixed = {name: np.asarray(v) for name, v in (values or {}).items()}
    inputs = _graph_inputs(graph, fixed)
    specs = [_spec(i) for i in inputs]
    texts = {s.name or "": spec_text(s.dtype, s.shape.dims) for s in specs if isinstance(s, TensorSpec)}
    program.rules.check(program.calls(graph, texts), program.custom)
    for function in proto.functions:
        program.rules.check(program.calls(function, {}), program.custom)
    if nhwc:
        specs = [_channels_last(s) for s in specs]
    names = [i.name for i in inputs]

    def body(*tensors: Any) -> Any:
        context = GraphContext(program, program.versions)
        context.values.update(fixed)
        for name, tensor in zip(names, tensors):
            value = tensor.array if isinstance(tensor, KnownArray) else tensor
            context.values[name] = channels_first(value) if nhwc and isinstance(value, TensorLike) else value
            if isinstance(value, TensorLike) and _is_small(value):
                context.sources[id(value)] = frozenset({name})
        context.execute(graph)
        results = [nest.map_structure(tensor_of, context.value(o.name)) for o in graph.output]
        results = nest.map_structure(images_last, results) if returns_last else results
        return results[0] if len(results) == 1 else tuple(results)

    typed = all(isinstance(s, TensorSpec) for s in specs)
    result = OnnxFunction(
        body,
        specs if typed else None,
        name=graph.name or "model",
        source=f"the ONNX model {graph.name!r}",
        parameters=names,
        output_names=[o.name for o in graph.output],
    )
    if typed:
        try:
            result.concrete()
        except ValueRequired as error:
            if not error.inputs:
                raise
            specialised = OnnxFunction(
                body,
                None,
                name=graph.name or "model",
                source=result.source,
                parameters=names,
                output_names=result.output_names,
            )
            small = [i for i, s in enumerate(specs) if _is_small(s)]
            specialised.specialised = frozenset(small)
            return specialised
    return result


def _channels_last(spec: TensorSpec | None) -> TensorSpec | None:
    if spec is None or spec.shape.dims is None:
        return spec
    return TensorSpec(channels_last(spec.shape.dims), spec.dtype, name=spec.name)


def _is_small(value: Any) -> bool:
    rank = value.shape.rank
    return rank is not None and (rank <= 1 or value.dtype is string) and (value.shape.num_elements() or 0) <= MAX_VALUES


def _spec(info: Any) -> TensorSpec | None:
    """Return the type of an input; None for sequences and optional values, which have none before a call."""
    kind = info.type.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return None
    if kind != "tensor_type":
        raise InvalidArgumentError(op="from_onnx", node=info.name, what="an input is not a tensor", found=kind)
    tensor = info.type.tensor_type
    dtype = dtype_of_code(tensor.elem_type, f"input {info.name!r}")
    if not tensor.HasField("shape"):
        return TensorSpec(None, dtype, name=info.name)
    sizes: Sequence[int | None] = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    if any(s is not None and s < 0 for s in sizes):
        raise InvalidArgumentError(op="from_onnx", node=info.name, what="an input has a damaged shape", found=sizes)
    return TensorSpec(sizes, dtype, name=info.name)
