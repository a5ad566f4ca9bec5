"""Charts of pages: specifications in the terms of Observable Plot, which draws them in the browser.

Lives here: `Chart`, `mark`, `legend`, `page_with_charts`, and the scripts of formulas. Not here: drawing (charts.js,
formulas.js, vendor/), what is shown (tools/, views/).

A mark is one of Plot's (https://observablehq.com/plot/marks) with its options as JSON; options that name a column have
its values. Plot needs no eval, and its SVG takes colours from the page's style, which is why it was chosen over Vega
(docs/view.md#charts).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .markup import escape, page, resource, visible

MARKS = frozenset({"areaY", "barX", "barY", "dot", "lineY", "rectX", "rectY", "ruleX", "ruleY", "text"})
"""Marks that vendor/plot.min.js has."""

OWN_STYLE = """:where(.plot) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot text),
:where(.plot tspan) {
  white-space: pre;
}"""
"""The style element in each drawing of Plot 0.6.17, which the page's policy has to allow."""

LONGEST_LABEL = 200  # characters of a value in a column


class Chart:
    """A chart. marks: of `mark`, from the back to the front; title: text under it; label: what a screen reader says in
    its place; options: of Plot.plot, such as x={"label": "ms"}."""

    def __init__(self, marks: Iterable[dict[str, Any]], title: str, label: str, **options: Any) -> None:
        self.title = title
        self.document = {"marks": list(marks), "label": visible(label, 2000), "options": options}


def mark(
    name: str, columns: Mapping[str, Sequence[Any]] | None = None, bin: Mapping[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Return a mark.

    name: of MARKS; columns: sequences of equal length by name; options: of the mark: channels name columns; bin: the
    outputs of Plot.binX, of which the mark is drawn then
    raises ValueError for another mark or columns of different lengths
    """
    columns = columns or {}
    lengths = {len(values) for values in columns.values()}
    if name not in MARKS or len(lengths) > 1:
        raise ValueError(f"{name}: no mark of {sorted(MARKS)}, or columns of lengths {sorted(lengths)}")
    texts = {
        key: [visible(v, LONGEST_LABEL) if isinstance(v, str) else v for v in values] for key, values in columns.items()
    }
    rows = max(lengths, default=0)
    return {"mark": name, "rows": rows, "columns": texts, "options": options, "bin": bin and dict(bin)}


def legend(entries: Iterable[tuple[int, str]]) -> str:
    """Return the colours of a chart with their texts. entries: numbers of the page's colours, and texts."""
    keys = "".join(
        f'<span class="key"><svg width="12" height="12" aria-hidden="true"><rect class="f{number}" width="12" '
        f'height="12"/></svg>{escape(text)}</span>'
        for number, text in entries
    )
    return f'<p class="legend">{keys}</p>'


def page_with_charts(
    title: object, parts: Iterable[str | Chart], *, styles: Iterable[str] = (), documents: Mapping[str, object] = {}
) -> str:
    """Return a page. parts: markup, whose text was escaped, and charts, in order; styles, documents: as of `page`."""
    charts: list[dict[str, Any]] = []
    lines = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
            continue
        caption = f"<figcaption>{escape(part.title)}</figcaption>"
        lines.append(f'<figure class="chart" id="chart-{len(charts)}">{caption}</figure>')
        charts.append(part.document)
    body = "\n".join(lines)
    if not charts:
        return page(title, body, styles=styles, documents=documents)
    scripts = [library("plot", "Observable Plot"), resource(__package__, "charts.js")]
    return page(
        title, body, styles=styles, scripts=scripts, documents={"charts": charts, **documents}, drawn_styles=[OWN_STYLE]
    )


def formulas() -> list[str]:
    """Return the scripts that draw formulas, in elements `pre` of the class "formula"."""
    return [library("temml", "Temml"), resource(__package__, "formulas.js")]


def library(name: str, title: str) -> str:
    """Return the script of another project with its licence, which copies of it must contain.

    name: of its files in vendor/; title: of the project
    """
    source = resource(__package__, f"vendor/{name}.min.js").partition("//# sourceMappingURL")[0]
    return f"/*! {title}\n{resource(__package__, f'vendor/{name}.LICENSE')}*/\n{source}"
