"""Broken models under both engines: what the reference kernels refuse the compiled engine refuses, and nothing else.

The changes are those of breaking.py, one at a time. The verdict is where a model stops: at load, allocation, an input,
a run, or not at all. What it says is the reference's business (test_lite_mutants.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from good_models import Good, good
from test_lite_mutants import endless, every_change, feeds_of, run

from opwright import lite
from opwright.core import flags
from opwright.core.errors import OpError
from opwright.lite.compiled.rules import MODULES
from opwright.lite.format import Model

SAMPLE = 2
"""Changes of each operator that are tried each time."""
COMPILED = sorted(set(MODULES) & set(good()))


def verdict(content: bytes, fed: Any, compiled: bool) -> str:
    with flags.override(compiled=compiled, background=False, verify=False, max_activation_bytes=32 << 20):
        return run(content, fed)[0]


_shaped: dict[int, bytes] = {}


def shaped(made: Good) -> bytes:
    """The model with the shapes that its tensors have once it is allocated, as converters write them: a graph that is
    taken whole is not prepared by the reference."""
    if id(made) not in _shaped:
        _shaped[id(made)] = _with_shapes(made)
    return _shaped[id(made)]


def _with_shapes(made: Good) -> bytes:
    model = made.model()
    with flags.override(compiled=False):
        interpreter = lite.Interpreter(model_content=made.content)
        try:
            for detail, x in zip(interpreter.get_input_details(), made.feeds):
                interpreter.resize_tensor_input(detail["index"], x.shape)
            interpreter.allocate_tensors()
        except (OpError, ValueError):
            return made.content
    for t, known in zip(model.subgraphs[0].tensors, interpreter._subgraphs[0].tensors):
        if np.size(t.shape) != len(known.shape):
            t.shape = list(known.shape)
    return bytes(model.to_bytes())


def check(tried: Iterable[tuple[Any, str, Any]]) -> None:
    wrong = []
    for made, label, change in tried:
        if endless(made, label):
            continue
        model = Model.read(shaped(made))
        try:
            fed = feeds_of(made, model) | (change(model) or {})
            content = model.to_bytes()
        except OpError:  # what it should hold, no file can
            continue
        reference = verdict(content, fed, False)
        if reference == "refused at load":
            continue  # before there is an engine
        found = verdict(content, fed, True)
        if found != reference:
            wrong.append(f"{made}, {label}: reference {reference}, compiled {found}")
    assert not wrong, f"{len(wrong)} verdicts differ, such as\n" + "\n".join(wrong[:40])


def test_operators_with_rules_have_models() -> None:
    assert len(COMPILED) > 100
    assert lite.ops.get("ADD")


def test_one_thing_broken_has_one_verdict() -> None:
    check(change for name in COMPILED for change in every_change(name, SAMPLE)[:SAMPLE])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", COMPILED)
def test_each_thing_broken_has_one_verdict(name: str) -> None:
    check(every_change(name, 400))
