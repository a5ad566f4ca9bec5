"""The same scripts run on our interpreter and the official one: states, resizing, signatures, failures, recovery.

A script is a list of steps; what each step gives (a value,
                                                   or the kind of its error) is written down. Both transcripts
must be equal, but for the rows of DIFFERENT, which say why.
"""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from lite_kit import Build
from small_models import sin_model

import opwright.lite as lite
from opwright.core.errors import OpError
from opwright.lite.ops import list_names

CORPUS = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "data", "tflite")
X = np.float32([1, 2, 3, 4, 5])


def corpus(name) -> bytes:
    with open(os.path.join(CORPUS, f"{name}.tflite"), "rb") as file:
        return file.read()


def official(content):
    module = pytest.importorskip("ai_edge_litert.interpreter")
    return module.Interpreter(model_content=content, experimental_op_resolver_type=module.OpResolverType.BUILTIN_REF)


def plain(value):
    """A value that can be compared."""
    if isinstance(value, np.generic):
        value = np.asarray(value)  # officially the elements of a scalar tensor are no array
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            return value.shape, value.dtype.name, np.round(value.astype(np.float64), 4).tolist()
        return value.shape, value.dtype.name if value.dtype.kind != "O" else "object", value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def transcript(interpreter, script):
    lines = []
    for step in script:
        try:
            lines.append(plain(step(interpreter)))
        except Exception as error:
            lines.append(error)
    return lines


def same(mine, wanted):
    """Whether two steps gave the same: ours may be an error that is more than one kind."""
    if isinstance(wanted, Exception):
        return isinstance(mine, type(wanted))
    return not isinstance(mine, Exception) and mine == wanted


def allocate(i):
    i.allocate_tensors()


def invoke(i):
    i.invoke()


def resize(index, shape, strict=False):
    return lambda i: i.resize_tensor_input(index, shape, strict=strict)


def put(index, value):
    return lambda i: i.set_tensor(index, value)


def get(index):
    return lambda i: i.get_tensor(index)


def sizes(side):
    return lambda i: [(d["shape"], d["shape_signature"]) for d in getattr(i, f"get_{side}_details")()]


def whole(index, shape, out, value=0.5, dtype=np.float32):
    """Another shape for an input, from resize to result."""
    return [
        resize(index, shape),
        allocate,
        sizes("input"),
        sizes("output"),
        put(index, np.full(shape, value, dtype)),
        invoke,
        get(out),
    ]


def call(key, **inputs):
    return lambda i: i.get_signature_runner(key)(**inputs)


def const_model() -> bytes:
    """y = x + c, c of five elements."""
    b = Build()
    b.tensor("c", data=X)
    return b.op("ADD", "x c", "y").done()


def reshape_model() -> bytes:
    """y = neg(reshape(x, shape)), the shape known only when it is given."""
    b = Build()
    b.tensor("x", (6,))
    b.tensor("shape", (2,), "INT32")
    return b.op("RESHAPE", "x shape", "r").op("NEG", "r", "y").done("x shape")


def gather_model() -> bytes:
    b = Build()
    b.tensor("i", (3,), "INT32")
    b.tensor("y", (3,))
    return b.op("GATHER", "x i", "y").done("x i")


def matmul_model(signature=()) -> bytes:
    """y = x @ w for x of an unknown batch."""
    b = Build()
    b.tensor("x", (1, 3), shape_signature=[-1, 3])
    b.tensor("w", data=np.arange(6, dtype=np.float32).reshape(2, 3))
    b.tensor("y", (1, 2), shape_signature=[-1, 2])
    return b.op("FULLY_CONNECTED", "x w _", "y").done(signature="serving_default")


STATES = [
    invoke,
    put(1, X),
    get(1),
    get(3),
    allocate,
    allocate,
    put(1, X),
    invoke,
    get(3),
    invoke,
    get(3),
    allocate,
    get(1),
    resize(1, [5]),
    invoke,
    get(3),
    resize(1, [4]),
    invoke,
    get(1),
    put(1, X),
    put(1, X[:4]),
    allocate,
    put(1, X),
    put(1, X[:4]),
    invoke,
    get(3),
    get(0),
    get(99),
    get(-1),
    put(99, X),
    resize(99, [1]),
]

SCRIPTS = {
    "states": (sin_model(), STATES),
    "any shape": (
        sin_model(),
        [step for shape in ([2, 3], [0], [0, 4], [1], [2, 1, 2, 1], [3, 0, 2], [7]) for step in whole(1, shape, 3)],
    ),
    "a scalar": (sin_model(), whole(1, [], 3)),
    "shapes that are none": (
        sin_model(),
        [allocate, resize(1, [-1]), resize(1, 5), resize(1, [[2]]), resize(0, [2]), put(1, X), invoke, get(3)],
    ),
    "resizing twice": (sin_model(), [resize(1, [2]), resize(1, [3]), allocate, put(1, X[:3]), invoke, get(3)]),
    "shapes that do not fit": (
        const_model(),
        [
            resize(1, [4]),
            allocate,
            invoke,
            resize(1, [5]),
            allocate,
            put(1, X),
            invoke,
            get(2),
            resize(1, [3, 5]),
            allocate,
            put(1, np.ones((3, 5), np.float32)),
            invoke,
            get(2),
            resize(1, [0]),
            allocate,
            resize(1, [1]),
            allocate,
            put(1, X[:1]),
            invoke,
            get(2),
        ],
    ),
    "strict": (
        matmul_model(),
        [
            resize(0, [4, 3], True),
            allocate,
            sizes("input"),
            sizes("output"),
            resize(0, [4, 4], True),
            resize(0, [4], True),
            resize(0, [4, 3, 1], True),
            invoke,
            resize(0, [2, 3], True),
            allocate,
            put(0, np.ones((2, 3), np.float32)),
            invoke,
            get(2),
        ],
    ),
    "no rows": (matmul_model(), whole(0, [0, 3], 2)),
    "batches of an official file": (
        corpus("unknown_batch"),
        [sizes("input"), sizes("output"), allocate, sizes("output"), lambda i: i.get_signature_list()],
    ),
    "dynamic": (
        reshape_model(),
        [
            allocate,
            sizes("output"),
            put(0, np.arange(6, dtype=np.float32)),
            put(1, np.int32([2, 3])),
            invoke,
            sizes("output"),
            get(3),
            put(1, np.int32([3, 2])),
            invoke,
            get(3),
            sizes("output"),
            put(1, np.int32([4, 2])),
            invoke,
            put(1, np.int32([6, 1])),
            invoke,
            get(3),
            put(1, np.int32([-1, 2])),
            invoke,
            get(3),
            resize(0, [4]),
            allocate,
            put(0, np.arange(4, dtype=np.float32)),
            put(1, np.int32([2, 2])),
            invoke,
            get(3),
        ],
    ),
    "a run that fails": (
        gather_model(),
        [allocate, put(2, X), put(0, np.int32([0, 2, 9])), invoke, put(0, np.int32([0, 2, 4])), invoke, get(1)],
    ),
    "what is set": (
        sin_model(),
        [
            allocate,
            put(1, X.astype(np.float64)),
            put(1, X.astype(np.float16)),
            put(1, [1, 2, 3, 4, 5]),
            put(1, X[:2]),
            put(1, X[None]),
            put(1, np.float32(3)),
            put(1, "text"),
            put(1, X[::-1]),
            invoke,
            get(3),
        ],
    ),
    "signatures": (
        corpus("several_signatures"),
        [
            lambda i: i.get_signature_list(),
            lambda i: i.get_signature_runner(),
            lambda i: i.get_signature_runner("none"),
            lambda i: i.num_subgraphs(),
            lambda i: [d["shape"] for d in i.get_tensor_details(1)][:2],
            lambda i: i.get_tensor_details(99),
        ],
    ),
    "one signature": (
        matmul_model(),
        [
            call(None, x=np.ones((2, 3), np.float32)),
            call(None, x=np.ones((5, 3), np.float32)),
            call(None),
            call(None, z=np.ones((2, 3), np.float32)),
            call(None, x=np.ones((2, 3), np.float64)),
            call(None, x=np.ones((2, 4), np.float32)),
            call("serving_default", x=np.ones((1, 3), np.float32)),
            call("none"),
            call(None, x=np.ones((2, 3), np.float32), y=X),
            lambda i: list(i.get_signature_runner().get_input_details()),
            lambda i: i.get_signature_runner().get_output_details()["y"]["shape"],
        ],
    ),
    "variables": (
        corpus("variables"),
        [allocate, invoke, lambda i: i.reset_all_variables(), invoke, lambda i: i.get_signature_list()],
    ),
}


def feed(i, key, scale=1.0, size=2):
    """Call a signature with numbers that count up; unknown sizes are `size`."""
    runner = i.get_signature_runner(key)
    inputs = {}
    for name, d in sorted(runner.get_input_details().items()):
        shape = [size if s == -1 else int(s) for s in d["shape_signature"]]
        inputs[name] = (np.arange(np.prod(shape, dtype=int)) * scale).reshape(shape).astype(d["dtype"])
    found = runner(**inputs)
    return sorted(found.items()), [d["shape"] for _, d in sorted(runner.get_output_details().items())]


def signature_calls(i):
    """Each signature, then each again with other numbers and other sizes, in turn."""
    keys = sorted(i.get_signature_list())
    return [feed(i, key, scale, size) for scale, size in ((1.0, 2), (0.5, 3), (0.25, 1), (1.0, 2)) for key in keys]


def rnn_model() -> bytes:
    """y = state = relu(x @ w + state @ r), the state a variable tensor."""
    b = Build()
    b.tensor("x", (2, 3))
    b.tensor("state", (2, 4), is_variable=True)
    b.tensor("w", data=np.full((4, 3), 0.1, np.float32))
    b.tensor("r", data=np.full((4, 4), 0.1, np.float32))
    b.tensor("c", data=np.zeros(4, np.float32))
    b.tensor("y", (2, 4))
    return b.op("RNN", "x w r c state", "y", fused_activation_function="RELU").done()


FED = (
    "several_signatures",
    "variables",
    "variable_in_loop",
    "while_growing",
    "while_loop",
    "nested_control",
    "if_else",
    "unknown_sizes",
    "unknown_batch",
    "tensor_array",
    "switch_case",
)
SCRIPTS |= {
    f"calls of {name}": (corpus(name), [signature_calls, lambda i: i.reset_all_variables(), signature_calls])
    for name in FED
}
ROWS = np.float32([[1, 2, 3], [4, 5, 6]])
if "RNN" in list_names():
    SCRIPTS["variable tensors"] = (
        rnn_model(),
        [
            allocate,
            put(0, ROWS),
            invoke,
            get(5),
            invoke,
            get(5),
            get(1),
            allocate,
            invoke,
            get(5),
            lambda i: i.reset_all_variables(),
            get(1),
            invoke,
            get(5),
            resize(0, [1, 3]),
            resize(0, [2, 3]),
            allocate,
            get(1),
            put(0, ROWS),
            invoke,
            get(5),
        ],
    )

DIFFERENT = {
    # script, step: why ours is another
    ("shapes that are none", 6): "a resize that fails changes nothing here; officially tensors must be allocated again",
    ("shapes that are none", 7): "as before",
    ("one signature", 5): "officially 8 elements are taken as 2 rows of 3, the rest is left out; here it is an error",
}


@pytest.mark.parametrize("what", SCRIPTS)
def test_scripts_give_the_same_on_both(what):
    content, script = SCRIPTS[what]
    mine = transcript(lite.Interpreter(model_content=content), script)
    wanted = transcript(official(content), script)
    for step, (a, b) in enumerate(zip(mine, wanted)):
        if (what, step) in DIFFERENT:
            assert not same(a, b), f"{what} {step} is no longer different"
        else:
            assert same(a, b), (what, step, a, b)


# ---- what the official interpreter cannot be asked ------------------------------------------------------------------


def test_views_must_not_outlive_their_memory():
    interpreter = lite.Interpreter(model_content=sin_model())
    interpreter.allocate_tensors()
    view = interpreter.tensor(1)()
    view[:] = X
    assert interpreter.tensor(1)() is not None
    interpreter.invoke()  # nothing moves
    part = view[1:3]
    del view
    for act in (lambda: interpreter.resize_tensor_input(1, [2]), lambda: interpreter.get_signature_runner()(x=X[:2])):
        with pytest.raises(RuntimeError, match="There is at least 1 reference to internal data"):
            act()
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(3), np.sin(X + 1), 1e-6)
    assert part.tolist() == [2, 3]
    del part
    interpreter.resize_tensor_input(1, [2])
    interpreter.allocate_tensors()
    assert interpreter.tensor(1)().shape == (2,)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_views_have_the_tensors_shape(shape):
    interpreter = lite.Interpreter(model_content=sin_model())
    interpreter.resize_tensor_input(1, shape)
    interpreter.allocate_tensors()
    view = interpreter.tensor(1)()
    view[...] = 1
    assert (view.shape, view.dtype, interpreter.get_tensor(1).tolist()) == (shape, np.float32, np.ones(shape).tolist())


def slow_model(entered, leave):
    def run(context, node):
        entered.set()
        assert leave.wait(20)
        node.outputs[0].data[...] = node.inputs[0].data

    return lite.Interpreter(
        model_content=Build().custom("Slow", "x", "y").done(), custom_ops={"Slow": lite.Registration(invoke=run)}
    )


def test_one_interpreter_used_from_two_threads_is_an_error():
    entered, leave = threading.Event(), threading.Event()
    interpreter = slow_model(entered, leave)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    thread = threading.Thread(target=interpreter.invoke)
    thread.start()
    assert entered.wait(20)
    for act in (
        interpreter.invoke,
        lambda: interpreter.resize_tensor_input(0, [2]),
        interpreter.close,
        interpreter.remove_all_delegates,
        interpreter.reset_all_variables,
        interpreter.allocate_tensors,
        interpreter.profile,
        interpreter.tensor(0),
        lambda: interpreter.get_tensor(1),
        lambda: interpreter.set_tensor(0, X),
    ):
        with pytest.raises(RuntimeError, match="while it runs") as raised:
            act()
        assert isinstance(raised.value, OpError)
    leave.set()
    thread.join()
    assert interpreter.get_tensor(1).tolist() == X.tolist()
    interpreter.invoke()


def test_a_kernel_may_not_run_its_own_interpreter():
    inner = []
    kernel = lite.Registration(invoke=lambda context, node: inner[0].invoke())
    interpreter = lite.Interpreter(model_content=Build().custom("Own", "x", "y").done(), custom_ops={"Own": kernel})
    inner.append(interpreter)
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="while it runs"):
        interpreter.invoke()
    inner[0] = lite.Interpreter(model_content=sin_model())
    inner[0].allocate_tensors()
    interpreter.invoke()


@pytest.mark.parametrize("name", ["cnn_float", "variables", "while_growing", "several_signatures"])
def test_interpreters_in_threads_share_a_model(name):
    model = lite.Model.read(corpus(name))
    wanted = plain(signature_calls(lite.Interpreter(model_content=model)))
    found, threads = [], []

    def work():
        found.extend(plain(signature_calls(lite.Interpreter(model_content=model))) for _ in range(3))

    for _ in range(4):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
    for t in threads:
        t.join()
    assert len(found) == 12
    assert all(f == wanted for f in found)


def test_variable_tensors_stay_until_they_are_reset():
    def run(context, node):
        state = node.inputs[1].data
        state += node.inputs[0].data
        node.outputs[0].data[...] = state

    b = Build()
    b.tensor("x")
    b.tensor("sum", is_variable=True)
    interpreter = lite.Interpreter(
        model_content=b.custom("Sum", "x sum", "y").done(), custom_ops={"Sum": lite.Registration(invoke=run)}
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    for times in (1, 2, 3):
        interpreter.invoke()
        assert interpreter.get_tensor(2).tolist() == (times * X).tolist()
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(1).tolist() == (3 * X).tolist()
    interpreter.reset_all_variables()
    assert interpreter.get_tensor(1).tolist() == (0 * X).tolist()
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == X.tolist()


def test_closed():
    interpreter = lite.Interpreter(model_content=sin_model())
    interpreter.allocate_tensors()
    interpreter.close()
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.close()
