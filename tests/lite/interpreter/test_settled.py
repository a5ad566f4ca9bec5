"""Nodes that are computed when tensors are allocated: what follows from shapes."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import Build, any_batch, run

from opwright import lite
from opwright.core import flags
from opwright.lite.interpreter import OpResolverType
from opwright.lite.runtime.tensor import ARENA, FOLDED

SIZES = [(2, 6), (4, 6), (1, 2), (3, 0), (4, 6)]


def kinds(interpreter: lite.Interpreter) -> dict[str, str]:
    return {t.name: t.kind for t in interpreter._subgraphs[0].tensors}


def drawn(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_shapes_are_known_before_the_model_runs() -> None:
    with flags.override(compiled=False):  # a plan from the cache needs none of them
        interpreter = lite.Interpreter(model_content=any_batch())
        interpreter.allocate_tensors()
    result = kinds(interpreter)
    assert {n for n, kind in result.items() if kind == FOLDED} == {"sizes", "batch", "n", "half", "shape"}
    assert result["y"] == ARENA
    assert interpreter.get_tensor(interpreter._subgraphs[0].tensors[2].index).tolist() == [2, 6]


@pytest.mark.parametrize("compiled", [False, True])
def test_every_size_has_its_own_shape(compiled: bool) -> None:
    with flags.override(compiled=compiled, background=False):
        interpreter = lite.Interpreter(model_content=any_batch())
        for shape in SIZES:
            x = drawn(shape)
            (y,) = run(interpreter, [x])
            np.testing.assert_array_equal(y, np.maximum(x, 0).reshape(shape[0], shape[1] // 2, 2))
            (again,) = run(interpreter, [x + 1])
            np.testing.assert_array_equal(again, np.maximum(x + 1, 0).reshape(shape[0], shape[1] // 2, 2))


def test_as_the_official_interpreter_has_it() -> None:
    official = pytest.importorskip("ai_edge_litert.interpreter")
    mine, other = lite.Interpreter(model_content=any_batch()), official.Interpreter(model_content=any_batch())
    for shape in SIZES[:3]:
        x = drawn(shape)
        for a, b in zip(run(mine, [x]), run(other, [x]), strict=True):
            np.testing.assert_array_equal(a, b)
        shapes = [i.get_output_details()[0]["shape"].tolist() for i in (mine, other)]
        assert shapes[0] == shapes[1]


def test_the_engine_runs_all_else_as_one() -> None:
    with flags.override(compiled=True, background=False):
        interpreter = lite.Interpreter(model_content=any_batch())
        interpreter.allocate_tensors()
        plan = [node.name for node in interpreter._subgraphs[0].execution_plan]
    assert plan.count("Opwright") == 1
    assert not {"RELU", "RESHAPE"} & set(plan)


def test_a_kept_plan_runs_in_later_interpreters(tmp_path) -> None:
    """By file, so that the second finds the first one's plan; other sizes are not taken for those it was made for."""
    path = tmp_path / "any.tflite"
    path.write_bytes(any_batch())
    with flags.override(compiled=True, background=False):
        for shape in (*SIZES[:2], SIZES[0]):
            for _ in range(2):
                x = drawn(shape)
                (y,) = run(lite.Interpreter(str(path)), [x])
                np.testing.assert_array_equal(y, np.maximum(x, 0).reshape(shape[0], shape[1] // 2, 2))


def test_sizes_that_are_wrong_are_said_when_tensors_are_allocated() -> None:
    """Shape rules check folded values as they check constants."""
    b = Build().tensor("x", (4,)).tensor("sizes", (1,), "INT32").op("SHAPE", "x", "sizes", out_type="INT32")
    b.tensor("at", type="INT32", data=np.int32([7])).tensor("many", (1,), "INT32")
    content = b.op("GATHER", "sizes at", "many").tensor("y", (4,)).op("RESHAPE", "x many", "y").done()
    with pytest.raises(RuntimeError, match=r"GATHER: gather index out of bounds(.|\n)*Node number 1"):
        lite.Interpreter(model_content=content).allocate_tensors()
    count = Build().tensor("x", (4,)).tensor("sizes", (1,), "INT32").op("SHAPE", "x", "sizes", out_type="INT32")
    count.tensor("two", type="INT32", data=np.int32([2])).tensor("half", (1,), "INT32").op(
        "FLOOR_DIV", "sizes two", "half"
    )
    interpreter = lite.Interpreter(model_content=count.tensor("y", (4,)).op("RESHAPE", "x half", "y").done())
    with pytest.raises(RuntimeError, match=r"RESHAPE(.|\n)*Node number 2"):
        interpreter.allocate_tensors()


def test_results_of_the_model_and_large_ones_are_computed_when_it_runs() -> None:
    b = Build().tensor("x", (3,)).tensor("y", (1,), "INT32").op("SHAPE", "x", "y", out_type="INT32")
    b.tensor("value", data=np.float32(2)).tensor("big", type="INT32", data=np.int32([2000]))
    content = b.tensor("z", (2000,)).op("FILL", "big value", "z").done(outputs="y z")
    interpreter = lite.Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    y, z = run(interpreter, [np.zeros(3, np.float32)])
    assert FOLDED not in kinds(interpreter).values()
    assert y.tolist() == [3]
    assert (z == 2).all()
    assert z.shape == (2000,)


def test_random_numbers_stay_random() -> None:
    b = Build().tensor("x", (1,)).tensor("sizes", (1,), "INT32").op("SHAPE", "x", "sizes", out_type="INT32")
    b.tensor("r", (1,)).op("RANDOM_UNIFORM", "sizes", "r", seed=1, seed2=2)
    interpreter = lite.Interpreter(model_content=b.tensor("y", (1,)).op("ADD", "x r", "y").done())
    x = np.zeros(1, np.float32)
    assert len({run(interpreter, [x])[0].item() for _ in range(4)}) == 4
