"""`opwright view`: a model as a page, or as files for Model Explorer or Netron.

Lives here: the files that are written. Not here: the drawing (views/), custom operators of the command line
(model_runner.py).
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import NotFoundError, OpError
from ..views.model_explorer import FIGURES
from ..views.sources import SUFFIXES, ViewSource, source_of
from ..views.view import ModelView, view_of
from .report import BadFile, notes, write_file

SUFFIX_OF = {"html": ".html", "model-explorer": ".json", "netron": ".onnx"}
"""Suffixes of the files that `view_model` writes, by format."""


def view_model(
    model: str,
    vs: str | None,
    output: str | None,
    kind: str,
    runs: int,
    errors: bool,
    weights: bool,
    customs: Sequence[str],
    converted: bool = False,
) -> None:
    """Write the page, or the files of another format. Raises BadFile, and the errors of `view`.

    kind: of SUFFIX_OF; converted: whether the file is drawn that `convert` makes of the first model
    """
    target = Path(output) if output else Path(Path(model).stem or "model").with_suffix(SUFFIX_OF[kind])
    drawn = _drawn(model, vs, runs, errors, weights, customs, converted)
    results: dict[Path, bytes] = {}
    if kind == "html":
        results[target] = drawn.html.encode()
    elif kind == "netron":
        results = dict(zip(_targets(target), drawn.netron()))
    else:
        results = {path: text.encode() for path, text in _files(drawn, target).items()}
    for path, content in results.items():
        write_file(str(path), content)
        notes().print(f"{path}: {len(content)} bytes")


def _targets(target: Path) -> tuple[Path, Path]:
    """Return the files of the two models, which Model Explorer and Netron read one a file."""
    return target, target.with_name(f"{target.stem}.vs{target.suffix}")


def _drawn(
    model: str, vs: str | None, runs: int, errors: bool, weights: bool, customs: Sequence[str], converted: bool
) -> ModelView:
    """Read and draw the models, without the collector of cycles: a sixth of the time of 20,000 nodes."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        sources = [_source(model, converted), *([] if vs is None else [_source(vs)])]
        custom_ops: Sequence[Any] = ()
        if (runs or errors) and sources[0].model is not None:
            from .model_runner import operators_for  # pages without runs need no run time

            custom_ops = operators_for(sources[0].model, customs)
        return view_of(sources, runs, errors, weights, custom_ops)
    finally:
        if collecting:
            gc.enable()


def _source(path: str, converted: bool = False) -> ViewSource:
    """Return the graphs of a model. Raises BadFile for files that cannot be read, among them damaged .tflite files."""
    try:
        if converted:
            from .conversion import converter_of  # pages of files need no converter

            converter = converter_of(path)
            converter.allow_custom_ops = True
            return source_of(converter)._replace(title=Path(path).name)
        return source_of(path)
    except OSError as error:
        raise BadFile(f"{path}: {error}") from error
    except NotFoundError as error:
        raise BadFile(str(error)) from error
    except OpError as error:
        if os.path.isdir(path) or Path(path).suffix in SUFFIXES[1:]:
            raise
        raise BadFile(f"{path}: {error}") from error


def _files(drawn: ModelView, target: Path) -> dict[Path, str]:
    """Return a file with the collection of each model's graphs, and next to it one for each figure that nodes have."""
    texts = (json.dumps(graphs, allow_nan=False) for graphs in drawn.model_explorer())
    files = dict(zip(_targets(target), texts))
    for figure, label in FIGURES.items():
        rows = drawn.node_data(figure)
        if rows:
            name = label.replace(" ", "_")
            files[target.with_name(f"{target.stem}.{name}.json")] = json.dumps(rows, allow_nan=False)
    return files
