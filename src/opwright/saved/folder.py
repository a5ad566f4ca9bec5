"""Writing the folder of a saved model, so that it is there whole or not at all.

Lives here: `write_folder`.  Not here: what is in the files (saving.py), reading them (manifest.py).
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import AlreadyExistsError, OpError
from ..core.files import replacing, replacing_folder
from . import files, safetensors
from .manifest import FORMAT, MANIFEST


def write_folder(folder: str, content: dict[str, Any], graphs: bytes, stored: Mapping[str, np.ndarray]) -> None:
    """Write a saved model's files: a new folder appears whole, in an old one the manifest is replaced last."""
    folder = folder.rstrip("/" + os.sep) or folder
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise AlreadyExistsError(what=f"{folder} is a file", wanted="a folder, or nothing yet")
    parent = os.path.dirname(os.path.abspath(folder))
    os.makedirs(parent, exist_ok=True)
    if not os.path.isdir(folder) or not os.listdir(folder):
        complete = False
        try:
            with replacing_folder(folder) as inside:
                _write_files(inside, content, graphs, stored)
                files.sync_folder(inside)
                complete = True
            files.sync_folder(parent)
            return
        except OSError:
            if not (complete and os.path.isdir(folder)):  # else somebody else made it meanwhile
                raise
    old = _files_of(folder)
    mark = f"{zlib.crc32(graphs, zlib.crc32(repr(content['tensors']).encode())):08x}"
    content = {**content, "graphs": f"graphs-{mark}.txt", "variables": f"variables-{mark}.safetensors"}
    _write_files(folder, content, graphs, stored)
    files.sync_folder(folder)
    for name in old - {content["graphs"], content["variables"]}:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _files_of(folder: str) -> set[str]:
    """The files beside the manifest of a saved model that is there already."""
    path = os.path.join(folder, MANIFEST)
    try:
        content = files.read_json(path, "a saved model's manifest")
        return {files.plain_name(content.get(key), path) for key in ("graphs", "variables")} - {MANIFEST}
    except OpError:
        return set()


def _write_files(folder: str, content: dict[str, Any], graphs: bytes, stored: Mapping[str, np.ndarray]) -> None:
    with replacing(os.path.join(folder, content["variables"]), sync=True) as file:
        safetensors.write(file, stored, {"format": FORMAT})
    with replacing(os.path.join(folder, content["graphs"]), sync=True) as file:
        file.write(graphs)
    files.write_json(os.path.join(folder, MANIFEST), content)
