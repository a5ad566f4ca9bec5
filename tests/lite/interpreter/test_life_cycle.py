"""The four methods of a kernel: how often each is called, what it gets, and what happens when it fails."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from lite_kit import Build
from small_models import atan_model, dynamic_model

import opwright.lite as lite
from opwright.core import dtypes
from opwright.core.errors import InvalidArgumentError, OpError
from opwright.lite.format.flexbuffers import decode_options
from opwright.ops.attributes import Attr
from opwright.ops.definition import Input, Output, operator

X = np.float32([1, 2, 3, 4, 5])


class Counted(lite.Registration):
    """Atan that writes down every call. fail: the method that raises; returns: what it returns instead."""

    def __init__(self, fail: str = "", when: int = 0) -> None:
        self.calls: list[str] = []
        self.fail, self.when = fail, when
        super().__init__(*(self.method(name) for name in ("init", "free", "prepare", "invoke")))

    def method(self, name):
        def call(context, argument):
            self.calls.append(name)
            if name == self.fail and self.calls.count(name) > self.when:
                context.report_error("no %s today", name)
                raise ZeroDivisionError(f"{name} went wrong")
            return getattr(self, f"on_{name}")(context, argument)

        return call

    def on_init(self, context, options):
        return {"options": options}

    def on_free(self, context, user_data):
        user_data["freed"] = True

    def on_prepare(self, context, node):
        assert isinstance(node.user_data, dict)
        context.resize_tensor(node.outputs[0], node.inputs[0].dims)

    def on_invoke(self, context, node):
        np.arctan(node.inputs[0].data, out=node.outputs[0].data)

    __slots__ = ("calls", "fail", "when")

    def count(self, *names):
        return tuple(self.calls.count(name) for name in names)


METHODS = ("init", "free", "prepare", "invoke")


def run(interpreter, x=X):
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def allocate_and_run(interpreter):
    interpreter.allocate_tensors()
    return run(interpreter)


def test_calls_are_counted():
    kernel = Counted()
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel})
    assert kernel.calls == []
    interpreter.allocate_tensors()
    assert kernel.calls == ["init", "prepare"]
    interpreter.allocate_tensors()
    assert kernel.calls == ["init", "prepare"]
    for _ in range(3):
        np.testing.assert_allclose(run(interpreter), np.arctan(X))
    interpreter.resize_tensor_input(0, [5])  # no change
    interpreter.allocate_tensors()
    assert kernel.count(*METHODS) == (1, 0, 1, 3)
    interpreter.resize_tensor_input(0, [2, 2])
    interpreter.allocate_tensors()
    assert kernel.count(*METHODS) == (1, 0, 2, 3)
    np.testing.assert_allclose(run(interpreter, X[:4].reshape(2, 2)), np.arctan(X[:4].reshape(2, 2)))
    interpreter.close()
    interpreter.close()
    del interpreter
    gc.collect()
    assert kernel.count(*METHODS) == (1, 1, 2, 4)


def test_freed_at_the_end_without_close():
    kernel = Counted()
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel})
    interpreter.allocate_tensors()
    del interpreter
    gc.collect()
    assert kernel.count(*METHODS) == (1, 1, 1, 0)
    with lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel}) as interpreter:
        interpreter.allocate_tensors()
    assert kernel.count(*METHODS) == (2, 2, 2, 0)


def test_an_interpreter_that_was_never_allocated_frees_nothing():
    kernel = Counted()
    lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel}).close()
    assert kernel.calls == []


def test_each_node_has_its_own_life():
    content = Build().custom("Atan", "x", "a", k=1).custom("Atan", "a", "b", k=2).custom("Atan", "b", "y", k=3).done()
    seen, freed = [], []
    kernel = lite.Registration(
        init=lambda context, options: decode_options(options)["k"],
        free=lambda context, data: freed.append(data),
        prepare=lambda context, node: seen.append((node.number, node.user_data, node.name)),
        invoke=lambda context, node: np.arctan(node.inputs[0].data, out=node.outputs[0].data),
    )
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Atan": kernel})
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), np.arctan(np.arctan(np.arctan(X))), 1e-6)
    interpreter.close()
    assert seen == [(0, 1, "Atan"), (1, 2, "Atan"), (2, 3, "Atan")]
    assert sorted(freed) == [1, 2, 3]


def test_when_a_later_init_fails_the_earlier_are_freed_once():
    kernel = Counted("init", when=1)
    content = Build().custom("Atan", "x", "a").custom("Atan", "a", "y").done()
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Atan": kernel})
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"Node number 1 \(Atan\) failed to init"):
            interpreter.allocate_tensors()
    interpreter.close()
    assert kernel.count("init", "free", "prepare") == (3, 1, 0)


@pytest.mark.parametrize("method", ["init", "prepare", "invoke"])
def test_a_method_that_raises(method):
    kernel = Counted(method)
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel})
    with pytest.raises(RuntimeError) as raised:
        allocate_and_run(interpreter)
    text = str(raised.value)
    assert isinstance(raised.value, OpError)
    assert f"Node number 0 (Atan) failed to {method}." in text
    assert f"{method} went wrong" in text
    assert f"no {method} today" in text
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    kernel.fail = ""
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), np.arctan(X))


def test_free_that_raises_is_reported_after_all_are_freed():
    kernel = Counted("free")
    content = Build().custom("Atan", "x", "a").custom("Atan", "a", "y").done()
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Atan": kernel})
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="failed to free"):
        interpreter.close()
    assert kernel.count("free") == (2,)


@pytest.mark.parametrize("phase", ["prepare", "invoke"])
def test_a_status_other_than_0_is_a_failure(phase):
    def fail(context, node):
        context.report_error("x is %d", 7)
        return 1

    kernel = lite.Registration(**{"invoke": lambda context, node: 0, phase: fail})
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel})
    with pytest.raises(RuntimeError, match=r"(?s)status 1.*x is 7"):
        allocate_and_run(interpreter)


def test_invoke_is_needed():
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": lite.Registration()})
    with pytest.raises(RuntimeError, match="no invoke"):
        interpreter.allocate_tensors()


def test_without_prepare_the_file_reports_the_shape():
    kernel = lite.Registration(invoke=lambda context, node: np.arctan(node.inputs[0].data, out=node.outputs[0].data))
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel})
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), np.arctan(X))


def test_what_a_method_sees():
    def prepare(context, node):
        x, c = node.inputs[0], node.inputs[1]
        assert (x.shape, x.dims, x.dtype, x.name, x.is_constant) == ((5,), [5], dtypes.float32, "x", False)
        assert x.data is None
        assert c.is_constant
        assert c.data.tolist() == [7]
        assert node.inputs[2] is None
        assert (node.version, node.name, node.number) == (1, "Own", 0)
        assert context.recommended_num_threads == 3
        assert len(context.tensors) == 3

    def invoke(context, node):
        assert not node.inputs[0].data.flags.writeable
        assert not node.inputs[1].data.flags.writeable
        node.outputs[0].data[...] = node.inputs[0].data + node.inputs[1].data
        return node.outputs[0].data  # whatever it returns

    b = Build()
    b.tensor("x")
    b.tensor("c", data=np.float32([7]))
    content = b.custom("Own", "x c _", "y").done()
    kernel = lite.Registration(prepare=prepare, invoke=invoke)
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Own": kernel}, num_threads=3)
    interpreter.allocate_tensors()
    assert run(interpreter).tolist() == (X + 7).tolist()


def test_temporaries():
    sizes = []

    def init(context, options):
        return context.add_tensor(np.float32, name="kept", persistent=True)

    def prepare(context, node):
        n = node.inputs[0].shape
        context.resize_tensor(node.outputs[0], n)
        context.resize_tensor(node.user_data, (1,))
        scratch = context.add_tensor(dtypes.float32, n, name="scratch")
        node.temporaries = [scratch, node.user_data]

    def invoke(context, node):
        scratch, kept = node.temporaries
        sizes.append((scratch.shape, len(context.tensors)))
        np.multiply(node.inputs[0].data, 2, out=scratch.data)
        kept.data[0] += 1
        node.outputs[0].data[...] = scratch.data + kept.data

    kernel = lite.Registration(init=init, prepare=prepare, invoke=invoke)
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel})
    interpreter.allocate_tensors()
    assert run(interpreter).tolist() == (2 * X + 1).tolist()
    assert run(interpreter).tolist() == (2 * X + 2).tolist()
    interpreter.resize_tensor_input(0, [3])
    interpreter.allocate_tensors()
    assert run(interpreter, X[:3])[0] == 2 * X[0] + 3
    assert sizes == [((5,), 4), ((5,), 4), ((3,), 4)]  # scratch tensors do not pile up


def test_a_dynamic_output():
    def prepare(context, node):
        context.set_tensor_to_dynamic(node.outputs[0])

    def invoke(context, node):
        x = node.inputs[0].data
        kept = x[x > 2]
        context.resize_tensor(node.outputs[0], kept.shape)
        node.outputs[0].data[...] = kept

    b = Build()
    content = b.custom("Keep", "x", "k").op("SQUARE", "k", "y").done()
    kernel = lite.Registration(prepare=prepare, invoke=invoke)
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Keep": kernel})
    interpreter.allocate_tensors()
    assert run(interpreter).tolist() == [9, 16, 25]
    assert run(interpreter, -X).tolist() == []
    assert run(interpreter, X + 2).tolist() == ((X + 2) ** 2).tolist()


MISTAKES = {
    "returned": (lambda c, n: np.arctan(n.inputs[0].data), r"(?s)invoke returned a result.*float32 \[5\]"),
    "in a tuple": (lambda c, n: (np.arctan(n.inputs[0].data),), "invoke returned a result, which is ignored"),
    "assigned": (lambda c, n: setattr(n.outputs[0], "data", n.inputs[0].data), "has its memory: write into it"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_results_that_would_be_lost(name):
    wrong, says = MISTAKES[name]
    right = [False]

    def invoke(context, node):
        if not right[0]:
            return wrong(context, node)
        return np.arctan(node.inputs[0].data, out=node.outputs[0].data)  # which it may: these are the outputs

    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": lite.Registration(invoke=invoke)})
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    with pytest.raises(OpError, match=f"Atan: .*{says}" if name == "assigned" else says):
        interpreter.invoke()
    right[0] = True
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(output, np.arctan(X.astype(np.float64)), rtol=1e-6)


def test_a_dynamic_output_without_a_shape():
    registration = lite.Registration(
        prepare=lambda c, n: c.set_tensor_to_dynamic(n.outputs[0]), invoke=lambda c, n: None
    )
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": registration})
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    with pytest.raises(OpError, match=r"Atan: invoke set no shape for its dynamic output"):
        interpreter.invoke()


def test_resizing_in_invoke_needs_a_dynamic_tensor():
    def invoke(context, node):
        context.resize_tensor(node.outputs[0], (2,))

    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": lite.Registration(invoke=invoke)})
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="set_tensor_to_dynamic"):
        interpreter.invoke()


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((-1,), "negative"),
        (("a",), "not a list of integers"),
        (3, "not a list"),
        ((1 << 30,), "would take"),
        ((0, 1 << 40, 1 << 40), "a size that the file format cannot store"),
        ((1 << 30,) * 3, "no array can have the shape"),
        ((1,) * 65, "no array can have the shape"),
    ],
)
def test_shapes_that_are_none(shape, says):
    kernel = lite.Registration(prepare=lambda c, n: c.resize_tensor(n.outputs[0], shape), invoke=lambda c, n: None)
    interpreter = lite.Interpreter(model_content=atan_model(), custom_ops={"Atan": kernel})
    with pytest.raises(RuntimeError, match=says):
        interpreter.allocate_tensors()


@pytest.mark.parametrize(
    ("which", "says"), [(0, "'x' is an input, whose shape is fixed"), (1, "Attempting to resize a fixed-size tensor")]
)
def test_an_input_cannot_be_resized_away(which, says):
    b = Build()
    b.tensor("c", data=np.float32([7]))
    content = b.custom("Own", "x c", "y").done()
    kernel = lite.Registration(prepare=lambda c, n: c.resize_tensor(n.inputs[which], (2,)), invoke=lambda c, n: None)
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Own": kernel})
    with pytest.raises(RuntimeError, match=says):
        interpreter.allocate_tensors()


def test_registrations_check_what_they_are_given():
    with pytest.raises(TypeError, match="invoke"):
        lite.Registration(invoke=3)
    with pytest.raises(ValueError, match="version"):
        lite.Registration(version=0)
    assert "init" not in repr(lite.Registration(invoke=print))


# ---- operators by definition -------------------------------------------------------------------------------


@operator
class Atan:
    """.. math:: y = \\arctan x"""

    x = Input(dtypes.floating)
    y = Output(like="x")

    def compute(op, x):
        return np.arctan(x)


@operator(version=2)
class LeakyClip:
    """Clip with a leak."""

    x = Input(dtypes.floating)
    y = Output(like="x")
    alpha = Attr(float, default=0.0)
    limit = Attr(float, default=6.0, since=2)

    def compute(op, x):
        return np.minimum(x, np.float32(op.limit)) + np.float32(op.alpha) * np.maximum(x - np.float32(op.limit), 0)


@operator
class Nonzeros:
    """The elements that are not 0."""

    x = Input(dtypes.floating, rank=1)
    y = Output(like="x")

    def infer(op):
        from opwright.core.specs import TensorSpec

        constant = op.x.constant
        return TensorSpec([None if constant is None else int(np.count_nonzero(constant))], op.x.spec.dtype)

    def compute(op, x):
        return x[x != 0]


def with_op(content, op):
    interpreter = lite.Interpreter(model_content=content, custom_ops=[op])
    interpreter.allocate_tensors()
    return interpreter


def test_an_operator_class_is_a_kernel():
    np.testing.assert_allclose(run(with_op(atan_model(), Atan)), np.arctan(X))
    resolver = lite.BuiltinOpResolver()
    resolver.add_custom("Atan", Atan)
    interpreter = lite.Interpreter(model_content=atan_model(), op_resolver=resolver)
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), np.arctan(X))


def test_attributes_come_from_the_options():
    content = Build().custom("LeakyClip", "x", "y", version=2, alpha=0.5, limit=2).done()
    np.testing.assert_allclose(run(with_op(content, LeakyClip)), [1, 2, 2.5, 3, 3.5])
    np.testing.assert_allclose(run(with_op(Build().custom("LeakyClip", "x", "y").done(), LeakyClip)), X)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"beta": 1}, "beta"), ({"alpha": "much"}, "'alpha' has the wrong type"), ({"_version": 3}, "version 3")],
)
def test_options_that_the_operator_does_not_know(options, says):
    with pytest.raises(RuntimeError, match=says):
        with_op(Build().custom("LeakyClip", "x", "y", **options).done(), LeakyClip)


def test_versions_of_custom_operators_are_checked():
    content = Build().custom("LeakyClip", "x", "y", version=3).done()
    with pytest.raises(RuntimeError, match=r"(?s)unresolved custom op: LeakyClip.*version 3.*1\.\.2"):
        with_op(content, LeakyClip)


def test_operators_with_shapes_that_follow_from_values():
    interpreter = with_op(Build().custom("Nonzeros", "x", "y").done(), Nonzeros)
    assert run(interpreter, np.float32([0, 1, 0, 2, 0])).tolist() == [1, 2]
    assert run(interpreter, X).tolist() == X.tolist()
    interpreter = lite.Interpreter(model_content=dynamic_model("Atan"), custom_ops=[Atan])
    interpreter.allocate_tensors()
    interpreter.set_tensor(1, np.int32([3, 2]))
    interpreter.invoke()
    assert interpreter.get_tensor(3).shape == (3, 2)


def test_a_compute_that_breaks_its_promise():
    @operator
    class Wrong:
        x = Input(dtypes.floating)
        y = Output(like="x")

        def compute(op, x):
            return x.astype(np.int32) if x[0] > 0 else x[:2]

    interpreter = with_op(Build().custom("Wrong", "x", "y").done(), Wrong)
    with pytest.raises(RuntimeError, match="int32"):
        run(interpreter)
    with pytest.raises(RuntimeError, match=r"\[2\]"):
        run(interpreter, -X)


def test_wrong_inputs_of_a_custom_operator():
    b = Build()
    b.tensor("x", (5,), "INT32")
    b.tensor("y", (5,), "INT32")
    with pytest.raises(RuntimeError, match="dtype it does not take"):
        with_op(b.custom("Atan", "x", "y").done(), Atan)
    with pytest.raises(RuntimeError, match="wrong number of inputs"):
        with_op(Build().custom("Atan", "x x", "y").done(), Atan)
    with pytest.raises(RuntimeError, match="number of outputs"):
        with_op(Build().custom("Atan", "x", "y z").done(), Atan)


def test_custom_ops_that_are_none():
    for wrong in ([3], {"Atan": print}, [lite.Registration()]):
        with pytest.raises(TypeError):
            lite.Interpreter(model_content=atan_model(), custom_ops=wrong)
    with pytest.raises(TypeError):
        lite.Interpreter(model_content=atan_model(), op_resolver=3)
    with pytest.raises(InvalidArgumentError):
        lite.MutableOpResolver().add_custom("", Atan)
