"""Options of custom operators, read into attributes: those of the official converter, of any FlexBuffers writer, broken
ones; and back. The official bytes are of tensorflow 2.21's converter with allow_custom_ops; others are written by the
`flatbuffers` library, or by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.lite import Interpreter, Model
from opwright.lite.convert.converter import single_operator
from opwright.lite.custom_options import bind_options
from opwright.lite.format.flexbuffers import decode_options, encode_options
from thorough import examples

X = np.float32([-1.0, 0.5, 3.0])


def operator(name: str = "OptionsTest", **attrs: Any) -> Any:
    body = {"x": ow.Input(ow.floating), "y": ow.Output(like="x"), "compute": lambda op, x: x, **attrs}
    return ow.operator(name=name)(type(name, (), {"__doc__": "Takes options.", **body}))


ATTRS = {  # one of each type
    "i": ow.Attr(int, default=1),
    "f": ow.Attr(float, default=0.5),
    "b": ow.Attr(bool, default=False),
    "s": ow.Attr(str, default=""),
    "y_": ow.Attr(bytes, default=b""),
    "d": ow.Attr(ow.DType, default=ow.float32),
    "shape": ow.Attr(ow.TensorShape, default=ow.TensorShape(None)),
    "a": ow.Attr(np.ndarray, default=np.zeros(2)),
    "o": ow.Attr(object, default=None),
    "i_": ow.Attr([int], default=()),
    "f_": ow.Attr([float], default=()),
    "b_": ow.Attr([bool], default=()),
    "s_": ow.Attr([str], default=()),
    "d_": ow.Attr([ow.DType], default=()),
    "bytes_": ow.Attr([bytes], default=()),
}


@pytest.fixture(scope="module")
def every() -> Any:
    return operator("OptionsEvery", **ATTRS)


# ---- the official converter's ----------------------------------------------------------------------------------------

OFFICIAL = {  # of the TensorFlow operator: bytes, and the attributes an operator of that name here would have
    "Atan, float32": ("540001030101010004022401", {}, {}),
    "Atan, float64": ("540001030101010a04022401", {}, {}),
    "ResizeArea": (
        "5400616c69676e5f636f726e6572730002111002010200010468042401",
        {"align_corners": ow.Attr(bool, default=False)},
        {"align_corners": True},
    ),
    "Dilation2D": (
        "540070616464696e67000453414d45007261746573000401010101737472696465730004010101010429281b1104"
        "010400261b0f04142c2c082401",
        {"padding": ow.Attr(str), "rates": ow.Attr([int]), "strides": ow.Attr([int])},
        {"padding": "SAME", "rates": (1, 1, 1, 1), "strides": (1, 1, 1, 1)},
    ),
    "UniqueWithCounts": (
        "54006f75745f69647800020b0a02010202020404042401",
        {"out_idx": ow.Attr(ow.DType, default=ow.int64)},
        {"out_idx": ow.int32},
    ),
    "StringLower": ("656e636f64696e67000000010c0101010614022401", {"encoding": ow.Attr(str)}, {"encoding": ""}),
    "ParseTensor": ("6f75745f7479706500010a0101010204022401", {"out_type": ow.Attr(ow.DType)}, {"out_type": ow.int32}),
    "DenseBincount": (
        "5400546964780062696e6172795f6f75747075740003161511030103000201040468062401",
        {"binary_output": ow.Attr(bool)},
        {"binary_output": True},
    ),
    "EncodePng": (
        "5400636f6d7072657373696f6e00020f0e02010203ff0404042401",
        {"compression": ow.Attr(int)},
        {"compression": -1},
    ),
    "MaxPool3DGrad": (
        "540054496e70757400646174615f666f726d617400054e44485743006b73697a650005010101010170616464696e"
        "67000453414d450073747269646573000501010101010645443e2c211406010600003a2e21140404142c142c0c2401",
        {"data_format": ow.Attr(str), "ksize": ow.Attr([int]), "padding": ow.Attr(str), "strides": ow.Attr([int])},
        {"data_format": "NDHWC", "ksize": (1,) * 5, "padding": "SAME", "strides": (1,) * 5},
    ),
}


@pytest.mark.parametrize("name", list(OFFICIAL))
def test_options_of_the_official_converter(name: str) -> None:
    raw, attrs, expected = OFFICIAL[name]
    bound = bind_options(operator("OptionsOfficial", **attrs), bytes.fromhex(raw))
    assert {k: getattr(bound, k) for k in attrs} == expected


def test_what_the_official_converter_keeps_of_types_is_no_new_option() -> None:
    op = operator()
    for options in ({"T": 0}, {"T": 10, "Tidx": 2}, {"TInput": 3, "T1": 1}):
        bind_options(op, encode_options(options))
    taken = operator("OptionsTau", T=ow.Attr(int, default=7))
    assert bind_options(taken, encode_options({"T": 3})).T == 3
    for wrong in ({"t": 0}, {"T": "float"}, {"T": 1.0}, {"T": 10_000}, {"T": -1}, {"T_x": 1}, {"xT": 1}, {"T": [1]}):
        with pytest.raises(ow.errors.SignatureError, match=f"does not know: {next(iter(wrong))}"):
            bind_options(op, encode_options(wrong))


# ---- any writer's ----------------------------------------------------------------------------------------------------

MEANT: list[tuple[str, Any, Any]] = [  # attribute, what the file has, what it is
    ("i", 0, 0),
    ("i", -(2**63), -(2**63)),
    ("i", 2**63 + 5, 2**63 + 5),
    ("i", 200, 200),
    ("i", -129, -129),
    ("f", 0.1, 0.1),
    ("f", 0.5, 0.5),
    ("f", 3, 3.0),
    ("f", float("inf"), float("inf")),
    ("f", 1e300, 1e300),
    ("b", True, True),
    ("b", 0, False),
    ("b", 1, True),
    ("s", "text", "text"),
    ("s", "é", "é"),
    ("s", b"blob", "blob"),
    ("y_", b"\0\xff", b"\0\xff"),
    ("y_", "text", b"text"),
    ("d", "int8", ow.int8),
    ("d", 9, ow.int8),
    ("d", 2, ow.int32),
    ("shape", [1, None, 3], ow.TensorShape([1, None, 3])),
    ("shape", None, ow.TensorShape(None)),
    ("o", {"deep": {"er": [1, "x"]}}, {"deep": {"er": [1, "x"]}}),
    ("o", [1, [2]], [1, [2]]),
    ("o", None, None),
    ("i_", [], ()),
    ("i_", [1, -2, 2**40], (1, -2, 2**40)),
    ("f_", [0.5, 1e300], (0.5, 1e300)),
    ("f_", [1, 2], (1.0, 2.0)),
    ("b_", [True, False], (True, False)),
    ("b_", [1, 0], (True, False)),
    ("s_", ["a", ""], ("a", "")),
    ("d_", ["int8", "float32"], (ow.int8, ow.float32)),
    ("d_", [9, 0], (ow.int8, ow.float32)),
    ("bytes_", [b"\xff", "x"], (b"\xff", b"x")),
]


@pytest.mark.parametrize(("name", "value", "wanted"), MEANT, ids=lambda v: repr(v)[:20])
def test_values_of_each_type(every: Any, name: str, value: Any, wanted: Any) -> None:
    actual = getattr(bind_options(every, encode_options({name: value})), name)
    assert (actual, type(actual)) == (wanted, type(wanted))


ARRAYS = [
    np.arange(6, dtype=np.int16).reshape(2, 3),
    np.float32([0.1, np.inf]),
    np.zeros((0, 2)),
    np.array([True, False]),
    np.array(3.5),
]


@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_arrays(every: Any, array: np.ndarray) -> None:
    kept = {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.reshape(-1).tolist()}
    result = bind_options(every, encode_options({"a": kept})).a
    assert (result.dtype, result.shape, result.tolist()) == (array.dtype, array.shape, array.tolist())


WRONG: list[tuple[str, Any]] = [
    ("i", 1.5),
    ("i", "1"),
    ("i", True),
    ("i", [1]),
    ("i", None),
    ("i", {"a": 1}),
    ("f", "0.5"),
    ("f", True),
    ("f", [0.5]),
    ("f", {"a": 1}),
    ("b", 2),
    ("b", 0.0),
    ("b", "true"),
    ("s", 3),
    ("s", ["a"]),
    ("s", {"a": "b"}),
    ("y_", 3),
    ("d", "int9"),
    ("d", 10_000),
    ("d", -1),
    ("d", 14),
    ("d", 1.5),
    ("d_", [0, "int9"]),
    ("shape", "x"),
    ("shape", [-2]),
    ("i_", 3),
    ("i_", "12"),
    ("i_", [1, 2.5]),
    ("i_", [[1]]),
    ("i_", {"a": 1}),
    ("f_", ["x"]),
    ("b_", [2]),
    ("s_", [1]),
    ("bytes_", [1]),
    ("a", {"dtype": "int8"}),
    ("a", {"dtype": "int8", "shape": [2], "values": [1]}),
    ("a", {"dtype": "int8", "shape": [-1], "values": [300]}),
    ("a", {"dtype": 3, "shape": 4, "values": 5}),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=repr)
def test_values_of_the_wrong_type_are_named(every: Any, name: str, value: Any) -> None:
    with pytest.raises(ow.errors.OpError, match=rf"OptionsEvery: (attribute|option) '{name}' (.|\n)*wanted"):
        bind_options(every, encode_options({name: value}))


def test_a_check_of_the_attribute_counts() -> None:
    op = operator("OptionsChecked", n=ow.Attr(int, default=1, check=ow.attr.at_least(1)))
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"OptionsChecked: attribute 'n' is out of its range"):
        bind_options(op, encode_options({"n": 0}))
    required = operator("OptionsRequired", n=ow.Attr(int))
    with pytest.raises(ow.errors.SignatureError, match="attribute 'n' is missing"):
        bind_options(required, b"")


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("indirect", [False, True])
def test_integers_of_every_width(every: Any, width: int, indirect: bool) -> None:
    for value in (0, 1, 127, -128, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1))):
        builder = flexbuffers.Builder()
        with builder.Map():
            builder.Key(b"i")
            builder.IndirectInt(value, width) if indirect else builder.Int(value, width)
        assert bind_options(every, bytes(builder.Finish())).i == value


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("indirect", [False, True])
def test_floats_of_every_width(every: Any, width: int, indirect: bool) -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key(b"f")
        builder.IndirectFloat(0.1, width) if indirect else builder.Float(0.1, width)
    expected = float(np.float32(0.1)) if width == 4 else 0.1
    assert bind_options(every, bytes(builder.Finish())).f == expected


def test_unsigned_and_untyped_forms(every: Any) -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key(b"b_")
        with builder.Vector():
            builder.Bool(True)
            builder.Bool(False)
        builder.Key(b"i")
        builder.UInt(255, 1)
        builder.Key(b"i_")
        with builder.Vector():
            builder.Int(-1)
            builder.UInt(7)
    bound = bind_options(every, bytes(builder.Finish()))
    assert (bound.b_, bound.i, bound.i_) == ((True, False), 255, (-1, 7))


# ---- broken bytes ----------------------------------------------------------------------------------------------------

WHOLE = encode_options({"i": 7, "f": 0.25, "s": "text", "i_": [1, 2, 3], "b": True})


@pytest.mark.parametrize("raw", [b"", None, encode_options({}), bytes([0, 0, 1])], ids=repr)
def test_no_options_are_defaults(every: Any, raw: Any) -> None:
    bound = bind_options(every, raw)
    assert (bound.i, bound.f, bound.b, bound.s) == (1, 0.5, False, "")


@pytest.mark.parametrize("document", [3, "text", [1, 2], 0.5, True, b"blob"], ids=repr)
def test_documents_that_are_no_map(every: Any, document: Any) -> None:
    builder = flexbuffers.Builder()
    builder.Add(document) if not isinstance(document, list) else builder.VectorFromElements(document)
    with pytest.raises(ow.errors.InvalidArgumentError, match="custom options are not a map"):
        bind_options(every, bytes(builder.Finish()))


@pytest.mark.parametrize("end", range(1, len(WHOLE)))
def test_options_that_are_cut_off(every: Any, end: int) -> None:
    try:
        bind_options(every, WHOLE[:end])
    except ow.errors.OpError:
        return


@settings(max_examples=examples(300), deadline=None)
@given(
    st.binary(max_size=60)
    | st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)).map(
        lambda change: WHOLE[: change[0]] + bytes([change[1]]) + WHOLE[change[0] + 1 :]
    )
)
def test_any_bytes_are_options_or_an_error_of_ours(raw: bytes) -> None:
    op = operator("OptionsAny", **ATTRS)
    try:
        bound = bind_options(op, raw)
    except ow.errors.OpError:
        return
    again = op.bind({name: getattr(bound, name) for name in ATTRS})  # what came through is what the attributes take
    assert again.attrs.keys() == bound.attrs.keys()


# ---- there and back --------------------------------------------------------------------------------------------------

VALUES = st.fixed_dictionaries(
    {},
    optional={
        "i": st.integers(-(2**63), 2**63 - 1),
        "f": st.floats(allow_nan=False),
        "b": st.booleans(),
        "s": st.text(max_size=5),
        "y_": st.binary(max_size=5),
        "d": st.sampled_from([ow.int8, ow.bfloat16, ow.string, ow.complex64]),
        "shape": st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3),
        "i_": st.lists(st.integers(-9, 9), max_size=4),
        "f_": st.lists(st.floats(allow_nan=False, width=32), max_size=3),
        "b_": st.lists(st.booleans(), max_size=3),
        "s_": st.lists(st.text(max_size=3), max_size=3),
        "d_": st.lists(st.sampled_from([ow.int8, ow.float64]), max_size=2),
        "o": st.recursive(
            st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=2),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
            max_leaves=4,
        ),
    },
)


@settings(max_examples=examples(60), deadline=None)
@given(VALUES)
def test_attributes_through_a_file(given_: dict[str, Any]) -> None:
    op = operator("OptionsThrough", **ATTRS)
    attrs = {k: ow.TensorShape(v) if k == "shape" else v for k, v in given_.items()}
    model = Model.read(single_operator(op, [ow.TensorSpec([3])], attrs))
    (node,) = model.subgraphs[0].operators
    back, meant = bind_options(op, bytes(node.custom_options)), op.bind(attrs)
    for name in ATTRS:
        a, b = getattr(back, name), getattr(meant, name)
        assert np.array_equal(a, b) if isinstance(b, np.ndarray) else (a, type(a)) == (b, type(b)), name


def test_options_that_lie_behind_the_flatbuffer() -> None:
    """large_custom_options_offset: files of more than 2 GiB keep options outside; here a small one does."""
    op = operator("OptionsFar", gain=ow.Attr(float, default=1.0), compute=lambda op, x: op.gain * x)
    model = Model.read(single_operator(op, [ow.TensorSpec([3])], {"gain": 2.5}))
    near = model.to_bytes()
    (node,) = model.subgraphs[0].operators
    node.large_custom_options_offset = node.large_custom_options_size = 1
    far = model.to_bytes()
    (read,) = Model.read(far).subgraphs[0].operators
    assert read.large_custom_options_offset >= 1
    assert decode_options(bytes(read.custom_options)) == {"gain": 2.5}
    for content in (near, far):
        interpreter = Interpreter(model_content=content, custom_ops=[op])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, X)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), 2.5 * X)


def test_the_interpreter_names_operator_option_and_node() -> None:
    op = operator("OptionsNewer")
    newer = operator("OptionsNewer", brighter=ow.Attr(int, default=1))
    content = single_operator(newer, [ow.TensorSpec([3])], {"brighter": 2})
    interpreter = Interpreter(model_content=content, custom_ops=[op])
    with pytest.raises(RuntimeError, match=r"OptionsNewer(.|\n)*brighter(.|\n)*newer definition") as excinfo:
        interpreter.allocate_tensors()
    assert "ode number 0" in str(excinfo.value)
    good = Interpreter(model_content=content, custom_ops=[newer])
    good.allocate_tensors()
