"""The document on operator versions, block by block in this library's words: dilation comes to DEPTHWISE_CONV_2D.

Three promises: a new run time reads old files; an old one reads new files that use nothing new; and an old one that
meets something new says so. Each is held against the official interpreter where it can be asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from old_files import with_old_options

import opwright as ow
from opwright import lite
from opwright.lite import BuiltinOpResolver, Interpreter, Model, MutableOpResolver, TFLiteConverter, ops
from opwright.lite.format import objects, schema, versions

B = schema.BuiltinOperator
DEPTHWISE = "DEPTHWISE_CONV_2D"
OLD_FIELDS = ("padding", "stride_w", "stride_h", "depth_multiplier", "fused_activation_function")
rng = np.random.default_rng(2)
X = rng.uniform(-1, 1, (1, 6, 6, 2)).astype(np.float32)
FILTER = rng.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)
BIAS = np.float32([0.5, -0.5])


def model(dilation: int = 1, version: int | None = None) -> Model:
    """A depthwise convolution, stamped by the rules or with a version."""
    options = objects.DepthwiseConv2DOptions(
        stride_w=1, stride_h=1, depth_multiplier=1, dilation_w_factor=dilation, dilation_h_factor=dilation
    )
    shapes = {"x": X.shape, "filter": FILTER.shape, "bias": BIAS.shape, "y": X.shape}
    made = Model(
        operator_codes=[versions.operator_code(DEPTHWISE)],
        buffers=[objects.Buffer()],
        subgraphs=[
            objects.SubGraph(
                name="main",
                inputs=[0, 1, 2],
                outputs=[3],
                tensors=[
                    objects.Tensor(name=n, shape=list(s), type=schema.TensorType.FLOAT32) for n, s in shapes.items()
                ],
                operators=[objects.Operator(inputs=[0, 1, 2], outputs=[3], builtin_options=options)],
            )
        ],
    )
    versions.stamp_model(made)
    if version is not None:
        made.operator_codes[0].version = version
    return made


def convolved(dilation: int) -> np.ndarray:
    """By the formula, in float64, with zeros around."""
    y = np.zeros(X.shape)
    padded = np.zeros((1, 6 + 2 * dilation, 6 + 2 * dilation, 2))
    padded[:, dilation:-dilation, dilation:-dilation] = X
    for i in range(3):
        for k in range(3):
            y += padded[:, i * dilation : i * dilation + 6, k * dilation : k * dilation + 6] * FILTER[0, i, k]
    return y + BIAS


def run(content: Any, interpreter_class: Any = Interpreter, **arguments: Any) -> np.ndarray:
    interpreter = interpreter_class(model_content=content, **arguments)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), (X, FILTER, BIAS)):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


# ---- the schema: table DepthwiseConv2DOptions ------------------------------------------------------------------------


def test_the_options_table_has_new_fields_last_with_the_old_behaviour_as_default() -> None:
    fields = schema.table("DepthwiseConv2DOptions").fields
    assert [f.name for f in fields] == [*OLD_FIELDS, "dilation_w_factor", "dilation_h_factor"]
    assert [f.default for f in fields][5:] == [1, 1]


# ---- the parameters that the kernel reads: TfLiteDepthwiseConvParams -------------------------------------------------


def test_the_kernel_s_parameters_say_since_when_they_are_there() -> None:
    attrs = ops.get(DEPTHWISE).attr_defs
    assert {name: a.since for name, a in attrs.items()} == {
        **dict.fromkeys(OLD_FIELDS, 1),
        "dilation_w_factor": 2,
        "dilation_h_factor": 2,
    }
    assert attrs["dilation_w_factor"].default == attrs["dilation_h_factor"].default == 1


# ---- reading: ParseDepthwiseConv2D -----------------------------------------------------------------------------------


def test_an_old_file_reads_as_dilation_1_and_runs_as_before() -> None:
    """Promise 1: no check of versions is needed where it is read."""
    pytest.importorskip("ai_edge_litert.schema_py_generated")
    official = pytest.importorskip("ai_edge_litert.interpreter")
    old = with_old_options(model(), slots=len(OLD_FIELDS))
    options = Model.read(old).subgraphs[0].operators[0].builtin_options
    bound = ops.get(DEPTHWISE).from_options(options)
    assert (bound.dilation_w_factor, bound.dilation_h_factor, bound.stride_w, bound.padding) == (1, 1, 1, "SAME")
    np.testing.assert_allclose(run(old), convolved(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(old, official.Interpreter), convolved(1), rtol=1e-5, atol=1e-6)


# ---- registration: AddBuiltin, AddCustom -----------------------------------------------------------------------------

KERNEL = BuiltinOpResolver().find_op(DEPTHWISE)


def test_the_least_and_the_greatest_version_are_1_by_default() -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin(B.DEPTHWISE_CONV_2D, KERNEL)
    resolver.add_custom("Dilated", KERNEL)
    for op in (B.DEPTHWISE_CONV_2D, "Dilated"):
        assert [resolver.find_op(op, version) for version in range(4)] == [None, KERNEL, None, None]


def test_a_kernel_for_versions_1_and_2_is_registered_for_both() -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin(B.DEPTHWISE_CONV_2D, KERNEL, min_version=1, max_version=2)
    for dilation in (1, 2):
        result = run(model(dilation), op_resolver=resolver)
        np.testing.assert_allclose(result, convolved(dilation), rtol=1e-5, atol=1e-6)


def test_an_old_run_time_reads_what_uses_nothing_new_and_refuses_the_rest() -> None:
    """Promises 2 and 3: the resolver of a run time from before dilation."""
    old = MutableOpResolver()
    old.add_builtin(B.DEPTHWISE_CONV_2D, KERNEL)
    np.testing.assert_allclose(run(model(1), op_resolver=old), convolved(1), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="Didn't find op for builtin opcode 'DEPTHWISE_CONV_2D' version '2'") as caught:
        Interpreter(model_content=model(2), op_resolver=old)
    assert "DEPTHWISE_CONV_2D version 1\n" in str(caught.value)


# ---- the version that is written: GetBuiltinOperatorVersion ----------------------------------------------------------


@pytest.mark.parametrize(("w", "h", "version"), [(1, 1, 1), (2, 1, 2), (1, 2, 2), (3, 3, 2)])
def test_the_least_version_that_runs_the_operator_is_written(w: int, h: int, version: int) -> None:
    options = objects.DepthwiseConv2DOptions(dilation_w_factor=w, dilation_h_factor=h)
    float32 = objects.Tensor(type=schema.TensorType.FLOAT32, shape=[1, 3, 3, 2])
    view = versions.OperatorView([float32, float32, float32], [float32], options)
    assert versions.stamp(DEPTHWISE, view) == version


@pytest.mark.parametrize(("dilation", "version"), [(1, 1), (2, 2)])
def test_the_converter_writes_it(dilation: int, version: int) -> None:
    official = pytest.importorskip("ai_edge_litert.interpreter")
    filters = np.ascontiguousarray(FILTER.reshape(3, 3, 2, 1))
    function = ow.function(
        lambda x: ow.nn.depthwise_conv2d(x, filters, [1, 1, 1, 1], "SAME", dilations=[dilation, dilation])
    )
    converter = TFLiteConverter.from_concrete_functions([function.get_concrete_function(ow.TensorSpec(X.shape))])
    content = converter.convert()
    codes = {versions.op_name(c): int(c.version) for c in Model.read(content).operator_codes}
    assert codes == {DEPTHWISE: version}
    for interpreter_class in (Interpreter, official.Interpreter):
        interpreter = interpreter_class(model_content=content)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
        interpreter.invoke()
        result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_allclose(result, convolved(dilation) - BIAS, rtol=1e-5, atol=1e-5)


# ---- the run time that is needed: op_version_map ---------------------------------------------------------------------


def test_each_version_has_its_first_run_time_and_the_model_the_greatest() -> None:
    assert [versions.min_runtime(DEPTHWISE, v) for v in (1, 2)] == ["1.5.0", "1.12.0"]
    assert versions.min_runtime_of_model(model(1)) == "1.5.0"
    assert versions.min_runtime_of_model(model(2)) == "1.12.0"


# ---- the same for an operator of one's own ---------------------------------------------------------------------------


def test_the_worked_example_with_an_operator_of_one_s_own() -> None:
    """A parameter's `since` is declared once; default, stamp, ranges and errors follow."""

    def define(version: int) -> Any:
        body: dict[str, Any] = {
            "__doc__": "Every n-th element.  .. math:: y_i = x_{n i}",
            "x": ow.Input(ow.floating),
            "y": ow.Output(like="x"),
            "infer": lambda op: ow.TensorSpec([None], op.x.dtype),
            "compute": lambda op, x: np.ascontiguousarray(x[:: getattr(op, "dilation", 1)]),
        }
        if version > 1:
            body["dilation"] = ow.Attr(int, default=1, since=2)
        return ow.operator(name="VersionsDocumentDilated", version=version)(type("Dilated", (), body))

    old, new = define(1), define(2)
    x = np.float32([1, 2, 3, 4, 5])

    def convert(dilation: int) -> bytes:
        function = ow.function(lambda x: new(x, dilation=dilation))
        converter = TFLiteConverter.from_concrete_functions([function.get_concrete_function(ow.TensorSpec([5]))])
        converter.allow_custom_ops = True
        return converter.convert()

    def answer(content: bytes, op: Any) -> list[float]:
        interpreter = Interpreter(model_content=content, custom_ops=[op])
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()

    assert [Model.read(convert(d)).operator_codes[0].version for d in (1, 2)] == [1, 2]
    assert answer(convert(1), new) == answer(convert(1), old) == [1, 2, 3, 4, 5]
    assert answer(convert(2), new) == [1, 3, 5]
    with pytest.raises(RuntimeError, match=r"VersionsDocumentDilated version 2(.|\n)*Dilated version 1"):
        answer(convert(2), old)


# ---- delegates: GetNodeAndRegistration, registration->version > kMaxVersion ------------------------------------------

MAX_VERSION = 1


class OldDelegate(lite.Delegate):
    """Supports version 1 of the convolution, and looks at the version of every node."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.ran = 0

    def prepare(self, context: Any) -> None:
        claimed = []
        for node_index in context.execution_plan:
            _, registration = context.get_node_and_registration(node_index)
            self.seen.append((registration.name, registration.version))
            if registration.version > MAX_VERSION:
                continue  # the node stays with the interpreter
            claimed.append(node_index)
        delegate = self

        class Kernel(lite.DelegateKernel):
            def invoke(self, context: Any, node: Any) -> None:
                delegate.ran += 1
                node.outputs[0].data[...] = convolved(1)

        context.replace_node_subsets_with_delegate_kernels(Kernel, claimed)


@pytest.mark.parametrize(("dilation", "version"), [(1, 1), (2, 2)])
def test_a_delegate_sees_the_version_and_refuses_a_newer_one(dilation: int, version: int) -> None:
    delegate = OldDelegate()
    result = run(model(dilation), experimental_delegates=[delegate])
    np.testing.assert_allclose(result, convolved(dilation), rtol=1e-5, atol=1e-6)
    assert delegate.seen == [(DEPTHWISE, version)]
    assert delegate.ran == (1 if version <= MAX_VERSION else 0)
