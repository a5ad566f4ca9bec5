"""Damaged ONNX files: mutants of the bytes of small models are read, or are an error by name.

`python tests/frontends/test_onnx_fuzz.py 10000` tries more of them (`make fuzz`).
"""

from __future__ import annotations

import random
import resource
import sys
import time

import numpy as np
import pytest

import opwright as ow

pytest.importorskip("onnx")
contrib = pytest.importorskip("record_contrib_operators")
quantized = pytest.importorskip("record_quantized_models")

MOST_SECONDS = 20.0  # of one mutant, on a busy machine
MOST_BYTES = 6 << 30  # of address space


def seeds():
    with np.load(quantized.FILE) as arrays:
        files = [arrays[name].tobytes() for name in arrays.files if name.endswith(".model")]
    return [*(contrib.model_of(name)[0].SerializeToString() for name in contrib.ROWS), *files]


def mutant(number, models):
    """Return the bytes of a case: bytes changed, dropped or repeated at some places."""
    draw = random.Random(number)
    data = bytearray(draw.choice(models))
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        kind, place = draw.randrange(5), draw.randrange(len(data))
        if kind == 0:
            data[place] = draw.randrange(256)
        elif kind == 1:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 2:
            data[place] = draw.choice((0, 1, 127, 128, 255))
        elif kind == 3:
            del data[place : place + draw.randrange(1, 9)]
        else:
            data[place:place] = data[place : place + draw.randrange(1, 17)]
        data = data or bytearray(1)
    return bytes(data)


def findings(numbers):
    """Return the cases that raise another error than an OpError, or take too long."""
    models, wrong = seeds(), {}
    for number in numbers:
        start = time.process_time()
        try:
            ow.from_onnx(mutant(number, models))
        except ow.errors.OpError:
            pass
        except Exception as error:
            wrong[number] = f"{type(error).__name__}: {error}"[:200]
        if time.process_time() - start > MOST_SECONDS:
            wrong[number] = "too long"
    return wrong


@pytest.mark.filterwarnings("ignore")
def test_mutants_are_errors_by_name():
    assert findings(range(300)) == {}


def test_texts_that_are_not_utf_8():
    model, _ = contrib.model_of("rotary")
    content = model.SerializeToString().replace(b"RotaryEmbedding", b"Rotary\xffmbedding")
    with pytest.raises(ow.errors.InvalidArgumentError, match="not UTF-8"):
        ow.from_onnx(content)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    failures = findings(range(int(sys.argv[1])))
    print(*(f"{number}: {text}" for number, text in failures.items()), sep="\n")
    sys.exit(bool(failures))
