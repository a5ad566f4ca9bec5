"""Converting for an older run time: whether a finished model runs there, and which nodes say no.

Lives here: the check.  Not here: versions and their run times (format/versions.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph import Graph
from ..format import versions
from ..ops.module import all_graphs
from .errors import ConverterError


def check(model: Any, graphs: Sequence[Graph], runtime: str) -> None:
    """Raises ConverterError naming every node whose operator `runtime` lacks in the version that it needs."""
    late = []
    for subgraph, graph in zip(model.subgraphs, all_graphs(graphs)):
        nodes = [node for node in graph.nodes if node.op.name != "Const"]
        for operator in subgraph.operators:
            name = versions.op_name(model.operator_codes[operator.opcode_index])
            while nodes and nodes[0].op.name == "FAKE_QUANT" != name:  # quantisation took it out
                nodes = nodes[1:]
            node = nodes[0] if nodes else graph.nodes[-1]
            if nodes and (node.op.name == name or name == "CUSTOM"):  # else quantisation put it before the node
                nodes = nodes[1:]
            if name == "CUSTOM":
                continue
            version = versions.stamp(name, versions.view(subgraph, operator))
            if versions.lacks(runtime, name, version):
                since = versions.min_runtime(name, version) or "one newer than is known here"
                where = f" at {node.at}" if node.at else ""
                late.append(f"{name} version {version} needs {since}: {node.name!r}{where}")
    if late:
        found = "\n          ".join(dict.fromkeys(late))  # signatures set up the same variables, each for itself
        raise ConverterError(what=f"the model does not run on run time {runtime}", found=found,
                             wanted=f"operators that {runtime} has",
                             do="a later target_spec.runtime, or other operators at the lines named")  # fmt: skip
