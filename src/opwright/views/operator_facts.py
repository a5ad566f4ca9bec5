"""Text about operators: formula, purpose, versions, and the rule that lowers them to kernels.

Lives here: `facts_of`. Not here: nodes (graph_documents.py), reports on the command line (tools/catalogue.py).
"""

from __future__ import annotations

from typing import Any

from ..compiler.lowering.registry import MODULES
from ..lite.format import schema, versions
from ..lite.ops.definition import LiteOperator
from ..pages.markup import visible

CATEGORIES = (
    ("matrix products and convolutions", ("conv", "fully_connected", "matmul", "dot", "einsum", "svdf")),
    ("recurrence", ("lstm", "gru", "rnn")),
    ("control flow", ("while", "if", "call", "case", "cond", "composite")),
    ("pooling and reductions", ("pool", "reduce", "mean", "sum", "arg_max", "arg_min", "max_over", "topk", "top_k")),
    (
        "normalization and activations",
        ("softmax", "relu", "norm", "logistic", "sigmoid", "tanh", "swish", "gelu", "elu", "softplus", "silu"),
    ),
    ("types and quantization", ("quantize", "cast", "fake_quant", "bitcast")),
    (
        "shapes and copies",
        (
            "reshape",
            "transpose",
            "concat",
            "slice",
            "pad",
            "gather",
            "split",
            "pack",
            "squeeze",
            "expand",
            "shape",
            "tile",
            "reverse",
            "space_to",
            "depth_to",
            "scatter",
            "broadcast",
            "stack",
            "fill",
            "resize",
        ),
    ),
)
"""Categories of operators, by parts of their names in lower case; the first that matches counts."""
OTHER = "element-wise and others"


def category(name: str) -> int:
    """Return the index of an operator's category."""
    flat = name.lower().replace("_", "")
    for i, (_, parts) in enumerate(CATEGORIES):
        if any(part.replace("_", "") in flat for part in parts):
            return i
    return len(CATEGORIES)


def facts_of(op: Any) -> dict[str, Any]:
    """Return what is known of an operator without its nodes: name, category, doc, formula, inputs, versions, rule."""
    name = str(op.name)
    builtin = isinstance(op, LiteOperator) and name in schema.BuiltinOperator.__members__
    facts: dict[str, Any] = {"name": visible(name, 200), "category": category(name)}
    doc, formula = getattr(op, "doc", ""), getattr(op, "formula", "")
    if doc:
        facts["doc"] = visible(doc, 1500)
    if formula:
        facts["formula"] = visible(formula, 600)
    declared = getattr(op, "inputs", ())
    if declared:
        facts["inputs"] = [visible(i.name, 60) for i in declared]
        facts["repeated"] = [int(bool(i.repeated)) for i in declared]
    if builtin:
        facts["dialect"] = "builtin operator of .tflite files"
        facts["versions"] = _versions(name)
    elif getattr(op, "catalogue", False):
        facts["dialect"] = f"operator of the catalogue, version {op.version}"
    else:
        facts["dialect"] = "custom operator"
    module = MODULES.get(f"lite:{name}" if builtin else name) or MODULES.get(name)
    facts["rule"] = "" if module is None else module.removeprefix("opwright.")
    return facts


def _versions(name: str) -> list[list[Any]]:
    """Return rows of version, first official run time, and when a node needs it."""
    row = versions.facts(name)
    when: dict[int, list[str]] = {int(row.get("default", 1)): ["otherwise"]}
    for version, condition in reversed(row.get("rules", ())):
        when.setdefault(int(version), []).insert(0, versions.describe(condition))
    return [[v, versions.min_runtime(name, v), "; or ".join(when[v])] for v in sorted(when)]
