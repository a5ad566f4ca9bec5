"""`keras.utils.plot_model`: a model as a page, or as a picture by Graphviz.

Lives here: the graph of layers in Graphviz's language.  Not here: pages (views/), which a higher layer draws.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from typing import Any

from ..core import nest
from .keras_tensor import KerasTensor

_PICTURES = (".png", ".svg", ".pdf", ".jpg")


def model_to_dot(
    model: Any, show_shapes: bool = False, show_dtype: bool = False, show_layer_names: bool = False, rankdir: str = "TB"
) -> str:
    """Return the graph of layers of a model in Graphviz's language. Raises ValueError before the model is built."""
    network = getattr(model, "_network", None)
    lines = ["digraph model {", f"  rankdir={rankdir};", "  node [shape=record, fontname=Helvetica];"]
    if network is None:
        if not model.built:
            raise ValueError(
                "This model has not yet been built. Build the model first by calling `build()` or the model"
            )
        layers = list(model.layers)
        edges = list(itertools.pairwise(layers)) if type(model).__name__ == "Sequential" else []
    else:
        layers = list(network.operations)
        edges = []
        for node in network.nodes:
            for tensor in nest.flatten([node.args, node.kwargs]):
                if isinstance(tensor, KerasTensor) and tensor.history is not None:
                    edges.append((tensor.history[0], node.operation))
    for layer in layers:
        label = [type(layer).__name__]
        if show_layer_names:
            label.insert(0, layer.name)
        outputs = [
            t for n in getattr(layer, "nodes", []) for t in nest.flatten(n.outputs) if isinstance(t, KerasTensor)
        ]
        if show_shapes and outputs:
            label.append("output " + ", ".join(str(tuple(t.shape)) for t in outputs[:1]))
        if show_dtype and outputs:
            label.append(outputs[0].dtype.name)
        text = "|".join(part.replace("<", "\\<").replace(">", "\\>") for part in label)
        lines.append(f"  {json.dumps(layer.name)} [label={json.dumps('{' + text + '}')}];")
    lines += [f"  {json.dumps(a.name)} -> {json.dumps(b.name)};" for a, b in dict.fromkeys(edges)]
    return "\n".join([*lines, "}"]) + "\n"


def plot_model(
    model: Any,
    to_file: Any = "model.html",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = False,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    **kwargs: Any,
) -> None:
    """Draw a model: to a page (.html), as `ow.view`, to Graphviz's language (.dot), or to a picture by Graphviz.

    show_shapes, show_dtype, show_layer_names, rankdir, dpi: of .dot files and pictures (.png, .svg, .pdf, .jpg).
    expand_nested, show_layer_activations, show_trainable: accepted
    raises ImportError for a picture where Graphviz's program `dot` is not installed, ValueError for other endings
    """
    path = os.fspath(to_file)
    ending = os.path.splitext(path)[1].lower()
    if ending == ".html":
        sys.modules[__name__.partition(".")[0]].view(model).save(path)  # views are in a higher layer
        return
    if ending not in (*_PICTURES, ".dot"):
        raise ValueError(f"{path}: the name of a picture ends in .html, .dot, {', '.join(_PICTURES)}")
    text = model_to_dot(model, show_shapes, show_dtype, show_layer_names, rankdir)
    if ending == ".dot":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    program = shutil.which("dot")
    if program is None:
        raise ImportError(
            f"{path}: pictures are drawn by Graphviz, whose `dot` is not installed; to_file='model.html' needs none"
        )
    command = [program, f"-T{ending[1:]}", f"-Gdpi={dpi}", "-o", path]
    subprocess.run(command, input=text.encode(), check=True)
