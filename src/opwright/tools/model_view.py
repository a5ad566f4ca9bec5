"""`opwright view`: a model as a page, or as files for Model Explorer.

Lives here: the files that are written. Not here: the drawing (views/), custom operators of the command line
(model_runner.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import NotFoundError
from ..views.model_explorer import FIGURES
from ..views.view import ModelView, view
from .inspection import read_model
from .model_runner import operators_for
from .report import BadFile, notes, write_file

FORMATS = ("html", "model-explorer")


def view_model(
    model: str, vs: str | None, output: str | None, kind: str, runs: int, errors: bool, customs: Sequence[str]
) -> None:
    """Write the page, or the graphs and figures of their nodes as JSON. Raises BadFile, and the errors of `view`."""
    target = (
        Path(output)
        if output
        else Path(Path(model).stem or "model").with_suffix(".html" if kind == "html" else ".json")
    )
    others = (".onnx", ".pt2", ".keras")
    paths = [path for path in (model, vs) if path is not None]
    files = {path: read_model(path) for path in paths if not Path(path).is_dir() and Path(path).suffix not in others}
    custom_ops = operators_for(files[model], customs) if (runs or errors) and model in files else ()
    try:
        drawn = view(model, vs, runs=runs, errors=errors, custom_ops=custom_ops)
    except NotFoundError as error:
        raise BadFile(str(error)) from error
    except OSError as error:
        raise BadFile(f"{model}: {error}") from error
    results = {target: drawn.html} if kind == "html" else _files(drawn, target)
    for path, text in results.items():
        write_file(str(path), text.encode())
        notes().print(f"{path}: {len(text.encode())} bytes")


def _files(drawn: ModelView, target: Path) -> dict[Path, str]:
    """Return the collection of graphs, and next to it a file for each figure that nodes have."""
    files = {target: json.dumps(drawn.model_explorer(), allow_nan=False)}
    for figure, label in FIGURES.items():
        rows = drawn.node_data(figure)
        if rows:
            name = label.replace(" ", "_")
            files[target.with_name(f"{target.stem}.{name}.json")] = json.dumps(rows, allow_nan=False)
    return files
