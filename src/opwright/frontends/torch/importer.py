"""`from_torch`: programs of `torch.export` as functions of catalogue operators.

Lives here: reading and exporting programs, variables that share PyTorch's memory, the walk over nodes.
Not here: programs of operators with rules (decomposition.py), rules (rules/, control_flow.py), what importers share
(frontends/importing.py).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import as_dtype
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.extras import optional_module
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...ops import dispatch
from ..image_layout import are_channels_last, channels_first, channels_last, images_last
from ..importing import ImportedFunction, tensor_of
from .archives import check_archive
from .control_flow import CONTROL, Body
from .decomposition import changed_by, decomposed
from .detectors import exportable
from .nodes import (
    attribute,
    context_of,
    dims_of,
    dtype_of,
    is_choice,
    is_control,
    module_path,
    operator_name,
    ordered_operator,
    source_line,
)
from .rules import TABLE, AtenCall
from .schemas import declared

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import Node

PASSED = ("device", "layout", "memory_format", "pin_memory", "dtype", "generator", "non_blocking")
"""Keyword arguments that rules do not need: the dtype of a result is known."""


def from_torch(
    program: Any,
    example_inputs: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    custom: Mapping[str, Any] | None = None,
    input_layout: str | None = None,
    output_layout: str | None = None,
    name: str | None = None,
) -> ImportedFunction:
    """Return a PyTorch program as a function of catalogue operators.

    The function takes the program's tensors, flat, by position or by the names of the program's inputs, and returns its
    results as nested lists, tuples and dictionaries. An input that the program changes in place is left as it is.

    program: a `torch.nn.Module`, which is exported for the example inputs in its present mode (`eval()` for
    inference); a `torch.export.ExportedProgram`; or the path of a `.pt2` file. dynamic_shapes: as of
    `torch.export.export`; such sizes are unknown ones of the function. custom: operators by name, such as
    {"my::op": MyOp}: an `@ow.operator`, which takes the tensors by position and other arguments by name, or a
    function. input_layout, output_layout: "nhwc" lets the function take, and return, images of rank 4 as [n, h, w, c].

    Parameters become variables, trainable if they require gradients, and so do buffers that the program changes. They
    share memory with the module's tensors until they are assigned. Other tensors are constants.

    raises MissingOperators with all operators that have neither a rule nor a decomposition; InvalidArgumentError for
    arguments that do not fit, or a node that a rule does not take, and a .pt2 file with more in it than tensors and
    operators, which PyTorch would execute (archives.py); FailedPreconditionError without torch.
    """
    optional_module("torch")
    layouts = are_channels_last("from_torch", input_layout=input_layout, output_layout=output_layout)
    if isinstance(program, (str, os.PathLike)):
        if not os.path.exists(program):
            raise InvalidArgumentError(op="from_torch", what="no such file", found=str(program))
        check_archive(program)
        with declared(program):
            functional = decomposed(_loaded(program), custom)
    else:
        functional = decomposed(_exported(program, example_inputs, example_kwargs, dynamic_shapes), custom)
    return _Importer(functional, custom or {}, *layouts).function(name)


def _loaded(path: str | os.PathLike[str]) -> ExportedProgram:
    import torch

    log = logging.getLogger("torch.export")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns of what it then raises
    try:
        return torch.export.load(os.fspath(path))
    except Exception as error:  # whatever its reader raises on damaged files
        raise InvalidArgumentError(
            op="from_torch", what=f"no program of torch.export: {_innermost(error)}", found=str(path)
        ) from error
    finally:
        log.setLevel(level)


def _innermost(error: BaseException) -> BaseException:
    """Return the first of errors that follow from each other: PyTorch's last one says only that there was one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _exported(program: Any, inputs: Any, kwargs: Any, dynamic_shapes: Any) -> ExportedProgram:
    import torch

    if isinstance(program, torch.export.ExportedProgram):
        return program
    if not isinstance(program, torch.nn.Module):
        raise InvalidArgumentError(
            op="from_torch",
            what="neither a module, an exported program nor a file",
            found=type(program).__name__,
            wanted="torch.nn.Module, torch.export.ExportedProgram, or the path of a .pt2 file",
        )
    if inputs is None:
        raise InvalidArgumentError(
            op="from_torch", what="a module is exported for example inputs", do="from_torch(module, (x,))"
        )
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    with exportable():
        return torch.export.export(program, inputs, dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False)


# ---- values -----------------------------------------------------------------------------------------------------


def shared_array(value: torch.Tensor) -> np.ndarray:
    """Return an array on the memory of a dense tensor; of a copy, if its elements are not in order."""
    import torch

    value = value.detach().cpu().contiguous()
    if value.dtype is torch.bfloat16:
        return np.asarray(value.view(torch.int16).numpy().view(dtypes.bfloat16.np))
    return np.asarray(value.resolve_conj().resolve_neg().numpy())


def _variable(name: str, value: torch.Tensor, trainable: bool) -> Variable:
    view = shared_array(value)
    variable = Variable(np.empty(view.shape, view.dtype), trainable=trainable, name=name, dtype=as_dtype(view.dtype))
    variable.write_array(view)
    return variable


def _as_argument(value: Any) -> Any:
    import torch

    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.Tensor):
        return shared_array(value)
    return value


class _Importer:
    """One program. nhwc, returns_last: whether images among its inputs and its results are channels-last."""

    def __init__(self, program: ExportedProgram, custom: Mapping[str, Any], nhwc: bool, returns_last: bool) -> None:
        self.program, self.custom, self.nhwc, self.returns_last = program, custom, nhwc, returns_last
        self.variables: dict[str, Variable] = {}
        self.constants: dict[str, Any] = {}
        self.inputs: list[tuple[str, TensorSpec]] = []
        self.mutated: dict[str, str] = {}
        self._bind()

    def _bind(self) -> None:
        """Sort the placeholders: inputs, variables, constants."""
        import torch
        from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

        program = self.program
        for output in program.graph_signature.output_specs:
            if output.kind is OutputKind.BUFFER_MUTATION:
                self.mutated[output.arg.name] = output.target or ""
        nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        held: dict[int, Variable] = {}
        for spec in program.graph_signature.input_specs:
            arg_name = spec.arg.name
            if spec.kind is InputKind.USER_INPUT:
                if isinstance(spec.arg, ConstantArgument):
                    self.constants[arg_name] = spec.arg.value
                    continue
                val = nodes[arg_name].meta["val"]
                if not isinstance(val, torch.Tensor):
                    if isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                        kind = "int64" if isinstance(val, torch.SymInt) else "float32"
                        self.inputs.append((arg_name, TensorSpec([], as_dtype(kind), arg_name)))
                    else:
                        self.constants[arg_name] = val
                    continue
                dims = channels_last(dims_of(val)) if self.nhwc else dims_of(val)
                self.inputs.append((arg_name, TensorSpec(dims, dtype_of(val.dtype), arg_name)))
                continue
            target = spec.target or ""
            if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                value = program.state_dict.get(target)
                if value is None:
                    value = program.constants[target]
                if spec.kind is InputKind.PARAMETER or target in self.mutated.values():
                    if id(value) not in held:
                        held[id(value)] = _variable(target, value, bool(value.requires_grad))
                    self.variables[arg_name] = held[id(value)]
                else:
                    self.constants[arg_name] = shared_array(value)
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                self.constants[arg_name] = shared_array(program.constants[target])
            else:
                self.constants[arg_name] = None  # tokens; objects are refused where they are used

    def function(self, name: str | None) -> ImportedFunction:
        """Return the program as a function."""
        specs = [spec for _, spec in self.inputs]
        variables = list({id(v): v for v in self.variables.values()}.values())
        return ImportedFunction(
            self.run, specs, name=name or "torch_program", source="a torch.export program", variables=variables
        )

    def run(self, *arguments: Any) -> Any:
        """Execute the program on tensors."""
        from torch.export.graph_signature import OutputKind

        environment: dict[str, Any] = {**self.constants, **self.variables}
        for (name, _), argument in zip(self.inputs, arguments, strict=True):
            environment[name] = channels_first(argument) if self.nhwc else argument
        results = self._walk(self.program.graph_module, environment)
        flat: list[Any] = []
        for output, value in zip(self.program.graph_signature.output_specs, results, strict=True):
            if output.kind is OutputKind.BUFFER_MUTATION:
                holder = next(s.arg.name for s in self.program.graph_signature.input_specs if s.target == output.target)
                self.variables[holder].assign(tensor_of(value))
            elif output.kind is OutputKind.USER_OUTPUT:
                if isinstance(value, Variable):
                    value = value.read_value()
                elif isinstance(value, (int, float)) and not isinstance(value, bool):
                    value = np.asarray(value)
                flat.append(images_last(tensor_of(value)) if self.returns_last else tensor_of(value))
        return structured(self.program.call_spec.out_spec, iter(flat))

    # ---- nodes ------------------------------------------------------------------------------------------------------

    def _walk(self, module: Any, environment: dict[str, Any]) -> list[Any]:
        """Execute a graph whose placeholders have values; return its outputs."""
        last = {used.name: node.name for node in module.graph.nodes for used in node.all_input_nodes}
        for node in module.graph.nodes:
            if node.op == "get_attr":
                environment[node.name] = _as_argument(attribute(module, node.target))
            elif node.op == "call_function":
                try:
                    environment[node.name] = self._call(node, environment)
                except UnimplementedError as error:  # of a dtype, which no rule sees
                    if error.op is not None:
                        raise
                    where, at = module_path(node), source_line(node)
                    raise UnimplementedError(
                        op=operator_name(node.target), node=where, at=at, what=str(error)
                    ) from error
                if (changed := changed_by(node)) is not None:
                    environment[changed.name] = environment[node.name]
            elif node.op == "output":
                (results,) = node.args
                several = results if isinstance(results, (list, tuple)) else (results,)
                return [self._argument(value, environment) for value in several]
            for used in node.all_input_nodes:
                if last[used.name] == node.name:
                    environment.pop(used.name, None)
        return []

    def _argument(self, value: Any, environment: Mapping[str, Any]) -> Any:
        if hasattr(value, "meta") and hasattr(value, "target"):
            return environment[value.name]
        if isinstance(value, (list, tuple)):
            return [self._argument(v, environment) for v in value]
        return _as_argument(value)

    def _call(self, node: Node, environment: Mapping[str, Any]) -> Any:
        target: Any = node.target
        inputs = [self._argument(v, environment) for v in node.args]
        if is_choice(target):
            return inputs[0][inputs[1]]
        if is_control(target):
            bodies = [self._body(v) if hasattr(v, "named_modules") else v for v in inputs]
            return CONTROL[target.name()](*bodies)
        options = {k: self._argument(v, environment) for k, v in node.kwargs.items() if k not in PASSED}
        ordered = ordered_operator(node)
        if ordered is not None:  # a token, the operator and its arguments give a token and results
            name = operator_name(ordered, self.custom)
            where = module_path(node)
            results = TABLE.apply(
                name, AtenCall(), inputs[2:], options, node=where, at=source_line(node), custom=self.custom
            )
            return [None, *results]
        name = operator_name(target, self.custom)
        if name in self.custom:
            inputs, options = _by_slots(target, inputs, options)
        trace = dispatch.state.trace
        builder: Any = getattr(trace, "builder", None)
        start = len(builder.nodes) if builder is not None else 0
        at, where = source_line(node), module_path(node)
        results = TABLE.apply(name, context_of(node), inputs, options, node=where, at=at, custom=self.custom)
        if builder is not None and at is not None:
            for created in builder.nodes[start:]:
                builder.locate(created, at)
        val = node.meta.get("val")
        return results if isinstance(val, (list, tuple)) else results[0] if results else None

    # ---- control flow -----------------------------------------------------------------------------------------------

    def _body(self, module: Any) -> Body:
        names = [node.name for node in module.graph.nodes if node.op == "placeholder"]

        def run(*arguments: Any) -> list[Any]:
            results = self._walk(module, dict(zip(names, arguments, strict=True)))
            return [tensor_of(r.read_value() if isinstance(r, Variable) else r) for r in results]

        return run


def _by_slots(target: Any, inputs: list[Any], options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a user's operator: tensors by position, all others by the names of the schema."""
    positional = []
    named = dict(options)
    for argument, value in zip(target._schema.arguments, inputs):
        if "Tensor" in str(argument.type):
            positional.append(value)
        else:
            named[argument.name] = value
    return positional, named


def structured(spec: Any, leaves: Iterator[Any]) -> Any:
    """Return flat results in the structure of a pytree: lists, tuples and dictionaries; classes by their fields."""
    children = _children(spec)
    if children is None:
        return next(leaves)
    values = [structured(child, leaves) for child in children]
    context = getattr(spec, "context", None)
    kind = spec.type
    if kind is tuple:
        return tuple(values)
    keys = context if isinstance(context, (list, tuple)) else None
    if (isinstance(kind, type) and issubclass(kind, dict)) or (keys and all(isinstance(k, str) for k in _keys(keys))):
        names = [str(k) for k in _keys(keys or ())]
        if len(names) == len(values):
            return {k: v for k, v in zip(names, values) if v is not None}
    return values


def _keys(context: Sequence[Any]) -> Sequence[Any]:
    """Return the keys in the context of a node of a pytree, which classes of outputs hold behind the class."""
    return next((c for c in context if isinstance(c, (list, tuple))), context)


def _children(spec: Any) -> list[Any] | None:
    if spec.is_leaf():
        return None
    children = spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs
    return list(children)
