"""Built libraries on other processors, under emulators: every operator, a third of all models of one operator.

Integers are equal to those of the interpreter; floating-point numbers differ by at most 1e-5 of the largest element of
an output (float16: 1e-2), as sums are added in the order of the processor's vectors.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import opwright as ow
from opwright.aot.model_runs import TensorFacts
from opwright.aot.tensor_differences import Tolerance, tensor_difference
from opwright.core.errors import OpError

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
import emulated
from benchmarks import single_operators
from built_singles import REFUSED

PARTS = 3


def interpreted(single):
    with ow.flags(background=False):
        interpreter = single_operators.ready(ow.lite.Interpreter(model_content=single.content), single.feeds)
        interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def chosen(part, parts):
    """The first model of each operator, and every third of the rest."""
    seen = set()
    for i, single in enumerate(single_operators.singles()):
        operator = single.name.split()[0]
        if operator not in seen or i % 3 == 0:
            seen.add(operator)
            if len(seen) % parts == part:
                yield single


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", emulated.MACHINES)
def test_results_on_other_processors_are_the_interpreters(name, part, tmp_path):
    machine = emulated.MACHINES[name]
    if machine.missing:
        pytest.skip(f"needs {' and '.join(machine.missing)}")
    models, expected = [], {}
    faulty = emulated.faulty_models(name, tmp_path)
    for single in chosen(part, PARTS):
        try:
            expected[single.name] = interpreted(single)
        except OpError:
            continue  # a model of an operator's errors
        models.append(single)
    faults, ran = [], 0
    for model, results in emulated.run_models(machine, models, tmp_path).items():
        if isinstance(results, str):
            if model in faulty and "crashed" in results:
                continue
            if not (results.startswith("not built") and any(reason in results for reason in REFUSED)):
                faults.append((model, results))
            continue
        ran += 1
        for actual, exact in zip(results, expected[model], strict=True):
            facts = TensorFacts(model, exact.shape, exact.dtype, 0.0, 0)
            row = tensor_difference(actual, facts, np.asarray(exact), facts, Tolerance())
            if row.agrees == (model in faulty):
                faults.append(row)
    assert not faults, "\n".join(map(str, faults))
    assert ran > len(models) * 0.8
