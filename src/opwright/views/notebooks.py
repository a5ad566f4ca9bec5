"""Objects as HTML for notebooks: what `_repr_html_` of each class returns.

Lives here: a function for each kind of object, named by `shown_as` in its class.
Not here: pages (view.py), tables and escaping (pages/), magics of notebooks (tools/notebook_magics.py).

Fragments have no scripts, styles or links. Text of models and data is escaped; drawings are in frames of their own.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from ..core import nest
from ..core.errors import InvalidArgumentError, OpError
from ..lite.format import schema
from ..pages.markup import escape
from ..pages.tables import table
from .operator_facts import facts_of
from .view import view

EDGE = 5  # rows and columns of an array that are shown at each end
LONGEST_CELL = 40
ELEMENTS = 3  # of a dataset
MOST_NODES = 5000  # of a graph that is drawn without being asked


def _headed(title: str, detail: object, body: str) -> str:
    return f"<div><p><b>{escape(title, 200)}</b> {escape(detail)}</p>{body}</div>"


def _pre(text: object) -> str:
    return f"<pre>{escape(text, 20_000)}</pre>"


# ---- arrays ---------------------------------------------------------------------------------------------------------


def _cell(element: Any) -> str:
    if isinstance(element, bytes):
        return repr(element.decode("utf-8", "backslashreplace"))
    if isinstance(element, float | np.floating):
        return f"{element:.6g}"
    return str(element)


def _array(array: np.ndarray) -> str:
    """Return an array of rank 1 or 2 as a table, others as NumPy's text."""
    if array.ndim not in (1, 2) or not array.size:
        with np.printoptions(threshold=200, edgeitems=EDGE):
            return _pre(array)
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    shown_rows, shown_columns = (_shown(n) for n in rows.shape)
    columns = ["" if array.ndim == 2 else "index", *("…" if j is None else str(j) for j in shown_columns)]
    lines = []
    for i in shown_rows:
        cells = ["…" if None in (i, j) else _cell(rows[i, j])[:LONGEST_CELL] for j in shown_columns]
        head = "" if array.ndim == 1 else "…" if i is None else str(i)
        lines.append(([head, *cells], None))
    return table(columns, lines)


def _shown(size: int) -> list[int | None]:
    """Return the indices that are shown, None for a gap."""
    return [*range(size)] if size <= 2 * EDGE + 1 else [*range(EDGE), None, *range(size - EDGE, size)]


def tensor(value: Any) -> str:
    """Return an eager tensor: shape, dtype and elements."""
    return _headed("Tensor", f"shape {value.shape}, {value.dtype.name}", _array(np.asarray(value.numpy())))


def variable(value: Any) -> str:
    """Return a variable: name, shape, dtype and elements."""
    detail = f"{value.name} shape {value.shape}, {value.dtype.name}{'' if value.trainable else ', not trainable'}"
    return _headed("Variable", detail, _array(np.asarray(value.numpy())))


# ---- graphs ---------------------------------------------------------------------------------------------------------


def _drawing(model: Any) -> str:
    """Return the drawing of a graph, or why there is none."""
    try:
        drawn = view(model)
    except InvalidArgumentError as error:
        return f"<p>No drawing: {escape(str(error).splitlines()[0])}</p>"
    count = sum(len(g["nodes"]) for document in drawn.documents for g in document["graphs"])
    if count > MOST_NODES:
        return f"<p>{count} nodes: <code>ow.view(…)</code> draws them.</p>"
    return drawn._repr_html_()


def graph(value: Any) -> str:
    """Return a graph: its drawing."""
    counts = f"{len(value.inputs)} inputs, {len(value.nodes)} nodes, {len(value.outputs)} outputs"
    return _headed(f"Graph {value.name}", counts, _drawing(value))


def concrete_function(value: Any) -> str:
    """Return a trace: its signature and drawing."""
    return _headed("Trace", value, _drawing(value))


def function(value: Any) -> str:
    """Return a function: the drawing of its traces."""
    return _headed("Function", value.__name__, _drawing(value))


def model(value: Any) -> str:
    """Return a model: its summary and drawing."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        value.summary()
    return f"<div>{_pre(printed.getvalue())}{_drawing(value)}</div>"


# ---- datasets, operators, errors, profiles -------------------------------------------------------------------------


def dataset(value: Any) -> str:
    """Return a dataset: its element spec and first elements, which are drawn for it."""
    columns: list[str] = []
    rows = []
    for number, element in enumerate(value.take(ELEMENTS)):
        pairs = nest.flatten_with_paths(element)
        columns = ["/".join(map(str, path)) or "element" for path, _ in pairs]
        rows.append(([str(number), *(_short(leaf) for _, leaf in pairs)], None))
    shown = table(["", *columns], rows, columns) if rows else "<p>no elements</p>"
    return _headed("Dataset", value.element_spec, shown)


def _short(leaf: Any) -> str:
    if not hasattr(leaf, "numpy"):
        return str(leaf)[:200]
    array = np.asarray(leaf.numpy())
    if array.size == 1 and array.ndim == 0:
        return _cell(array[()])[:200]
    with np.printoptions(threshold=8, edgeitems=2, precision=4):
        return f"{leaf.dtype.name}{list(array.shape)} {array}"[:200]


def operator(op: Any) -> str:
    """Return an operator: purpose, formula (by MathJax), inputs, attributes and outputs, versions."""
    facts = facts_of(op)
    parts = [f"<p>{escape(facts['dialect'])}</p>"]
    purpose = facts.get("doc", "").partition(".. math::")[0].strip()
    if purpose:
        parts.append(f"<p>{escape(purpose)}</p>")
    if "formula" in facts:
        parts.append(f"<p>$${escape(facts['formula'])}$$</p>")
    rows = [("input", i.name, f"like {i.like}" if i.like else ", ".join(d.name for d in i.dtypes)) for i in op.inputs]
    rows += [
        ("attribute", a.name, f"{a.type_name()}, {'required' if a.required else f'default {a.default!r}'}")
        for a in op.attr_defs.values()
    ]
    rows += [
        ("output", o.name, f"like {o.like}" if o.like else o.dtype.name if o.dtype else "inferred") for o in op.outputs
    ]
    parts.append(table(("part", "name", "type"), [(row, None) for row in rows], ("part", "name", "type")))
    if "versions" in facts:
        versions = [([str(cell) for cell in row], None) for row in facts["versions"]]
        parts.append(table(("version", "first run time", "needed"), versions, ("needed",)))
    else:
        since = [(a.name, a.since) for a in op.attr_defs.values() if a.since > 1]
        parts.append(f"<p>version {op.version}{''.join(f'; {escape(n)} since {v}' for n, v in since)}</p>")
    kind = "Builtin" if op.name in schema.BuiltinOperator.__members__ else "Operator"
    return _headed(kind, op.name, "".join(parts))


def error(value: OpError) -> str:
    """Return an error: what happened, and the block of found, wanted and try."""
    first, *rest = value.message.splitlines() or [""]
    rows = []
    for line in rest:
        label, _, text = line.strip().partition(" ")
        rows.append(((label, text.strip()), None) if line.startswith("  ") else (("", line), None))
    shown = table(("", " "), rows, ("", " ")) if rows else ""
    return _headed(type(value).__name__, first, shown)


def profile(value: Any) -> str:
    """Return a profile of a model: times by operator and by node, with bars."""

    def cells(row: Any, *names: str) -> list[str]:
        return [*(str(row[name]) for name in names), f"{row['seconds'] * 1e6:.1f}", f"{row['share']:.1%}"]

    kinds = [(cells(row, "operator", "count"), row["share"]) for row in value.operators()]
    nodes = [(cells(row, "node", "operator", "name"), row["share"]) for row in value]
    text = ("operator", "name")
    by_kind = table(("operator", "count", "median us", "share"), kinds, text)
    return _headed(
        "Profile",
        f"{value.runs} runs",
        by_kind + table(("node", "operator", "name", "median us", "share"), nodes, text),
    )
