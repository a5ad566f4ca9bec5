"""The worked examples of the specification: outputs, LoDs, gradients and the LoDs of these, within 1e-8.

Lives here: their reading, and how each old operator name is called.  Not here: tables of rows (cases_sequence.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import sequence as seq

EXAMPLES = json.loads((Path(__file__).parent / "data" / "sequence_examples.json").read_text("utf-8"))["ops"]
ROWS = [pytest.param(op, e, id=e["id"]) for op, examples in EXAMPLES.items() for e in examples]

Inputs = dict[str, Any]
CALLS: dict[str, Callable[[Inputs, dict[str, Any]], dict[str, Any]]] = {
    "sequence_pool": lambda i, a: {"Out": seq.pool(i["X"], **a)},
    "sequence_first_step": lambda i, a: {"Out": seq.first_step(i["X"])},
    "sequence_last_step": lambda i, a: {"Out": seq.last_step(i["X"])},
    "sequence_softmax": lambda i, a: {"Out": seq.softmax(i["X"])},
    "sequence_expand": lambda i, a: {"Out": seq.expand(i["X"], i["Y"], **a)},
    "sequence_expand_as": lambda i, a: {"Out": seq.expand_as(i["X"], i["Y"])},
    "sequence_concat": lambda i, a: {"Out": seq.concat(i["X"])},
    "sequence_slice": lambda i, a: {"Out": seq.slice(i["X"], i["Offset"], i["Length"])},
    "sequence_reverse": lambda i, a: {"Y": seq.reverse(i["X"])},
    "sequence_pad": lambda i, a: dict(
        zip(("Out", "Length"), seq.pad(i["X"], i["PadValue"], None if a["padded_length"] < 0 else a["padded_length"]))
    ),
    "sequence_unpad": lambda i, a: {"Out": seq.unpad(i["X"], i["Length"])},
    "sequence_conv": lambda i, a: {
        "Out": seq.conv(i["X"], i["Filter"], a["contextLength"], a.get("contextStart", 0), i.get("PaddingData"))
    },
    "sequence_erase": lambda i, a: {"Out": seq.erase(i["X"], **a)},
    "sequence_enumerate": lambda i, a: {"Out": seq.enumerate(i["X"], **a)},
    "sequence_mask": lambda i, a: {"Y": seq.mask(i["X"], a["maxlen"])},
    "sequence_reshape": lambda i, a: {"Out": seq.reshape(i["X"], **a)},
    "sequence_scatter": lambda i, a: {"Out": seq.scatter(i["X"], i["Ids"], i["Updates"])},
    "lod_reset": lambda i, a: {"Out": seq.lod_reset(i["X"], i.get("Y"), **a)},
    "lstm": lambda i, a: dict(
        zip(("Hidden", "Cell"), seq.dynamic_lstm(i["Input"], i["Weight"], i["Bias"], i.get("H0"), i.get("C0"), **a))
    ),
    "gru": lambda i, a: {"Hidden": seq.dynamic_gru(i["Input"], i["Weight"], i.get("Bias"), i.get("H0"), **a)},
}


def array(v: Any) -> np.ndarray:
    return np.array(v["data"], v["dtype"]).reshape(v["shape"])


def tensor(v: Any) -> Any:
    if isinstance(v, list):
        return [tensor(one) for one in v]
    return ow.LoDTensor(array(v), v["lod"]) if v.get("lod") else ow.constant(array(v))


def close(actual: Any, expected: np.ndarray, words: str) -> None:
    actual = np.asarray(actual.numpy())
    assert actual.dtype == expected.dtype, words
    assert actual.shape == expected.shape, words
    np.testing.assert_allclose(actual, expected, 0, 1e-8, err_msg=words)


def check_outputs(outputs: dict[str, Any], example: Any) -> None:
    for name, y in outputs.items():
        expected = example["outputs"][name]
        close(y, array(expected), name)
        assert (y.lod() if isinstance(y, ow.LoDTensor) else None) == expected["lod"], name


@pytest.mark.parametrize(("op", "example"), ROWS)
def test_example(op: str, example: Any) -> None:
    inputs = {name: tensor(v) for name, v in example["inputs"].items()}
    sources = {name: inputs[name] for name in example.get("input_grads", ())}
    with ow.GradientTape() as tape:
        tape.watch(sources)
        outputs = CALLS[op](inputs, example.get("attrs", {}))
    check_outputs(outputs, example)
    if not sources:
        return
    arriving = {name: tensor(v) for name, v in example["out_grad"].items()}
    grads = tape.gradient({k: outputs[k] for k in arriving}, sources, output_gradients=arriving)
    for name, expected in example["input_grads"].items():
        several = isinstance(expected, list)
        for dx, w, x in zip(*([v if several else [v] for v in (grads[name], expected, sources[name])])):
            close(dx, array(w), f"gradient of {name}")
            assert isinstance(dx, ow.LoDTensor) == isinstance(x, ow.LoDTensor)
            if isinstance(x, ow.LoDTensor):
                assert dx.lod() == x.lod(), f"gradient of {name}"


@pytest.mark.parametrize(("op", "example"), ROWS)
def test_example_in_a_function(op: str, example: Any) -> None:
    """Recorded with unknown numbers of rows and sequences, the answers are the same."""
    function = ow.function(lambda inputs: CALLS[op](inputs, example.get("attrs", {})), autograph=False)
    check_outputs(function({name: tensor(v) for name, v in example["inputs"].items()}), example)


@pytest.mark.parametrize("example", [e for e in EXAMPLES["sequence_pool"] if "MaxIndex" in e["outputs"]])
def test_recorded_rows(example: Any) -> None:
    """Check the indices of MAX: int32, -1 for an empty sequence, the earliest of equal rows."""
    from opwright.ops.sequence.pooling import SequencePool

    x = example["inputs"]["X"]
    bound = SequencePool.bind(example["attrs"])
    _, index = SequencePool.compute(bound, [array(x), np.array(x["lod"][-1])])
    assert index.dtype == np.int32
    np.testing.assert_array_equal(index, array(example["outputs"]["MaxIndex"]))
