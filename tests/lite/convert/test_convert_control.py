"""Control flow and lists converted: both interpreters agree with the function, over the table in control_cases.py.

Not here: recurrent layers (test_convert_recurrent.py), generated programs (test_convert_programs.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from control_cases import CONTROL, LISTS, weights_inside
from convert_harness import Case, assert_same, converted, converter, eager, f32, official, ours
from lite_kit import op_names

import opwright as ow
from opwright.core.dtypes import variant
from opwright.lite.convert import ConverterError
from opwright.lite.format import Model, versions
from thorough import sampled

HERE = Path(__file__).name
rows = pytest.mark.parametrize("row", [*CONTROL, *LISTS], ids=str)


@rows
def test_both_interpreters_agree_with_the_function(row: Case) -> None:
    expected = eager(row)
    assert_same(ours(converted(row), row.inputs), expected, row.rtol)
    assert_same(official(converted(row), row.inputs), expected, row.rtol)


def all_ops(content: bytes) -> list[list[str]]:
    return [op_names(content, i) for i in range(len(Model.read(content).subgraphs))]


def content_of(function: object, *specs: ow.TensorSpec, **settings: object) -> bytes:
    return converter(ow.function(function).get_concrete_function(*specs), **settings).convert()


X = ow.TensorSpec([4, 3], ow.float32, name="x")
N = ow.TensorSpec([], ow.int32, name="n")


def test_weights_are_constants_inside_and_merge_there() -> None:
    ops = all_ops(content_of(weights_inside, X))
    assert ops[0][-1] == "IF"
    assert ops[1:] == [["FULLY_CONNECTED"], ["FULLY_CONNECTED"]]


def test_branches_share_the_buffer_of_their_weights() -> None:
    model = Model.read(content_of(weights_inside, X))
    used = [{int(t.buffer) for t in s.tensors if list(t.shape) == [3, 3]} for s in model.subgraphs[1:]]
    assert used[0] == used[1]
    assert len(used[0]) == 1


def test_subgraphs_have_names_of_their_own() -> None:
    def function(x: object) -> object:
        for _ in ow.range(2):
            x = ow.cond(ow.reduce_sum(x) > 0.0, lambda x=x: x + 1.0, lambda x=x: x * 2.0)
        for _ in ow.range(3):
            x = ow.cond(ow.reduce_sum(x) > 0.0, lambda x=x: x - 1.0, lambda x=x: x * 3.0)
        return x

    model = Model.read(content_of(function, X))
    names = [s.name for s in model.subgraphs]
    assert len(names) == 9
    assert len(set(names)) == 9
    model.verify()


def test_a_loop_invariant_is_no_variable() -> None:
    def function(x: object, y: object) -> object:
        _, kept, x = ow.while_loop(lambda i, a, b: i < 4, lambda i, a, b: (i + 1, a, b + a), [0, y, x])
        return kept, x

    model = Model.read(content_of(function, X, X))
    loop = model.subgraphs[0].operators[-1]
    body = model.subgraphs[loop.builtin_options.body_subgraph_index]
    passed = [i for i, o in zip(body.inputs, body.outputs) if i == o]
    assert len(loop.inputs) == 3
    assert len(passed) == 1


def test_what_nobody_reads_is_no_variable() -> None:
    def function(x: object) -> object:
        waste = ow.zeros([100])
        for _ in ow.range(3):
            waste, x = waste + 1.0, x * 2.0
        return x

    model = Model.read(content_of(function, X))
    assert len(model.subgraphs[0].operators[-1].inputs) == 2


def test_a_loop_that_collects_results_has_fixed_shapes() -> None:
    """One element each turn, and the turns are counted: no tensor of the file has an unknown size, nothing grows."""
    content = content_of(lambda x: ow.map_fn(lambda e: e * 2.0, x), X)
    ops = [op for part in all_ops(content) for op in part]
    assert "DYNAMIC_UPDATE_SLICE" in ops
    assert "CONCATENATION" not in ops
    assert not any(len(t.shape_signature) for s in Model.read(content).subgraphs for t in s.tensors)


@pytest.mark.parametrize("row", sampled(LISTS, 4), ids=str)
def test_lists_for_an_old_run_time(row: Case) -> None:
    content = converter(row.concrete(), target_spec=ow.lite.TargetSpec(runtime="2.3")).convert()
    assert not versions.is_newer(versions.min_runtime_of_model(Model.read(content)), "2.3")
    assert_same(ours(content, row.inputs), eager(row), row.rtol)
    assert_same(official(content, row.inputs), eager(row), row.rtol)


def test_a_case_is_a_tree_of_ifs() -> None:
    branches = [lambda x=x: ow.fill([2], float(x)) for x in range(9)]
    content = content_of(lambda n: ow.switch_case(n, branches), N)
    assert sum(op == "IF" for part in all_ops(content) for op in part) == 8
    for n in range(-1, 11):
        expected = float(n if 0 <= n < 9 else 8)
        assert_same(ours(content, [np.int32(n)]), [np.full(2, expected, np.float32)], 0)


def refusal(function: object, *specs: ow.TensorSpec, **settings: object) -> str:
    with pytest.raises(ConverterError) as caught:
        content_of(function, *specs, **settings)
    return str(caught.value)


def test_offenders_inside_bodies_are_named_with_their_lines() -> None:
    def function(x: object) -> object:
        for _ in ow.range(3):
            x = ow.atan(x)
        return ow.cond(x[0, 0] > 0.0, lambda: ow.math.asin(x), lambda: ow.atan(x) + 1.0)

    text = refusal(function, X)
    assert "will need custom implementations: Atan, Asin." in text
    assert re.search(rf"2 nodes: .*'\(f32\[4,3\]\) at .*{HERE}:\d+, .* at .*{HERE}:\d+", text)


def test_custom_operators_inside_bodies() -> None:
    def function(x: object) -> object:
        for _ in ow.range(3):
            x = ow.atan(x) + 1.0
        return x

    content = content_of(function, X, allow_custom_ops=True)
    assert "Atan" in all_ops(content)[2]
    x = f32(4, 3)
    interpreter = ow.lite.Interpreter(model_content=content, custom_ops=[ow.ops.get("Atan")])
    runner = interpreter.get_signature_runner()
    (y,) = runner(x=x).values()
    np.testing.assert_allclose(y, function(ow.constant(x)).numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="Encountered unresolved custom op: Atan"):
        ow.lite.Interpreter(model_content=content).allocate_tensors()


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("ragged", r"elements of one list have different shapes"),
        ("nested", r"a list of lists has no lite form"),
        ("result", r"gives a list"),
        ("lengths", r"its pieces have lengths that differ"),
        ("size", r"is not known before they are written|the shape of its elements is not known"),
    ],
)
def test_lists_that_are_no_tensors_are_refused_with_operator_and_line(what: str, says: str) -> None:
    def ragged(x: object) -> object:
        ta = ow.TensorArray(ow.float32, size=2, infer_shape=False).write(0, x[:1]).write(1, x[:2])
        return ta.concat()

    def nested(x: object) -> object:
        reserve, push, stack = (ow.ops.get(f"List{name}") for name in ("Reserve", "Push", "Stack"))
        inner = push(reserve(0, element_dtype=ow.float32), x)
        outer = push(reserve(0, element_dtype=variant), inner)
        return stack(ow.ops.get("ListGet")(outer, 0, element_dtype=variant), element_dtype=ow.float32)

    def lengths(x: object) -> object:
        return ow.TensorArray(ow.float32, size=2, infer_shape=False).split(x, [1, 3]).concat()

    def result(x: object) -> object:
        return ow.TensorArray(ow.float32, size=1).write(0, x)

    def size(x: object) -> object:
        ta = ow.TensorArray(ow.float32, size=0, dynamic_size=True, infer_shape=False)
        for i in ow.range(3):
            ta = ta.write(i, ow.boolean_mask(x, x > ow.cast(i, ow.float32)))
        return ta.read(0)

    text = refusal({"ragged": ragged, "nested": nested, "lengths": lengths, "result": result, "size": size}[what], X)
    assert re.search(says, text), text
    assert re.search(r"error: 'tf\.(List\w+|TensorArray)' op", text), text
    if what != "result":
        assert re.search(rf"{HERE}:\d+", text), text


def test_several_functions_of_one_file_may_have_loops() -> None:
    def twice(x: object) -> object:
        for _ in ow.range(2):
            x = x * 2.0
        return x

    def thrice(x: object) -> object:
        for _ in ow.range(3):
            x = x * 2.0
        return x

    spec = ow.TensorSpec([3], ow.float32, name="x")
    both = [ow.function(f).get_concrete_function(spec) for f in (twice, thrice)]
    content = converter(*both).convert()
    interpreter = ow.lite.Interpreter(model_content=content)
    for key, factor in (("twice", 4), ("thrice", 8), ("twice", 4)):
        (y,) = interpreter.get_signature_runner(key)(x=f32(3)).values()
        np.testing.assert_array_equal(y, f32(3) * factor)
    assert versions.min_runtime_of_model(Model.read(content))
