"""Types of variables, and the types that an operator takes and returns (Paddle's var-type inference).

    dense    a tensor
    lod      a tensor whose rows are packed sequences (LoDTensor)
    rows     rows of a larger tensor by their index (IndexedSlices)
    list     a list of tensors, of dtype variant
    object   the object of a handle: state, an iterator, a function; dtype resource

Lives here: the words, their derivation from a definition, `infer`, `check`, types of a whole graph.
Not here: the declarations (slots.py), dtypes and shapes (each operator's `infer`), propagation of LoDs
(lod_propagation.py).

An Input takes dense and lod, lists only if its dtypes include variant, objects if they include resource, rows only if
declared: Input(kinds=...), which requires a rule `on_rows`. An Output is a list or an object by its dtype, or by that
of the input it is `like`; else lod if the operator's `lod` preserves or creates one, else dense. If its dtype depends
on an attribute or it can be rows, the definition declares it: Output[Any](kind="as x"), Output(kind="of dtype"), or a
rule infer_kinds(op), which receives types in place of inputs and returns one per output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..graph.ir import map_operands
from .call import call_rule, contract_violation

if TYPE_CHECKING:
    from ..graph import Graph
    from .definition import Operator
    from .slots import Input, Output

KINDS = ("dense", "lod", "rows", "list", "object")
_OF_HANDLES = {"variant": "list", "resource": "object"}
_WORDS = {
    "rows": "sparse rows",
    "list": "a list of tensors",
    "object": "a handle",
    "lod": "a tensor with a LoD",
    "dense": "a tensor without a LoD",
}


def of_dtype(dtype: DType) -> str:
    """Return the type of a value of this dtype without a LoD."""
    return _OF_HANDLES.get(dtype.name, "dense")


def of_value(value: Any) -> str:
    """Return the type of a tensor, LoDTensor, IndexedSlices, variable (its handle) or anything with a dtype."""
    from .indexed_slices import IndexedSlices
    from .lod_tensor import LoDTensor

    if isinstance(value, IndexedSlices):
        return "rows"
    if isinstance(value, LoDTensor):
        return "lod" if value.lod_level else "dense"
    return of_dtype(value.spec.dtype)


def accepted(declared: Input[Any]) -> tuple[str, ...]:
    """Return the types that an input takes, by declaration or by its dtypes."""
    if declared.kinds is not None:
        return declared.kinds
    types = {of_dtype(d) for d in declared.dtypes}
    if "dense" in types and (declared.lod is None or any(declared.lod)):
        types.add("lod")  # one without is not refused here: its offsets may come as an input of their own
    return tuple(k for k in KINDS if k in types)


def check(op: Operator, var_types: Sequence[Any], node: str | None = None) -> None:
    """Raise InvalidArgumentError naming operator and input for a type that the input does not take.

    var_types: for each input its kind, a list of kinds where repeated, None where absent.
    """
    for declared, kind in zip(op.inputs, var_types, strict=True):
        takes = accepted(declared)
        for one in kind if isinstance(kind, (tuple, list)) else (kind,):
            if one is None or one in takes:
                continue
            if one not in KINDS:
                raise InvalidArgumentError(
                    op=op.name,
                    node=node,
                    what=f"input {declared.name!r} has no known kind",
                    found=repr(one),
                    wanted=", ".join(KINDS),
                )
            raise InvalidArgumentError(
                op=op.name,
                node=node,
                what=f"input {declared.name!r} is {_WORDS[one]}, which the operator does not take",
                found=one,
                wanted=" or ".join(takes),
                do="make them dense first, x.to_dense()" if one == "rows" else None,
            )


def infer(
    op: Operator,
    var_types: Sequence[Any],
    attrs: Mapping[str, Any] | None = None,
    specs: Sequence[Any] | None = None,
    node: str | None = None,
) -> list[Any]:
    """Return the type of each output; a list for a repeated one whose members differ. Inputs are checked first.

    var_types: see `check`. attrs: the call's attributes. specs: of the inputs, if known: the LoD of results may depend
    on ranks; without them it vanishes if it might.
    raises InvalidArgumentError as `check` does
    """
    check(op, var_types, node)
    kinds = [tuple(k) if isinstance(k, list) else k for k in var_types]
    if op.kinds_rule is not None:
        results = call_rule(op, "infer_kinds", op.kinds_rule, op.bind(attrs or {}).with_inputs(kinds), node=node)
        results = [results] if len(op.outputs) == 1 else list(results)
        if len(results) != len(op.outputs):
            raise contract_violation(op, "infer_kinds", f"gave {len(results)} kinds for {len(op.outputs)} outputs")
        return results
    by_name = dict(zip(op.input_names, kinds))
    word = _lod_word(op, kinds, attrs, specs)
    return [_of_output(op, o, by_name, word, attrs or {}) for o in op.outputs]


def _of_output(
    op: Operator, output: Output[Any], by_name: Mapping[str, Any], word: str, attrs: Mapping[str, Any]
) -> object:
    said = output.kind
    if said is not None and said.startswith("as "):
        return by_name[said[3:]]
    if said is not None and said.startswith("of "):
        dtypes_ = getattr(op.bind(attrs), said[3:])
        several = isinstance(dtypes_, (tuple, list))
        kinds = [of_dtype(d) for d in (dtypes_ if several else [dtypes_])]
        kinds = [_with_lod(output, by_name, word) if k == "dense" else k for k in kinds]
        return kinds if output.repeated and several else kinds[0]
    if said is not None:
        return said
    if output.dtype is not None and output.dtype.is_handle:
        return of_dtype(output.dtype)
    leader = by_name.get(output.like or "")
    for kind in leader if isinstance(leader, tuple) else (leader,):
        if kind in ("list", "object"):
            return kind
    return _with_lod(output, by_name, word, any(o.lod_of == output.name for o in op.outputs))


def _with_lod(output: Output[Any], by_name: Mapping[str, Any], word: str, spoken_of: bool = False) -> str:
    """Return whether an output that is a tensor is `lod` or `dense`."""
    if word == "changed":
        return "lod" if spoken_of else "dense"
    if word == "vanishes" or not output.rows:
        return "dense"
    source = [by_name[word[3:]]] if word.startswith("as ") else list(by_name.values())
    flat = [k for part in source for k in (part if isinstance(part, tuple) else (part,))]
    return "lod" if "lod" in flat else "dense"


def _lod_word(op: Operator, kinds: Sequence[Any], attrs: Mapping[str, Any] | None, specs: Sequence[Any] | None) -> str:
    if op.lod_rule is None:
        return op.lod
    if not any(k == "lod" or (isinstance(k, tuple) and "lod" in k) for k in kinds):
        return "vanishes"
    if specs is None:
        unknown = [TensorSpec(None, i.dtypes[0]) for i in op.inputs]
        specs = [None if k is None else (s,) * len(k) if isinstance(k, tuple) else s for k, s in zip(kinds, unknown)]
    word: str = call_rule(op, "lod", op.lod_rule, op.bind(attrs or {}).with_inputs(specs))
    return word


def of_graph(graph: Graph, input_types: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the type of every value of a graph, by name. input_types: of inputs that are not plain tensors.

    raises InvalidArgumentError naming operator, node and input where a node does not take what it reads
    """
    kinds: dict[Any, str] = {v: (input_types or {}).get(v.name, of_dtype(v.dtype)) for v in graph.inputs}
    for node in graph.nodes:
        read = map_operands(kinds.__getitem__, node.inputs)
        results = infer(node.op, read, node.attrs, node.inputs, node.name)
        repeats = len(node.outputs) - sum(not o.repeated for o in node.op.outputs)
        flat: list[str] = []
        for output, kind in zip(node.op.outputs, results):
            flat += kind if isinstance(kind, (tuple, list)) else [kind] * (repeats if output.repeated else 1)
        kinds.update(zip(node.outputs, flat, strict=True))
    return {value.name: kind for value, kind in kinds.items()}


def of_branches(graphs: Sequence[Graph], input_types: Sequence[Any]) -> list[str]:
    """Return the types of the results of branches for these types. Raises InvalidArgumentError if they differ."""
    columns = []
    for graph in graphs:
        by_name = of_graph(graph, {v.name: k for v, k in zip(graph.inputs, input_types)})
        columns.append([by_name[v.name] for v in graph.outputs])
    merged = []
    for i, kinds in enumerate(zip(*columns)):
        different = set(kinds) - {"dense", "lod"}
        if different and len(set(kinds)) > 1:
            raise InvalidArgumentError(what=f"output {i} is of another kind in each branch", found=", ".join(kinds))
        merged.append(kinds[0] if len(set(kinds)) == 1 else "dense")
    return merged


def of_loop(body: Graph, variables: Sequence[Any], captured: Sequence[Any]) -> list[str]:
    """Return the types of a loop's variables that hold on entry and after each iteration.

    raises InvalidArgumentError where a turn makes another kind of one
    """
    kinds = list(variables)
    while True:
        after = of_branches([body], [*kinds, *captured])
        merged = []
        for i, (before, now) in enumerate(zip(kinds, after)):
            if before != now and {before, now} != {"dense", "lod"}:
                raise InvalidArgumentError(
                    what=f"variable {i} of the loop changes its kind in a turn", found=f"{before}, then {now}"
                )
            merged.append(before if before == now else "dense")
        if merged == kinds:
            return kinds
        kinds = merged


def call_on_rows(op: Operator, attrs: Mapping[str, Any], inputs: Sequence[Any], node: str | None = None) -> Any:
    """Run or record a call with sparse rows among its inputs, by the operator's rule for them.

    raises InvalidArgumentError naming operator and input where the input does not take rows
    """
    types = [
        None if x is None else [of_value(y) for y in x] if isinstance(x, (tuple, list)) else of_value(x) for x in inputs
    ]
    check(op, types, node)
    assert op.rows_rule is not None  # definition_checks.py: an input that takes rows comes with it
    return call_rule(op, "on_rows", op.rows_rule, op.bind(attrs), *inputs, node=node)
