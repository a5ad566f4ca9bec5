"""The files of the benchmarks' networks that this machine has, by both engines on one image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from benchmarks import models as network_files

from opwright.lite import Interpreter

from . import files


def keys() -> list[str]:
    """The files that are there: none is made."""
    return sorted(path.stem for path in network_files.folder().glob("*.tflite"))


def models(key: str) -> Iterator[files.Model]:
    """The network."""
    yield lambda: _model(key)


def _model(key: str) -> files.Made:
    content = (network_files.folder() / f"{key}.tflite").read_bytes()
    return files.Made(content, inputs_of(content))


def inputs_of(content: bytes) -> list[np.ndarray]:
    """Numbers for a network's inputs, the same every time: images of -1 to 1, or any bytes."""
    rng, result = np.random.default_rng(1), []
    for detail in Interpreter(model_content=content).get_input_details():
        dtype = np.dtype(detail["dtype"])
        created = (
            rng.uniform(-1, 1, detail["shape"])
            if dtype.kind == "f"
            else rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, detail["shape"], endpoint=True)
        )
        result.append(created.astype(dtype))
    return result
