"""Weights in other files: named in the model, kept, and refused where they are needed."""

from __future__ import annotations

import pytest
from format_models import add_model

from opwright import lite
from opwright.core import errors
from opwright.lite.format import Model, objects


def outside() -> Model:
    model = add_model()
    model.external_buffer_groups = [objects.ExternalBufferGroup(name="weights.bin")]
    model.external_buffers = [objects.ExternalBuffer(id=7, group=0, offset=64, length=24, packing="zip")]
    model.subgraphs[0].tensors[1].buffer, model.subgraphs[0].tensors[1].external_buffer = 0, 7
    return model


def test_it_is_read_written_and_valid():
    model = Model.read(outside().to_bytes())
    assert model == outside()
    model.verify()


SAYS = r"tensor 'c' is in another file(.|\n)*external buffer 7 of group 'weights.bin', 24 bytes at offset 64, packed"


def test_its_data_is_refused():
    model = outside()
    with pytest.raises(errors.UnimplementedError, match=SAYS):
        model.tensor_data(model.subgraphs[0].tensors[1])
    assert model.tensor_data(model.subgraphs[0].tensors[0]) is None
    assert add_model().tensor_data(add_model().subgraphs[0].tensors[1]).nbytes == 24


def test_an_interpreter_is_refused():
    with pytest.raises(ValueError, match=SAYS):
        lite.Interpreter(model_content=outside().to_bytes())
