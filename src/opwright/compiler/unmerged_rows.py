"""Steps of optimizers by sparse rows, without the merge before them.

Lives here: `with_unmerged_rows`.
Not here: where merging cannot fail (certain_nodes.py), the steps (update_regions.py, kernels/row_steps.py).

A gradient's rows have a size of their own once equal ones are merged, which elements decide. `UpdateRows` adds equal
rows up by itself, with the same bits: so it can read rows of a known number, in the native call that computes them.
"""

from __future__ import annotations

from ..graph import Graph, GraphRewriter, Node, Value
from .certain_nodes import CertainNodes
from .regions import ROWS


def with_unmerged_rows(graph: Graph) -> Graph:
    """Return the graph whose `UpdateRows` read rows from before `MergeRows`, where both cannot fail."""
    if not any(node.op.name == ROWS for node in graph.nodes):
        return graph
    certain, rewriter = CertainNodes(graph.nodes), GraphRewriter(graph)
    for node in graph.nodes:
        merge = merge_of(node)
        copied = node
        if merge is not None and node in certain:
            variable, state, _, _, numbers = node.inputs
            copied = node.replaced(inputs=(variable, state, *merge.inputs[:2], numbers))
        rewriter.nodes.append(rewriter.remap(copied))
    return rewriter.finish()


def merge_of(node: Node) -> Node | None:
    """Return the `MergeRows` whose rows a step reads, if any."""
    if node.op.name != ROWS:
        return None
    _, _, values, indices, _ = node.inputs
    merge = values.node if isinstance(values, Value) else None
    is_merge = merge is not None and merge.op.name == "MergeRows" and indices is merge.outputs[1]
    return merge if is_merge else None
