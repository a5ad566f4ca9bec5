"""`opwright build`: write a model as a native library, and print what was written.

Lives here: the reports. Not here: building (aot/), custom operators named on the command line (model_runner.py).
"""

from __future__ import annotations

from rich.table import Table

from .. import aot
from ..compiler.target import NAMED
from .inspection import read_model
from .model_runner import operators_for
from .report import out, print_json


def build_library(
    model: str,
    target: str,
    cpu: str,
    features: str,
    output: str,
    name: str | None,
    kind: str,
    customs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Build a library and print its files and sizes. Raises BadFile, and the errors of `aot.build`."""
    custom_ops = operators_for(read_model(model), customs)
    built = aot.build(model, target, output, name=name, cpu=cpu, features=features, format=kind, custom_ops=custom_ops)
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
        print_json(facts)
        return
    out().print(f"{built.name} for {built.target.name} ({built.target.triple}) in {built.folder}")
    out().print(f"code {built.code} bytes, weights {built.weights}, arena {built.arena}, state {built.state}")
    out().print(" ".join(built.files))


def print_targets(as_json: bool) -> None:
    """Print the short names of targets, with triples and features."""
    if as_json:
        print_json([{"name": t.name, "triple": t.triple, "cpu": t.cpu, "features": t.features} for t in NAMED.values()])
        return
    table = Table("name", "triple", "cpu", "features", box=None)
    for t in NAMED.values():
        table.add_row(t.name, t.triple, t.cpu, t.features)
    out().print(table)
