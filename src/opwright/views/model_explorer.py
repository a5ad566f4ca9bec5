"""Graphs as Model Explorer reads them: collections of graphs, and figures of their nodes.

Lives here: `graph_collection`, `node_data`, `FIGURES`. Not here: graphs (graph_documents.py).

Source: model_explorer/graph_builder.py and node_data_builder.py of ai-edge-model-explorer 0.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .graph_documents import rules_of

FIGURES = {
    "w": "bytes of constants",
    "y": "bytes of results",
    "z": "zeros of constants",
    "t": "seconds",
    "p": "share of peak",
    "e": "largest error",
    "q": "quantization error",
}
"""Figures of nodes, by their key in a document."""

INPUTS, OUTPUTS = "inputs", "outputs"  # nodes that a graph's own tensors come from and go to


def graph_collection(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the graphs of a document as a GraphCollection."""
    return {
        "label": document["title"],
        "graphs": [_graph(document, number, graph) for number, graph in enumerate(document["graphs"])],
    }


def node_data(document: Mapping[str, Any], figure: str) -> dict[str, Any]:
    """Return the ModelNodeData of one of FIGURES; empty if no node has it."""
    result = {}
    for number, graph in enumerate(document["graphs"]):
        values = {str(i): {"value": node[figure]} for i, node in enumerate(graph["nodes"]) if figure in node}
        if values:
            gradient = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#d55e00"}]
            result[_identifier(graph, number)] = {"name": FIGURES[figure], "results": values, "gradient": gradient}
    return result


def _identifier(graph: Mapping[str, Any], number: int) -> str:
    return f"{number} {graph['name']}".strip()


def _graph(document: Mapping[str, Any], number: int, graph: Mapping[str, Any]) -> dict[str, Any]:
    source: dict[int, tuple[str, str]] = {v: (INPUTS, str(k)) for k, v in enumerate(graph["inputs"])}
    for i, node in enumerate(graph["nodes"]):
        source |= {v: (str(i), str(k)) for k, v in enumerate(node.get("u", ()))}

    def edges(values: Any) -> list[dict[str, str]]:
        return [
            {"sourceNodeId": source[v][0], "sourceNodeOutputId": source[v][1], "targetNodeInputId": str(k)}
            for k, v in enumerate(values)
            if v in source
        ]

    def tensors(values: Any) -> list[dict[str, Any]]:
        return [{"id": str(k), "attrs": _tensor(document, graph["values"][v])} for k, v in enumerate(values)]

    nodes: list[dict[str, Any]] = [
        {"id": INPUTS, "label": "GraphInputs", "namespace": "", "outputsMetadata": tensors(graph["inputs"])}
    ]
    for i, node in enumerate(graph["nodes"]):
        operator = document["operators"][node["o"]]
        attrs = dict(document["attrs"][node["a"]])
        attrs |= {"name": node.get("n", ""), "source": node.get("at", ""), "run time": node.get("r", "")}
        attrs |= {"recorded at": node.get("f", ""), "made by": rules_of(document, node)}
        nodes.append(
            {
                "id": str(i),
                "label": operator["name"],
                "namespace": "/".join(node.get("s", ())),
                "subgraphIds": [_identifier(document["graphs"][g], g) for _, g in node.get("g", ())],
                "attrs": [{"key": k, "value": v} for k, v in attrs.items() if v],
                "incomingEdges": edges(node.get("i", ())),
                "inputsMetadata": tensors(node.get("i", ())),
                "outputsMetadata": tensors(node.get("u", ())),
            }
        )
    nodes.append({"id": OUTPUTS, "label": "GraphOutputs", "namespace": "", "incomingEdges": edges(graph["outputs"])})
    return {"id": _identifier(graph, number), "nodes": nodes}


def _tensor(document: Mapping[str, Any], value: Any) -> list[dict[str, str]]:
    attrs = {"__tensor_tag": value[0], "tensor_shape": document["types"][value[1]], "quantization": value[2]}
    if value[3]:
        attrs["constant"] = f"{value[4]} bytes"
    return [{"key": k, "value": v} for k, v in attrs.items() if v]
