"""Operators in C that do what they must not: each an error with library, operator and node; the interpreter goes on.

Not here: libraries that cannot be loaded (test_native_toolchain.py).
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
from lite_kit import Build
from native_kit import chain, probes, run, single

import opwright as ow
from opwright.core import flags
from thorough import THOROUGH, sampled

pytestmark = pytest.mark.ours


@pytest.fixture
def p():
    result = probes()
    gc.collect()
    result.clear()
    return result


IN_PREPARE = {
    # operator           what the error says
    "NEGATIVE": "the shape for tensor 'y' has a negative size",
    "NULL_SHAPE": "the shape is null",
    "HUGE": "no array can have the shape given to tensor 'y'|would take",
    "WILD_RANK": "was resized to an invalid number of dimensions",
    "RESIZE_INPUT": r"tensor 0 'x' must not be resized by this node(.|\n)*before 2\.2",
    "IGNORES": "the shape for tensor 'y' has a negative size",
    "BAD_TEMPORARIES": "the node's temporaries are not among its added tensors",
    "FOREIGN_TENSOR": "a pointer to no tensor of this subgraph",
    "SMALLER_TENSORS": r"tensor 2 if a TfLiteTensor had 104 bytes(.|\n)*before 2\.2 tensors were smaller",
    "WRONG_TYPE": "tensor 2 'y' has an invalid new type, 77",
    "WRONG_MEMORY": "tensor 2 'y' has an invalid new kind of memory",
    "IN_PLACE": "the sizes of tensor 2 'y' were changed in place",
    "ADDS_ENDLESSLY": "tensors are added without end",
    "ADDS_FEWER_THAN_NONE": r"a negative number of tensors(.|\n)*-1",
    "OWN_DIMS": "the shape for tensor 'y' has a negative size",
    "OTHERS_DIMS": "tensor 'y' was resized to another tensor's sizes",
    "NO_OUTPUTS": "prepare replaced the node's list of inputs or outputs",
    "FAR_TENSOR": "(?s)misused the interface.*TfLiteOpaqueContextGetOpaqueTensor: index 1000000000, of 3",
    "UNTYPED": "was added and has no type yet",
    "FORBIDDEN": "The function is forbidden if not calling in delegate",
    "FarInput": "(?s)misused the interface.*TfLiteOpaqueTensorNumDims: .* does not hold",
}


@pytest.mark.parametrize("name", IN_PREPARE)
def test_in_prepare(p, name):
    interpreter = p.interpreter(chain("PROBE", name) if name != "RESIZE_INPUT" else single(name))
    node = 0 if name == "RESIZE_INPUT" else 1
    for _ in range(2):  # it says the same again
        with pytest.raises(RuntimeError, match=IN_PREPARE[name]) as caught:
            interpreter.allocate_tensors()
        assert isinstance(caught.value, ow.errors.OpError)
        text = str(caught.value)
        assert f"Node number {node} ({name}) failed to prepare." in text
        assert p.path in text
        assert name in text
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.close()
    fine = p.interpreter(single("PROBE"))
    fine.allocate_tensors()
    np.testing.assert_array_equal(run(fine, np.zeros(5)), np.ones(5))


def test_a_constant_is_not_resized(p):
    b = Build().tensor("c", data=np.zeros(4, np.float32)).custom("RESIZE_CONSTANT", "x c", "y")
    with pytest.raises(RuntimeError, match="Attempting to resize a fixed-size tensor"):
        p.interpreter(b.done()).allocate_tensors()


IN_INVOKE = {
    "RESIZE_LATE": "tensor 'y' got another shape in invoke",
    "SHAPELESS": "output 'y' got no shape",
    "IGNORES_LATE": "tensor 'y' got another shape in invoke",
}


@pytest.mark.parametrize("name", IN_INVOKE)
def test_in_invoke(p, name):
    interpreter = p.interpreter(chain("PROBE", name))
    interpreter.allocate_tensors()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=IN_INVOKE[name]) as caught:
            run(interpreter, np.full(5, 2))
        text = str(caught.value)
        assert f"Node number 1 ({name}) failed to invoke." in text
        assert p.path in text
    if name == "RESIZE_LATE":
        run(interpreter, np.full(5, 4))  # to the shape that it has: PROBE adds one


CHANGES = {
    "SIZES_LATE": "sizes",
    "RANK_LATE": "sizes",
    "TYPE_LATE": "type",
    "BYTES_LATE": "bytes",
    "NOWHERE": "the address of its elements",
    "DROPS": "the address of its elements",
    "ELSEWHERE": "the address of its elements",
    "INPUT_LATE": "the address of its elements",
}


@pytest.mark.parametrize("name", sampled(CHANGES))
def test_what_a_tensor_is_does_not_change_in_invoke(p, name):
    """The next operator would read outside of it, or what is not there."""
    interpreter = p.interpreter(chain("PROBE", name, "PROBE"))
    interpreter.allocate_tensors()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"invoke changed what tensor . 't.' is: .*{CHANGES[name]}") as caught:
            run(interpreter, np.ones(5))
        assert f"Node number 1 ({name}) failed to invoke." in str(caught.value)
        assert p.path in str(caught.value)
        np.testing.assert_array_equal(run(interpreter, np.full(5, -3)), np.zeros(5))  # and it goes on


def test_a_shape_that_is_the_tensors_own_array(p):
    interpreter = p.interpreter(chain("OWN_DIMS_FINE", "PROBE"))
    for n in (5, 3, 8):
        interpreter.resize_tensor_input(0, [n])
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(run(interpreter, np.zeros(n)), np.full(n, 2))


def test_writing_an_input_is_found_where_inputs_are_checked(p):
    interpreter = p.interpreter(chain("PROBE", "WRITES_INPUT"))
    interpreter.allocate_tensors()
    words = "WRITES_INPUT: invoke writes its input 't0'"
    with flags.override(check_inputs=True), pytest.raises(RuntimeError, match=words) as caught:
        run(interpreter, np.zeros(5))
    assert "Node number 1 (WRITES_INPUT) failed to invoke." in str(caught.value)


def test_in_init_the_state_is_freed(p):
    with pytest.raises(ValueError, match="resized outside of prepare and invoke") as caught:
        p.interpreter(single("INIT_RESIZES"))
    assert "Node number 0 (INIT_RESIZES) failed to init." in str(caught.value)
    assert p.counts() == (1, 0, 0, 1)


def test_in_free_it_is_said_when_the_interpreter_is_closed(p):
    interpreter = p.interpreter(chain("FREE_RESIZES", "PROBE"))
    with pytest.raises(RuntimeError, match="resized outside of prepare and invoke") as caught:
        interpreter.close()
    assert "(FREE_RESIZES) failed to free." in str(caught.value)
    assert p.counts() == (2, 0, 0, 2)


def test_an_operator_after_one_without_a_shape(p):
    interpreter = p.interpreter(chain("SHAPELESS", "PROBE"))
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="output 't0' got no shape"):
        interpreter.invoke()


def test_too_few_strings(p):
    interpreter = p.interpreter(single("FEW_STRINGS", (1,), (1,), ("FLOAT32", "STRING")))
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="failed to invoke") as caught:
        interpreter.invoke()
    assert "1 strings" in str(caught.value)


@pytest.mark.parametrize("seed", range(30 if THOROUGH else 12))
def test_any_sequence_of_operators_runs_or_reports_why(p, seed):
    """Chains of probes, good and bad, resized and run at random: an error or the right answer, never a crash."""
    random = np.random.default_rng(seed)
    plus = {"PROBE": 1, "PROBE_NULL": 1, "ADDS_MANY": 1, "FAIL_INVOKE": 1}
    names = random.choice(
        [*plus, "REVERSE", "REVERSE_DYNAMIC", "IN_PLACE", "RESIZE_LATE"],
        random.integers(1, 7),
        p=[0.2, 0.1, 0.1, 0.1, 0.2, 0.2, 0.05, 0.05],
    )
    interpreter = p.interpreter(chain(*names))
    for _ in range(6):
        n = int(random.integers(1, 70))
        x = random.integers(0, 9, n).astype(np.float32)
        try:
            interpreter.resize_tensor_input(0, [n])
            interpreter.allocate_tensors()
            result = run(interpreter, x)
        except RuntimeError as error:
            said = str(error)
            bad = {"IN_PLACE", "RESIZE_LATE"} & set(names)
            if "Node number" not in said or not bad:
                raise
            continue
        for name in names:
            x = x[::-1] if name.startswith("REVERSE") else x + plus.get(name, 0)
        if "RESIZE_LATE" not in names:
            np.testing.assert_array_equal(result, x)
