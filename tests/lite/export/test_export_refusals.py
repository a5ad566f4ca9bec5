"""Test the errors of the C export: operators without a C form, and nodes with options unknown to the C code."""

from __future__ import annotations

import numpy as np
import pytest
from export_kit import Clip, Escape, Pair, Root, Within, built, model_of, needs_gcc, run

import opwright as ow
from opwright import lite
from opwright.lite.format.flexbuffers import encode_options


def operator(**parts):
    """Return an operator class with an input, an output and these parts."""
    body = {"x": ow.Input(ow.float32), "y": ow.Output(like="x"), "compute": lambda op, x: x, **parts}
    return ow.operator(type("Refused", (), {k: v for k, v in body.items() if v is not None}))


@ow.kernel
def on_scalars(x):
    return x + 1.0


@ow.kernel
def with_n(x, *, n):
    for _ in range(n):
        x = x * 0.5
    return ow.cast(x, ow.float32)


CASES = [
    (lambda: operator(), {}, "it has no kernel"),
    (lambda: operator(x=ow.Input(ow.string), kernel=on_scalars), {}, "no form in C for any of its dtypes"),
    (lambda: operator(kernel=ow.kernel(lambda x: ow.cast(x, ow.int32))), {}, "returns another dtype"),
    (lambda: operator(kernel=ow.kernel(lambda x: ow.reduce_sum(x))), {}, "kernels have no such operator"),
    (
        lambda: operator(n=ow.Attr([float], default=[1.0]), kernel=ow.kernel(lambda x, *, n: x * n[0])),
        {},
        "does not read from a node",
    ),
    (
        lambda: operator(n=ow.Attr([float], default=[1.0]), kernel=ow.kernel(lambda x, *, n: x * n[0])),
        {"n": [1.0]},
        r"'n' cannot be read from a node in C\s+found   list of float",
    ),
    (
        lambda: operator(
            n=ow.Attr(int, default=1, check=ow.attr.satisfies("odd", lambda n: n % 2 == 1)), kernel=with_n
        ),
        {},
        "a check that C code cannot make",
    ),
    (lambda: operator(n=ow.Attr(int, default=1, check=ow.attr.at_least(0)), kernel=with_n), {"n": -1}, "at least 0"),
    (lambda: operator(n=ow.Attr(int, default=1), kernel=with_n), {"n": []}, "has no values"),
    (lambda: operator(kernel=on_scalars), {"beta": 1}, "no attribute 'beta'"),
    (lambda: Root, {}, r"asks Python for the value of attribute 'of'.*[\s\S]*attrs=\{'of': \[...\]\}"),
    (
        lambda: operator(
            **{f"a{i}": ow.Attr(bool, default=False) for i in range(7)},
            kernel=ow.kernel(lambda x, *, a0, a1, a2, a3, a4, a5, a6: x),
        ),
        {},
        "128",
    ),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_what_has_no_form_in_c_is_named(case, tmp_path):
    make, attrs, words = CASES[case]
    with pytest.raises(ow.errors.OpError, match=words):
        ow.export_c(make(), tmp_path / "out", attrs=attrs)
    assert not (tmp_path / "out").exists()


def test_other_things_than_operators(tmp_path):
    with pytest.raises(ow.errors.OpError, match="only an operator"):
        ow.export_c(np.sin, tmp_path)
    with pytest.raises(KeyError, match="no operator is named 'Atn'"):
        ow.export_c("Atn", tmp_path)
    with pytest.raises(ow.errors.NotFoundError, match="opaque, external, struct"):
        ow.export_c(Clip, tmp_path, api="rust")
    with pytest.raises(ow.errors.UnimplementedError, match="it has no kernel"):
        ow.export_c("MatMul", tmp_path)


# ---- while a model runs -----------------------------------------------------------------------------------------

X = np.ones((2, 3), np.float32)


@pytest.fixture(scope="module")
def customs(tmp_path_factory):
    return {op.name: built(op, tmp_path_factory.mktemp(op.name)) for op in (Clip, Escape, Pair, Within)}


def with_options(op, options, *arrays, **attrs):
    """A model of one call whose node says something else."""
    model = lite.Model.read(model_of(op, *arrays, **attrs))
    model.subgraphs[0].operators[0].custom_options = np.frombuffer(options, np.uint8)
    return model.to_bytes()


OPTIONS = [
    (Clip, {"alpha": -1.0}, "'alpha' is out of its range: at least 0.0"),
    (Clip, {"alpha": float("nan")}, "'alpha' is out of its range"),
    (Clip, {"alpha": "much"}, "'alpha' has the wrong type: it is float"),
    (Clip, {"alpha": True}, "'alpha' has the wrong type"),
    (Clip, {"alpha": None}, "'alpha' has the wrong type"),
    (Clip, {"beta": 1.0}, "options that it does not know: beta; known: alpha, limit"),
    (Clip, {"_version": 0}, "the version in the node's options is invalid"),
    (Escape, {"limit": 1001}, "'limit' is out of its range: between 0 and 1000"),
    (Escape, {"limit": 2.5}, "'limit' has the wrong type: it is int"),
    (Pair, {}, "'which' is missing"),
    (Pair, {"which": "powder"}, "'which' has a value that this code is not made for"),
    (Pair, {"which": "po"}, "'which' has a value that this code is not made for"),
    (Within, {"negated": 2}, "'negated' has the wrong type: it is bool"),
]


@needs_gcc
@pytest.mark.parametrize("case", range(len(OPTIONS)))
def test_options_that_it_does_not_take(case, customs):
    op, options, words = OPTIONS[case]
    arrays, attrs = ((X,), {}) if op is Clip else ((X, X), {"which": "mix"} if op is Pair else {})
    model = with_options(op, encode_options(options), *arrays, **attrs)
    with pytest.raises(ow.errors.OpError, match=words):
        run(model, customs[op.name], *arrays)
    with pytest.raises(ow.errors.OpError):  # nor does Python's own
        run(model, [op], *arrays)


GOOD = [
    (b"", 6.0),
    (encode_options({}), 6.0),
    (encode_options({"limit": 2}), 2.0),
    (encode_options({"limit": 2.5}), 2.5),
    (encode_options({"limit": 1e300, "alpha": 2**63}), np.inf),
    (encode_options({"T": 0}), 6.0),
    (encode_options({"_version": 1, "alpha": 0.5}), 6.0),
]


@needs_gcc
@pytest.mark.parametrize("case", range(len(GOOD)))
def test_options_that_it_takes(case, customs):
    options, limit = GOOD[case]
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    np.testing.assert_array_equal(run(with_options(Clip, options, x), customs[Clip.name], x), np.minimum(x, limit))


@needs_gcc
@pytest.mark.parametrize(
    "options", [b"\1", b"\xff" * 9, encode_options({"alpha": 1.0})[:-1], encode_options({"alpha": 1.0})[3:]], ids=repr
)
def test_damaged_options(options, customs):
    with pytest.raises(ow.errors.OpError, match=r"damaged options|not a map"):
        run(with_options(Clip, options, X), customs[Clip.name], X)


@needs_gcc
def test_tensors_that_it_does_not_take(customs):
    model = lite.Model.read(model_of(Clip, X))
    for tensor in model.subgraphs[0].tensors:
        tensor.type = lite.TensorType.INT32 if hasattr(lite, "TensorType") else type(tensor.type).INT32
    with pytest.raises(ow.errors.OpError, match="it takes float32, or float64"):
        run(model.to_bytes(), customs[Clip.name], X.astype(np.int32))


@needs_gcc
def test_shapes_that_do_not_fit(customs):
    model = model_of(Pair, X, X, shapes=[[None, None]] * 2, which="mix")
    interpreter = lite.Interpreter(model_content=model, custom_ops=customs[Pair.name])
    for detail, shape in zip(interpreter.get_input_details(), ([2, 3], [2, 4])):
        interpreter.resize_tensor_input(detail["index"], shape)
    with pytest.raises(ow.errors.OpError, match="the shapes of the inputs do not fit together"):
        interpreter.allocate_tensors()
