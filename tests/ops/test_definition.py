"""Definitions by `@ow.operator`: what a class body may say, and what a call may."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import DefinitionError, InvalidArgumentError, SignatureError, UnimplementedError
from opwright.graph import Graph

# ---- operators to look at ---------------------------------------------------------------------------------------


@ow.operator(version=2)
class DefinedClip:
    """Clip with a leak.

    .. math:: y = \\min(x, limit)
              + alpha \\max(x - limit, 0)

    x: anything floating.
    """

    x = ow.Input(dtypes=ow.floating, doc="what is clipped")
    y = ow.Output(like="x")
    alpha = ow.Attr(float, default=0.0, check=ow.attr.at_least(0.0))
    limit = ow.Attr(float, default=6.0, since=2)

    def compute(op, x):
        return op.helper(np.minimum(x, op.limit), np.maximum(x - op.limit, 0))

    def helper(op, low, high):
        return (low + op.alpha * high).astype(low.dtype)

    def gradient(op, dy):
        return dy


@ow.operator
class DefinedMany:
    """Repeated and optional inputs, several outputs, one of them for the gradient only."""

    xs = ow.Input(ow.floating, repeated=True)
    bias = ow.Input(ow.floating, like="xs", optional=True)
    total = ow.Output()
    parts = ow.Output(repeated=True)
    kept = ow.Output(intermediate=True)
    times = ow.Attr(int)

    def infer(op):
        spec = op.xs[0].spec
        return spec, [spec] * len(op.xs), ow.TensorSpec([], "int32")

    def compute(op, xs, bias):
        total = sum(xs) * xs[0].dtype.type(op.times)
        return total if bias is None else total + bias, [x * 2 for x in xs], np.int32(len(xs))


@ow.operator
class DefinedKinds:
    """One attribute of each type."""

    x = ow.Input(("float32",), rank=(1, 2))
    y = ow.Output(like="x")
    whole = ow.Attr(int, default=1, check=ow.attr.between(0, 9))
    real = ow.Attr(float, default=1)
    yes = ow.Attr(bool, default=True)
    words = ow.Attr(str, default="a", check=ow.attr.one_of("a", "b"))
    raw = ow.Attr(bytes, default=b"")
    kind = ow.Attr(ow.DType, default="int8")
    sizes = ow.Attr(ow.TensorShape, default=[None, 2])
    array = ow.Attr(np.ndarray, default=[1, 2])
    wholes = ow.Attr([int], default=[1], check=ow.attr.each(ow.attr.at_least(0)) & ow.attr.length(1))
    reals = ow.Attr(list[float], default=())
    anything = ow.Attr(object, default=None)
    maybe = ow.Attr(int, default=None)

    def compute(op, x):
        SEEN.append(op)
        return x


SEEN = []
X = np.float32([1, 2])


def attrs_of(**attrs):
    DefinedKinds(X, **attrs)
    return SEEN.pop()


# ---- what a definition says -------------------------------------------------------------------------------------


def test_what_is_read_from_the_class():
    op = DefinedClip
    assert (op.name, op.__name__, op.version) == ("DefinedClip", "DefinedClip", 2)
    assert op.__module__ == __name__
    assert op.formula == "y = \\min(x, limit) + alpha \\max(x - limit, 0)"
    assert op.doc.startswith("Clip with a leak.")
    assert inspect.getdoc(op) == op.doc
    assert (op.input_names, op.output_names, list(op.attr_defs)) == (("x",), ("y",), ["alpha", "limit"])
    assert op.inputs[0].doc == "what is clipped"
    assert op.signature() == "DefinedClip(x, *, alpha: float = 0.0, limit: float = 6.0)"
    assert repr(op) == "<operator DefinedClip(x, *, alpha: float = 0.0, limit: float = 6.0), version 2>"
    assert DefinedMany.signature() == "DefinedMany(xs, bias=None, *, times: int)"
    assert (op.inplace, op.no_need_buffer, op.lod, op.effect, op.elementwise) == ({}, (), "unchanged", None, False)
    assert not op.catalogue


def test_settings():
    @ow.operator(name="Defined.Other", version=3)
    class Whatever:
        x = ow.Input()
        y = ow.Output(like="x")
        inplace = {"y": "x"}
        no_need_buffer = ("x",)
        lod = "vanishes"
        effect = "random"
        elementwise = True
        gradient = None

    assert (Whatever.name, Whatever.version) == ("Defined.Other", 3)
    assert (Whatever.inplace, Whatever.no_need_buffer, Whatever.lod) == ({"y": "x"}, ("x",), "vanishes")
    assert (Whatever.effect, Whatever.elementwise, Whatever.doc, Whatever.formula) == ("random", True, "", "")
    assert Whatever.has_gradient_rule
    assert Whatever.gradient_rule is None
    assert ow.ops.get("Defined.Other") is Whatever


def test_pickling_and_copying_give_the_operator_itself():
    assert pickle.loads(pickle.dumps(DefinedClip)) is DefinedClip
    assert copy.deepcopy(DefinedClip) is DefinedClip
    assert {DefinedClip: 1}[DefinedClip] == 1


def define(**body):
    body = {"x": ow.Input(ow.floating), "y": ow.Output(like="x"), **body}
    return ow.operator(name="DefinedWrong")(type("DefinedWrong", (), {k: v for k, v in body.items() if v is not None}))


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ({"y": ow.Output(like="z")}, ValueError, "y is like 'z', which is not an input"),
        ({"w": ow.Input(like="q")}, ValueError, "w is like 'q'"),
        ({"x": ow.Input(like="x")}, ValueError, "in a circle"),
        ({"x": ow.Input(like="w"), "w": ow.Input(like="x")}, ValueError, "in a circle"),
        ({"y": ow.Output()}, ValueError, "output y needs `like=`"),
        ({"y": ow.Output(dtype="int8")}, ValueError, "output y needs `like=`"),
        ({"y": ow.Output(like="x", repeated=True)}, ValueError, "output y is repeated; that needs an `infer` rule"),
        ({"x": ow.Input(repeated=True)}, ValueError, "output y is like 'x', which is repeated or optional"),
        ({"x": ow.Input(optional=True)}, ValueError, "output y is like 'x', which is repeated or optional"),
        ({"inplace": {"y": "z"}}, ValueError, "inplace 'y': 'z' must name an output and an input"),
        ({"inplace": {"x": "x"}}, ValueError, "inplace 'x'"),
        ({"no_need_buffer": ("z",)}, ValueError, "no_need_buffer names 'z', which is not an input or output"),
        ({"shape_only": ("y",)}, ValueError, "shape_only names 'y', which is not an input"),
        ({"gradient": 3}, TypeError, "gradient = 3 is not understood"),
        ({"lod": "kept"}, ValueError, "'vanishes', 'above' or 'as' an input, found 'kept'"),
        ({"effect": "print"}, ValueError, "found 'print'"),
        ({"control": True}, ValueError, "control flow needs an attribute of type Graph"),
        ({"control": True, "body": ow.Attr(Graph), "compute": np.sin}, ValueError, "control flow has no compute"),
        ({"alpha": 3.0}, TypeError, "alpha = 3.0 is not understood"),
        ({"a": ow.Attr(int, default=0, since=2)}, ValueError, "version 1 is below the `since` of a"),
        ({"name": ow.Attr(int)}, ValueError, "the name 'name' is taken"),
        ({"attrs": ow.Input()}, ValueError, "the name 'attrs' is taken"),
        ({"operator": ow.Output(like="x")}, ValueError, "the name 'operator' is taken"),
        ({"reference": lambda op: 1}, ValueError, "the name 'reference' is taken; name this method otherwise"),
        (
            {"kernel": ow.kernel(lambda x: (x, x)), "z": ow.Output(like="x")},
            ValueError,
            "a kernel on scalars gives one result, the operator y, z",
        ),
        (
            {"kernel": ow.kernel(lambda x, z: x), "z": ow.Input(repeated=True)},
            ValueError,
            "a kernel on scalars takes a scalar of each input, and z is repeated",
        ),
        ({"kernel": ow.kernel(lambda x, z: x)}, ValueError, "its kernel takes x, z; the inputs are x"),
        ({"kernel": ow.kernel(lambda x, *, q: x)}, ValueError, "parameter 'q' is not an attribute"),
        ({"a": ow.Attr(float, since=2)}, ValueError, "attribute a has since > 1, so it needs a default"),
        ({"a": ow.Attr(int, default=1.5)}, TypeError, "attribute a: the default 1.5 has the wrong type; wanted int"),
        ({"a": ow.Attr(int, default=True)}, TypeError, "attribute a: the default True has the wrong type"),
        ({"a": ow.Attr(float, default="1")}, TypeError, "attribute a: the default '1' has the wrong type"),
        ({"a": ow.Attr([int], default=[1, "2"])}, TypeError, "wanted list of int"),
        ({"a": ow.Attr([int], default="12")}, TypeError, "wanted list of int"),
        (
            {"a": ow.Attr(float, default=-1, check=ow.attr.at_least(0))},
            ValueError,
            "attribute a: the default -1 is out of its range; wanted at least 0",
        ),
        ({"a": ow.Attr(int, default=0, since=0)}, ValueError, "a: since is a version of the operator, 1 or more"),
        ({"w": ow.Input(optional=True, since=1.5)}, ValueError, "w: since is a version of the operator"),
        ({"w": ow.Input(since=2)}, ValueError, "input w has since > 1, so it is optional"),
        ({"z": ow.Output(like="x", since=2)}, ValueError, "output z has since > 1, so it is intermediate"),
        ({"w": ow.Input(rank="x")}, ValueError, "input w: rank is a number of dimensions, or a tuple of them"),
        ({"w": ow.Input(rank=(1, -2))}, ValueError, "input w: rank is a number of dimensions"),
        (
            {"w": ow.Input(optional=True), "v": ow.Input()},
            ValueError,
            "the required input v stands after the optional input w",
        ),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_definitions_that_contradict_themselves(body, error, words):
    with pytest.raises(error, match="operator DefinedWrong: ") as caught:
        define(**body)
    assert words in str(caught.value)


def test_a_definition_inherits_the_declarations_of_its_base_classes():
    class Weighted(ow.OperatorDefinition):
        x = ow.Input(ow.floating)
        w = ow.Input(ow.floating, like="x")
        y = ow.Output(like="x")
        factor = ow.Attr(float, default=2.0)

        def compute(op, x, w):
            return op.term(x) * w

        def term(op, x):
            return x * x.dtype.type(op.factor)

        def gradient(op, dy):
            return dy * op.w * op.factor, dy * op.x * op.factor

    @ow.operator
    class InheritsPlainly(Weighted):
        """y = factor x w"""

        offset = ow.Attr(float, default=1.0)

    @ow.operator
    class InheritsAndOverrides(Weighted):
        """y = (x + factor) w, of float64"""

        x = ow.Input("float64")

        def term(op, x):
            return x + op.factor

    x, w = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    assert InheritsPlainly(x, w, 4.0).numpy().tolist() == [12.0, 40.0]
    assert InheritsAndOverrides(x, w).numpy().tolist() == [9.0, 20.0]
    plain, other = ow.ops.get("InheritsPlainly"), ow.ops.get("InheritsAndOverrides")
    assert plain.signature() == "InheritsPlainly(x, w, *, factor: float = 2.0, offset: float = 1.0)"
    assert other.input_names == ("x", "w")
    assert other.inputs[0].dtypes != plain.inputs[0].dtypes
    assert plain.inputs[1] is not other.inputs[1]
    v = ow.Variable(x)
    with ow.GradientTape() as tape:
        y = InheritsPlainly(v, w)
    assert tape.gradient(y, v).numpy().tolist() == [6.0, 10.0]
    with pytest.raises(InvalidArgumentError):
        InheritsAndOverrides(x.astype(np.float32), w.astype(np.float32))


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", None])
def test_versions_are_positive_integers(version):
    with pytest.raises(ValueError, match="version is an integer of at least 1"):
        ow.operator(version=version)(type("DefinedWrong", (), {"x": ow.Input(), "y": ow.Output(like="x")}))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ow.Attr(set), TypeError, "an attribute's type is one of int, float"),
        (lambda: ow.Attr([int, float]), TypeError, "an attribute's type is one of"),
        (lambda: ow.Input("float33"), TypeError, "float33"),
        (lambda: ow.Output(dtype="float33"), TypeError, "float33"),
    ],
)
def test_declarations_that_are_wrong_by_themselves(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)


def test_an_output_takes_its_dtype_by_position():
    assert ow.Output(ow.float16).dtype is ow.float16


def test_like_goes_on_to_the_last():
    @ow.operator
    class DefinedChain:
        a = ow.Input(ow.floating)
        b = ow.Input(ow.floating, like="a")
        c = ow.Input(ow.floating, like="b")
        y = ow.Output(like="c")
        elementwise = True

        def compute(op, a, b, c):
            return a + b + c

    assert DefinedChain(1, np.float64(2), 3).dtype == ow.float64
    with pytest.raises(SignatureError, match="'a' and 'c' differ in dtype"):
        DefinedChain(ow.constant(1.0), ow.constant(1.0), ow.constant(1.0, ow.float64))


# ---- names --------------------------------------------------------------------------------------------------------


def test_a_users_operator_of_a_catalogue_name_works_and_hides_nothing():
    theirs = ow.ops.get("Identity")

    @ow.operator(name="Identity")
    class Mine:
        x = ow.Input()
        y = ow.Output(like="x")

        def compute(op, x):
            return x + 1

    assert Mine(3).numpy() == 4
    assert ow.ops.get("Identity") is theirs
    assert theirs(3).numpy() == 3


def test_of_two_definitions_the_latest_counts():
    def once():
        @ow.operator
        class DefinedAgain:
            x = ow.Input()
            y = ow.Output(like="x")

        return DefinedAgain

    first, second = once(), once()
    assert first is not second
    assert ow.ops.get("DefinedAgain") is second
    assert "DefinedAgain" in ow.ops.list()


def test_an_unknown_name_is_answered_with_near_ones():
    with pytest.raises(KeyError, match=r"did you mean.*DefinedClip"):
        ow.ops.get("DefinedClop")


# ---- calls --------------------------------------------------------------------------------------------------------


def test_ways_to_call():
    x = np.float32([1, 9])
    expected = [1, 6.5 + 0.5 * 2.5]
    for result in (
        DefinedClip(x, 0.5, 6.5),
        DefinedClip(x, 0.5, limit=6.5),
        DefinedClip(x, limit=6.5, alpha=0.5),
        DefinedClip(limit=6.5, x=x, alpha=0.5),
        DefinedClip(x=x, alpha=0.5, limit=6.5, name="clipped"),
        DefinedClip([1.0, 9], 0.5, 6.5),
    ):
        assert result.numpy().tolist() == expected
        assert result.dtype == ow.float32


def test_repeated_optional_several_and_intermediate():
    a, b = np.float64([1, 2]), np.float64([10, 20])
    total, parts = DefinedMany([a, b], times=3)
    assert total.numpy().tolist() == [33, 66]
    assert isinstance(parts, list)
    assert [p.numpy().tolist() for p in parts] == [[2, 4], [20, 40]]
    assert DefinedMany([a], b, 1)[0].numpy().tolist() == [11, 22]
    assert DefinedMany((a,), None, times=1)[0].numpy().tolist() == [1, 2]
    assert DefinedMany([[1, 2.5], ow.constant(a)], times=1)[0].dtype == ow.float64
    assert len(DefinedMany(np.zeros((3, 2)), times=1)[1]) == 3  # the rows of an array are several tensors too


@ow.operator
class DefinedPair:
    """Two inputs of one dtype."""

    a = ow.Input((ow.float32, ow.float64, ow.int32))
    b = ow.Input((ow.float32, ow.float64, ow.int32), like="a")
    y = ow.Output(like="a")

    def compute(op, a, b):
        return a + b


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        (1, 2, "int32"),
        (1, 2.0, "float32"),
        (1.0, 2, "float32"),
        (np.float64(1), 2, "float64"),
        (1, np.float64(2), "float64"),
        (np.int32(1), 2, "int32"),
        ([1, 2], [3.0, 4], "float32"),
    ],
    ids=str,
)
def test_python_numbers_follow(a, b, dtype):
    assert DefinedPair(a, b).dtype == dtype


F32, F64 = ow.constant([1.0]), ow.constant([1.0], ow.float64)
FLOATS = "bfloat16, float16, float32, float64"
BAD_CALLS = [  # call, error, everything the one message must name: operator, argument, found, wanted
    (lambda: DefinedClip(), SignatureError, ["DefinedClip", "'x'", "missing"]),
    (lambda: DefinedClip(None), SignatureError, ["DefinedClip", "'x'", "missing"]),
    (lambda: DefinedClip(X, beta=1), SignatureError, ["DefinedClip", "'beta'", "beta=1 (int)", "x, alpha, limit"]),
    (lambda: DefinedClip(X, 1, 2, 3), SignatureError, ["DefinedClip", "4 positional", "at most 3: x, alpha, limit"]),
    (lambda: DefinedClip(X, 0.1, alpha=1), SignatureError, ["DefinedClip", "'alpha' is given twice"]),
    (lambda: DefinedClip(X, x=X), SignatureError, ["DefinedClip", "'x' is given twice"]),
    (lambda: DefinedClip(X, alpha="1"), SignatureError, ["DefinedClip", "'alpha'", "'1' (str)", "float"]),
    (lambda: DefinedClip(X, alpha=True), SignatureError, ["DefinedClip", "'alpha'", "True (bool)", "float"]),
    (lambda: DefinedClip(X, alpha=None), SignatureError, ["DefinedClip", "'alpha'", "None", "float"]),
    (lambda: DefinedClip(X, alpha=-1), InvalidArgumentError, ["DefinedClip", "'alpha'", "-1 (int)", "at least 0.0"]),
    (lambda: DefinedClip(X, alpha=float("nan")), InvalidArgumentError, ["DefinedClip", "nan", "at least 0.0"]),
    (lambda: DefinedClip(np.int32([1])), SignatureError, ["DefinedClip", "'x'", "int32", FLOATS]),
    (lambda: DefinedClip("text"), SignatureError, ["DefinedClip", "'x'", "string"]),
    (lambda: DefinedClip(object()), SignatureError, ["DefinedClip", "'x'", "object"]),
    (lambda: DefinedClip([[1.0], [1.0, 2.0]]), SignatureError, ["DefinedClip", "'x'", "non-rectangular"]),
    (lambda: DefinedMany([X]), SignatureError, ["DefinedMany", "'times' is missing", "int"]),
    (lambda: DefinedMany([F32, F64], times=1), SignatureError, ["DefinedMany", "xs", "float32", "float64", "cast"]),
    (lambda: DefinedMany([F32], F64, 1), SignatureError, ["DefinedMany", "'xs'", "'bias'", "float32", "float64"]),
    (lambda: DefinedPair(ow.constant(1), 2.5), SignatureError, ["DefinedPair", "'b'", "2.5", "int32"]),
    (lambda: DefinedKinds(np.float32(1)), InvalidArgumentError, ["DefinedKinds", "'x'", "f32[]", "rank 1 or 2"]),
    (lambda: DefinedKinds(X, whole=10), InvalidArgumentError, ["DefinedKinds", "'whole'", "10", "between 0 and 9"]),
    (lambda: DefinedKinds(X, whole=1.0), SignatureError, ["DefinedKinds", "'whole'", "1.0 (float)", "int"]),
    (lambda: DefinedKinds(X, yes=1), SignatureError, ["DefinedKinds", "'yes'", "1 (int)", "bool"]),
    (lambda: DefinedKinds(X, words="c"), InvalidArgumentError, ["DefinedKinds", "'words'", "'c'", "one of 'a', 'b'"]),
    (lambda: DefinedKinds(X, words=3), SignatureError, ["DefinedKinds", "'words'", "3 (int)", "str"]),
    (lambda: DefinedKinds(X, kind="float33"), SignatureError, ["DefinedKinds", "'kind'", "'float33'", "DType"]),
    (lambda: DefinedKinds(X, sizes=[-1]), SignatureError, ["DefinedKinds", "'sizes'", "[-1]", "TensorShape"]),
    (lambda: DefinedKinds(X, wholes=[-1]), InvalidArgumentError, ["DefinedKinds", "'wholes'", "[-1]", "at least 0"]),
    (lambda: DefinedKinds(X, wholes=[1, 2]), InvalidArgumentError, ["DefinedKinds", "'wholes'", "[1, 2]", "1 items"]),
    (lambda: DefinedKinds(X, wholes=3), SignatureError, ["DefinedKinds", "'wholes'", "3 (int)", "list of int"]),
    (lambda: DefinedKinds(X, words="c" * 999), InvalidArgumentError, ["DefinedKinds", "ccc...", "(str)"]),
    (lambda: DefinedKinds(X, whole=np.zeros(3)), SignatureError, ["DefinedKinds", "array of float64 [3]"]),
]


@pytest.mark.parametrize(("call", "error", "words"), BAD_CALLS, ids=["-".join(w) for *_, w in BAD_CALLS])
def test_bad_calls_are_one_error_in_words(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert [w for w in words if w not in str(caught.value)] == []
    assert caught.value.op == words[0]
    assert len(str(caught.value)) < 500


def test_errors_name_the_node():
    with pytest.raises(SignatureError, match="DefinedClip 'my_node': input 'x'"):
        DefinedClip(np.int32([1]), name="my_node")


# ---- attributes -------------------------------------------------------------------------------------------------


def test_defaults_are_converted():
    op = attrs_of()
    assert op.attrs.keys() == DefinedKinds.attr_defs.keys()
    assert (op.whole, op.real, op.yes, op.words, op.raw, op.kind) == (1, 1.0, True, "a", b"", ow.int8)
    assert type(op.real) is float
    assert op.sizes == ow.TensorShape([None, 2])
    assert (op.array.tolist(), op.array.flags.writeable) == ([1, 2], False)
    assert (op.wholes, op.reals, op.anything, op.maybe) == ((1,), (), None, None)


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("whole", np.int64(3), 3),
        ("whole", np.array(3), 3),
        ("real", 3, 3.0),
        ("real", np.float32(0.5), 0.5),
        ("real", float("inf"), float("inf")),
        ("yes", np.True_, True),
        ("words", b"b", "b"),
        ("raw", "é", "é".encode()),
        ("raw", np.array([1, 2], np.uint8), b"\x01\x02"),
        ("kind", np.float16, ow.float16),
        ("kind", float, ow.float32),
        ("sizes", 3, ow.TensorShape([3])),
        ("sizes", None, ow.TensorShape(None)),
        ("wholes", np.array([3]), (3,)),
        ("wholes", iter([3]), (3,)),
        ("reals", [1, 2.5], (1.0, 2.5)),
        ("anything", {"a": 1}, {"a": 1}),
        ("maybe", 3, 3),
        ("maybe", None, None),
    ],
)
def test_values_are_converted(key, value, kept):
    result = getattr(attrs_of(**{key: value}), key)
    assert result == kept
    assert type(result) is type(kept)


def test_arrays_are_copied():
    mine = np.array([1.0, 2.0])
    kept = attrs_of(array=mine).array
    mine[0] = 9
    assert kept.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 3


def test_equal_values_of_other_types_or_signs_are_kept_apart():
    """Attributes are remembered by value, and 0.0 == -0.0 == False."""
    for value in (0.0, -0.0, 0.0, -0.0):
        assert str(attrs_of(real=value).real) == str(value)
    assert attrs_of(reals=(0.0,)).reals == (0.0,)
    assert str(attrs_of(reals=(-0.0,)).reals) == "(-0.0,)"
    assert type(attrs_of(anything=1).anything) is int
    assert type(attrs_of(anything=True).anything) is bool
    assert type(attrs_of(anything=1.0).anything) is float
    attrs_of(whole=1)
    for wrong in ({"whole": True}, {"whole": 1.0}, {"wholes": (True,)}, {"wholes": (1.0,)}):
        attrs_of(wholes=(1,))
        with pytest.raises(SignatureError):
            DefinedKinds(X, **wrong)


@pytest.mark.parametrize(
    ("check", "good", "wrong", "words"),
    [
        (ow.attr.at_least(1), 1, 0, "at least 1"),
        (ow.attr.greater_than(1), 2, 1, "greater than 1"),
        (ow.attr.at_most(1), 1, 2, "at most 1"),
        (ow.attr.less_than(1), 0, 1, "less than 1"),
        (ow.attr.between(1, 2), 2, 3, "between 1 and 2"),
        (ow.attr.one_of(1, 2), 2, 3, "one of 1, 2"),
        (ow.attr.one_of([1, 2]), 1, 3, "one of 1, 2"),
        (ow.attr.at_least(1) & ow.attr.at_most(2), 2, 3, "at least 1 and at most 2"),
        (ow.attr.satisfies("even", lambda v: v % 2 == 0), 2, 3, "even"),
        (ow.attr.finite(), 1.0, float("inf"), "finite"),
        (ow.attr.finite(), 1.0, float("nan"), "finite"),
    ],
)
def test_checks(check, good, wrong, words):
    attr = ow.Attr(object, default=good, check=check)
    assert attr.convert(good) == good
    with pytest.raises(ValueError, match=f"^{words}$"):
        attr.convert(wrong)


# ---- what the rules give ------------------------------------------------------------------------------------------


def test_without_compute_there_is_no_running():
    op = define()
    with pytest.raises(UnimplementedError, match="DefinedWrong: no `compute` rule is defined"):
        op(1.0)
    assert op.infer(op.bind({}), [ow.TensorSpec([None, 3], "float64")]) == [ow.TensorSpec([None, 3], "float64")]


def test_control_flow_runs_in_graphs_alone():
    body = ow.function(lambda x: x * 2.0).get_concrete_function(ow.TensorSpec([], "float32")).graph
    choose = ow.function(lambda p, x: ow.ops.get("If")(p, [x], then_branch=body, else_branch=body)[0])
    assert choose(True, 3.0).numpy() == 6.0
    with pytest.raises(UnimplementedError, match=r"If: control flow has no kernel.*\n.*ow\.cond"):
        ow.ops.get("If")(True, [3.0], then_branch=body, else_branch=body)


@pytest.mark.parametrize("elementwise", [False, True])
@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda op, x: x.astype(np.int64), ["another dtype", "found   int64", "astype('float32')"]),
        (lambda op, x: x > 0, ["another dtype", "found   bool"]),
    ],
)
def test_compute_is_held_to_the_inferred_dtype(compute, words, elementwise):
    with pytest.raises(DefinitionError, match=r"^DefinedWrong") as caught:
        define(compute=compute, elementwise=elementwise)(X)
    assert [w for w in words if w not in str(caught.value)] == []


@pytest.mark.parametrize("dtype", ow.floating, ids=str)
def test_what_numpy_widens_is_narrowed(dtype):
    x = ow.constant([0.5, 1.5], dtype)
    y = define(compute=lambda op, x: x * np.float64(2), z=None)(x)
    assert y.dtype == dtype
    assert np.asarray(y).dtype == dtype.np
    assert y.numpy().tolist() == [1, 3]


def test_compute_is_held_to_the_inferred_shape():
    with pytest.raises(DefinitionError, match=r"another shape(?s:.*)\(1, 2\)(?s:.*)\(2,\)"):
        define(compute=lambda op, x: x[None])(X)


@pytest.mark.parametrize("result", [(X,), (X, X, X)], ids=["one", "three"])
def test_compute_returns_one_result_for_each_output(result):
    op = define(z=ow.Output(like="x"), compute=lambda op, x: result)
    with pytest.raises(DefinitionError, match=r"DefinedWrong: compute gave another number(?s:.*)y, z"):
        op(X)


def test_infer_returns_one_spec_for_each_output():
    op = define(infer=lambda op: (op.x.spec, op.x.spec), compute=lambda op, x: x)
    with pytest.raises(DefinitionError, match="DefinedWrong: infer gave 2 specs"):
        op(X)


def test_errors_of_rules_get_the_operators_name():
    def infer(op):
        raise InvalidArgumentError(what="I object", found="this")

    with pytest.raises(InvalidArgumentError, match=r"^DefinedWrong 'n': I object") as caught:
        define(infer=infer, compute=lambda op, x: x)(X, name="n")
    assert caught.value.op == "DefinedWrong"
    assert "found   this" in str(caught.value)


def test_errors_of_numpy_get_the_operators_name_and_inputs():
    with pytest.raises(InvalidArgumentError, match=r"raised ValueError: cannot reshape(?s:.*)x f32\[2\]") as caught:
        define(compute=lambda op, x: x.reshape(7))(X)
    assert isinstance(caught.value.__cause__, ValueError)


def test_elementwise_shapes_are_checked_in_words():
    op = define(w=ow.Input(ow.floating, like="x"), elementwise=True, compute=lambda op, x, w: x + w)
    with pytest.raises(InvalidArgumentError, match=r"^DefinedWrong: Incompatible shapes: \[2\] vs. \[3\]"):
        op(X, np.float32([1, 2, 3]))
    ranked = define(w=ow.Input(ow.floating, like="x", rank=0), elementwise=True, compute=lambda op, x, w: x + w)
    with pytest.raises(InvalidArgumentError, match=r"^DefinedWrong: input 'w' has the wrong rank(?s:.*)rank 0"):
        ranked(X, X)
    assert ranked(X, 1.0).shape == (2,)


def test_a_ufunc_is_a_compute_rule():
    assert define(compute=np.sinh, elementwise=True)(0.0).numpy() == 0


def test_inference_of_elementwise_operators():
    op = define(w=ow.Input(ow.floating, like="x"), elementwise=True, b=ow.Output(dtype="bool"))
    spec = ow.TensorSpec
    (y, b) = op.infer(op.bind({}), [spec([None, 3], "float16"), spec([5, 1], "float16")])
    assert (y, b) == (spec([5, 3], "float16"), spec([5, 3], "bool"))
    (y, b) = op.infer(op.bind({}), [spec(None, "float16"), spec([5, 1], "float16")])
    assert (y, b) == (spec(None, "float16"), spec(None, "bool"))


# ---- the function of an operator ----------------------------------------------------------------------------------


def test_as_function():
    clip = DefinedClip.as_function("defined_clip")
    assert str(inspect.signature(clip)) == "(x, alpha=0.0, limit=6.0, name=None)"
    assert inspect.getdoc(clip) == DefinedClip.doc
    assert clip.operator is DefinedClip
    assert clip(X, 0.0, 1.5).numpy().tolist() == [1, 1.5]
    assert ow.ops.get("defined_clip") is DefinedClip
    with pytest.raises(SignatureError, match="'alpha'"):
        clip(X, alpha="x")


def test_as_function_puts_what_is_required_first():
    many = DefinedMany.as_function("defined_many")
    assert str(inspect.signature(many)) == "(xs, times, bias=None, name=None)"
    assert many([X], 2)[0].numpy().tolist() == [2, 4]
