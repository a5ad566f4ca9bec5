"""StableHLO modules: recorded ones against what JAX computed, forms of operations, errors, damaged texts.

Lives here: what needs no JAX; record_stablehlo.py writes the record. With JAX every row of jax_rows.py: slow.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import opwright as ow
from opwright.core.dtypes import as_dtype
from opwright.frontends.stablehlo.execution import ModuleContext
from opwright.frontends.stablehlo.module import walk
from opwright.frontends.stablehlo.program import read_module
from opwright.frontends.stablehlo.text import read_text
from thorough import examples

RECORD = json.loads(gzip.decompress(Path(__file__).with_name("stablehlo_modules.json.gz").read_bytes()))["modules"]
TOLERANCES = {2: 0.02, 4: 2e-4, 8: 1e-6}
"""By the bytes of a float: what JAX's functions of one element differ by from others."""


def array_of(value):
    kind = as_dtype(value["dtype"]).np
    return np.frombuffer(base64.b64decode(value["bytes"]), kind).reshape(value["shape"])


def check_equal(actual, expected, tolerance=None):
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind in "iub" or tolerance == 0:
        np.testing.assert_array_equal(actual, expected)
        return
    tolerance = tolerance or TOLERANCES[expected.real.dtype.itemsize]
    if expected.dtype.kind not in "fc":  # bfloat16
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def check_module(source, arguments, results, tolerance=None):
    actual = ow.nest.flatten(ow.from_stablehlo(source)(*arguments))
    assert len(actual) == len(results)
    for a, b in zip(actual, results):
        check_equal(a.numpy(), b, tolerance)


def recorded_failures(rows, source_of):
    failures = []
    for row in rows:
        try:
            arguments, results = ([array_of(v) for v in row[k]] for k in ("arguments", "results"))
            check_module(source_of(row), arguments, results, row["tolerance"])
        except Exception as error:
            failures.append(f"{row['label']}: {str(error).strip()[:400]}")
    return failures


def test_recorded_texts_equal_jax():
    assert len(RECORD) >= 50
    assert not (failures := recorded_failures(RECORD, lambda row: row["text"])), "\n".join(failures)


def test_recorded_artifacts_equal_their_texts():
    """Both readers give the same functions; what artifacts compute is checked for a part of the record."""
    for row in RECORD:
        text, artifact = read_module(row["text"]), read_module(base64.b64decode(row["artifact"]))
        assert list(text.functions) == list(artifact.functions)
        for name, function in text.functions.items():
            other = artifact.functions[name].body
            assert listing(function.body) == listing(other), row["label"]
    assert not (failures := recorded_failures(RECORD[::4], lambda row: base64.b64decode(row["artifact"]))), failures


def listing(region):
    """Return operations with operands and types, and the attributes that both forms state."""
    numbers, lines = {}, []

    def visit(block):
        for value in block.arguments:
            numbers[value] = len(numbers)
            lines.append(str(value.type))
        for operation in block.operations:
            numbers.update((value, len(numbers) + i) for i, value in enumerate(operation.results))
            stated = {k: np.asarray(v).tolist() for k, v in operation.attributes.items() if k in STATED}
            operands = [numbers[v] for v in operation.operands]
            lines.append(
                f"{operation.name} {operands} {[str(v.type) for v in operation.results]} {sorted(stated.items())}"
            )
            for inner in operation.regions:
                visit(inner)
        lines.append(str([numbers[v] for v in block.outputs]))

    visit(region)
    return lines


STATED = frozenset(
    {
        "broadcast_dimensions",
        "callee",
        "comparison_direction",
        "dimension",
        "dimensions",
        "fft_length",
        "fft_type",
        "iota_dimension",
        "limit_indices",
        "mantissa_bits",
        "permutation",
        "slice_sizes",
        "start_indices",
        "value",
        "window_dimensions",
    }
)


# ---- forms -----------------------------------------------------------------------------------------------------------


def module(body, arguments="%x: tensor<2x3xf32>", results="tensor<2x3xf32>"):
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def test_generic_and_own_forms_are_the_same_operation():
    own = module(
        "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
        "%1 = stablehlo.slice %0 [0:3:2, 1:2] : (tensor<3x2xf32>) -> tensor<2x1xf32>\n"
        "return %1 : tensor<2x1xf32>",
        results="tensor<2x1xf32>",
    )
    generic = module(
        '%0 = "stablehlo.transpose"(%x) <{permutation = array<i64: 1, 0>}> '
        ": (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
        '%1 = "stablehlo.slice"(%0) {start_indices = dense<[0, 1]> : tensor<2xi64>, '
        "limit_indices = array<i64: 3, 2>, strides = array<i64: 2, 1>} "
        ": (tensor<3x2xf32>) -> tensor<2x1xf32>\n"
        '"func.return"(%1) : (tensor<2x1xf32>) -> ()',
        results="tensor<2x1xf32>",
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for text in (own, generic):
        np.testing.assert_array_equal(ow.from_stablehlo(text)(x), x.T[0:3:2, 1:2])


LITERALS = {
    "dense<[[1.5, -2.0e+00, 0x7F800000], [0.0, 1.0, 2.0]]> : tensor<2x3xf32>": [[1.5, -2, np.inf], [0, 1, 2]],
    "dense<7> : tensor<2x3xi8>": np.full((2, 3), 7, np.int8),
    'dense<"0x0000803F00000040"> : tensor<2xf32>': np.float32([1, 2]),
    "dense<[true, false]> : tensor<2xi1>": [True, False],
    "dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>": np.complex64([1 - 2j, 1 - 2j]),
    "dense<255> : tensor<1xui8>": np.uint8([255]),
    "dense<0x3F80> : tensor<bf16>": np.float32(1),
    "dense<> : tensor<0x3xf32>": np.zeros((0, 3), np.float32),
    "dense_resource<weights> : tensor<2xf32>": np.float32([1, 2]),
}


@pytest.mark.parametrize("literal", LITERALS)
def test_literals(literal):
    kind = literal.partition(" : ")[2]
    text = module(f"%0 = stablehlo.constant {literal}\nreturn %0 : {kind}", "", kind)
    text += '\n{-# dialect_resources: { builtin: { weights: "0x040000000000803F00000040" } } #-}'
    np.testing.assert_array_equal(
        np.asarray(ow.from_stablehlo(text)().numpy(), np.asarray(LITERALS[literal]).dtype), LITERALS[literal]
    )


PROGRAMS = {
    "reduce of a region that no operator has": (
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%x init: %c) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>\n"
        "reducer(%a: tensor<f32>, %b: tensor<f32>) {\n%1 = stablehlo.abs %b : tensor<f32>\n"
        "%2 = stablehlo.abs %a : tensor<f32>\n%3 = stablehlo.maximum %1, %2 : tensor<f32>\n"
        "stablehlo.return %3 : tensor<f32>\n}\nreturn %0 : tensor<2xf32>",
        "tensor<2xf32>",
        lambda x: np.abs(x).max(1),
    ),
    "reduce that starts from another number": (
        "%c = stablehlo.constant dense<2.5> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] "
        ": (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>\nreturn %0 : tensor<3xf32>",
        "tensor<3xf32>",
        lambda x: x.sum(0) + 2.5,
    ),
    "order that is not a comparison of keys": (
        '%0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({\n'
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%1 = stablehlo.subtract %b, %a : tensor<f32>\n"
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%2 = stablehlo.compare GT, %1, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %2 : tensor<i1>\n}) : (tensor<2x3xf32>) -> tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>",
        "tensor<2x3xf32>",
        lambda x: np.sort(x, 1),
    ),
    "descending order": (
        '%0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        "%2 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %2 : tensor<i1>\n}) : (tensor<2x3xf32>) -> tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>",
        "tensor<2x3xf32>",
        lambda x: -np.sort(-x, 1),
    ),
    "case of an index that no branch has": (
        "%i = stablehlo.constant dense<-4> : tensor<i32>\n"
        '%0 = "stablehlo.case"(%i) ({\nstablehlo.return %x : tensor<2x3xf32>\n}, {\n'
        "%n = stablehlo.negate %x : tensor<2x3xf32>\nstablehlo.return %n : tensor<2x3xf32>\n}) "
        ": (tensor<i32>) -> tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>",
        "tensor<2x3xf32>",
        lambda x: -x,
    ),
    "map": (
        '%0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0, 1>}> ({\n'
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%1 = stablehlo.multiply %a, %b : tensor<f32>\n"
        "%c = stablehlo.constant dense<1.0> : tensor<f32>\n%2 = stablehlo.add %1, %c : tensor<f32>\n"
        "stablehlo.return %2 : tensor<f32>\n}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n"
        "return %0 : tensor<2x3xf32>",
        "tensor<2x3xf32>",
        lambda x: x * x + 1,
    ),
    "broadcasts of chlo": (
        "%c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>\n"
        "%0 = chlo.broadcast_multiply %x, %c : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>\n"
        "return %0 : tensor<2x3xf32>",
        "tensor<2x3xf32>",
        lambda x: x * [1, 2, 3],
    ),
    "tuples": (
        "%t = stablehlo.tuple %x, %x : tuple<tensor<2x3xf32>, tensor<2x3xf32>>\n"
        "%0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2x3xf32>, tensor<2x3xf32>>) -> tensor<2x3xf32>\n"
        "return %0 : tensor<2x3xf32>",
        "tensor<2x3xf32>",
        lambda x: x,
    ),
    "batch_norm_inference": (
        "%v = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>\n"
        '%0 = "stablehlo.batch_norm_inference"(%x, %v, %v, %v, %v) <{epsilon = 0.5 : f32, feature_index = 1 : i64}> : '
        "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>\n"
        "return %0 : tensor<2x3xf32>",
        "tensor<2x3xf32>",
        lambda x: (x - [1, 2, 3]) / np.sqrt(np.array([1, 2, 3]) + 0.5) * [1, 2, 3] + [1, 2, 3],
    ),
}


GROUPS = """
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[GROUP]> : tensor<1xNxi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = "stablehlo.all_gather"(%0) <{all_gather_dim = 1 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> :
      (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<PAIR> : tensor<1x2xi64>}> :
      (tensor<2x3xf32>) -> tensor<2x3xf32>
    %4 = stablehlo.partition_id : tensor<ui32>
    %5 = stablehlo.convert %4 : (tensor<ui32>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %7 = stablehlo.add %3, %6 : tensor<2x3xf32>
    return %7 : tensor<2x3xf32>"""


def test_collectives_of_one_replica_are_identities():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    one = GROUPS.replace("GROUP", "[0]").replace("xN", "x1").replace("PAIR", "0")
    np.testing.assert_array_equal(ow.from_stablehlo(module(one))(x), x)
    for text in (
        GROUPS.replace("GROUP", "[0, 1]").replace("xN", "x2").replace("PAIR", "0"),
        GROUPS.replace("GROUP", "[0]").replace("xN", "x1").replace("PAIR", "[[0, 1]]"),
    ):
        with pytest.raises(
            ow.errors.InvalidArgumentError, match=r"(?s)(replica_groups|target_pairs) \[\[0, 1\]\].*one d"
        ):
            ow.from_stablehlo(module(text))(x)


def test_gradients_of_batch_normalization():
    kinds = ("tensor<4x3x2xf64>", *["tensor<3xf64>"] * 3, "tensor<4x3x2xf64>")
    names = ("%x", "%scale", "%mean", "%variance", "%dy")
    results = f"{kinds[0]}, {kinds[1]}, {kinds[1]}"
    body = (
        f'%0:3 = "stablehlo.batch_norm_grad"({", ".join(names)}) <{{epsilon = 0.25 : f32, feature_index = 1 : i64}}> : '
        f"({', '.join(kinds)}) -> ({results})\nreturn %0#0, %0#1, %0#2 : {results}"
    )
    rng = np.random.default_rng(3)
    x, dy, scale, offset = (rng.standard_normal(s) for s in ((4, 3, 2), (4, 3, 2), 3, 3))

    def loss(x, scale, offset):  # sum of dy times the normalised x
        mean, variance = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
        y = (x - mean) / np.sqrt(variance + 0.25) * scale[:, None] + offset[:, None]
        return (y * dy).sum()

    def difference(i, place):
        values = [x.copy(), scale.copy(), offset.copy()]
        values[i][place] += 1e-5
        above = loss(*values)
        values[i][place] -= 2e-5
        return (above - loss(*values)) / 2e-5

    arguments = ", ".join(f"{n}: {k}" for n, k in zip(names, kinds))
    function = ow.from_stablehlo(module(body, arguments, results))
    for i, actual in enumerate(function(x, scale, x.mean((0, 2)), x.var((0, 2)), dy)):
        expected = [difference(i, place) for place in np.ndindex(tuple(actual.shape))]
        np.testing.assert_allclose(actual.numpy().ravel(), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("algorithm", "state", "words"),
    [  # as XLA computes them on processors
        ("THREE_FRY", 5, (2689575991, 2205648888, 150810639, 1537324351, 1815543426)),
        ("PHILOX", 4, (895509795, 3230209149, 3834998268, 2007387529, 550253412)),
        ("DEFAULT", 4, (895509795, 3230209149, 3834998268, 2007387529, 550253412)),
    ],
)
def test_random_bits_equal_xla(algorithm, state, words):
    body = (
        f"%s, %0 = stablehlo.rng_bit_generator %k, algorithm = {algorithm} : (tensor<2xui64>) -> "
        "(tensor<2xui64>, tensor<5xui32>)\nreturn %s, %0 : tensor<2xui64>, tensor<5xui32>"
    )
    function = ow.from_stablehlo(module(body, "%k: tensor<2xui64>", "tensor<2xui64>, tensor<5xui32>"))
    following, bits = function(np.uint64([1 << 32, (3 << 32) + 2]))
    np.testing.assert_array_equal(following, np.uint64([1 << 32, (3 << 32) + state]))
    np.testing.assert_array_equal(bits, words)


def test_reflectors_of_lapack_are_a_decomposition():
    calls = (
        "%0:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%x) : "
        "(tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x3xf32>)\n"
        "%1 = stablehlo.custom_call @lapack_sorgqr_ffi(%0#0, %0#1) : "
        "(tensor<2x5x3xf32>, tensor<2x3xf32>) -> tensor<2x5x3xf32>\n"
        "return %0#0, %1 : tensor<2x5x3xf32>, tensor<2x5x3xf32>"
    )
    function = ow.from_stablehlo(module(calls, "%x: tensor<2x5x3xf32>", "tensor<2x5x3xf32>, tensor<2x5x3xf32>"))
    x = np.random.default_rng(1).standard_normal((2, 5, 3)).astype(np.float32)
    packed, q = function(x)
    expected_q, expected_r = np.linalg.qr(x.astype(np.float64))  # by the same reflectors
    np.testing.assert_allclose(np.triu(packed.numpy()[:, :3]), expected_r, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q, expected_q, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_jax_does_not_write(name):
    body, results, expected = PROGRAMS[name]
    x = np.random.default_rng(5).standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_allclose(ow.from_stablehlo(module(body, results=results))(x), expected(x), rtol=1e-5, atol=1e-6)


def test_open_sizes_follow_from_the_arguments():
    text = module(
        "%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>\n"
        "%c = stablehlo.constant dense<3> : tensor<1xi32>\n"
        "%1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n"
        "%s = stablehlo.concatenate %1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n"
        "%o = stablehlo.constant dense<1.0> : tensor<f32>\n"
        "%b = stablehlo.dynamic_broadcast_in_dim %o, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>\n"
        "%0 = stablehlo.add %x, %b : tensor<?x3xf32>\nreturn %0 : tensor<?x3xf32>",
        '%x: tensor<?x3xf32> loc("x")',
        "tensor<?x3xf32>",
    )
    function = ow.from_stablehlo(text)
    for n in (2, 5):
        np.testing.assert_array_equal(function(np.zeros((n, 3), np.float32)), np.ones((n, 3)))
    fixed = ow.from_stablehlo(text, sizes={"x": [4, 3]})
    content = ow.lite.TFLiteConverter.from_concrete_functions([fixed.concrete()]).convert()
    assert ow.lite.Interpreter(model_content=content).get_input_details()[0]["shape"].tolist() == [4, 3]
    with pytest.raises(ow.errors.InvalidArgumentError, match="cannot have"):
        ow.from_stablehlo(text, sizes={"x": [4, 4]})


def test_modules_differentiate_convert_and_keep_names(tmp_path):
    text = (
        'module @net {\nfunc.func @main(%a: tensor<4x3xf32> loc("x")) -> tensor<4x2xf32> {\n'
        "%w = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>\n"
        "%0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x2xf32>) "
        "-> tensor<4x2xf32> loc(#loc1)\n%1 = stablehlo.tanh %0 : tensor<4x2xf32> loc(#loc1)\n"
        'return %1 : tensor<4x2xf32>\n}\n}\n#loc0 = loc("net.py":7:1)\n#loc1 = loc("jit(f)/Dense_0/dot"(#loc0))'
    )
    file = tmp_path / "net.mlir"
    file.write_text(text)
    function = ow.from_stablehlo(file)
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32) * 0.1
    w = np.float32([[1, 2], [3, 4], [5, 6]])
    value = ow.constant(x)
    with ow.GradientTape() as tape:
        tape.watch(value)
        y = function(x=value)
    np.testing.assert_allclose(y, np.tanh(x @ w), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, value), (1 - np.tanh(x @ w) ** 2) @ w.T, rtol=1e-3, atol=1e-5)
    graph = str(function.concrete().graph)
    assert "Dense_0/MatMul" in graph
    assert "net.py:7" in graph
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    interpreter = ow.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(actual, np.tanh(x @ w), rtol=1e-4, atol=1e-6)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_missing_operations_are_listed_and_custom_ones_are_called():
    text = module(
        "%0 = stablehlo.custom_call @scaled(%x) {backend_config = {factor = 3.0 : f32}} "
        ": (tensor<2x3xf32>) -> tensor<2x3xf32>\n"
        '%1 = "stablehlo.unary_einsum"(%0) {einsum_config = "ab->ab"} : (tensor<2x3xf32>) -> tensor<2x3xf32>\n'
        "return %1 : tensor<2x3xf32>"
    )
    with pytest.raises(
        ow.errors.UnimplementedError, match=r"(?s)2 operators without a rule.*scaled.*stablehlo\.unary_ein"
    ):
        ow.from_stablehlo(text)
    custom = {
        "scaled": lambda x, backend_config: x * backend_config["factor"],
        "stablehlo.unary_einsum": lambda x, einsum_config: x,
    }
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(ow.from_stablehlo(text, custom=custom)(x), x * 3)


DAMAGED = {
    "": "no function",
    "func.func @main(": "no value",
    module("return %y : tensor<2x3xf32>"): r"line 2.*%y is not defined",
    module("%0 = stablehlo.abs %x : tensor<99999999x99999xf32>\nreturn %0 : tensor<2x3xf32>"): "over .* elements",
    module("%0 = stablehlo.abs %x : tensor<2x3xf8E5M2>\nreturn %0 : tensor<2x3xf32>"): "f8E5M2 has no dtype",
    module("%0 = stablehlo.abs %x : tensor<*xf32>\nreturn %0 : tensor<2x3xf32>"): "unknown rank",
    module("%0:2 = stablehlo.abs %x : tensor<2x3xf32>\nreturn %x : tensor<2x3xf32>"): "1 results, not 2",
    module("%0 = stablehlo.constant dense<[1.0]> : tensor<3xf32>\nreturn %x : tensor<2x3xf32>").replace(
        "[1.0]", "[1.0, 2.0]"
    ): "2 elements",
    module("%0 = call @main(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>"): "calls itself",
    module("%0 = call @f(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>"): "does not have",
    module("%0 = stablehlo.abs %x {a = " + "[" * 5000 + "} : tensor<2x3xf32>"): "levels within each other",
}


@pytest.mark.parametrize("text", DAMAGED, ids=lambda t: t[-60:-40])
def test_damaged_texts_are_errors_that_name_the_line(text):
    with pytest.raises(ow.errors.InvalidArgumentError, match="(?s)" + DAMAGED[text]):
        ow.from_stablehlo(f"{text}\n")


def test_other_sources_are_errors(tmp_path):
    with pytest.raises(ow.errors.InvalidArgumentError, match="neither a text nor"):
        ow.from_stablehlo(b"\xff\xfe\x00")
    with pytest.raises(ow.errors.InvalidArgumentError, match="a path, a text, or bytes"):
        ow.from_stablehlo(3)
    with pytest.raises(FileNotFoundError):
        ow.from_stablehlo(tmp_path / "absent.mlir")


def test_mutants_of_texts_are_modules_or_errors():
    random = np.random.default_rng(11)
    rows = [row["text"] for row in RECORD]
    pieces = [
        "<",
        ">",
        "{",
        "(",
        "[",
        "%arg0",
        "tensor<4294967296xf32>",
        "-1",
        '"',
        "\x00",
        "0x",
        "stablehlo.",
        ":",
        "#",
    ]
    for _ in range(examples(400)):
        text = rows[random.integers(len(rows))]
        for _ in range(random.integers(1, 4)):
            a, b = sorted(int(i) for i in random.integers(0, len(text), 2))
            b = min(b, a + 30)
            kind = random.integers(3)
            middle = "" if kind == 0 else pieces[random.integers(len(pieces))] if kind == 1 else text[a:b] * 2
            text = text[:a] + middle + text[b if kind else a + 1 :]
        with contextlib.suppress(ow.errors.OpError):
            ow.from_stablehlo(f"{text}\n")


def test_damaged_artifacts_are_modules_or_errors():
    random = np.random.default_rng(12)
    rows = [base64.b64decode(row["artifact"]) for row in RECORD]
    refused = 0
    for _ in range(examples(1200)):
        content = bytearray(rows[random.integers(len(rows))])
        for _ in range(random.integers(1, 4)):
            content[random.integers(4, len(content))] = random.integers(256)
        content = bytes(content[: len(content) - random.integers(40)] if random.integers(4) == 0 else content)
        try:
            ow.from_stablehlo(content)
        except ow.errors.OpError:
            refused += 1
    assert refused


def test_bytecode_that_is_no_artifact_is_an_error_and_vectors_of_files_are_read():
    artifact = base64.b64decode(RECORD[0]["artifact"])
    arguments, results = ([array_of(v) for v in RECORD[0][k]] for k in ("arguments", "results"))
    check_module(b"\x10\x00\x00\x00" + len(artifact).to_bytes(4, "little") + artifact + b"rest", arguments, results)
    with pytest.raises(ow.errors.InvalidArgumentError, match="damaged bytecode: 20 bytes"):
        ow.from_stablehlo(b"ML\xefR\x0dX\x00\x00\x29abc")
    with pytest.raises(ow.errors.InvalidArgumentError, match="version 50 of the format"):
        ow.from_stablehlo(b"ML\xefR\x65X\x00")
    with pytest.raises(ow.errors.InvalidArgumentError, match="other dialects than the versioned one"):
        ow.from_stablehlo(artifact.replace(b"vhlo\x00", b"mhlo\x00"))


# ---- with JAX --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_row_of_jax_exports_to_a_module_that_computes_the_same():
    jax = pytest.importorskip("jax")
    jax_rows = pytest.importorskip("jax_rows")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    failures = []
    try:
        for row in jax_rows.ROWS:
            if row.primitive == "qr":  # calls of LAPACK for reflectors
                continue
            arguments = row.operands()
            exported = jax.export.export(jax.jit(row.function))(*arguments)
            kept = [np.asarray(arguments[i]) for i in exported.module_kept_var_idx]
            results = [np.asarray(r) for r in jax.tree_util.tree_leaves(row.function(*arguments))]
            for source in (exported.mlir_module(), exported.mlir_module_serialized):
                try:
                    check_module(source, kept, results, row.tolerance)
                except Exception as error:
                    failures.append(f"{row.primitive} {row.label} {type(source).__name__}: {str(error).strip()[:300]}")
    finally:
        jax.config.update("jax_enable_x64", before)
    assert not failures, "\n".join(failures)


def test_operations_of_all_regions_are_walked():
    body = PROGRAMS["map"][0]
    main = read_module(module(body)).main()
    names = [o.name for o in walk(main.body)]
    assert names == ["stablehlo.map", "stablehlo.multiply", "stablehlo.constant", "stablehlo.add"]


def test_values_of_another_function_are_an_error():
    kind = "(%a: tensor<2xf32>) -> tensor<2xf32>"
    body = "%0 = stablehlo.negate %a : tensor<2xf32> return %0 : tensor<2xf32>"
    module = read_text(f"func.func @main{kind} {{ {body} }} func.func private @other{kind} {{ {body} }}")
    main, other = (module.functions[name].body for name in ("main", "other"))
    main.operations[0].operands[:] = other.arguments  # as damaged bytecode may have it
    with pytest.raises(ow.errors.InvalidArgumentError, match="of another function or region"):
        ModuleContext(module).execute(main, [np.zeros(2, np.float32)])


def test_attributes_of_a_composite_that_are_no_dictionary_are_an_error():
    kind = "(%a: tensor<2xf32>) -> tensor<2xf32>"
    attributes = "composite_attributes = 3 : i32, decomposition = @f"
    call = f'%0 = stablehlo.composite "my.op" %a {{{attributes}}} : (tensor<2xf32>) -> tensor<2xf32>'
    text = f"func.func @main{kind} {{ {call} return %0 : tensor<2xf32> }}\n"
    text += f"func.func private @f{kind} {{ return %a : tensor<2xf32> }}"
    with pytest.raises(ow.errors.InvalidArgumentError, match="composite_attributes are not a dictionary"):
        ow.from_stablehlo(text, custom={"my.op": lambda a, **_: a}).concrete()
