"""Build steps of the documentation site (`make docs`): the API reference, and the pages that stand outside of docs/.

Lives here: `reference_pages`, which writes a page for each public namespace from signatures, docstrings and the
specifications of operators; MkDocs' hooks `on_config`, `on_files`, `on_page_markdown`.
Not here: the site's layout and navigation (mkdocs.yml), the pages of the gallery (make_gallery.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from opwright import ops
from opwright.ops import definition_lint

ROOT = Path(__file__).parents[2]
OUTSIDE = {"README.md": "readme.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages of the repository that become pages of the site."""

NAMESPACES = {
    "opwright": "Tensors, tracing, operators of your own, and the most common operators.",
    "opwright.math": "Element-wise functions, reductions, segments, special functions.",
    "opwright.nn": "Activations, convolutions, pooling, normalization, losses; layers and models.",
    "opwright.linalg": "Products, decompositions, solvers.",
    "opwright.bitwise": "Bitwise operators of integers.",
    "opwright.signal": "Fourier transforms, windows, frames.",
    "opwright.image": "Resizing, colours, boxes, non-maximum suppression.",
    "opwright.random": "Generators and stateless random numbers.",
    "opwright.strings": "Operators on strings.",
    "opwright.quantization": "Fake quantization, and errors of quantized models.",
    "opwright.sequence": "Operators on batches of sequences (`LoDTensor`).",
    "opwright.ops": "The operator catalogue, kernels, gradient makers, compatibility.",
    "opwright.language": "The kernel language.",
    "opwright.data": "Datasets.",
    "opwright.aot": "Models as native libraries for any processor.",
    "opwright.distribute": "Batch inference, sweeps and training on several processes and machines.",
    "opwright.keras": "Layers, models, training under Keras's names.",
    "opwright.optimizers": "Optimizers and learning-rate schedules.",
    "opwright.train": "Checkpoints.",
    "opwright.saved_model": "Saved models.",
    "opwright.lite": "The converter, the interpreter, custom operators, delegates.",
    "opwright.debugging": "Assertions and numeric checks.",
    "opwright.testing": "Checks of operators.",
    "opwright.errors": "Error classes and codes.",
    "opwright.nest": "Nested structures.",
}


WIDTH = 100
"""Columns of a signature that stands in one line."""


def reference_pages() -> dict[str, str]:
    """Return the Markdown pages of the API reference by path under docs/."""
    index = [
        "# API reference",
        "",
        "Public names by namespace, with signatures, formulas, shapes, dtypes and errors.",
        "",
    ]
    pages = {}
    for namespace, summary in NAMESPACES.items():
        index.append(f"* [`{namespace}`]({namespace}.md): {summary}")
        pages[f"reference/{namespace}.md"] = "\n".join(_namespace_page(namespace, summary))
    return pages | {"reference/index.md": "\n".join(index)}


def _namespace_page(namespace: str, summary: str) -> list[str]:
    root, *path = namespace.split(".")
    module: Any = importlib.import_module(root)
    for name in path:
        module = getattr(module, name)
    lines = [f"# {namespace}", "", summary, ""]
    for name in sorted(module.__all__, key=str.casefold):
        member = getattr(module, name)
        if not inspect.ismodule(member):
            lines += entry(f"{namespace}.{name}", member)
    return lines


def entry(name: str, member: Any) -> list[str]:
    """Return the Markdown lines of one public name: signature, docstring, the operators that it calls, methods."""
    lines = [f"## {name.rpartition('.')[2]}", ""]
    if callable(member):
        lines += ["```python", signature(name, member), "```", ""]
    if inspect.isclass(member) or inspect.isroutine(member) or isinstance(member, registry_types()):
        text = inspect.getdoc(member) or ""
        lines += [*markdown(text), ""]
        for operator in operators_of(member):
            lines += operator_lines(operator)
    else:
        lines += [f"A `{type(member).__name__}`: `{textwrap.shorten(repr(member), 100)}`.", ""]
    if inspect.isclass(member):
        for method, value in inspect.getmembers(member, inspect.isroutine):
            if not method.startswith("_") and (value.__doc__ or "").strip() and method in vars(member):
                lines += [f"### {method}", "", "```python", signature(method, value), "```", ""]
                lines += [*markdown(inspect.getdoc(value) or ""), ""]
    return lines


def registry_types() -> tuple[type, ...]:
    """Return the types of instances that document themselves: operators."""
    return (type(ops.get("Add")),)


def signature(name: str, member: Any) -> str:
    """Return the call of a function or class as source; its bare name if Python knows no signature."""
    try:
        text = f"{name}{inspect.signature(member)}"
    except (TypeError, ValueError):
        return f"{name}(...)"
    text = re.sub(r"'([^']*)'(?=[,)=\s]|$)", r"\1", text) if "->" in text or ": '" in text else text
    return text if len(text) <= WIDTH else text.replace("(", "(\n    ", 1).replace(", ", ",\n    ")


def operators_of(member: Any) -> list[Any]:
    """Return the operators whose specification documents a function: its own, or those it is `documented_by`."""
    own = getattr(member, "operator", None)
    return [own] if isinstance(own, registry_types()) else list(getattr(member, "documents", ()))


def operator_lines(op: Any) -> list[str]:
    """Return the specification of an operator as a table of its parts; its docstring is part of the function's."""
    (spec,) = ops.spec([op]).values()
    lines = [f"Operator `{op.name}`, version {spec['version']}.", ""]
    lines += ["| | name | type | meaning |", "|---|---|---|---|"]
    parts = {part.name: part for part in (*op.inputs, *op.attr_defs.values(), *op.outputs)}
    for kind, rows in (("input", spec["inputs"]), ("attribute", spec["attrs"]), ("output", spec["outputs"])):
        for row in rows:
            meaning = definition_lint.meaning(op, parts[row["name"]])
            lines.append(f"| {kind} | `{row['name']}` | {_type_of(kind, row)} | {meaning} |".replace("\n", " "))
    return [*lines, ""]


def _type_of(kind: str, row: dict[str, Any]) -> str:
    if kind == "attribute":
        words = [row["type"]] if row["required"] else [row["type"], f"default `{row['default']!r}`"]
        return "; ".join([*words, *([row["check"]] if row["check"] else [])]).replace("|", "\\|")
    if row["like"]:
        return f"dtype of `{row['like']}`"
    words = [", ".join(row["dtypes"]) if kind == "input" else str(row["dtype"] or "by inference")]
    words += [word for word in ("optional", "repeated") if row.get(word)]
    if row.get("ranks"):
        words.append(f"rank {', '.join(map(str, row['ranks']))}")
    return "; ".join(words)


MATH = re.compile(r"^( *)\.\. math:: ?(.*(?:\n\1 +\S.*)*)", flags=re.MULTILINE)


def markdown(text: str) -> list[str]:
    """Return a docstring as Markdown: directives of formulas become display mathematics."""

    def display(match: re.Match[str]) -> str:
        formula = " ".join(line.strip() for line in match[2].splitlines())
        return f"\n$$\n{formula}\n$$\n"

    text = MATH.sub(display, text)
    return re.sub(r"(?m)^(raises|returns) ", r"\n**\1** ", text).splitlines()


# ---- MkDocs ---------------------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """List the pages of the API reference in the navigation."""
    (reference,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    reference[0] = {"API": ["reference/index.md", *({name: f"reference/{name}.md"} for name in NAMESPACES)]}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the API reference and the pages that stand outside of docs/."""
    from mkdocs.structure.files import File

    pages = reference_pages()
    for source, target in OUTSIDE.items():
        pages[target] = (ROOT / source).read_text("utf-8").replace("](docs/", "](")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    with tempfile.TemporaryDirectory() as folder:
        for gallery_entry, html in gallery().pages(Path(folder)):
            files.append(File.generated(config, f"gallery/{gallery_entry.name}.html", content=html))
    return files


def gallery() -> Any:
    """Return the module that writes the gallery."""
    spec = importlib.util.spec_from_file_location("make_gallery", Path(__file__).with_name("make_gallery.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its classes
    spec.loader.exec_module(module)
    return module


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Point links that leave docs/ to the pages that stand for their targets, and pictures of the gallery to theirs."""
    for source, target in OUTSIDE.items():
        text = text.replace(f"](../{source})", f"]({target})")
    return re.sub(r"(!\[[^\]]*\]\((gallery/\w+)\.png\))", r"[\1](\2.html)", text)  # pictures lead to their pages
