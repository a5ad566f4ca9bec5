"""Delegates on whole models: random ones, official files, dynamic shapes, subgraphs, variables, threads."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import pytest
from delegate_kit import Build, Formulas, Nested, Takes, X, four, four_of, names, ready, run
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright.lite as lite
from opwright.core.errors import OpError
from opwright.lite.format import Model, objects, versions
from opwright.lite.ops import get
from thorough import crossed, examples

pytestmark = pytest.mark.usefixtures(
    "reference_engine"
)  # the compiled engine is a delegate too, and would take the nodes

CORPUS = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "data", "tflite")


class Some(lite.Delegate):
    """Takes the nodes of these indices, or those that `takes` says; runs them in an interpreter of its own."""

    def __init__(self, content, takes, kernel=None):
        self.takes, self.kernel = takes, kernel or (lambda: Nested(content))
        self.partitions = []

    def prepare(self, context):
        taken = []
        for i in context.execution_plan:
            node, registration = context.get_node_and_registration(i)
            if node.delegate is None and self.takes(node, registration, context):
                taken.append(i)
        self.partitions += context.replace_node_subsets_with_delegate_kernels(self.kernel, taken)


# ---- random models --------------------------------------------------------------------------------------------------


@st.composite
def models(draw):
    b = Build()
    b.tensor("x")
    b.tensor("c", data=np.float32([0.5, -1, 2, 0.25, 1]))
    created = ["x", "c"]
    for n in range(draw(st.integers(1, 9))):
        op = draw(st.sampled_from(["ADD", "MUL", "SUB", "SIN", "NEG"]))
        read = draw(st.lists(st.sampled_from(created), min_size=1 if op in ("SIN", "NEG") else 2, max_size=2))
        created.append(f"t{n}")
        b.op(op, " ".join(read[: 1 if op in ("SIN", "NEG") else 2]), f"t{n}")
    outputs = draw(st.lists(st.sampled_from(created[2:]), min_size=1, max_size=3, unique=True))
    claimed = draw(st.sets(st.integers(0, len(created) - 3)))
    return b.done("x", " ".join(outputs)), claimed


def outputs_of(interpreter, x):
    run(interpreter, x)
    return [interpreter.get_tensor(d["index"]).tolist() for d in interpreter.get_output_details()]


@given(models(), st.sets(st.integers(0, 8)))
@settings(max_examples=examples(80))
def test_random_models_give_the_same_with_and_without_delegates(drawn, second):
    content, claimed = drawn
    plain = outputs_of(ready(content), X)
    delegates = [Some(content, lambda node, r, c, s=s: node.number in s, Formulas) for s in (claimed, second)]
    interpreter = ready(content, *delegates)
    assert outputs_of(interpreter, X) == plain
    replaced = [i for d in delegates for p in d.partitions for i in p.nodes_to_replace]
    assert len(replaced) == len(set(replaced))
    assert claimed <= set(replaced)
    interpreter.resize_tensor_input(0, [1])
    interpreter.allocate_tensors()
    other = ready(content)
    other.resize_tensor_input(0, [1])
    other.allocate_tensors()
    assert outputs_of(interpreter, X[:1]) == outputs_of(other, X[:1])


# ---- official files -------------------------------------------------------------------------------------------------

FILES = (
    "cnn_float",
    "cnn_int8",
    "elementwise",
    "reductions",
    "shaping",
    "slicing",
    "several_signatures",
    "if_else",
    "while_loop",
    "nested_control",
    "variables",
    "unknown_batch",
    "lstm_keras",
)
ALONE = {"CALL", "CALL_ONCE", "IF", "WHILE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}


def _fed(interpreter, seed=0):
    """The outputs of each signature (or of the main subgraph) for the same random inputs."""
    rng = np.random.default_rng(seed)

    def like(d):
        shape = [2 if s == -1 else int(s) for s in d["shape_signature"]]
        if d["dtype"] in (np.float32, np.float16):
            return rng.normal(size=shape).astype(d["dtype"])
        return rng.integers(0, 2, shape).astype(d["dtype"])

    result = []
    for key in interpreter.get_signature_list():
        runner = interpreter.get_signature_runner(key)
        result += sorted(runner(**{k: like(d) for k, d in sorted(runner.get_input_details().items())}).items())
    return result


@pytest.mark.parametrize(("name", "every"), crossed(FILES, [1, 3]))
def test_official_files_give_the_same_with_and_without_delegates(name, every):
    path = os.path.join(CORPUS, f"{name}.tflite")
    with open(path, "rb") as file:
        content = file.read()
    expected = _fed(ready(path))

    def takes(node, registration, context):
        touched = [context.tensors[i] for i in (*node.inputs, *node.outputs) if i >= 0]
        plain = not any(t.type.name in ("RESOURCE", "STRING") or t.is_variable or t.is_dynamic for t in touched)
        return node.number % every == 0 and registration.name not in ALONE and plain and node.outputs

    delegate = Some(content, takes)
    delegate.flags = lite.DelegateFlags.ALLOW_DYNAMIC_TENSORS | lite.DelegateFlags.REQUIRE_PROPAGATED_SHAPES
    with warnings.catch_warnings():
        warnings.simplefilter("error", lite.DelegateWarning)
        interpreter = ready(path, delegate)
        actual = _fed(interpreter)
    assert delegate.partitions or every > 1
    assert len(actual) == len(expected) > 0
    for (key, mine), (other, value) in zip(actual, expected):
        assert key == other
        np.testing.assert_array_equal(mine, value)


# ---- dynamic shapes -------------------------------------------------------------------------------------------------


def dynamic() -> bytes:
    """r = reshape(sin(x), shape); y = neg(r) + r: from the reshape on, shapes are known only while the model runs."""
    b = Build()
    b.tensor("x", (6,))
    b.tensor("shape", (2,), "INT32")
    b.op("SIN", "x", "s").op("RESHAPE", "s shape", "r").op("NEG", "r", "n").op("ADD", "n r", "y")
    return b.done("x shape")


def check_dynamic(interpreter):
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [2, 3], [3, 2], [6, 1]):
        interpreter.set_tensor(0, x)
        interpreter.set_tensor(1, np.int32(shape))
        interpreter.invoke()
        y = interpreter.get_output_details()[0]["index"]
        assert interpreter.get_tensor(y).tolist() == np.zeros(shape).tolist()


def test_dynamic_tensors_forbid():
    delegate = Takes("SIN", "NEG", "ADD")
    with pytest.warns(
        lite.DelegateWarning,
        match="Attempting to use a delegate that only supports static-sized "
        "tensors with a graph that has dynamic-sized tensors",
    ):
        interpreter = ready(dynamic(), delegate)
    assert "DELEGATE" not in names(interpreter)
    check_dynamic(interpreter)
    with pytest.raises(RuntimeError, match=r"tensor#3 is a dynamic-sized tensor"):
        interpreter.modify_graph_with_delegate(delegate)
    check_dynamic_again(interpreter)


def check_dynamic_again(interpreter):
    interpreter.allocate_tensors()
    check_dynamic(interpreter)


def test_dynamic_tensors_split():
    delegate = Takes("SIN", "NEG", "ADD", dynamic_tensors="split")
    interpreter = ready(dynamic(), delegate)
    assert [r.get("nodes") for r in _rows(interpreter)] == [[0], None, None, None]
    check_dynamic(interpreter)
    interpreter.resize_tensor_input(0, [6])
    check_dynamic_again(interpreter)


def _rows(interpreter):
    interpreter.set_tensor(1, np.int32([2, 3]))
    return interpreter.profile(1)


def test_dynamic_tensors_allow():
    delegate = Takes("SIN", "NEG", "ADD", dynamic_tensors="allow")
    interpreter = ready(dynamic(), delegate)
    assert [r.get("nodes") for r in _rows(interpreter)] == [[0], None, [2, 3]]
    check_dynamic(interpreter)
    assert delegate.calls.count("init") == 2
    interpreter.close()
    assert delegate.calls.count("free") == 2


def test_a_kernel_may_give_an_output_of_unknown_shape():
    class Keep(lite.DelegateKernel):
        def prepare(self, context, node):
            context.set_tensor_to_dynamic(node.outputs[0])

        def invoke(self, context, node):
            kept = node.inputs[0].data[node.inputs[0].data > 2]
            context.resize_tensor(node.outputs[0], kept.shape)
            node.outputs[0].data[...] = kept

    content = Build().op("SIN", "x", "k").op("SQUARE", "k", "y").done()
    interpreter = ready(content, Some(content, lambda n, r, c: r.name == "SIN", Keep))
    assert run(interpreter).tolist() == [9, 16, 25]
    assert run(interpreter, X + 2).tolist() == ((X + 2) ** 2).tolist()


# ---- subgraphs, variables, signatures -------------------------------------------------------------------------------


def two_subgraphs(name="other") -> bytes:
    """Two signatures, each with its subgraph: y = x + x, and y = sin(x)."""
    model = Model.read(Build().op("ADD", "x x", "y").done())
    model.operator_codes.append(versions.operator_code("SIN", 1))
    tensors = [objects.Tensor(name=n, shape=[5], type=0) for n in "xy"]
    sin = objects.Operator(opcode_index=1, inputs=[0], outputs=[1], builtin_options=get("SIN").to_options({}))
    model.subgraphs.append(objects.SubGraph(name=name, tensors=tensors, inputs=[0], outputs=[1], operators=[sin]))
    for i, key in enumerate(("double", "sine")):
        maps = [[objects.TensorMap(name=n, tensor_index=j)] for j, n in enumerate("xy")]
        model.signature_defs.append(
            objects.SignatureDef(signature_key=key, subgraph_index=i, inputs=maps[0], outputs=maps[1])
        )
    return model.to_bytes()


def test_every_subgraph_is_delegated():
    delegate = Takes("ADD", "SIN")
    interpreter = lite.Interpreter(model_content=two_subgraphs(), experimental_delegates=[delegate])
    assert delegate.calls == ["init", "init"]
    for shape in ((5,), (2, 2)):
        x = np.full(shape, 0.5, np.float32)
        np.testing.assert_allclose(interpreter.get_signature_runner("double")(x=x)["y"], 2 * x)
        np.testing.assert_allclose(interpreter.get_signature_runner("sine")(x=x)["y"], np.sin(x), 1e-6)
    assert delegate.calls.count("invoke") == 4


def test_validation_subgraphs_and_those_marked_are_left_alone():
    delegate = Takes("ADD", "SIN")
    lite.Interpreter(model_content=two_subgraphs("VALIDATION:main"), experimental_delegates=[delegate])
    assert [name for _, name, _ in delegate.seen] == ["ADD"]

    class Marks(Takes):
        def initialize(self, context):
            other = context.acquire_subgraph_context(1)
            self.other = [other.get_node_and_registration(i)[1].name for i in other.execution_plan]
            with pytest.raises(OpError, match="another subgraph"):
                other.replace_node_subsets_with_delegate_kernels(Formulas, [0])
            context.mark_subgraph_as_delegation_skippable(1)

    delegate = Marks("ADD", "SIN")
    lite.Interpreter(model_content=two_subgraphs(), experimental_delegates=[delegate])
    assert [name for _, name, _ in delegate.seen] == ["ADD"]
    assert delegate.other == ["SIN"]


def test_a_failure_in_one_subgraph_leaves_the_delegate_out_of_all():
    class Late(Takes):
        def initialize(self, context):
            return context.subgraph_index  # 1 is a failure

    delegate = Late("ADD", "SIN")
    with pytest.warns(lite.DelegateWarning, match="returned status 1"):
        interpreter = ready(two_subgraphs(), delegate)
    assert delegate.calls == ["init", "free"]
    np.testing.assert_allclose(interpreter.get_signature_runner("sine")(x=X)["y"], np.sin(X), 1e-6)
    assert "DELEGATE" not in names(interpreter)


def test_nodes_with_effects_keep_their_order():
    """Reads and writes of a variable keep their order, whichever engine runs the other nodes."""
    with open(os.path.join(CORPUS, "variables.tflite"), "rb") as file:
        content = file.read()
    delegate = Some(content, lambda n, r, c: r.name in ("ADD", "MUL"))
    interpreter = ready(content, delegate)
    main = interpreter._subgraphs[0]
    effects = [n.number for n in main.execution_plan if n.name in ALONE]
    assert effects == [n.number for n in main.nodes if n.name in ALONE]


# ---- threads --------------------------------------------------------------------------------------------------------


def test_one_delegate_for_interpreters_in_threads():
    model, delegate, wrong = lite.Model.read(four()), Takes("ADD", "MUL"), []

    def work(k):
        interpreter = ready(model, delegate)
        for n in range(1, 30):
            x = np.full(n % 7 + 1, k, np.float32)
            interpreter.resize_tensor_input(1, x.shape)
            interpreter.allocate_tensors()
            if not np.allclose(run(interpreter, x), four_of(x)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
