"""Functions as ONNX models: each operator against the reference evaluator of `onnx`, whole models, errors."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import opwright as ow

onnx = pytest.importorskip("onnx")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator

OPERATOR_TESTS = Path(__file__).parents[1] / "ops"
LOOSE = {2: 2e-2, 4: 2e-5}


def compare(got, expected):
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        g = np.asarray(g)
        assert g.shape == e.shape
        assert g.dtype == e.dtype
        tolerance = LOOSE.get(e.dtype.itemsize, 1e-6)
        if e.dtype.kind in "iub":
            np.testing.assert_array_equal(g, e)
        else:
            np.testing.assert_allclose(g.astype("f8"), e.astype("f8"), rtol=tolerance, atol=tolerance)


def checked(function, *arrays, reference=True, again=True):
    """Export a function, and compare the model with the function: by the reference, and imported again."""
    model = ow.to_onnx(function)
    onnx.checker.check_model(model, full_check=True)
    concrete = function.get_concrete_function() if hasattr(function, "get_concrete_function") else function
    expected = [np.asarray(t.numpy()) for t in ow.nest.flatten(concrete(*map(ow.constant, arrays)))]
    names = [i.name for i in model.graph.input]
    if reference:
        compare(ReferenceEvaluator(model).run(None, dict(zip(names, arrays))), expected)
    if again:
        imported = ow.from_onnx(model)
        compare([np.asarray(t.numpy()) for t in ow.nest.flatten(imported(*arrays))], expected)
    return model


STRUCTURE = ("Pad", "MirrorPad", "Resize")  # imported again, they need values at import that the rows compute


def rows(step):
    """Yield rows of the operators' tables that ONNX can express."""
    sys.path.insert(0, str(OPERATOR_TESTS))
    try:
        import test_operators
    finally:
        sys.path.remove(str(OPERATOR_TESTS))
    for key, cases in test_operators.TABLES.items():
        plain = [
            c for c in cases if not c.raises and c.trace and not any(isinstance(x, (list, tuple)) for x in c.inputs)
        ]
        for number, row in enumerate(plain):
            if number % step == 0:
                yield key, number, row


def exported(row):
    """Return a row as a traced function and its inputs, None if ONNX cannot express it."""
    places = [i for i, x in enumerate(row.inputs) if isinstance(x, np.ndarray) and i not in row.static]

    def call(*args):
        full = list(row.inputs)
        for i, x in zip(places, args):
            full[i] = x
        return row.function()(*full, **row.attrs)

    arrays = [row.inputs[i] for i in places]
    if any(a.dtype == object or a.dtype.kind == "c" or a.size == 0 for a in arrays):
        return None
    specs = [ow.TensorSpec(a.shape, a.dtype, name=f"x{i}") for i, a in enumerate(arrays)]
    try:
        concrete = ow.function(call, autograph=False).get_concrete_function(*specs)
        ow.to_onnx(concrete)
    except (ow.errors.OpError, TypeError, ValueError, AttributeError):
        return None
    return concrete, arrays


@pytest.mark.parametrize("step", [pytest.param(3, marks=pytest.mark.slow), 45])
@pytest.mark.filterwarnings("ignore")
def test_operators_of_the_tables(step):
    wrong, count = [], 0
    for key, number, row in rows(step):
        pair = exported(row)
        if pair is None:
            continue
        count += 1
        concrete, arrays = pair
        try:
            checked(concrete, *arrays, reference=False, again=not key.endswith(STRUCTURE))
        except Exception as error:
            wrong.append(f"{key} {number}: {type(error).__name__} {' '.join(str(error).split())[:200]}")
    assert not wrong, "\n".join(wrong)
    assert count > 900 / step


X = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 3, 3, 4)).astype(np.float32)


def convolution(x):
    y = ow.nn.relu(ow.nn.conv2d(x, W, 2, "SAME") + np.float32([1, 2, 3, 4]))
    return ow.nn.max_pool2d(y, 2, 1, "VALID")


def choice(x):
    total = ow.reduce_sum(x)
    return ow.cond(total > 0, lambda: x * 2.0, lambda: x - total)


def loop(x):
    return ow.while_loop(lambda i, v: i < 3 and ow.reduce_sum(v) < 1e3, lambda i, v: (i + 1, v * v + x), (0, x))[1]


def rows_of_a_loop(x):
    return ow.map_fn(lambda row: ow.cumsum(row) * 2.0, x[0, 0])


def switch(x):
    index = ow.cast(ow.reduce_max(x), ow.int32)
    return ow.switch_case(index, [lambda: x + 1.0, lambda: x * 3.0, lambda: -x])


def sliced(x):
    return x[:, 1:-1, ::-2, ow.newaxis, 0], ow.reverse(x, [1]), ow.pad(x, [[0, 0], [1, 2], [0, 0], [0, 0]])


@pytest.mark.parametrize("body", [convolution, choice, loop, rows_of_a_loop, switch, sliced])
def test_programs(body):
    checked(ow.function(body, input_signature=[ow.TensorSpec(X.shape, name="x")]), X)


def test_open_sizes_are_symbolic():
    function = ow.function(lambda x: ow.reshape(x, [ow.shape(x)[0], -1]), autograph=False).get_concrete_function(
        ow.TensorSpec([None, 6, None, 3], name="image")
    )
    model = checked(function, X)
    (info,) = model.graph.input
    dims = info.type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["image_0", 6, "image_2", 3]


def test_models_that_were_imported_come_out_without_transposes(tmp_path):
    from record_quantized_models import FILE, inputs_of

    with np.load(FILE) as arrays:
        content, expected = arrays["mobile_qdq_int8.model"].tobytes(), arrays["mobile_qdq_int8.y"]
    source = onnx.load_from_string(content)
    model = ow.to_onnx(ow.from_onnx(source), tmp_path / "again.onnx")
    (result,) = ReferenceEvaluator(str(tmp_path / "again.onnx")).run(None, inputs_of(source))
    np.testing.assert_allclose(result, expected, rtol=0, atol=1.01 / 256)
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds["Transpose"] <= 2
    assert kinds["QuantizeLinear"] == 19
    stored = {t.name: t for t in model.graph.initializer}
    weights = [stored[n.input[0]] for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in stored]
    assert len(weights) == 9
    assert {t.data_type for t in weights} == {onnx.TensorProto.INT8}
    assert [o.name for o in model.graph.output] == ["y"]


def test_weights_in_another_file(tmp_path):
    function = ow.function(convolution, input_signature=[ow.TensorSpec(X.shape, name="x")])
    model = ow.to_onnx(function, tmp_path / "model.onnx", external_data=True)
    external = [t.name for t in model.graph.initializer if t.data_location == t.EXTERNAL]
    assert external == []  # too small
    wide = np.random.default_rng(2).normal(size=(3, 500)).astype(np.float32)
    function = ow.function(lambda x: x @ wide, autograph=False, input_signature=[ow.TensorSpec([2, 3], name="x")])
    model = ow.to_onnx(function, tmp_path / "model.onnx", external_data=True)
    assert len([t for t in model.graph.initializer if t.data_location == t.EXTERNAL]) == 1
    assert (tmp_path / "model.onnx.data").stat().st_size == wide.nbytes
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    x = X[0, :2, 0]
    np.testing.assert_allclose(ow.from_onnx(tmp_path / "model.onnx")(x).numpy(), x @ wide, rtol=1e-5, atol=1e-5)
    with pytest.raises(ow.errors.InvalidArgumentError, match="need a file"):
        ow.to_onnx(function, external_data=True)


def test_errors_list_all_operators():
    function = ow.function(
        lambda x: (
            ow.math.lgamma(x)
            + ow.math.digamma(ow.cast(ow.bitwise.left_shift(ow.cast(x, ow.int8), np.int8(1)), ow.float32))
        ),
        autograph=False,
        input_signature=[ow.TensorSpec([2])],
    )
    with pytest.raises(ow.errors.UnimplementedError, match=r"(?s)3 operators.*Digamma.*LeftShift.*unsigned.*Lgamma"):
        ow.to_onnx(function)
    with pytest.raises(ow.errors.InvalidArgumentError, match="no input signature"):
        ow.to_onnx(ow.function(lambda x: x))
