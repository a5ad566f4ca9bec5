"""Files that layers store in .keras archives: `save_assets` and `load_assets` of a layer.

Lives here: their files by path in the archive, as Keras has it, `assets/layers/string_lookup/vocabulary.txt`.
Not here: weights and configurations (weights_io.py), what a layer stores (layers/index_lookup.py).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from .hdf5_weights import has_files, layer_paths

_FOLDER = "assets"


def owners(model: Any, class_names: Mapping[str, str] | None = None) -> Iterator[tuple[str, Any]]:
    """Yield the layers with files, each once, by path. class_names: of Keras, by the names of layers."""
    for path, layer in layer_paths(model, class_names or {}, f"{_FOLDER}/", set()):
        if has_files(layer):
            yield path.rstrip("/"), layer


def _older_owners(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the layers with files by the paths of files of earlier versions: positions in the model."""
    seen: set[int] = set()

    def walk(module: Any, path: str) -> Iterator[tuple[str, Any]]:
        if id(module) in seen:
            return
        seen.add(id(module))
        if has_files(module):
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


def restore_assets(model: Any, files: dict[str, bytes], class_names: Mapping[str, str] | None = None) -> None:
    """Pass the files of an archive to the layers that wrote them; names that leave a layer's folder are ignored."""
    is_older = any(name.removeprefix(f"{_FOLDER}/").partition("/")[0].isdecimal() for name in files)
    by_path = dict(_older_owners(model) if is_older else owners(model, class_names))
    for path, layer in by_path.items():
        inner = tuple(f"{other}/" for other in by_path if other.startswith(f"{path}/"))
        own = {
            name.removeprefix(f"{path}/"): content
            for name, content in files.items()
            if name.startswith(f"{path}/") and not name.startswith(inner)
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, content in own.items():
                parts = name.split("/")
                if ".." in parts or "" in parts or "\\" in name:
                    continue
                full = os.path.join(folder, *parts)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "wb") as file:
                    file.write(content)
            layer.load_assets(folder)
