"""A compiled model as people use it: signatures, shapes from run to run, buffers, its life, several at once."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import numpy as np
import pytest
from lite_kit import Build
from litert_kit import CUSTOMS, Scale, compiling, drawn, needs_wheel, of_scales, scales

import opwright as ow
from opwright import lite
from opwright.core.errors import FailedPreconditionError, InvalidArgumentError

pytestmark = needs_wheel
S = np.float32([0.5, -1.0, 2.0])
ANY_ROWS = {"shape": (1, 3), "shape_signature": [-1, 3]}


def made(content, **settings):
    return lite.litert.CompiledModel(content, CUSTOMS, num_threads=1, **settings)


def converted():
    """Two inputs and two outputs by name, from a function, one operator of ours in it."""

    @ow.function(
        input_signature=[ow.TensorSpec((None, 3), ow.float32, name="x"), ow.TensorSpec((3,), ow.float32, name="s")]
    )
    def f(x, s):
        return {"b": Scale(x, s, factor=2.0), "a": x - s}

    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    converter.allow_custom_ops = True
    return converter.convert()


# ---- signatures -----------------------------------------------------------------------------------------------------


def test_a_converted_model_has_the_names_of_its_function():
    x = drawn(4, 3)
    with compiling(), made(converted()) as model:
        assert model.get_signature_list() == {"serving_default": {"inputs": ["x", "s"], "outputs": ["a", "b"]}}
        assert model.get_signature_by_index(0)["key"] == "serving_default"
        assert (model.get_num_signatures(), model.get_signature_index("serving_default")) == (1, 0)
        assert model.get_signature_index("other") == -1
        found = model.run({"s": S, "x": x}, "serving_default")
        details = {d["name"]: d for d in model.get_input_details()}
        assert model.get_output_tensor_details()["b"]["shape"] == [4, 3]
    assert list(details["x"]["shape"]) == [4, 3]
    assert list(details["x"]["shape_signature"]) == [-1, 3]
    np.testing.assert_allclose(found["b"], of_scales(x, S, {"factor": 2.0}), rtol=1e-6)
    np.testing.assert_array_equal(found["a"], x - S)


def test_order_and_details_are_those_of_the_wheels_own():
    """A model without Opwright's operators, which the wheel's own compiled model accepts as well."""
    peer = pytest.importorskip("ai_edge_litert.compiled_model")

    @ow.function(
        input_signature=[ow.TensorSpec((2, 3), ow.float32, name="z"), ow.TensorSpec((2, 3), ow.float32, name="a")]
    )
    def f(z, a):
        return {"q": a + z, "p": a * z, "r": a - z}

    content = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f).convert()
    theirs = peer.CompiledModel.from_buffer(content)
    with made(content) as model:
        assert model.get_signature_list() == theirs.get_signature_list()
        assert model.get_signature_by_index(0) == theirs.get_signature_by_index(0)
        key = "serving_default"
        assert model.get_input_tensor_details(key) == theirs.get_input_tensor_details(key)
        assert model.get_output_tensor_details(key) == theirs.get_output_tensor_details(key)
        assert model.is_fully_accelerated() == theirs.is_fully_accelerated()
        z, a = drawn(2, 3), drawn(2, 3, seed=1)
        ins, outs = theirs.create_input_buffers(0), theirs.create_output_buffers(0)
        for buffer, value in zip(ins, (z, a)):
            buffer.write(value)
        theirs.run_by_index(0, ins, outs)
        for found, buffer in zip(model.run([z, a]), outs):
            np.testing.assert_array_equal(found, buffer.read(6, np.float32).reshape(2, 3))


def test_several_signatures():
    b = Build("first").tensor("x", (3,)).tensor("y", (3,)).custom("LitertScale", "x x", "y", factor=1.0)
    b.done("x", "y", signature="first")
    b.subgraph("second").tensor("x", (2,)).tensor("y", (2,)).custom("LitertScale", "x x", "y", factor=4.0)
    content = b.done("x", "y", signature="second")
    model_file = lite.Model.read(content)
    model_file.signature_defs[1].subgraph_index = 1
    with compiling(), made(model_file) as model:
        assert sorted(model.get_signature_list()) == ["first", "second"]
        np.testing.assert_array_equal(model.run([np.float32([1, 2, 3])], "first")[0], [2, 4, 6])
        np.testing.assert_array_equal(model.run([np.float32([1, 2])], "second")[0], [5, 10])
        with pytest.raises(InvalidArgumentError, match="several signatures"):
            model.run([np.float32([1, 2])])
        with pytest.raises(InvalidArgumentError, match="third"):
            model.run([np.float32([1, 2])], "third")


# ---- where it comes from --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chain", [({"factor": 2.0},), ({"factor": 2.0}, {"factor": 3.0})], ids=["as it is", "rewritten"]
)
@pytest.mark.parametrize("source", ["path", "text", "bytes", "bytearray", "model", "from_file", "from_buffer"])
def test_sources(source, chain, tmp_path):
    content, x = scales(*chain), drawn(2, 3)
    path = tmp_path / "mödel.tflite"
    path.write_bytes(content)
    given = {
        "path": path,
        "text": str(path),
        "bytes": content,
        "bytearray": bytearray(content),
        "model": lite.Model.read(content),
    }
    make = getattr(lite.litert.CompiledModel, source, lite.litert.CompiledModel)
    with make(given.get(source, path if source == "from_file" else content), CUSTOMS) as model:
        np.testing.assert_allclose(model.run([x, S])[0], of_scales(x, S, *chain), rtol=1e-5, atol=1e-6)
    if source == "model":
        assert given["model"].to_bytes() == content


# ---- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [True, False], ids=["native", "python"])
def test_shapes_differ_from_run_to_run(compiled):
    chain = ({"factor": 2.0}, {"factor": -1.0})
    with compiling(compiled), made(scales(*chain, **ANY_ROWS)) as model:
        for rows in (4, 4, 1, 300, 2):
            x = drawn(rows, 3, seed=rows)
            found = model.run([x, S])[0]
            assert found.shape == (rows, 3)
            np.testing.assert_allclose(found, of_scales(x, S, *chain), rtol=1e-5, atol=1e-6)
            assert set(model.native_nodes.values()) == {compiled}


def test_a_shape_that_the_file_fixes_is_changed_when_asked():
    with compiling(), made(scales({"factor": 2.0})) as model:
        with pytest.raises(InvalidArgumentError, match="strict=False"):
            model.run([drawn(5, 3), S])
        with pytest.raises(InvalidArgumentError, match="strict=False"):
            model.resize_input_tensor(0, (5, 3))
        model.resize_input_tensor("x", (5, 3), strict=False)
        x = drawn(5, 3)
        np.testing.assert_allclose(model.run([x, S])[0], of_scales(x, S, {"factor": 2.0}), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (), (2, 4), (3,), (-1, 3)], ids=str)
def test_shapes_that_cannot_be(shape):
    with made(scales({}, **ANY_ROWS)) as model:
        with pytest.raises(InvalidArgumentError, match="shape"):
            model.resize_input_tensor(0, shape)
        x = drawn(2, 3)
        np.testing.assert_allclose(model.run([x, S])[0], x + S, rtol=1e-6)


# ---- buffers --------------------------------------------------------------------------------------------------------


def test_runs_between_buffers_of_ones_own():
    with compiling(), made(converted()) as model:
        model.resize_input_tensor_by_name("serving_default", "x", (2, 3))
        ins, outs = model.create_input_buffers(), model.create_output_buffers()
        assert [b.shape for b in (*ins, *outs)] == [(2, 3), (3,), (2, 3), (2, 3)]
        x = drawn(2, 3)
        ins[0].write(x)
        ins[1].array[:] = S
        model.run_by_index(0, ins, outs)
        np.testing.assert_array_equal(outs[0].read(), x - S)
        np.testing.assert_allclose(outs[1].read(6, np.float32), of_scales(x, S, {"factor": 2.0}).ravel(), rtol=1e-6)
        assert outs[1].get_tensor_details() == {"dtype": "float32", "shape": [2, 3]}
        ins[0].array[:] = 1.0
        names = (
            {"x": ins[0], "s": ins[1]},
            {"a": model.create_output_buffer_by_name("serving_default", "a"), "b": outs[1]},
        )
        model.run_by_name("serving_default", *names)
        np.testing.assert_array_equal(names[1]["a"].read(), np.broadcast_to(1 - S, (2, 3)))
        assert outs[1].array.ctypes.data % 64 == 0


def test_buffers_that_do_not_fit():
    with made(converted()) as model:
        ins, outs = model.create_input_buffers(), model.create_output_buffers()
        with pytest.raises(InvalidArgumentError, match="number of buffers"):
            model.run_by_index(0, ins[:1], outs)
        with pytest.raises(InvalidArgumentError, match="another tensor"):
            model.run_by_index(0, ins[::-1], outs)
        with pytest.raises(TypeError, match="ndarray"):
            model.run_by_index(0, [S, S], outs)
        with pytest.raises(InvalidArgumentError, match="astype"):
            ins[0].write(np.zeros((1, 3)))
        with pytest.raises(InvalidArgumentError, match="another shape"):
            ins[0].write(np.zeros((2, 3), np.float32))
        model.resize_input_tensor("x", (4, 3))
        with pytest.raises(InvalidArgumentError, match="another tensor"):
            model.run_by_index(0, ins, outs)
        ins[1].destroy()
        ins[0] = model.create_input_buffer_by_name("serving_default", "x")
        with pytest.raises(FailedPreconditionError, match="destroyed"):
            model.run_by_index(0, ins, model.create_output_buffers())


def test_a_tensor_may_be_an_input_and_an_output():
    """Its own buffers would part them."""
    b = Build().tensor("x", (3,)).tensor("s", (3,)).tensor("y", (3,)).custom("LitertScale", "x s", "y", factor=2.0)
    x = drawn(3)
    with compiling(), made(b.done("x s", "y x y")) as model:
        y, again, twice = model.run([x, S])
    np.testing.assert_allclose(y, of_scales(x, S, {"factor": 2.0}), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(again, x)
    np.testing.assert_array_equal(twice, y)


def test_each_name_of_a_tensor_is_there():
    """The run time reports the last name twice if a signature names a tensor twice."""

    @ow.function(input_signature=[ow.TensorSpec((2, 3), ow.float32, name="x")])
    def model(x):
        y = x * x
        return {"a": y, "b": y, "c": x, "d": y + x}

    x = drawn(2, 3)
    content = lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model).convert()
    with made(content) as compiled:
        assert compiled.get_signature_list()["serving_default"]["outputs"] == ["a", "b", "c", "d"]
        found = compiled.run({"x": x})
    for name, wanted in {"a": x * x, "b": x * x, "c": x, "d": x * x + x}.items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-6)


# ---- its life -------------------------------------------------------------------------------------------------------


def test_closed_it_reports_it():
    model = made(scales({}))
    model.close()
    model.close()
    assert "closed" in repr(model)
    for use in (
        lambda: model.run([drawn(2, 3), S]),
        model.create_output_buffers,
        model.is_fully_accelerated,
        lambda: model.resize_input_tensor(0, (1, 3)),
    ):
        with pytest.raises(FailedPreconditionError, match="closed"):
            use()


def test_it_goes_with_the_last_reference():
    freed = []
    twice = lite.Registration(
        init=lambda context, options: 1,
        free=lambda context, state: freed.append(state),
        prepare=lambda context, node: context.resize_tensor(node.outputs[0], (2,)),
        invoke=lambda context, node: None,
    )
    b = Build().tensor("x", (2,)).tensor("y", (2,)).custom("Twice", "x", "y")
    model = lite.litert.CompiledModel(b.done(), {"Twice": twice})
    model.run([np.float32([1, 2])])
    buffers = model.create_input_buffers()
    watch = weakref.ref(model)
    del model
    gc.collect()
    assert watch() is None
    assert freed == [1]
    buffers[0].array[:] = 3  # its memory is its own
    del buffers


def test_many_at_once_and_one_after_the_other():
    """Their nodes are told apart, and what is closed is given back: files, records."""
    from opwright.lite.litert import custom_op_nodes

    x, contents = drawn(2, 3), [scales({"factor": float(k)}, {"factor": 2.0}) for k in range(6)]
    with compiling():
        models = [made(content) for content in contents]
        for k in (3, 0, 5, 1, 3):
            wanted = of_scales(x, S, {"factor": float(k)}, {"factor": 2.0})
            np.testing.assert_allclose(models[k].run([x, S])[0], wanted, rtol=1e-5, atol=1e-5)
        open_files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        for _ in range(3):
            models = [made(content) for content in contents]
        if open_files:
            assert len(os.listdir("/proc/self/fd")) == open_files
    del models
    gc.collect()
    assert not custom_op_nodes._nodes


def test_threads_take_turns():
    wrong = []

    def work(model, seed):
        for turn in range(20):
            x = drawn(1 + (turn + seed) % 3, 3, seed=turn)
            if not np.allclose(model.run([x, S])[0], of_scales(x, S, {"factor": 2.0}), rtol=1e-5, atol=1e-5):
                wrong.append((seed, turn))

    with compiling(), lite.litert.CompiledModel(scales({"factor": 2.0}, **ANY_ROWS), CUSTOMS, num_threads=2) as model:
        threads = [threading.Thread(target=work, args=(model, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_runs_in_a_forked_child():
    """The plan's threads stay behind; the child's first run of a node starts its own."""
    x = drawn(20000, 3)
    wanted = of_scales(x, S, {"factor": 2.0})
    with (
        compiling(),
        lite.litert.CompiledModel(scales({"factor": 2.0}, shape=(20000, 3)), CUSTOMS, num_threads=2) as model,
    ):
        model.run([x, S])
        child = os.fork()
        if child == 0:
            fine = all(np.allclose(model.run([x, S])[0], wanted, atol=1e-5) for _ in range(3))
            os._exit(0 if fine and all(model.native_nodes.values()) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        np.testing.assert_allclose(model.run([x, S])[0], wanted, atol=1e-5)
