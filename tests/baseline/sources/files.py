"""Files run by both engines.

Lives here: `ENGINES`, `converted`.  Not here: whose files (the other modules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from drawn import answers

import opwright as ow
from opwright.compiler.target import NAMED, processor
from opwright.lite import Interpreter, TFLiteConverter

from ..execution import outcome
from ..outcomes import Entry, digest, failed, inputs_digest

Arrays = Sequence[np.ndarray]


class Made(NamedTuple):
    """A file, what it is run on, and how often: of operators with state each run is another."""

    content: bytes
    inputs: Arrays
    runs: int = 1


Model = Callable[[], Made]


def _reference(content: bytes, inputs: Arrays, runs: int = 1) -> list[np.ndarray]:
    """Return the results of the reference kernels for the inputs, in each run."""
    with ow.flags(compiled=False):
        return list(answers(Interpreter(model_content=content), inputs, runs))


def _compiled_for(target: str) -> Callable[..., list[np.ndarray]]:
    def compiled(content: bytes, inputs: Arrays, runs: int = 1) -> list[np.ndarray]:
        with ow.flags(compiled=True, background=False, target=target):
            return list(answers(Interpreter(model_content=content), inputs, runs))

    return compiled


def _targets() -> list[str]:
    """This processor, and the least one of its kind that is fast: what most people have."""
    here, least = processor(), NAMED["x86-64-v3"]
    return ["host", *(["x86-64-v3"] if here.is_x86 and here.has("avx2") and here.features != least.features else [])]


TARGETS = _targets()
ENGINES: dict[str, Callable[..., list[np.ndarray]]] = {
    "reference": _reference,
    **{f"compiled-{target}": _compiled_for(target) for target in TARGETS},
}


def converted(*concrete: Any) -> bytes:
    """The file of concrete functions."""
    content: bytes = TFLiteConverter.from_concrete_functions(list(concrete)).convert()
    return content


def entries(name: str, model: Model, of: str = "") -> Iterator[Entry]:
    """The entries of a file in each engine. of: a digest of the row it is from, by default of the file."""
    try:
        result = model()
    except Exception as error:
        yield failed(f"{name}/file", error, of)
        return
    of = of or digest(result.content + inputs_digest(result.inputs).encode())
    for engine, run in ENGINES.items():
        yield outcome(f"{name}/{engine}", lambda run=run: run(*result), of)
