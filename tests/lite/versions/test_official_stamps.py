"""Test files of the official converter: their versions and run time equal the ones derived from their operators.

The files are the corpus in tests/data/tflite, made by TensorFlow's converter.
"""

from __future__ import annotations

import pathlib

import pytest

from opwright.lite.format import Model, versions
from opwright.lite.format.runtime_requirements import requirements, stored_runtime

CORPUS = sorted((pathlib.Path(__file__).parents[2] / "data" / "tflite").glob("*.tflite"))
# The official int16 calibration keeps the versions of the float model, raised to a least version for each operator,
# and stores the run time before that: its stamps say nothing about int16.
CALIBRATED_TO_INT16 = (
    "cnn_int16_io",
    "cnn_int16x8",
    "layer_activations_int16x8",
    "layer_gru_unrolled_int16x8",
    "layer_transposed_int16x8",
)


@pytest.mark.parametrize("path", CORPUS, ids=[p.stem for p in CORPUS])
def test_stamps_and_run_time(path: pathlib.Path) -> None:
    model = Model.read(path)
    written = [int(code.version) for code in model.operator_codes]
    computed = versions.versions_of_model(model)
    if path.stem in CALIBRATED_TO_INT16:
        assert written != computed
        return
    assert computed == written
    stored = stored_runtime(model)
    assert stored == versions.min_runtime_of_model(model) or stored is None
    for need in requirements(model):
        assert need.needed <= need.version
        assert need.custom or need.runtime
        assert bool(need.why) is (not need.custom and need.needed > versions.facts(need.operator)["default"])


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) > 30
    assert set(CALIBRATED_TO_INT16) <= {p.stem for p in CORPUS}
    kept = [stored_runtime(Model.read(p)) for p in CORPUS]
    assert sum(r is not None for r in kept) > 30
