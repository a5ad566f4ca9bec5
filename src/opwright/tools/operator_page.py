"""The page of `opwright op show --html`: an operator's formula, inputs, attributes, versions and lowering rule.

Lives here: `write_operator_page`. Not here: the text on the terminal (catalogue.py), facts (views/operator_facts.py).
"""

from __future__ import annotations

from typing import Any

from .. import ops
from ..lite import ops as lite_ops
from ..pages.charts import formulas
from ..pages.markup import escape, page
from ..pages.tables import table
from ..views.operator_facts import facts_of
from .report import notes, write_file

_TEXT = ("kind", "name", "accepts", "version", "run time", "when", "what", "value")


def write_operator_page(name: str, path: str, builtin: bool) -> None:
    """Write the page. builtin: of .tflite files, with a kernel here. Raises BadFile."""
    op: Any = lite_ops.get(name) if builtin else ops.get(name)
    facts = facts_of(op)
    parts = [f"<main><h1>{escape(facts['name'])}</h1><p>{escape(facts['dialect'])}</p>"]
    if "formula" in facts:
        parts += ["<h2>Formula</h2>", f'<pre class="formula">{escape(facts["formula"])}</pre>']
    if "doc" in facts:
        parts += ["<h2>Documentation</h2>", f"<pre>{escape(facts['doc'])}</pre>"]
    rows = [
        ("input", i.name, f"dtype like {i.like}" if i.like else ", ".join(d.name for d in i.dtypes)) for i in op.inputs
    ]
    for attribute in op.attr_defs.values():
        default = "required" if attribute.required else f"default {attribute.default!r}"
        rows.append(("attribute", attribute.name, f"{attribute.type_name()}; {default}"))
    if rows:
        parts += ["<h2>Inputs and attributes</h2>"]
        parts.append(table(("kind", "name", "accepts"), [(row, None) for row in rows], _TEXT))
    if facts.get("versions"):
        versions = [((version, run_time or "?", when), None) for version, run_time, when in facts["versions"]]
        parts += ["<h2>Versions</h2>", table(("version", "run time", "when"), versions, _TEXT)]
    rule = facts["rule"] or "none: the reference kernel in NumPy runs it"
    parts += ["<h2>Compiled</h2>", table(("what", "value"), [(("lowering rule", rule), None)], _TEXT), "</main>"]
    scripts = formulas() if "formula" in facts else []
    write_file(path, page(facts["name"], "\n".join(parts), scripts=scripts).encode())
    notes().print(f"page: {path}")
