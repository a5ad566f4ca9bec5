"""The order of a plan's lines, where another than the recording's lets values die sooner.

Lives here: `early`.  Not here: dropping values after their last use (writer.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import Node, Value


def early(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes in an order in which each reader of nothing but the shape of one value follows the value's
    producer, or is first.

    Gradients read shapes of forward values at the end of a recording, which would keep the tensors alive until then.
    Such nodes are pure and return few numbers.
    """
    movable = {node for node in nodes if _reads_a_shape(node)}
    if not movable:
        return nodes
    maker: dict[Value, Node] = {v: node for node in nodes for v in node.outputs}
    behind: dict[Node | None, list[Node]] = {}
    for node in nodes:
        if node in movable:
            (value,) = node.operands
            behind.setdefault(maker.get(value), []).append(node)
    order: list[Node] = []
    waiting = [n for n in reversed(nodes) if n not in movable] + behind.get(None, [])[::-1]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += reversed(behind.get(node, []))
    return order


def _reads_a_shape(node: Node) -> bool:
    op = node.op
    if not getattr(op, "shape_only", ()) or node.effect is not None or len(list(node.operands)) != 1:
        return False
    return (
        set(op.shape_only) == set(op.input_names)
        and all(v.shape.rank in (0, 1) for v in node.outputs)
        and not any(v.shape.rank is None for v in node.outputs)
    )
