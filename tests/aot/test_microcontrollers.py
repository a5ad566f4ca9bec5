"""Libraries for microcontrollers: the interpreter's integers on emulated boards, within their code and memory."""

import numpy as np
import pytest
from microcontrollers import BOARDS, keyword_model, missing_tools, program_of, run_on

import opwright as ow
from opwright import aot
from opwright.aot.targets import TARGETS
from opwright.compiler.target import SCALAR, Target

needs_board = pytest.mark.skipif(bool(missing_tools), reason=f"needs {', '.join(missing_tools)}")
INSTRUCTIONS_PER_TICK = 40


@pytest.fixture(scope="module")
def model():
    return keyword_model()


@pytest.fixture(scope="module")
def example(model):
    """Features, and the scores of the interpreter."""
    features = np.random.default_rng(7).integers(-128, 128, (1, 49, 10, 1), np.int8)
    interpreter = ow.lite.Interpreter(model_content=model)
    runner = interpreter.get_signature_runner()
    (scores,) = runner(features=features).values()
    assert len(np.unique(scores)) > 3
    return features, scores


def test_the_keyword_model_fits_a_small_microcontroller(model, tmp_path):
    """24 kB of code are what TensorFlow Lite Micro's kernels of this model alone take; its arena is 22 kB."""
    library = aot.build(model, "cortex-m4", tmp_path, name="kws")
    assert library.code <= 24_000
    assert library.arena <= 17_000
    assert library.weights <= 31_000
    elements = (tmp_path / "kws.o").read_bytes()
    assert elements[:6] == b"\x7fELF\x01\x01"


@pytest.mark.slow
@needs_board
@pytest.mark.parametrize("target", BOARDS)
def test_boards_compute_the_interpreters_integers(target, model, example, tmp_path):
    features, scores = example
    aot.build(model, target, tmp_path, name="kws")
    (tmp_path / "program.c").write_text(program_of("kws", {"features": features}, {"scores": scores.size}))
    status, ticks, *printed = run_on(BOARDS[target], tmp_path, [tmp_path / "program.c", tmp_path / "libkws.a"])
    assert int(status) == 0
    np.testing.assert_array_equal(np.array(printed, int), scores.reshape(-1))
    if target == "cortex-m4":
        assert int(ticks) * INSTRUCTIONS_PER_TICK < 11_000_000


def test_triples_of_gnu_tools_name_the_same_targets():
    target = Target.of("thumbv7em-none-eabihf", "cortex-m4")
    assert (target.triple, target.vector_bytes) == (TARGETS["cortex-m4"].target.triple, SCALAR)
    assert target.is_bare
    assert target.has("dsp")
    assert not TARGETS["cortex-m4-soft"].target.has("vfp2sp")
