"""Test that the compiled engine rejects exactly the invalid models that the reference kernels reject.

Each model has one mutation of model_mutations.py. The verdict is the stage at which a model fails: load, allocation,
input, run, or none. test_lite_mutants.py checks the errors of the reference kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from good_models import Good, good
from test_lite_mutants import endless, every_change, feeds_of, run

from opwright import lite
from opwright.compiler.lowering.registry import MODULES
from opwright.core import flags
from opwright.core.errors import OpError
from opwright.lite.format import Model, schema
from thorough import sampled, some

KNOWN = {
    "MIRROR_PAD": ("mode=2", "mode=-1"),
    "PACK": ("values_count=1", "axis=7"),
    "EXPAND_DIMS": ("input 1: element 0 7",),
    "ADD": ("inputs: one too many", "scale inf", "fused_activation_function=7"),
    "RESHAPE": ("input 1: type INT8",),
    "CONV_2D": ("padding=2", "fused_activation_function=-1", "dilation_w_factor=0", "scale nan"),
    "MAX_POOL_2D": ("padding=7", "filter_width=0"),
    "FLOOR_MOD": ("input 1: fed 0", "input 1: a constant of zeros"),
    "RESIZE_BILINEAR": ("half_pixel_centers=True", "align_corners=True"),
    "CONCATENATION": ("axis=7", "scale inf"),
    "FULLY_CONNECTED": ("weights_format=2", "keep_num_dims=True"),
    "SOFTMAX": ("beta=nan", "scale inf"),
    "Mfcc": ("an output that is an input",),
}
"""Changes that are tried each time, of each operator: kinds that only one of the engines once refused, and others."""


def verdict(content: bytes, fed: Any, compiled: bool) -> str:
    with flags.override(compiled=compiled, background=False, verify=False, max_activation_bytes=32 << 20):
        return run(content, fed)[0]


_shaped: dict[int, bytes] = {}


def shaped(result: Good) -> bytes:
    """The model with the shapes that its tensors have once it is allocated, as converters write them: a graph that is
    taken whole is not prepared by the reference."""
    if id(result) not in _shaped:
        _shaped[id(result)] = _with_shapes(result)
    return _shaped[id(result)]


def _with_shapes(result: Good) -> bytes:
    model = result.model()
    with flags.override(compiled=False):
        interpreter = lite.Interpreter(model_content=result.content)
        try:
            for detail, x in zip(interpreter.get_input_details(), result.feeds):
                interpreter.resize_tensor_input(detail["index"], x.shape)
            interpreter.allocate_tensors()
        except (OpError, ValueError):
            return result.content
    for t, known in zip(model.subgraphs[0].tensors, interpreter._subgraphs[0].tensors):
        if np.size(t.shape) != len(known.shape):
            t.shape = list(known.shape)
    return bytes(model.to_bytes())


def check(tried: Iterable[tuple[Any, str, Any]]) -> None:
    wrong = []
    for created, label, change in tried:
        if endless(created, label):
            continue
        model = Model.read(shaped(created))
        try:
            fed = feeds_of(created, model) | (change(model) or {})
            content = model.to_bytes()
        except OpError:  # what it should hold, no file can
            continue
        reference = verdict(content, fed, False)
        if reference == "refused at load":
            continue  # before there is an engine
        result = verdict(content, fed, True)
        if result != reference:
            wrong.append(f"{created}, {label}: reference {reference}, compiled {result}")
    assert not wrong, f"{len(wrong)} verdicts differ, such as\n" + "\n".join(wrong[:40])


def test_operators_with_rules_have_models() -> None:
    assert len(set(MODULES) & set(good())) > 100
    assert lite.ops.get("ADD")


@pytest.mark.parametrize("name", sampled(KNOWN))
def test_one_thing_broken_has_one_verdict(name: str) -> None:
    every = every_change(name)
    chosen = [
        next((c for c in every[i * 97 % len(every) :] + every if label in c[1]), None)
        for label in KNOWN[name]
        for i in range(2)
    ]
    assert all(chosen), chosen
    check(filter(None, chosen))


@pytest.mark.parametrize("name", sampled(["LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"]))
def test_outputs_of_fewer_bytes_are_refused(name: str) -> None:
    """Kernels of float32 would write beyond them."""
    chosen = [c for c in every_change(name) if re.fullmatch(r"output \d+: type (INT8|UINT4)", c[1])]
    assert len(chosen) > 3
    check(some(chosen))


RULED = sorted({name.split(":")[-1] for name in MODULES if name in lite.ops.list_names() or ":" in name})


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", RULED)
def test_each_thing_broken_has_one_verdict(name: str) -> None:
    if name not in good():  # which are made when they are needed: 2,800 models
        assert name not in schema.BuiltinOperator.__members__, f"{name} has a rule and no model"
        pytest.skip("a shipped custom operator: tests/lite/customs has its models")
    check(every_change(name, 400))
