"""Checks of operator definitions, as a table of rules.

Lives here: the rules and `check`.  Not here: checks of a call (definition.py).
A rule examines an operator whose parts are in place and raises TypeError or ValueError naming operator and part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..graph import Graph
from .slots import QUANTIZED
from .var_types import KINDS

if TYPE_CHECKING:
    from .definition import Operator

SETTINGS = ("inplace", "views", "no_need_buffer", "shape_only", "lod", "elementwise", "effect", "control", "quantized")
"""Values of `quantized` in a class that has no method of that name."""
OF_CALL = {
    "operator",
    "attrs",
    "with_inputs",
    "inferred",
    "reference",
    "remembered",
    "chosen",
    "dtype_of",
    "needs_gradient",
}  # names it has
RESERVED = OF_CALL | {"name"}


def _body(op: Operator, body: Mapping[str, Any]) -> None:
    for rule, value in body.items():
        if not callable(value) and not rule.startswith("_"):
            expected = f"Input, Output, Attr, {', '.join(SETTINGS)} or a method"
            raise TypeError(f"operator {op.name}: {rule} = {value!r} is not understood; wanted {expected}")
        if rule in OF_CALL:
            raise ValueError(f"operator {op.name}: the name {rule!r} is taken; name this method otherwise")


def _names(op: Operator, body: Mapping[str, Any]) -> None:
    declared: tuple[Any, ...] = (*op.inputs, *op.outputs, *op.attr_defs.values())
    for part in declared:
        if sum(other is part for other in declared) > 1:
            raise ValueError(f"operator {op.name}: one declaration has two names, {part.name!r} and another; write two")
    for part in (*(i.name for i in op.inputs), *(o.name for o in op.outputs), *op.attr_defs):
        if part in RESERVED:
            raise ValueError(f"operator {op.name}: the name {part!r} is taken; name this input or attribute otherwise")


def _parts(op: Operator, body: Mapping[str, Any]) -> None:
    """Check each declaration by itself: its version, an attribute's default, the ranks and the order of inputs."""
    part: Any
    for part in (*op.inputs, *op.outputs, *op.attr_defs.values()):
        if type(part.since) is not int or part.since < 1:
            raise ValueError(
                f"operator {op.name}: {part.name}: since is a version of the operator, 1 or more; found {part.since!r}"
            )
    optional = ""
    # The inputs of a gradient operator stand in the forward operator's order, and are given by name.
    by_name = op.trusted or any(o.name.endswith("_grad") for o in op.outputs)
    for part in op.inputs:
        if part.since > 1 and not part.optional:
            raise ValueError(
                f"operator {op.name}: input {part.name} has since > 1, so it is optional: calls and files "
                "of earlier versions do not give it"
            )
        for rank in part.ranks or ():
            if type(rank) is not int or rank < 0:
                raise ValueError(
                    f"operator {op.name}: input {part.name}: rank is a number of dimensions, or a tuple "
                    f"of them; found {rank!r}"
                )
        if part.optional and part.lod_of is None and part.since == 1:  # newer ones: `_versions` says where they stand
            optional = optional or part.name
        elif optional and not part.optional and part.lod_of is None and not by_name:
            raise ValueError(
                f"operator {op.name}: the required input {part.name} stands after the optional input "
                f"{optional}; required ones stand first. Where a file fixes this order, declare both "
                "optional and check in infer"
            )
    for part in op.outputs:
        if part.since > 1 and not part.intermediate:
            raise ValueError(
                f"operator {op.name}: output {part.name} has since > 1, so it is intermediate: callers of "
                "earlier versions do not take it"
            )
    for part in op.attr_defs.values():
        if part.since > 1 and part.required:
            raise ValueError(
                f"operator {op.name}: attribute {part.name} has since > 1, so it needs a default: what "
                "the operator did before it"
            )
        if part.default_error is not None:
            wrong = "has the wrong type" if isinstance(part.default_error, TypeError) else "is out of its range"
            raise type(part.default_error)(
                f"operator {op.name}: attribute {part.name}: the default {part.default!r} "
                f"{wrong}; wanted {part.default_error}"
            )


def _likes(op: Operator, body: Mapping[str, Any]) -> None:
    """Check that every `like` names an input and that chains of them are acyclic."""
    by_name = {i.name: i for i in op.inputs}
    item: Any
    for item in (*op.inputs, *op.outputs):
        seen, like = {item.name}, item.like
        while like is not None:
            if like not in by_name:
                raise ValueError(f"operator {op.name}: {item.name} is like {like!r}, which is not an input")
            if like in seen:
                raise ValueError(f"operator {op.name}: {item.name} is like {like!r}, in a circle")
            seen.add(like)
            like = by_name[like].like


def _inferable(op: Operator, body: Mapping[str, Any]) -> None:
    if op.infer_rule:
        return
    by_name = {i.name: i for i in op.inputs}
    for output in op.outputs:
        if output.like is None and not (op.elementwise and output.dtype):
            raise ValueError(f"operator {op.name}: output {output.name} needs `like=`, or the operator an `infer` rule")
        leader = by_name.get(output.like or "")
        if output.repeated or (leader is not None and (leader.repeated or leader.optional)):
            what = "repeated" if output.repeated else f"like {output.like!r}, which is repeated or optional"
            raise ValueError(f"operator {op.name}: output {output.name} is {what}; that needs an `infer` rule")


def _memory(op: Operator, body: Mapping[str, Any]) -> None:
    inputs, outputs = {i.name for i in op.inputs}, {o.name for o in op.outputs}
    for setting, pairs in (("inplace", op.inplace), ("views", op.views)):
        for out, named in pairs.items():
            for inp in (named,) if isinstance(named, str) else named:
                if inp not in inputs or out not in outputs:
                    raise ValueError(f"operator {op.name}: {setting} {out!r}: {inp!r} must name an output and an input")
    for name in op.shape_only:
        if name not in inputs:
            raise ValueError(f"operator {op.name}: shape_only names {name!r}, which is not an input")
    for name in op.no_need_buffer:
        if name not in inputs | outputs:
            raise ValueError(f"operator {op.name}: no_need_buffer names {name!r}, which is not an input or output")


def _gradient(op: Operator, body: Mapping[str, Any]) -> None:
    if op.gradient_rule is not None and not callable(op.gradient_rule):
        raise TypeError(
            f"operator {op.name}: gradient = {op.gradient_rule!r} is not understood; wanted a method, "
            "None, DefaultGradient() or SingleGradient()"
        )


def _lods(op: Operator, body: Mapping[str, Any]) -> None:
    """Check offsets: they belong to another part of the same side, and only a LoD that changes has new ones."""
    item: Any
    for side in (op.inputs, op.outputs):
        names = {i.name for i in side}
        for item in side:
            if item.lod_of is not None and (item.lod_of not in names or item.lod_of == item.name):
                raise ValueError(
                    f"operator {op.name}: {item.name} has lod_of={item.lod_of!r}, which is no other "
                    f"{'input' if side is op.inputs else 'output'}"
                )
    offset_outputs = [o.name for o in op.outputs if o.lod_of is not None]
    if offset_outputs and op.lod != "changed":
        raise ValueError(
            f"operator {op.name}: {offset_outputs[0]} gives a new LoD; say lod = 'changed', found {op.lod!r}"
        )


def _words(op: Operator, body: Mapping[str, Any]) -> None:
    if op.lod not in ("unchanged", "changed", "vanishes", "above", *(f"as {i.name}" for i in op.inputs)):
        raise ValueError(
            f"operator {op.name}: lod is 'unchanged', 'changed', 'vanishes', 'above' or 'as' an input, found {op.lod!r}"
        )
    if not callable(op.quantized_rule) and op.quantized_rule not in QUANTIZED:
        raise ValueError(
            f"operator {op.name}: quantized is one of {QUANTIZED} or a method, found {op.quantized_rule!r}"
        )
    if op.effect not in (None, "read", "write", "random"):
        raise ValueError(f"operator {op.name}: effect is None, 'read', 'write' or 'random', found {op.effect!r}")


def _kinds(op: Operator, body: Mapping[str, Any]) -> None:
    """Check that kinds are known, and that operators on sparse rows have a rule for them."""
    for declared in op.inputs:
        unknown = [k for k in declared.kinds or () if k not in KINDS]
        if unknown or declared.kinds == ():
            raise ValueError(
                f"operator {op.name}: input {declared.name}: kinds are among {', '.join(KINDS)}, "
                f"found {declared.kinds!r}"
            )
    allowed = (*KINDS, *(f"as {i.name}" for i in op.inputs), *(f"of {a}" for a in op.attr_defs))
    for output in op.outputs:
        if output.kind is not None and output.kind not in allowed:
            raise ValueError(
                f"operator {op.name}: output {output.name}: kind is among {', '.join(KINDS)}, 'as' an "
                f"input, 'of' an attribute, found {output.kind!r}"
            )
    takes_rows = [i.name for i in op.inputs if "rows" in (i.kinds or ())]
    if bool(takes_rows) != (op.rows_rule is not None):
        problem = f"input {takes_rows[0]} takes rows" if takes_rows else "on_rows is defined, no input takes rows"
        raise ValueError(f"operator {op.name}: {problem}; rows are declared with Input(kinds=) and computed by on_rows")


def _kernel(op: Operator, body: Mapping[str, Any]) -> None:
    """Check a kernel on scalars: one scalar parameter per input, one result; keyword-only parameters are attributes."""
    kernel = op.kernel_rule
    if not getattr(kernel, "on_scalars", False):
        return
    if len(op.outputs) != 1 or op.outputs[0].repeated:
        names = ", ".join(o.name for o in op.outputs)
        raise ValueError(
            f"operator {op.name}: a kernel on scalars gives one result, the operator {names}; "
            "write one on arrays, or leave it to compute"
        )
    repeated = [i.name for i in op.inputs if i.repeated]
    if repeated:
        raise ValueError(
            f"operator {op.name}: a kernel on scalars takes a scalar of each input, and {repeated[0]} is "
            "repeated; leave it to compute"
        )
    unknown = [name for name in kernel.attrs if name not in op.attr_defs]
    if unknown:
        raise ValueError(f"operator {op.name}: its kernel's keyword-only parameter {unknown[0]!r} is not an attribute")
    required = sum(not i.optional for i in op.inputs)
    if not required <= len(kernel.inputs) <= len(op.inputs):
        raise ValueError(
            f"operator {op.name}: its kernel takes {', '.join(kernel.inputs) or 'nothing'}; "
            f"the inputs are {', '.join(i.name for i in op.inputs)}"
        )


def _control(op: Operator, body: Mapping[str, Any]) -> None:
    """Check control flow: it has graphs among its attributes, and no computation of its own."""
    if op.control:
        if not any(a.type is Graph or a.type == [Graph] for a in op.attr_defs.values()):
            raise ValueError(f"operator {op.name}: control flow needs an attribute of type Graph, to run")
        if op.compute_rule is not None or op.kernels:
            raise ValueError(f"operator {op.name}: control flow has no compute and no kernels: plans write it out")


def _versions(op: Operator, body: Mapping[str, Any]) -> None:
    """Check that no part is newer than the operator, and that newer inputs and outputs come last, as in older files."""
    part: Any
    for side in (op.inputs, op.outputs, op.attr_defs.values()):
        newest = 1
        for part in side:
            if part.since > op.version:
                raise ValueError(f"operator {op.name}: version {op.version} is below the `since` of {part.name}")
            if part.since < newest and part.name not in op.attr_defs:
                raise ValueError(
                    f"operator {op.name}: {part.name} (since={part.since}) stands after a part with "
                    f"since={newest}; newer parts stand last"
                )
            newest = part.since


RULES: tuple[Callable[[Operator, Mapping[str, Any]], None], ...] = (  # in this order: later ones trust earlier ones
    _body,
    _names,
    _parts,
    _likes,
    _inferable,
    _memory,
    _gradient,
    _lods,
    _words,
    _kinds,
    _kernel,
    _control,
    _versions,
)


def check(op: Operator, body: Mapping[str, Any]) -> None:
    """Raise the error of the first rule that fails. body: the class without declarations and known settings."""
    for rule in RULES:
        rule(op, body)
