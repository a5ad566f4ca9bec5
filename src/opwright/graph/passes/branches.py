"""Simplification of control flow whose direction is static.

Lives here: BRANCHES, rules for If, Case and While.  Not here: what moves out of loops (loops.py), what is dropped
(dead_code.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Graph, Node, Value
from .constant_folding import fold_constants
from .rewrite_rules import Answer, PatternRewriter, RewriteRule

_LONGEST_CONDITION = 40  # nodes; longer conditions are not worked out ahead


def control_operands(node: Node) -> tuple[Value, ...]:
    """Return the operands that a node of control flow passes to its graphs: all but the one that chooses."""
    return tuple(
        v
        for part in (node.inputs if node.op.name == "While" else node.inputs[1:])
        for v in (part if isinstance(part, tuple) else ())
    )


def taken_branch(node: Node, rewriter: PatternRewriter) -> Answer:
    """Inline the branch of an If or Case with a constant predicate."""
    chooser = node.inputs[0]
    assert isinstance(chooser, Value)
    if chooser.constant is None:
        return None
    if node.op.name == "If":
        branch = node.attrs["then_branch" if bool(chooser.constant) else "else_branch"]
    else:
        branches, i = node.attrs["branches"], int(chooser.constant)
        branch = branches[i] if 0 <= i < len(branches) else branches[-1]
    if not _as_known(branch.outputs, node):
        return None  # before anything of it stands here
    return rewriter.inline(branch, control_operands(node), node.name)


def _as_known(values: Sequence[Value], node: Node) -> bool:
    return all(v.shape.is_subtype_of(out.shape) for v, out in zip(values, node.outputs))


def first_turn(node: Node) -> bool | None:
    """Evaluate a While's condition before the first iteration, if it follows from constants; None otherwise."""
    cond: Graph = node.attrs["cond"]
    if len(cond.nodes) > _LONGEST_CONDITION or cond.effect is not None:
        return None
    rewriter = PatternRewriter(cond)
    rewriter.mapping = dict(zip(cond.inputs, control_operands(node)))
    for old in cond.nodes:
        fresh = rewriter.remap(old)
        values = fold_constants(fresh, rewriter)
        rewriter.replace(old, fresh.outputs if values is None else values)
    result = rewriter.finish().outputs[0].constant
    return None if result is None else bool(result)


def no_turn(node: Node, rewriter: PatternRewriter) -> Answer:
    """Replace a loop without iterations by its operands."""
    if first_turn(node) is not False:
        return None
    variables = node.inputs[0]
    assert isinstance(variables, tuple)
    return variables


def same_either_way(node: Node, rewriter: PatternRewriter) -> Answer:
    """Replace a branch node without effects by operands that all its branches return."""
    if not node.outputs or node.effect is not None:
        return None
    operands, replacements = control_operands(node), []
    for outputs in zip(*(g.outputs for g in node.subgraphs)):
        indices = {g.inputs.index(v) if v in g.inputs else None for g, v in zip(node.subgraphs, outputs)}
        index = indices.pop()
        if indices or index is None:
            return None
        replacements.append(operands[index])
    return replacements


BRANCHES: Sequence[RewriteRule] = (
    RewriteRule("taken_branch", "If Case", taken_branch, "the other branches never run"),
    RewriteRule("same_either_way", "If Case", same_either_way, "whichever runs, the result is the operand"),
    RewriteRule("no_turn", "While", no_turn, "the condition does not hold at first"),
)
