"""Delegates: what they see, what becomes of the graph, the life of their kernels, what happens when they fail."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest
from delegate_kit import Build, Formulas, Takes, X, four, four_of, names, ready, run

import opwright.lite as lite
from opwright.core.errors import OpError
from opwright.lite.format import Model, objects, schema

pytestmark = pytest.mark.usefixtures(
    "reference_engine"
)  # the compiled engine is a delegate too, and would take the nodes


def official(content, **options):
    module = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = module.Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


# ---- the graph ------------------------------------------------------------------------------------------------------


def test_partitions_become_nodes():
    interpreter = ready(four(), Takes("ADD", "MUL"))
    details = interpreter._get_ops_details()
    assert [(d["op_name"], d["inputs"].tolist(), d["outputs"].tolist()) for d in details[4:]] == [
        ("DELEGATE", [0, 1], [2, 3]),
        ("DELEGATE", [3, 4], [5]),
    ]
    assert names(interpreter)[:4] == ["ADD", "MUL", "SIN", "ADD"]  # the file's nodes stay listed, as officially
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


def test_details_are_those_of_the_official_delegate():
    b = Build()
    b.tensor("one", data=np.float32([1]))
    content = b.op("ADD", "x one", "a").op("MUL", "a a", "b").op("ADD", "b x", "y").done()
    ours, theirs = ready(content, Takes("ADD", "MUL")), official(content)  # which has its CPU delegate by default
    assert names(theirs) == ["ADD", "MUL", "ADD", "DELEGATE"]
    for mine, expected in zip(ours._get_ops_details(), theirs._get_ops_details(), strict=True):
        assert {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in mine.items()} == {
            k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in expected.items()
        }
    for index in (2, 3):  # inside the partition
        with pytest.raises(ValueError, match=r"Tensor data is null\. Run allocate_tensors\(\) first"):
            theirs.get_tensor(index)
        with pytest.raises(ValueError, match=r"Tensor data is null\. Run allocate_tensors\(\) first") as raised:
            ours.get_tensor(index)
        assert "delegate Takes" in str(raised.value)


def test_profile_shows_delegates():
    rows = ready(four(), Takes("ADD", "MUL")).profile(3)
    assert [(r["node"], r["operator"], r.get("nodes")) for r in rows] == [
        (4, "DELEGATE", [0, 1]),
        (2, "SIN", None),
        (5, "DELEGATE", [3]),
    ]
    assert all(r["seconds"] > 0 for r in rows)

    class Tells(Takes):
        flags = lite.DelegateFlags.PER_OPERATOR_PROFILING

        def create_delegate_kernel(self):
            return Formulas(report=True)

    rows = ready(four(), Tells("ADD", "MUL")).profile(3)
    assert [(r["node"], r["operator"]) for r in rows] == [(0, "ADD"), (1, "MUL"), (2, "SIN"), (3, "ADD")]
    assert [r["seconds"] for r in rows if "delegate" in r] == [0.25] * 3


def test_what_a_delegate_sees():
    seen = {}

    class Looks(lite.Delegate):
        def prepare(self, context):
            seen["plan"] = context.get_execution_plan()
            node, registration = context.get_node_and_registration(1)
            seen["node"], seen["registration"] = node, registration
            seen["tensors"] = [(t.name, t.shape, t.is_constant, t.is_dynamic) for t in context.tensors]
            seen["one"] = context.tensors[0].data.tolist()
            seen["io"] = context.inputs, context.outputs, context.subgraph_index
            seen["metadata"] = context.get_model_metadata("note"), context.get_model_metadata("none")
            seen["context"] = context
            for wrong in (-1, 9):
                with pytest.raises(OpError, match=f"no node {wrong}"):
                    context.get_node_and_registration(wrong)

    model = Model.read(four())
    model.buffers.append(objects.Buffer(data=np.frombuffer(b"hello", np.uint8)))
    model.metadata.append(objects.Metadata(name="note", buffer=len(model.buffers) - 1))
    interpreter = ready(model.to_bytes(), Looks())
    assert seen["plan"] == [0, 1, 2, 3]
    assert (seen["node"].number, seen["node"].inputs, seen["node"].outputs) == (1, (2, 2), (3,))
    assert seen["node"].builtin_data.fused_activation_function == 0
    assert seen["node"].delegate is seen["node"].custom_initial_data is None
    assert seen["registration"].builtin_code == schema.BuiltinOperator.MUL
    assert (seen["registration"].version, seen["registration"].custom_name) == (1, None)
    assert seen["tensors"][:2] == [("one", (1,), True, False), ("x", (5,), False, False)]
    assert seen["one"] == [1.0]
    assert seen["io"] == ((1,), (5,), 0)
    assert seen["metadata"] == (b"hello", None)
    with pytest.raises(OpError, match="forbidden if not calling in delegate"):
        seen["context"].get_node_and_registration(0)
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)
    assert "DELEGATE" not in names(interpreter)


def test_a_delegate_for_version_1_refuses_version_2():
    """The last block of the specification of versions."""
    b = Build()
    content = b.op("ADD", "x x", "a").op("ADD", "a x", "y", version=2).done()

    class VersionOne(lite.Delegate):
        def prepare(self, context):
            max_version = 1
            taken = []
            for i in context.execution_plan:
                _, registration = context.get_node_and_registration(i)
                if registration.version <= max_version:
                    taken.append(i)
            context.replace_node_subsets_with_delegate_kernels(Formulas, taken)

    for delegate in (VersionOne(), Takes("ADD")):
        interpreter = ready(content, delegate)
        assert [d["outputs"].tolist() for d in interpreter._get_ops_details()[2:]] == [[1]]
        np.testing.assert_allclose(run(interpreter), 3 * X)


def test_preview_tells_what_replacing_does():
    result = []

    class Previews(lite.Delegate):
        def prepare(self, context):
            result.extend(context.preview_delegate_partitioning([0, 1, 3]))
            assert context.execution_plan == [0, 1, 2, 3]
            created = context.replace_node_subsets_with_delegate_kernels(Formulas, result[1:])
            assert context.execution_plan == [0, 1, 2, 4]
            assert created == result[1:]

    delegate = Previews()
    interpreter = ready(four(), delegate)
    assert result == [(delegate, (0, 1), (0, 1), (2, 3)), (delegate, (3,), (3, 4), (5,))]
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


@pytest.mark.parametrize(("nodes", "says"), [([9], "no node 9"), ([-1], "no node -1"), ([1, 1], "claimed twice")])
def test_claims_that_are_none(nodes, says):
    class Claims(lite.Delegate):
        def prepare(self, context):
            context.replace_node_subsets_with_delegate_kernels(Formulas, nodes)

    with pytest.warns(lite.DelegateWarning, match=says):
        interpreter = ready(four(), Claims())
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


def test_nodes_are_replaced_once():
    class Twice(lite.Delegate):
        def prepare(self, context):
            context.replace_node_subsets_with_delegate_kernels(Formulas, [0])
            with pytest.raises(OpError, match="was replaced before"):
                context.replace_node_subsets_with_delegate_kernels(Formulas, [0])
            with pytest.raises(OpError, match="is a delegate's"):
                context.replace_node_subsets_with_delegate_kernels(Formulas, [4])

    assert names(ready(four(), Twice()))[4:] == ["DELEGATE"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, [[0, 1], [3]]),
        ({"max_delegated_partitions": 1}, [[0, 1]]),
        ({"min_nodes_per_partition": 2}, [[0, 1]]),
        ({"min_nodes_per_partition": 3}, []),
        ({"max_delegated_partitions": 5, "min_nodes_per_partition": 1}, [[0, 1], [3]]),
    ],
)
def test_options_of_simple_delegates(options, wanted):
    interpreter = ready(four(), Takes("ADD", "MUL", **options))
    assert [r["nodes"] for r in interpreter.profile(1) if r["operator"] == "DELEGATE"] == wanted
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


@pytest.mark.parametrize(
    "options", [{"max_delegated_partitions": -1}, {"min_nodes_per_partition": "2"}, {"dynamic_tensors": "perhaps"}]
)
def test_options_that_are_none(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Takes("ADD", **options)


@pytest.mark.parametrize("kernel", [Formulas(), 3, object])
def test_kernels_that_are_none(kernel):
    class Wrong(Takes):
        def prepare(self, context):
            context.replace_node_subsets_with_delegate_kernels(kernel, [0])

    with pytest.warns(lite.DelegateWarning, match="kernel"):
        ready(four(), Wrong())


def test_a_registration_is_a_kernel():
    freed = []
    kernel = lite.Registration(
        init=lambda context, params: [context.get_node_and_registration(i)[1].name for i in params.nodes_to_replace],
        invoke=lambda context, node: np.sin(node.inputs[0].data, out=node.outputs[0].data),
        free=lambda context, user_data: freed.append(user_data),
    )

    class Plain(lite.Delegate):
        def prepare(self, context):
            context.replace_node_subsets_with_delegate_kernels(kernel, [2])

    with ready(four(), Plain()) as interpreter:
        np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)
    assert freed == [["SIN"]]


# ---- life -----------------------------------------------------------------------------------------------------------


def test_kernels_are_freed_once():
    delegate = Takes("ADD", "MUL")
    interpreter = ready(four(), delegate)
    assert delegate.calls == ["init", "init", "prepare", "prepare"]
    run(interpreter)
    interpreter.close()
    interpreter.close()
    del interpreter
    gc.collect()
    assert delegate.calls == ["init", "init", "prepare", "prepare", "invoke", "invoke", "free", "free"]


def test_a_resize_undoes_and_applies_again():
    delegate = Takes("ADD", "MUL")
    interpreter = ready(four(), delegate)
    interpreter.resize_tensor_input(1, [5])  # nothing new
    interpreter.allocate_tensors()
    assert delegate.calls.count("init") == 2
    interpreter.resize_tensor_input(1, [2])
    assert delegate.calls.count("free") == 2
    assert "DELEGATE" not in names(interpreter)
    interpreter.allocate_tensors()
    assert names(interpreter)[4:] == ["DELEGATE", "DELEGATE"]
    assert delegate.calls.count("init") == 4
    np.testing.assert_allclose(run(interpreter, X[:2]), four_of(X[:2]), 1e-6)
    for size in ([7], [2, 3], [0], [1], []):
        interpreter.resize_tensor_input(1, size)
        interpreter.allocate_tensors()
        x = np.full(size, 0.5, np.float32)
        np.testing.assert_allclose(run(interpreter, x), np.broadcast_to(four_of(x), size or [1]), 1e-6)
    interpreter.close()
    assert delegate.calls.count("init") == delegate.calls.count("free")


def test_a_delegate_of_dynamic_shapes_is_prepared_again():
    delegate = Takes("ADD", "MUL", dynamic_tensors="allow")
    interpreter = ready(four(), delegate)
    interpreter.resize_tensor_input(1, [2])
    assert delegate.calls == ["init", "init", "prepare", "prepare"]
    interpreter.allocate_tensors()
    assert delegate.calls == ["init", "init", *["prepare"] * 4]
    np.testing.assert_allclose(run(interpreter, X[:2]), four_of(X[:2]), 1e-6)


def test_shapes_are_propagated_for_those_who_ask():
    shapes = []

    class Asks(Takes):
        flags = lite.DelegateFlags.ALLOW_DYNAMIC_TENSORS | lite.DelegateFlags.REQUIRE_PROPAGATED_SHAPES

        def create_delegate_kernel(self):
            class Kernel(Formulas):
                def prepare(self, context, node):
                    shapes.append([t.shape for t in node.outputs])

            return Kernel()

    interpreter = ready(four(), Asks("ADD", "MUL"))
    interpreter.resize_tensor_input(1, [2])
    interpreter.allocate_tensors()
    assert shapes[2:] == [[(2,), (2,)], [(2,)]]
    np.testing.assert_allclose(run(interpreter, X[:2]), four_of(X[:2]), 1e-6)


def test_a_kernel_may_keep_tensors():
    class Keeps(lite.DelegateKernel):
        def init(self, context, params):
            self.sum = context.add_tensor(np.float32, (1,), "sum", persistent=True)

        def prepare(self, context, node):
            self.scratch = context.add_tensor(np.float32, node.inputs[0].shape)
            node.temporaries = [self.scratch, self.sum]
            context.resize_tensor(node.outputs[0], node.inputs[0].shape)

        def invoke(self, context, node):
            np.sin(node.inputs[0].data, out=self.scratch.data)
            self.sum.data[0] += 1
            node.outputs[0].data[...] = self.scratch.data

    class Sines(Takes):
        def create_delegate_kernel(self):
            return Keeps()

    interpreter = ready(four(), Sines("SIN"))
    counts = set()
    for n in (2, 3, 4, 5):
        interpreter.resize_tensor_input(1, [n])
        interpreter.allocate_tensors()
        np.testing.assert_allclose(run(interpreter, X[:n]), four_of(X[:n]), 1e-6)
        counts.add(len(interpreter._subgraphs[0].tensors))
    assert len(counts) == 1  # what kernels made goes with them


def test_delegates_one_after_the_other():
    first, second = Takes("SIN"), Takes("ADD", "MUL", "SIN")
    interpreter = ready(four(), first, second)
    assert [n for n, _, _ in second.seen] == [0, 1, 3]  # it is not asked about what the first took
    assert [r["delegate"] for r in interpreter.profile(1)] == ["Takes"] * 3
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)
    seen = []

    class Looks(lite.Delegate):
        def prepare(self, context):
            for i in context.execution_plan:
                node, registration = context.get_node_and_registration(i)
                seen.append((i, registration.builtin_code.name, registration.custom_name, node.delegate))

    delegate = Takes("ADD", "MUL")
    ready(four(), delegate, Looks())
    assert seen == [(4, "DELEGATE", "Takes", delegate), (2, "SIN", None, None), (5, "DELEGATE", "Takes", delegate)]


def test_added_later_and_taken_away():
    interpreter = ready(four())
    delegate = Takes("ADD")
    interpreter.modify_graph_with_delegate(delegate)
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)  # tensors were allocated, and are again
    assert delegate.calls.count("invoke") == 2
    interpreter.remove_all_delegates()
    assert delegate.calls.count("free") == 2
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)
    assert names(interpreter) == ["ADD", "MUL", "SIN", "ADD"]


@pytest.mark.parametrize("wrong", [3, "libdelegate.so", Takes])
def test_what_is_no_delegate(wrong):
    with pytest.raises(TypeError, match=r"derived from lite\.Delegate"):
        lite.Interpreter(model_content=four(), experimental_delegates=[wrong])
    with pytest.raises(TypeError, match=r"derived from lite\.Delegate"):
        lite.Interpreter(model_content=four()).modify_graph_with_delegate(wrong)


# ---- failures -------------------------------------------------------------------------------------------------------


class Refuses(lite.Delegate):
    def __init__(self, how):
        self.how = how

    def prepare(self, context):
        context.report_error("no graph today")
        context.replace_node_subsets_with_delegate_kernels(lambda: Formulas(CALLS), [0])
        if self.how == "status":
            return 1
        raise ZeroDivisionError("prepare went wrong")


CALLS: list[str] = []
FAILING = {
    "prepare raises": lambda: Refuses("raise"),
    "prepare returns a status": lambda: Refuses("status"),
    "a kernel's init": lambda: Takes("ADD", "MUL", fail="init"),
    "a kernel's prepare": lambda: Takes("ADD", "MUL", fail="prepare"),
}


@pytest.mark.parametrize("what", FAILING)
def test_given_to_the_constructor_a_failing_delegate_is_left_out_with_a_warning(what):
    CALLS.clear()
    with pytest.warns(lite.DelegateWarning) as caught:
        interpreter = ready(four(), Takes("SIN"), FAILING[what]())
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "Restored original execution plan after delegate application failure." in text
    assert "went wrong" in text or "status 1" in text
    assert "today" in text
    assert ("Takes" in text) or ("Refuses" in text)
    assert caught[0].filename.endswith("delegate_kit.py")
    assert names(interpreter)[4:] == ["DELEGATE"]  # the other delegate's
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)
    assert CALLS.count("init") == CALLS.count("free")


@pytest.mark.parametrize("what", FAILING)
def test_given_later_a_failing_delegate_is_an_error_and_the_interpreter_goes_on(what):
    interpreter = ready(four())
    with pytest.raises(RuntimeError, match="Restored original execution plan") as raised:
        interpreter.modify_graph_with_delegate(FAILING[what]())
    assert isinstance(raised.value, OpError)
    interpreter.allocate_tensors()
    assert names(interpreter) == ["ADD", "MUL", "SIN", "ADD"]
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


def test_given_before_allocation_a_failing_prepare_is_an_error_of_allocation():
    interpreter = lite.Interpreter(model_content=four())
    delegate = Takes("ADD", "MUL", fail="prepare")
    interpreter.modify_graph_with_delegate(delegate)
    with pytest.raises(RuntimeError) as raised:
        interpreter.allocate_tensors()
    for part in (
        "prepare went wrong",
        "no prepare today",
        "delegate Takes in place of 2 nodes: 0 (ADD), 1 (MUL)",
        "Node number 4 (Takes) failed to prepare.\nRestored original execution plan",
    ):
        assert part in str(raised.value)
    assert delegate.calls.count("init") == delegate.calls.count("free")
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


def test_a_warning_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", lite.DelegateWarning)
        with pytest.raises(lite.DelegateWarning, match="went wrong"):
            lite.Interpreter(model_content=four(), experimental_delegates=[Takes("ADD", fail="init")])


def test_a_kernel_that_fails_to_run():
    delegate = Takes("ADD", "MUL", fail="invoke")
    interpreter = ready(four(), delegate)
    with pytest.raises(RuntimeError) as raised:
        run(interpreter)
    text = str(raised.value)
    for part in (
        "invoke went wrong",
        "no invoke today",
        "delegate Takes in place of 2 nodes: 0 (ADD), 1 (MUL)",
        "Node number 4 (Takes) failed to invoke.",
    ):
        assert part in text
    interpreter.remove_all_delegates()
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


def test_free_that_fails_is_reported_and_all_are_freed():
    delegate = Takes("ADD", "MUL", fail="free")
    interpreter = ready(four(), delegate)
    with pytest.raises(RuntimeError, match="failed to free"):
        interpreter.close()
    assert delegate.calls.count("free") == 2
    interpreter = ready(four(), Takes("ADD", "MUL", fail="free"))
    with pytest.warns(lite.DelegateWarning, match="failed to free"):
        interpreter.remove_all_delegates()
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter), four_of(X), 1e-6)


def test_base_classes_say_what_is_missing():
    class Empty(lite.SimpleDelegate):
        supported = {"ADD": 1}

    with pytest.warns(lite.DelegateWarning, match="Delegate must define prepare"):
        ready(four(), lite.Delegate())
    with pytest.warns(lite.DelegateWarning, match=r"Empty must define create_delegate_kernel"):
        ready(four(), Empty())
    Empty.create_delegate_kernel = lite.DelegateKernel
    with pytest.raises(RuntimeError, match="DelegateKernel must define invoke"):
        run(ready(four(), Empty()))


# ---- custom operators without a kernel ------------------------------------------------------------------------------


def custom() -> bytes:
    return Build().op("ADD", "x x", "a").custom("Twice", "a", "b").op("SIN", "b", "y").done()


@pytest.mark.parametrize("dynamic", ["forbid", "split", "allow"])
def test_a_delegate_may_take_what_nothing_resolves(dynamic):
    delegate = Takes("Twice", dynamic_tensors=dynamic)
    interpreter = ready(custom(), delegate)
    np.testing.assert_allclose(run(interpreter), np.sin(4 * X), 1e-6)
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter, X[:2]), np.sin(4 * X[:2]), 1e-6)


def test_what_it_does_not_take_is_unresolved():
    interpreter = lite.Interpreter(model_content=custom(), experimental_delegates=[Takes("ADD")])
    with pytest.raises(RuntimeError, match="Encountered unresolved custom op: Twice"):
        interpreter.allocate_tensors()
    with pytest.warns(lite.DelegateWarning):
        interpreter = lite.Interpreter(model_content=custom(), experimental_delegates=[Takes("Twice", fail="init")])
    with pytest.raises(RuntimeError, match="Encountered unresolved custom op: Twice"):
        interpreter.allocate_tensors()
    interpreter = lite.Interpreter(model_content=custom(), experimental_delegates=[Takes("Twice", fail="prepare")])
    with (
        pytest.warns(lite.DelegateWarning),
        pytest.raises(RuntimeError, match="Encountered unresolved custom op: Twice"),
    ):
        interpreter.allocate_tensors()


def test_a_custom_operator_with_the_name_of_a_builtin_is_none():
    content = Build().custom("ADD", "x x", "y").done()
    kernel = lite.Registration(invoke=lambda c, n: np.copyto(n.outputs[0].data, n.inputs[0].data * 7))
    assert run(ready(content, Takes("ADD"), custom_ops={"ADD": kernel})).tolist() == (7 * X).tolist()
