"""Programs of operators that have rules and change nothing in place.

Lives here: decomposition, operators in place that need none, missing operators. Not here: the walk over nodes
(importer.py), rules (rules/).

PyTorch's `run_decompositions` makes a program functional, and decomposes operators without a rule by PyTorch's tables.
It traces the whole program again, which takes longer than its export. A program whose operators all have rules is taken
as it is, if each tensor that an operator changes in place (`relu_`, `add_`) is one that the program computed and is
read under no other name afterwards: the operator without the underscore is the same then, and its result takes the
tensor's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..missing_operators import ForeignCall, spec_text
from .nodes import attribute, dims_of, is_choice, is_control, module_path, operator_name, ordered_operator
from .rules import TABLE, load_rules

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node

COMPUTED = frozenset(
    {
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "adaptive_max_pool1d",
        "avg_pool1d",
        "batch_norm",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "cosine_similarity",
        "einsum",
        "group_norm",
        "instance_norm",
        "layer_norm",
        "linear",
        "log_softmax",
        "matmul",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "pad",
        "rms_norm",
        "scaled_dot_product_attention",
        "silu",
        "softmax",
        "upsample_bilinear2d",
        "upsample_nearest2d",
    }
)
"""Composite operators whose results are new tensors. The schema of a composite does not tell; others may be views."""


def _calls(graph_module: Any) -> Iterator[Node]:
    """Yield the calls of a program and of its branches and bodies, but for the choice of one of several results."""
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and not is_choice(node.target) and not is_control(node.target):
            if (ordered := ordered_operator(node)) is None or TABLE.find(operator_name(ordered)) is None:
                yield node
        elif node.op == "get_attr" and hasattr(inner := attribute(graph_module, node.target), "graph"):
            yield from _calls(inner)


def _missing(program: ExportedProgram, custom: Mapping[str, Any] | None) -> list[Any]:
    targets = {node.target: None for node in _calls(program.graph_module)}
    return [t for t in targets if TABLE.find(operator_name(t, custom), custom) is None]


# ---- changes in place -------------------------------------------------------------------------------------------


def changed_by(node: Node) -> Node | None:
    """Return the tensor that an operator in place changes, such as x of `relu_(x)`; None if it changes none."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return None
    first: Any = node.args[0] if node.args else None
    return first if hasattr(first, "meta") else None


def _may_alias(node: Node) -> bool:
    """Return whether a result of a call may have the memory of an argument."""
    import torch

    target: Any = node.target
    schema = getattr(target, "_schema", None)
    if schema is None or any(r.alias_info is not None for r in schema.returns):
        return True
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), "CompositeImplicitAutograd")
    return composite and schema.name.removeprefix("aten::") not in COMPUTED


def is_functional(program: ExportedProgram) -> bool:
    """Return whether each operator in place can be replaced by its functional form where it stands.

    It can if it changes its first argument alone, which the program computed, and no view of that memory that existed
    before is used afterwards.
    """
    import torch

    nodes = list(program.graph_module.graph.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    group: dict[Node, Node] = {node: node for node in nodes}
    members: dict[Node, list[Node]] = {node: [node] for node in nodes}

    def join(a: Node, b: Node) -> None:
        a, b = group[a], group[b]
        if a is not b:
            for node in members[b]:
                group[node] = a
            members[a] += members.pop(b)

    changed: list[tuple[Node, Node]] = []
    for node in nodes:
        if node.op != "call_function":
            continue
        schema = getattr(node.target, "_schema", None)
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return False
        if _may_alias(node):
            for argument in node.all_input_nodes:
                join(argument, node)
        if schema is None:
            continue
        if schema.name in ("aten::batch_norm", "aten::instance_norm") and node.args[5] and node.args[3] is not None:
            return False  # running statistics, of which the schema does not tell
        if schema.is_mutable:
            written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
            value = changed_by(node)
            if value is None or written != [schema.arguments[0].name] or not schema.name.endswith("_"):
                return False
            changed.append((node, value))
    for node, value in changed:
        for other in members[group[value]]:
            if other.op in ("placeholder", "get_attr"):
                return False
            before = place[other] < place[node] and other is not value
            if before and any(place[user] > place[node] for user in other.users):
                return False
    return True


# ---- tensors of one memory ---------------------------------------------------------------------------------------


def unaliased(program: ExportedProgram) -> ExportedProgram:
    """Return a program in which a constant that has the memory of a buffer is that buffer.

    Caches of `transformers` are such: an object that is not a module holds the tensors, and the module the same memory
    as buffers. PyTorch does not make programs functional that change such memory.
    """
    import copy

    import torch
    from torch.export.graph_signature import ExportGraphSignature, InputKind

    signature = program.graph_signature
    first: dict[Any, str] = {}
    same: dict[str, str] = {}
    held = [s for s in signature.input_specs if s.kind in (InputKind.PARAMETER, InputKind.BUFFER)]
    constants = [s for s in signature.input_specs if s.kind is InputKind.CONSTANT_TENSOR]
    for spec in [*held, *constants]:
        target = spec.target or ""
        value = program.state_dict.get(target, program.constants.get(target))
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or not value.numel():
            continue
        memory = value.data_ptr(), value.shape, value.stride(), value.dtype
        holder = first.setdefault(memory, spec.arg.name)
        if holder != spec.arg.name and spec.kind is InputKind.CONSTANT_TENSOR and memory[0]:
            same[spec.arg.name] = holder
    if not same:
        return program
    module = copy.deepcopy(program.graph_module)
    nodes = {node.name: node for node in module.graph.nodes if node.op == "placeholder"}
    for name, holder in same.items():
        nodes[name].replace_all_uses_with(nodes[holder])
        module.graph.erase_node(nodes[name])
    module.recompile()
    specs = [s for s in signature.input_specs if s.arg.name not in same]
    dropped = {s.target for s in constants if s.arg.name in same}
    return torch.export.ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=ExportGraphSignature(specs, list(signature.output_specs)),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants={k: v for k, v in program.constants.items() if k not in dropped},
        verifiers=program.verifiers,
    )


# ---- decomposition ----------------------------------------------------------------------------------------------


def decomposed(exported: ExportedProgram, custom: Mapping[str, Any] | None) -> ExportedProgram:
    """Return the program in functional form, with operators that have rules; raise MissingOperators for all others."""
    import torch
    from torch._decomp import decomposition_table

    load_rules()
    program = unaliased(exported)
    if not is_functional(program) or _missing(program, custom):
        tables = {**decomposition_table, **torch.export.default_decompositions()}
        without = {t: tables[t] for t in tables if TABLE.find(operator_name(t, custom), custom) is None}
        with torch.enable_grad():  # PyTorch's own assertions fail in a caller's no_grad
            program = program.run_decompositions(without)
    TABLE.check((_foreign_call(n, custom) for n in _calls(program.graph_module)), custom)
    return program


def _foreign_call(node: Node, custom: Mapping[str, Any] | None) -> ForeignCall:
    schema = getattr(node.target, "_schema", None)
    inputs: list[tuple[str, str]] = []
    attributes: dict[str, Any] = {}
    names = [a.name for a in schema.arguments] if schema is not None else [f"x{i}" for i in range(len(node.args))]
    for name, value in [*zip(names, node.args), *node.kwargs.items()]:
        val = value.meta.get("val") if hasattr(value, "meta") else None
        if val is not None and hasattr(val, "dtype"):
            inputs.append((name, spec_text(str(val.dtype).removeprefix("torch."), dims_of(val))))
        elif isinstance(value, (list, tuple)) and any(hasattr(v, "meta") for v in value):
            inputs.append((name, "Tensor[]"))
        elif isinstance(value, (bool, int, float, str, list, tuple)):
            attributes[name] = value
    val = node.meta.get("val")
    count = len(val) if isinstance(val, (list, tuple)) else 1
    return ForeignCall(operator_name(node.target, custom), module_path(node), tuple(inputs), attributes, count)
