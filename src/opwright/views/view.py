"""`view`: a model or function as one HTML page.

Lives here: `view`, `ModelView`. Not here: graphs (sources.py, graph_documents.py), scripts of the page (*.js), the
command (tools/model_view.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidArgumentError
from ..core.files import replacing
from ..core.lazy_imports import later
from ..lite.importer import place_of
from ..pages.charts import formulas, library
from ..pages.markup import escape, page, resource, visible
from .correspondence import differences, pair_nodes
from .graph_documents import NAME, document_of
from .model_explorer import graph_collection, node_data
from .netron import onnx_graph
from .operator_facts import CATEGORIES, OTHER
from .sources import ViewSource, source_of

if TYPE_CHECKING:
    from . import measurements
else:
    measurements = later(".measurements", __package__)  # needs the compiler

SCRIPTS = ("layout.js", "tree.js", "canvas.js", "viewer.js")


class ModelView:
    """A drawn model. html: the page; save(path): writes it; notebooks show it. documents: the graphs of each model as
    values of JSON; model_explorer(), node_data(), netron(): as these programs read them."""

    def __init__(self, documents: Sequence[dict[str, Any]]) -> None:
        self.documents = tuple(documents)
        self._html: str | None = None

    @property
    def html(self) -> str:
        """The page."""
        if self._html is None:
            self._html = _page(self.documents)
        return self._html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page. Raises OSError."""
        with replacing(path) as file:
            file.write(self.html.encode())

    def model_explorer(self) -> list[dict[str, Any]]:
        """Return the models as collections of graphs; Model Explorer opens files of JSON with one of them."""
        return [graph_collection(document) for document in self.documents]

    def node_data(self, figure: str) -> dict[str, Any]:
        """Return a figure of the first model's nodes, which Model Explorer shows over the graphs of `model_explorer`.

        figure: of `model_explorer.FIGURES`: "w", bytes of constants; "y", of results; "t", seconds; "e", errors
        """
        return node_data(self.documents[0], figure)

    def netron(self) -> list[bytes]:
        """Return the models as ONNX files that Netron opens, without weights; their operators are not ONNX's."""
        return [onnx_graph(document) for document in self.documents]

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, which runs the page's scripts and reaches nothing else."""
        title = escape(self.documents[0]["title"], 200)
        return (
            f'<iframe title="{title}" srcdoc="{_attribute(self.html)}" sandbox="allow-scripts" width="100%" '
            'height="520"></iframe>'
        )

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{d['title']}: {sum(len(g['nodes']) for g in d['graphs'])} nodes in {len(d['graphs'])} graphs"
            for d in self.documents
        )
        return f"<ModelView of {counts}>"


def _attribute(markup: str) -> str:
    return markup.replace("&", "&amp;").replace('"', "&quot;")


def view(
    model: Any,
    vs: Any = None,
    *,
    runs: int = 0,
    errors: bool = False,
    weights: bool = False,
    custom_ops: Sequence[Any] = (),
) -> ModelView:
    """Draw a model, a function or a graph; with `vs` two of them next to each other, with paired nodes.

    model: the path of a .tflite, .onnx, .pt2, .keras, .mlir or .stablehlo file or of a saved model's folder; bytes of a
    .tflite file; a `TFLiteConverter`, for the file that it makes; a function with a signature or traces, a trace, a
    layer or model of known input shapes, a graph. vs: another one. runs: how often a .tflite file is run for the times
    of its nodes. errors: whether both files run on the same random inputs, for the errors of the first one's results,
    and of a quantized one's operators. weights: whether the page has distributions and elements of constants.
    custom_ops: as of `lite.Interpreter`

    >>> ow.view("model.tflite").save("model.html")

    raises NotFoundError for a missing file, InvalidArgumentError for objects without a graph and for runs of models
    that are not .tflite files, and the errors of importers
    """
    return view_of([source_of(m) for m in (model, vs) if m is not None], runs, errors, weights, custom_ops)


def view_of(
    sources: Sequence[ViewSource],
    runs: int = 0,
    errors: bool = False,
    weights: bool = False,
    custom_ops: Sequence[Any] = (),
) -> ModelView:
    """Draw one or two models that have been read; as `view`, which has the arguments and errors."""
    if (runs or errors) and any(s.path is None for s in sources):
        raise InvalidArgumentError(
            op="view",
            what="times and errors are measured on .tflite files",
            found=", ".join(s.title for s in sources if s.path is None),
            do="convert the model, or leave out runs and errors",
        )
    if errors and len(sources) < 2:
        raise InvalidArgumentError(op="view", what="errors are those against another model", do="vs=")
    documents = [document_of(s.graphs, s.title, s.facts, s.stored, weights) for s in sources]
    for source, document in zip(sources, documents):
        _add(document, _versions(source))
        _add(document, {key: {"f": visible(line, NAME)} for key, line in source.lines.items()})
        if runs and source.path is not None:
            _add(document, measurements.measure(source.path, runs, custom_ops))
    if errors and sources[0].path is not None and sources[1].path is not None:
        by_node = measurements.errors_against(sources[0].path, sources[1].path, custom_ops)
        _add(documents[0], {key: {"e": error} for key, error in by_node.items()})
        own = measurements.own_errors(sources[0].path, sources[1].path, custom_ops)
        _add(documents[0], {key: {"q": error} for key, error in own.items()})
    return ModelView(documents)


def _versions(source: ViewSource) -> dict[tuple[int, int], dict[str, Any]]:
    """Return the version of each node in its file, the one that it needs and why, and the first run time with both."""
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for key, need in (source.needs or {}).items():
        row = {"v": need.version, "r": need.runtime, "why": need.why}
        if need.needed != need.version:
            row["d"] = need.needed
        rows[key] = {k: v for k, v in row.items() if v or k == "r"}
    return rows


def _add(document: dict[str, Any], rows: dict[tuple[int, int], dict[str, Any]]) -> None:
    """Add figures to nodes, by subgraph and number of the operator, which nodes name as their source."""
    places = [{node.get("at"): node for node in graph["nodes"]} for graph in document["graphs"]]
    for (subgraph, operator), row in rows.items():
        node = places[subgraph].get(place_of(subgraph, operator))
        if node is not None:
            node.update(row)


def _page(documents: Sequence[dict[str, Any]]) -> str:
    pairs = []
    if len(documents) == 2:
        a, b = documents
        for graph in range(min(len(a["graphs"]), len(b["graphs"]))):
            matched = pair_nodes(a, b, graph)
            pairs.append([graph, matched, differences(a, b, matched, graph)])
    content = {"models": documents, "categories": [*(label for label, _ in CATEGORIES), OTHER], "pairs": pairs}
    title = " and ".join(d["title"] for d in documents)
    body = f"""<header><h1>{escape(title, 200)}</h1>
<label for="search">Search</label><input id="search" type="search" placeholder="name or operator" autocomplete="off">
<select id="graph" aria-label="Graph"></select>
<label for="overlay">Colour</label><select id="overlay"></select>
<button id="fit" type="button">Whole graph</button><button id="open" type="button">Open all</button>
<button id="close" type="button">Close all</button></header>
<div id="work"><main id="panes"></main><nav id="hits" aria-label="Nodes that match" hidden></nav>
<aside id="side" tabindex="0" aria-live="polite" aria-label="The selected node"></aside></div>
<footer id="legend" aria-label="Colours"></footer>"""
    scripts = [library("dagre", "@dagrejs/dagre"), *formulas(), *(resource(__package__, name) for name in SCRIPTS)]
    return page(
        title, body, styles=[resource(__package__, "viewer.css")], scripts=scripts, documents={"content": content}
    )
