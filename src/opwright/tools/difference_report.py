"""The page of `opwright diff --html`: errors along the network, and of a quantized model what quantization does to it.

Lives here: `html_page`. Not here: the comparison (aot/differences.py, aot/quantization_errors.py), tables on the
terminal (model_diff.py), drawing (pages/).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..aot.differences import ModelDifferences
from ..aot.quantization_errors import QuantizationErrors, TensorErrors
from ..aot.tensor_differences import TensorDifference
from ..pages.charts import Chart, legend, mark, page_with_charts
from ..pages.markup import escape
from ..pages.tables import table

HISTOGRAMS = 6
"""Tensors whose distributions are drawn: those with the largest relative errors of their own."""
ROUNDING = 1 / math.sqrt(12)  # the root mean squared error of rounding, in steps

DIFFERENCE_COLUMNS = ("node", "operator", "tensor", "type", "largest error", "relative", "mean", "differ", "result")
ERROR_COLUMNS = (
    "node",
    "operator",
    "tensor",
    "rmse / scale",
    "own error",
    "network error",
    "stddev",
    "mean",
    "max",
    "scale",
    "zero point",
    "saturated",
    "worst sample",
)
TEXT = ("operator", "tensor", "type", "result", "sample")


def html_page(result: ModelDifferences, quantization: QuantizationErrors | None = None) -> str:
    """Return the page. quantization: of the same models, if one is a quantized form of the other."""
    title = f"{result.a} and {result.b}"
    verdict = "The outputs agree." if result.agree else "The outputs differ."
    if result.first is not None:
        verdict += f" The first difference is tensor {result.first.name!r}"
        verdict += "." if result.first.node is None else f", of operator {result.first.node}, {result.first.operator}."
    parts: list[str | Chart] = [f"<main><h1>{escape(title)}</h1><p>{escape(verdict)}</p>"]
    parts += ["<h2>Outputs</h2>", _table(result.outputs)]
    drawn = [row for row in result.inner if not row.remark and math.isfinite(row.largest)]
    if drawn:
        parts += ["<h2>Errors along the network</h2>", legend([(0, "agrees"), (1, "differs")]), _along(drawn)]
    if quantization is not None and quantization.tensors:
        parts += _quantization(quantization)
    if result.inner:
        parts += ["<h2>Inner tensors</h2>", _table(result.inner)]
    return page_with_charts(title, [*parts, "</main>"])


def _table(rows: Iterable[TensorDifference]) -> str:
    lines = []
    for row in rows:
        share = row.differing / row.elements if row.elements else 0.0
        verdict = row.remark or ("agrees" if row.agrees else "differs")
        cells = (
            "" if row.node is None else row.node,
            row.operator or "",
            row.name,
            f"{row.dtype}{list(row.shape)}",
            f"{row.largest:.4g}",
            f"{row.relative:.3g}",
            f"{row.mean:.3g}",
            f"{row.differing} of {row.elements}",
            verdict,
        )
        lines.append((cells, share))
    return table(DIFFERENCE_COLUMNS, lines, TEXT)


def _along(rows: Sequence[TensorDifference]) -> Chart:
    positive = [row.largest for row in rows if row.largest > 0]
    least = min(positive, default=1.0) / 2
    columns: dict[str, list[Any]] = {
        "place": [i if row.node is None else row.node for i, row in enumerate(rows)],
        "error": [max(row.largest, least) for row in rows],  # zeros are at the lower edge
        "colour": ["var(--c0)" if row.agrees else "var(--c1)" for row in rows],
        "text": [f"{row.name}\n{row.operator or ''}\nlargest {row.largest:.4g}, mean {row.mean:.3g}" for row in rows],
    }
    marks = [
        mark("ruleX", columns, x="place", y1=least, y2="error", stroke="colour", strokeOpacity=0.4),
        mark("dot", columns, x="place", y="error", fill="colour", r=3, title="text"),
    ]
    return Chart(
        marks,
        "Largest error of each tensor by the operator that computes it; tensors without error are at the lower edge",
        f"Largest errors of {len(rows)} tensors in program order. The table of inner tensors has the same figures.",
        x=_whole_numbers("operator, in program order", columns["place"]),
        y={"label": "largest error", "type": "log", "grid": True, "domain": [least, max(positive, default=1.0) * 1.5]},
        marginLeft=60,
        height=260,
    )


def _whole_numbers(label: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the options of an axis with numbers of tensors or operators, without fractions of them."""
    return {
        "label": label,
        "ticks": max(1, min(max(values, default=0) - min(values, default=0), 12)),
        "tickFormat": "d",
    }


def _quantization(errors: QuantizationErrors) -> list[str | Chart]:
    quantized = [row for row in errors.tensors if row.scale]
    worst = errors.leave_in_float(HISTOGRAMS)
    parts: list[str | Chart] = [
        "<h2>Quantization</h2>",
        f"<p>{errors.samples} samples. The error of an operator's own is that of its quantized form against the float "
        "operator on the same, dequantized inputs; the network error is that against the float model's run. Both are "
        "roots of mean squares, relative to the deviation of the float tensor.</p>",
        legend([(0, "the operator's own error"), (1, "network error")]),
        _relative(errors.tensors),
    ]
    if quantized:
        parts.append(_steps(quantized))
    parts.append("<h3>What to leave in float</h3>")
    suggested = [
        ((row.operator, row.name, f"{row.relative:.3%}", f"{row.saturated:.2%}"), row.relative / worst[0].relative)
        for row in worst
    ]
    parts.append(table(("operator", "tensor", "own error", "saturated"), suggested, TEXT))
    drawn = [row for row in worst if row.edges]
    if drawn:
        parts += ["<h3>Distributions</h3>", legend([(0, "float"), (1, "quantized")])]
        parts += map(_histogram, drawn)
    samples = [
        ((f"{number}",), errors.sample_errors[number] / (max(errors.sample_errors) or 1.0))
        for number in errors.worst_samples[:10]
    ]
    rows = [((*cells, f"{errors.sample_errors[int(cells[0])]:.3%}"), share) for cells, share in samples]
    parts += ["<h3>Worst inputs</h3>", table(("sample", "largest error of outputs, relative"), rows, TEXT)]
    return [*parts, "<h3>All tensors</h3>", _errors(errors.tensors)]


def _relative(rows: Sequence[TensorErrors]) -> Chart:
    columns: dict[str, list[Any]] = {
        "place": list(range(len(rows))),
        "own": [row.relative * 100 for row in rows],
        "network": [(row.network / row.deviation if row.deviation else 0.0) * 100 for row in rows],
        "text": [f"{row.name}\n{row.operator}\nown error {row.relative:.3%}" for row in rows],
    }
    marks = [
        mark("lineY", columns, x="place", y="network", stroke="var(--c1)"),
        mark("ruleX", columns, x="place", y="own", stroke="var(--c0)", strokeWidth=3),
        mark("dot", columns, x="place", y="own", fill="var(--c0)", r=3, title="text"),
        mark("ruleY", {"zero": [0]}, y="zero"),
    ]
    return Chart(
        marks,
        "Relative errors in program order",
        f"Relative errors of {len(rows)} tensors in program order. The table of all tensors has the same figures.",
        x=_whole_numbers("tensor, in program order", columns["place"]),
        y={"label": "%", "grid": True},
        marginLeft=60,
        height=240,
    )


def _steps(rows: Sequence[TensorErrors]) -> Chart:
    columns: dict[str, list[Any]] = {
        "place": list(range(len(rows))),
        "steps": [row.rmse_over_scale for row in rows],
        "text": [f"{row.name}\n{row.operator}\nrmse / scale {row.rmse_over_scale:.3f}" for row in rows],
    }
    marks = [
        mark("ruleX", columns, x="place", y="steps", stroke="var(--c0)", strokeWidth=3),
        mark("dot", columns, x="place", y="steps", fill="var(--c0)", r=3, title="text"),
        mark("ruleY", {"steps": [ROUNDING]}, y="steps", stroke="var(--c1)", strokeDasharray="6 3"),
        mark("ruleY", {"zero": [0]}, y="zero"),
    ]
    return Chart(
        marks,
        "Root mean squared error in steps of quantization; dashed: 0.29, that of rounding alone",
        f"Root mean squared errors of {len(rows)} quantized tensors in steps of their scale.",
        x=_whole_numbers("quantized tensor, in program order", columns["place"]),
        y={"label": "rmse / scale", "grid": True},
        marginLeft=60,
        height=220,
    )


def _histogram(row: TensorErrors) -> Chart:
    marks = [
        mark(
            "rectY",
            {"from": row.edges[:-1], "to": row.edges[1:], "count": counts},
            x1="from",
            x2="to",
            y2="count",
            y1=0,
            fill=colour,
            fillOpacity=0.55,
        )
        for counts, colour in ((row.float_counts, "var(--c0)"), (row.counts, "var(--c1)"))
    ]
    title = f"{row.operator} {row.name}: {row.saturated:.2%} of the float elements are beyond the quantized range"
    return Chart(
        [*marks, mark("ruleY", {"zero": [0]}, y="zero")],
        title,
        f"Histograms of the float and the quantized elements of {row.name}, over the quantized range.",
        x={"label": "value"},
        y={"label": "elements", "grid": True},
        marginLeft=60,
        height=180,
    )


def _errors(rows: Sequence[TensorErrors]) -> str:
    most = max((row.relative for row in rows), default=0.0) or 1.0
    lines = [
        (
            (
                "" if row.node is None else row.node,
                row.operator,
                row.name,
                f"{row.rmse_over_scale:.3f}" if row.scale else "",
                f"{row.relative:.3%}",
                f"{row.network / row.deviation if row.deviation else 0.0:.3%}",
                f"{row.stddev:.4g}",
                f"{row.mean_error:.3g}",
                f"{row.max_abs_error:.4g}",
                f"{row.scale:.5g}" if row.scale else "",
                row.zero_point if row.scale else "",
                f"{row.saturated:.2%}",
                row.worst,
            ),
            row.relative / most,
        )
        for row in rows
    ]
    return table(ERROR_COLUMNS, lines, TEXT)
