"""Files that layers store in .keras archives: `save_assets` and `load_assets` of a layer.

Lives here: the walk over the layers that have both, and their files by path in the archive.
Not here: weights and configurations (weights_io.py), what a layer stores (layers/index_lookup.py).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

_FOLDER = "assets"


def owners(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the layers with assets, each once, by path: positions in the model, as those of weights."""
    seen: set[int] = set()

    def walk(module: Any, path: str) -> Iterator[tuple[str, Any]]:
        if id(module) in seen:
            return
        seen.add(id(module))
        if hasattr(module, "save_assets") and hasattr(module, "load_assets"):
            yield path, module
        inner = getattr(module, "layers", None) or (module._sublayers() if hasattr(module, "_sublayers") else ())
        for i, layer in enumerate(inner):
            yield from walk(layer, f"{path}/{i}")

    return walk(model, _FOLDER)


def assets_of(model: Any) -> dict[str, bytes]:
    """Return the files that the layers of a model write, by name in the archive."""
    files = {}
    for path, layer in owners(model):
        with tempfile.TemporaryDirectory() as folder:
            layer.save_assets(folder)
            for directory, _, names in os.walk(folder):
                for name in names:
                    full = os.path.join(directory, name)
                    with open(full, "rb") as file:
                        files[f"{path}/{os.path.relpath(full, folder).replace(os.sep, '/')}"] = file.read()
    return files


def restore_assets(model: Any, files: dict[str, bytes]) -> None:
    """Pass the files of an archive to the layers that wrote them; names that leave a layer's folder are ignored."""
    for path, layer in owners(model):
        own = {k.removeprefix(f"{path}/"): v for k, v in files.items() if k.startswith(f"{path}/")}
        with tempfile.TemporaryDirectory() as folder:
            for name, content in own.items():
                parts = name.split("/")
                if parts[0].isdecimal() or ".." in parts or "" in parts or "\\" in name:
                    continue  # of a layer inside this one
                full = os.path.join(folder, *parts)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "wb") as file:
                    file.write(content)
            layer.load_assets(folder)
