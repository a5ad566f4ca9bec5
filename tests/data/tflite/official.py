"""The official corpus, for tests: small files by TensorFlow's converter, and what the official interpreter answered.

    sys.path gets tests/data/tflite by tests/conftest.py:   import official
    for case in official.cases():        case.name, case.path, case.bytes()
        for call in case.calls:          call.signature, call.inputs, call.outputs (dicts of arrays by name)
    official.cases(official.NETWORKS)    the corpus of networks likewise (tests/data/networks)

Calls of one case follow each other on one interpreter. Strings are fixed-width bytes arrays. The answers are the
reference for floats within rounding; a model with state, random numbers or Flex operators says so in its name.

Lives here: reading.  Not here: making (make_official.py, run by hand where TensorFlow is).
"""

from __future__ import annotations

import functools
import pathlib
from typing import NamedTuple

import numpy as np

HERE = pathlib.Path(__file__).parent
NETWORKS = HERE.parent / "networks"


class Call(NamedTuple):
    """One call of a signature with its answer."""

    signature: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]


class Case(NamedTuple):
    """A file with its calls, in order; none where the official interpreter lacks an operator."""

    name: str
    path: pathlib.Path
    calls: tuple[Call, ...]

    def bytes(self) -> bytes:
        """The file."""
        return self.path.read_bytes()


@functools.cache
def _calls(folder: pathlib.Path) -> dict[str, dict[int, Call]]:
    result: dict[str, dict[int, Call]] = {}
    with np.load(folder / "official.npz") as kept:
        for key in kept:
            name, number, signature, side, argument = key.split("|")
            call = result.setdefault(name, {}).setdefault(int(number), Call(signature, {}, {}))
            (call.inputs if side == "in" else call.outputs)[argument] = kept[key]
    return result


@functools.cache
def cases(folder: pathlib.Path = HERE) -> tuple[Case, ...]:
    """Every file of a corpus, by name."""
    calls = _calls(folder)
    return tuple(
        Case(path.stem, path, tuple(call for _, call in sorted(calls.get(path.stem, {}).items())))
        for path in sorted(folder.glob("*.tflite"))
    )


def case(name: str) -> Case:
    """The case of that name. Raises KeyError."""
    return {result.name: result for result in cases()}[name]
