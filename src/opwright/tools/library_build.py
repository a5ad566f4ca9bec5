"""`opwright build`: write a model as a native library, and print what was written.

Lives here: the reports. Not here: building (aot/), custom operators named on the command line (model_runner.py).
"""

from __future__ import annotations

from rich.table import Table

from .. import aot
from ..aot.c_source import PORTABLE_C
from ..aot.size_bounds import parse_bounds
from ..aot.targets import TARGETS, object_format
from .inspection import read_model
from .library_report import document_of, html_page, print_report
from .model_runner import operators_for
from .report import notes, out, print_json, write_file


def build_library(
    model: str,
    target: str,
    cpu: str,
    features: str,
    output: str,
    name: str | None,
    kind: str | None,
    customs: tuple[str, ...],
    bounds: tuple[str, ...],
    weights: str,
    shared: bool,
    threads: bool,
    report: bool,
    page: str | None,
    as_json: bool,
) -> None:
    """Build a library and print its files and sizes, and the report. Raises BadFile, and the errors of `aot.build`."""
    custom_ops = operators_for(read_model(model), customs)
    built = aot.build(
        model,
        target,
        output,
        name=name,
        cpu=cpu,
        features=features,
        format=kind,
        custom_ops=custom_ops,
        bounds=parse_bounds(bounds),
        weights=weights,
        shared=shared,
        threads=threads,
        report=report or page is not None,
    )
    if built.unlinked:
        notes().print(built.unlinked)
    if page is not None and built.report is not None:
        write_file(page, html_page(built.report).encode())
        notes().print(f"page: {page}")
    facts = {
        "folder": str(built.folder),
        "target": built.target.triple,
        "code": built.code,
        "weights": built.weights,
        "arena": built.arena,
        "state": built.state,
        "files": list(built.files),
    }
    if as_json:
        print_json(facts | ({"report": document_of(built.report)} if report and built.report is not None else {}))
        return
    is_source = built.target == PORTABLE_C
    target = "C11" if is_source else f"{built.target.name} ({built.target.triple})"
    out().print(f"{built.name} for {target} in {built.folder}")
    code = f"{'source' if is_source else 'code'} {built.code} bytes"
    out().print(f"{code}, weights {built.weights}, arena {built.arena}, state {built.state}")
    out().print(" ".join(built.files))
    if report and built.report is not None:
        print_report(built.report)


def print_targets(as_json: bool) -> None:
    """Print the short names of targets: where each runs, triples and features, how their libraries are checked."""
    rows = [
        {
            "name": name,
            "about": row.about,
            "triple": row.target.triple,
            "cpu": row.target.cpu,
            "features": row.target.features,
            "format": object_format(row.target),
            "checked": row.checked,
        }
        for name, row in TARGETS.items()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(*rows[0], box=None)
    for row in rows:
        table.add_row(*row.values())
    out().print(table)
    notes().print("host is this machine; other processors: --target TRIPLE --cpu NAME --features +NAME, as in LLVM")
