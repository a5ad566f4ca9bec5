"""Libraries for microcontrollers: the interpreter's integers on emulated boards, within their code and memory."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from built_singles import REFUSED, build_single
from microcontrollers import (
    BOARDS,
    keyword_model,
    missing_tools,
    outputs_of_model,
    program_of,
    program_of_model,
    run_on,
)

import opwright as ow
from opwright import aot
from opwright.aot.model_runs import TensorFacts
from opwright.aot.targets import TARGETS
from opwright.aot.tensor_differences import Tolerance, tensor_difference
from opwright.compiler.target import SCALAR, Target
from opwright.core.errors import OpError, UnimplementedError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import single_operators
from test_emulated import interpreted

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
        assert int(ticks) * INSTRUCTIONS_PER_TICK < 9_500_000


PARTS = 8


@pytest.mark.slow
@needs_board
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_each_operator_on_a_board(part, tmp_path):
    """The first model of each operator on a Cortex-M7, whose kernels compute one number at a time."""
    seen, faults, ran = set(), [], 0
    for single in single_operators.singles():
        operator = single.name.split()[0]
        if operator in seen:
            continue
        seen.add(operator)
        if len(seen) % PARTS != part:
            continue
        try:
            expected = interpreted(single)
        except OpError:
            continue  # a model of an operator's errors
        folder = tmp_path / str(len(seen))
        try:
            build_single(single, "cortex-m7", folder, name="one")
        except UnimplementedError as error:
            faults += [] if any(reason in str(error) for reason in REFUSED) else [(single.name, str(error))]
            continue
        notes = json.loads((folder / "one.json").read_text())
        (folder / "program.c").write_text(program_of_model(notes, single.feeds))
        status, _, *words = run_on(BOARDS["cortex-m7"], folder, [folder / "program.c", folder / "libone.a"])
        if int(status):
            faults.append((single.name, f"status {status}"))
            continue
        for actual, exact in zip(outputs_of_model(notes, words), expected, strict=True):
            facts = TensorFacts(single.name, exact.shape, exact.dtype, 0.0, 0)
            row = tensor_difference(actual, facts, np.asarray(exact), facts, Tolerance())
            faults += [] if row.agrees else [row]
        ran += 1
    assert not faults, "\n".join(map(str, faults))
    assert ran > 10


TFLM = """
import sys
import numpy as np
from tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1])
results = []
for x in np.load(sys.argv[2]):
    interpreter.set_input(x, 0)
    interpreter.invoke()
    results.append(interpreter.get_output(0).copy())
np.save(sys.argv[3], np.stack(results))
interpreter.print_allocations()
"""


@pytest.mark.slow
def test_tensorflow_lite_micro_agrees_and_has_a_larger_arena(model, tmp_path):
    """OPWRIGHT_PEER_TFLM names a Python that has tflite-micro."""
    peer = os.environ.get("OPWRIGHT_PEER_TFLM")
    if peer is None:
        pytest.skip("needs OPWRIGHT_PEER_TFLM, which names a Python with tflite-micro")
    features = np.random.default_rng(8).integers(-128, 128, (16, 1, 49, 10, 1), np.int8)
    np.save(tmp_path / "features.npy", features)
    (tmp_path / "model.tflite").write_bytes(model)
    (tmp_path / "run.py").write_text(TFLM)
    command = [peer, "run.py", "model.tflite", "features.npy", "scores.npy"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    library = aot.build(model, out=tmp_path / "host", name="kws")
    run = aot.load(library.folder)
    scores = np.stack([run(x)["scores"] for x in features])
    steps = np.abs(scores.astype(int) - np.load(tmp_path / "scores.npy"))
    assert steps.max() <= 1, "its softmax is in fixed-point numbers, that of TensorFlow Lite in floats"
    assert (steps == 0).mean() > 0.9
    (total,) = re.findall(r"Arena allocation total (\d+) bytes", done.stdout + done.stderr)
    assert aot.build(model, "cortex-m4", tmp_path / "board", name="kws").arena < int(total)


def test_triples_of_gnu_tools_name_the_same_targets():
    target = Target.of("thumbv7em-none-eabihf", "cortex-m4")
    assert (target.triple, target.vector_bytes) == (TARGETS["cortex-m4"].target.triple, SCALAR)
    assert target.is_bare
    assert target.has("dsp")
    assert not TARGETS["cortex-m4-soft"].target.has("vfp2sp")
