"""Nodes that run other subgraphs: IF, WHILE, CALL, STABLEHLO_CASE, against the official interpreter where it has them.

Not here: such models made by converters (test_official_corpus.py, tests/lite/convert/test_convert_control.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as Official
from subgraph_models import BOOL, INT, Part, Parts, branches, counting, deep

import opwright as ow
from opwright import lite
from opwright.core import flags
from opwright.core.errors import InvalidArgumentError, OpError
from opwright.lite.format import flexbuffers

X = np.array([1.0, -2.0, 3.0], np.float32)


def run(interpreter: Any, *values: Any) -> list[np.ndarray]:
    details = interpreter.get_input_details()
    for detail, value in zip(details, values):
        if tuple(detail["shape"]) != np.shape(value):
            interpreter.resize_tensor_input(detail["index"], np.shape(value))
    interpreter.allocate_tensors()
    for detail, value in zip(details, values):
        interpreter.set_tensor(
            detail["index"], np.asarray(value, detail["dtype"] if np.asarray(value).dtype != object else object)
        )
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def both(content: bytes, *values: Any) -> list[np.ndarray]:
    """Our answer, which is the official interpreter's."""
    result = run(lite.Interpreter(model_content=content), *values)
    for a, b in zip(result, run(Official(model_content=content), *values), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return result


def constant(value: Any) -> Callable[[Part], str]:
    def fill(part: Part) -> str:
        part.tensor("k", data=np.asarray(value, np.float32))
        return "k"

    return fill


def times(factor: float) -> Callable[[Part], None]:
    def fill(part: Part) -> None:
        part.tensor("k", data=np.float32(factor))
        part.op("MUL", "x k", "y")

    return fill


def twice_as_long(part: Part) -> None:
    part.tensor("y", (6,))
    part.op("CONCATENATION", "x x", "y", axis=0)


def hand_on(part: Part) -> str:
    return "x"


@pytest.mark.parametrize(
    ("then", "other", "wanted"),
    [
        (times(2), times(-1), (2 * X, -X)),
        (hand_on, times(3), (X, 3 * X)),
        (constant([7, 8, 9]), hand_on, ([7, 8, 9], X)),
        (constant([7, 8, 9]), constant([1, 2, 3]), ([7, 8, 9], [1, 2, 3])),
        (twice_as_long, times(3), (np.concatenate([X, X]), 3 * X)),
        (twice_as_long, constant([1, 2]), (np.concatenate([X, X]), [1, 2])),
    ],
    ids=["computed", "handed_on", "constant", "constants", "longer", "lengths"],
)
def test_if(then: Any, other: Any, wanted: Any) -> None:
    content = branches(then, other)
    for condition, expected in zip((True, False), wanted):
        np.testing.assert_array_equal(both(content, condition, X)[0], np.asarray(expected, np.float32))


def test_one_interpreter_takes_branches_in_turn() -> None:
    interpreter = lite.Interpreter(model_content=branches(twice_as_long, times(3)))
    for condition in (True, False, False, True):
        (y,) = run(interpreter, condition, X)
        np.testing.assert_array_equal(y, np.concatenate([X, X]) if condition else 3 * X)


def test_other_shapes_than_the_file_has() -> None:
    content = branches(times(2), times(-1))
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(both(content, True, x)[0], 2 * x)


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_while_counts(turns: int) -> None:
    i, x = both(counting(turns, x=(3,)), 0, X)
    assert i == turns
    np.testing.assert_array_equal(x, X)


def doubling(part: Part) -> str:
    part.tensor("y", (3,))
    part.op("ADD", "x x", "y")
    return "y"


def growing(part: Part) -> str:
    part.op("CONCATENATION", "x x", "y", axis=0)
    return "y"


def test_while_in_place_and_not() -> None:
    def two(part: Part) -> str:
        part.tensor("k", data=np.float32(2))
        part.op("MUL", "x k", "a").op("ADD", "a y", "b").op("SUB", "b x", "c")
        return "a c"

    result = both(counting(4, two, x=(3,), y=(3,)), 0, X, X + 1)
    x, y = X, X + 1
    for _ in range(4):
        x, y = x * 2, x * 2 + y - x
    np.testing.assert_array_equal(result[1], x)
    np.testing.assert_array_equal(result[2], y)


def test_while_doubles() -> None:
    np.testing.assert_array_equal(both(counting(6, doubling, x=(3,)), 0, X)[1], X * 64)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_while_grows(turns: int) -> None:
    content = counting(turns, growing, x=(3,))
    np.testing.assert_array_equal(both(content, 0, X)[1], np.tile(X, 2**turns))


def test_a_grown_variable_shrinks_again_at_the_next_run() -> None:
    content = counting(3, growing, x=(3,))
    for _ in ("first", "with cached plans"):
        interpreter = lite.Interpreter(model_content=content)
        for start in (0, 2, 3, 1, 0):
            result = run(interpreter, start, X)[1]
            np.testing.assert_array_equal(result, np.tile(X, 2 ** (3 - start)))


def padding_to_counter(part: Part) -> str:
    """x with zeros before it, up to i + 4 elements."""
    part.tensor("four", type="INT32", data=np.int32(4)).tensor("zero", data=np.float32(0))
    part.tensor("n", (), "INT32").tensor("length", (1,), "INT32").tensor("missing", (1,), "INT32")
    part.op("ADD", "i four", "n").op("SHAPE", "x", "length", out_type=2).op("SUB", "n length", "missing")
    part.op("FILL", "missing zero", "zeros").op("CONCATENATION", "zeros x", "y", axis=0)
    return "y"


def test_the_size_of_a_grown_variable_is_computed_in_each_iteration() -> None:
    content = counting(3, padding_to_counter, x=(3,))
    for _ in ("first", "with cached plans"):
        interpreter = lite.Interpreter(model_content=content)
        for _ in range(3):  # the later runs by plans for sizes seen
            result = run(interpreter, 0, X)[1]
            np.testing.assert_array_equal(result, [0, 0, 0, *X])


def test_variables_that_change_places() -> None:
    """As the model means it, and TensorFlow runs it: the official interpreter copies one over the other."""
    content = counting(3, lambda part: "y x", x=(3,), y=(3,))
    result = run(lite.Interpreter(model_content=content), 0, X, X + 1)
    np.testing.assert_array_equal(result[1], X + 1)
    np.testing.assert_array_equal(result[2], X)


def test_a_constant_for_a_variable() -> None:
    np.testing.assert_array_equal(both(counting(2, constant([4, 5, 6]), x=(3,)), 0, X)[1], [4, 5, 6])


def test_strings_as_variables() -> None:
    words = np.array([b"one", b"", b"three"], object)

    def turn(part: Part) -> str:
        part.tensor("y", (3,), "STRING")
        part.tensor("at", type="INT32", data=np.int32([2, 0, 1]))
        part.op("GATHER", "x at", "y")
        return "y"

    result = both(counting(2, turn, x=((3,), "STRING")), 0, words)[1]
    assert result.tolist() == [b"", b"three", b"one"]


def test_if_of_strings() -> None:
    words = np.array([b"one", b"", b"three"], object)
    content = branches(hand_on, hand_on, kind="STRING")
    assert both(content, True, words)[0].tolist() == words.tolist()


def test_a_loop_in_a_branch_in_a_loop() -> None:
    """x doubles in an inner loop of i turns where i is even, else 1 is added."""
    parts = Parts()
    shape = (3,)
    main = parts.part("main", i=INT, x=shape, i_out=INT, y=shape)
    main.run("WHILE", "i x", "i_out y", cond_subgraph_index=1, body_subgraph_index=2).ends("i x", "y")
    cond = parts.part("cond", i=INT, x=shape, more=BOOL)
    cond.tensor("limit", type="INT32", data=np.int32(5))
    cond.op("LESS", "i limit", "more").ends("i x", "more")
    body = parts.part("body", i=INT, x=shape, half=INT, back=INT, even=BOOL, y=shape, next=INT)
    body.tensor("one", type="INT32", data=np.int32(1))
    body.tensor("two", type="INT32", data=np.int32(2))
    body.op("FLOOR_DIV", "i two", "half").op("MUL", "half two", "back").op("EQUAL", "back i", "even")
    body.run("IF", "even i x", "y", then_subgraph_index=3, else_subgraph_index=4)
    body.op("ADD", "i one", "next").ends("i x", "next y")
    then = parts.part("then", i=INT, x=shape, zero=INT, j=INT, i_out=INT, y=shape)
    then.tensor("none", type="INT32", data=np.int32(0))
    then.run("WHILE", "none i x", "j i_out y", cond_subgraph_index=5, body_subgraph_index=6).ends("i x", "y")
    other = parts.part("other", i=INT, x=shape, y=shape)
    other.tensor("k", data=np.float32(1))
    other.op("ADD", "x k", "y").ends("i x", "y")
    inner = parts.part("inner_cond", j=INT, i=INT, x=shape, more=BOOL)
    inner.op("LESS", "j i", "more").ends("j i x", "more")
    turn = parts.part("inner_body", j=INT, i=INT, x=shape, y=shape, next=INT)
    turn.tensor("one", type="INT32", data=np.int32(1))
    turn.op("ADD", "x x", "y").op("ADD", "j one", "next").ends("j i x", "next i y")
    expected = X
    for i in range(5):
        expected = expected * 2.0**i if i % 2 == 0 else expected + 1
    np.testing.assert_array_equal(both(parts.bytes(), 0, X)[0], expected)


def shared(first: Any, second: Any) -> bytes:
    """Two IFs that run the same two subgraphs, on tensors of other shapes."""
    parts = Parts()
    main = parts.part("main", c=BOOL, x=first, z=second, y=first, w=second)
    for ins, out in (("c x", "y"), ("c z", "w")):
        main.run("IF", ins, out, then_subgraph_index=1, else_subgraph_index=2)
    main.ends("c x z", "y w")
    for name, fill in (("then", times(2)), ("other", times(-1))):
        part = parts.part(name, x=first)
        fill(part)
        part.ends("x", "y")
    return parts.bytes()


@pytest.mark.parametrize("shape", [(3,), (5,), (2, 3)])
def test_two_nodes_run_one_subgraph(shape: Any) -> None:
    z = np.ones(shape, np.float32)
    interpreter = lite.Interpreter(model_content=shared((3,), shape))
    for condition, factor in ((True, 2), (False, -1), (True, 2)):
        y, w = run(interpreter, condition, X, z)
        np.testing.assert_array_equal(y, X * factor)
        np.testing.assert_array_equal(w, z * factor)


def test_call_and_case() -> None:
    parts = Parts()
    main = parts.part("main", n=INT, x=(3,), a=(3,), y=(3,))
    main.run("CALL", "x", "a", subgraph=1)
    main.run("STABLEHLO_CASE", "n a", "y", branch_subgraph_indices=[1, 2, 3]).ends("n x", "y")
    for factor in (2, 3, 5):
        part = parts.part(f"times_{factor}", x=(3,))
        times(factor)(part)
        part.ends("x", "y")
    interpreter = lite.Interpreter(model_content=parts.bytes())
    for n, factor in ((0, 2), (1, 3), (2, 5), (-1, 5), (9, 5)):
        np.testing.assert_array_equal(run(interpreter, n, X)[0], X * 2 * factor)


def test_a_composite_is_what_its_decomposition_says() -> None:
    parts = Parts()
    main = parts.part("main", x=(3,), y=(3,))
    attributes = np.frombuffer(flexbuffers.encode_options({}), np.uint8)
    main.run(
        "STABLEHLO_COMPOSITE",
        "x",
        "y",
        name="own.double",
        decomposition_subgraph_index=1,
        composite_attributes=attributes,
    ).ends("x", "y")
    part = parts.part("double", x=(3,))
    times(2)(part)
    part.ends("x", "y")
    result = run(lite.Interpreter(model_content=parts.bytes()), X)[0]
    np.testing.assert_array_equal(result, run(Official(model_content=parts.bytes()), X)[0])
    np.testing.assert_array_equal(result, X * 2)


def test_calls_may_be_nested_and_have_a_bound() -> None:
    np.testing.assert_array_equal(run(lite.Interpreter(model_content=deep(64)), X)[0], X + 1)
    with pytest.raises(ValueError, match="too deeply") as caught:
        lite.Interpreter(model_content=deep(65))
    assert isinstance(caught.value, InvalidArgumentError)


# ---- errors ----------------------------------------------------------------------------------------------------------


def failing(phase: str) -> Any:
    @ow.operator
    class Fails:
        """Does not run."""

        x = ow.Input("float32")
        y = ow.Output(like="x")

        def infer(op: Any) -> Any:
            if phase == "prepare":
                raise InvalidArgumentError(what="no such shape")
            return op.x.spec

        def compute(op: Any, x: Any) -> Any:
            raise ZeroDivisionError("no such number")

    return Fails


@pytest.mark.parametrize(("phase", "says"), [("prepare", "no such shape"), ("invoke", "no such number")])
def test_errors_inside_name_node_subgraph_and_path(phase: str, says: str) -> None:
    def inner(part: Part) -> str:
        part.tensor("k", data=np.float32(1))
        part.op("ADD", "x k", "a").custom("Fails", "a", "y")
        return "y"

    content = counting(2, inner, x=(3,))
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Fails": failing(phase)})
    with pytest.raises(RuntimeError) as caught:
        run(interpreter, 0, X)
    text = str(caught.value)
    assert says in text
    assert f"Node number 1 of subgraph 2 'body' (Fails) failed to {phase}." in text
    assert text.rstrip().endswith(f"Node number 0 (WHILE) failed to {phase}.")
    assert caught.value.node == "1"
    assert text.count("Node number") == 2


def test_it_runs_again_after_an_error_inside() -> None:
    class Sometimes(lite.Registration):
        def __init__(self) -> None:
            super().__init__(prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape), invoke=self.go)

        @staticmethod
        def go(context: Any, node: Any) -> None:
            if node.inputs[0].data[0] > 50:
                raise ValueError("too large")
            node.outputs[0].data[...] = node.inputs[0].data * 2

    content = counting(4, lambda part: part.custom("Sometimes", "x", "y") and "y", x=(3,))
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Sometimes": Sometimes()})
    with pytest.raises(RuntimeError, match="too large"):
        run(interpreter, 0, np.full(3, 20, np.float32))
    np.testing.assert_array_equal(run(interpreter, 0, X)[1], X * 16)


def _wrong(change: Callable[[Any], None]) -> bytes:
    from opwright.lite.format import Model

    model = Model.read(counting(2, doubling, x=(3,)))
    change(model)
    return model.to_bytes()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [0]), "has other inputs than the node"),
        (lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [0, -1]), "input 1 is left out"),
        (lambda m: setattr(m.subgraphs[1], "outputs", [0]), "does not return one bool"),
        (lambda m: setattr(m.subgraphs[2], "outputs", [2]), "other outputs than the node"),
        (lambda m: setattr(m.subgraphs[2], "outputs", [3, 2]), "other outputs than the node"),
        (lambda m: setattr(m.subgraphs[2].tensors[1], "type", 2), "other inputs than the node"),
        (lambda m: setattr(m.subgraphs[2].tensors[1], "is_variable", True), "must not be written"),
        (lambda m: setattr(m.subgraphs[0].operators[0], "builtin_options", None), "has no options"),
        (lambda m: setattr(m.subgraphs[2].operators[0], "outputs", [1]), "is an input of the subgraph"),
    ],
    ids=[
        "few_inputs",
        "left_out",
        "condition",
        "few_outputs",
        "output_types",
        "types",
        "variable",
        "options",
        "written",
    ],
)
def test_files_whose_subgraphs_do_not_fit_are_refused(change: Any, says: str) -> None:
    with pytest.raises(OpError, match=says):
        run(lite.Interpreter(model_content=_wrong(change)), 0, X)


def test_memory_of_subgraphs_is_bounded_too() -> None:
    with flags.override(max_activation_bytes=10_000), pytest.raises(RuntimeError, match="max_activation_bytes"):
        run(lite.Interpreter(model_content=counting(20, growing, x=(3,))), 0, X)


def test_memory_of_all_subgraphs_together_is_bounded() -> None:
    """Each of these holds its x + 1; one alone stays below the limit."""
    with flags.override(max_activation_bytes=500_000):
        x = np.ones(25_000, np.float32)
        np.testing.assert_array_equal(run(lite.Interpreter(model_content=deep(2)), x)[0], x + 1)
        with pytest.raises(RuntimeError, match="max_activation_bytes"):
            run(lite.Interpreter(model_content=deep(9)), x)


def test_every_tensor_can_be_looked_at_afterwards() -> None:
    content = counting(3, doubling, x=(3,))
    interpreter = lite.Interpreter(model_content=content, experimental_preserve_all_tensors=True)
    run(interpreter, 0, X)
    names = {d["name"]: d["index"] for d in interpreter.get_tensor_details(2)}
    np.testing.assert_array_equal(interpreter.get_tensor(names["y"], 2), X * 8)
