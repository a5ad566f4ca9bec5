"""Shipped custom operators as machine code: the tests of their values once more, with the compiled engine, on both
kinds of vectors. Each of their models must be one native node."""

from __future__ import annotations

import custom_models
import pytest
from test_customs_images import (  # noqa: F401  which are collected here, too
    test_an_image_transformed,
    test_landmarks_moved,
    test_the_crop_around_landmarks_in_a_range,
    test_the_crop_around_landmarks_in_pixels,
    test_the_greatest_of_each_window_and_its_place,
    test_unpooling_inverts_a_pool,
)

from opwright.core import flags


@pytest.fixture(autouse=True, params=["host", "x86-64-v3"])
def compiled(request, monkeypatch):
    made = []

    class Interpreter(custom_models.Interpreter):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            made.append(self)

    monkeypatch.setattr(custom_models, "Interpreter", Interpreter)
    with flags.override(compiled=True, background=False, verify=True, target=request.param):
        yield
    assert made
    for interpreter in made:
        nodes = [node.name for node in interpreter._subgraphs[0].execution_plan]
        assert nodes == ["Opwright"], (nodes, interpreter._engine.delegate.refused)
