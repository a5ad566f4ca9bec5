"""A user's program under type checkers: the README's with annotations, then mistakes.

A line that checkers must reject names the codes, `# mypy CODE pyright RULE`; they must accept all others.
"""

from typing import Any, assert_type

import numpy as np

import opwright as ow
from opwright import language as kl


@ow.operator
class Atan(ow.OperatorDefinition):
    """Inverse tangent.   .. math:: y = \\arctan(x)"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")

    def compute(op, x: "np.ndarray[Any, Any]") -> Any:
        return np.arctan(x)

    def gradient(op, dy: ow.Tensor) -> ow.Tensor:
        return dy / (1.0 + op.x * op.x)


@ow.operator(version=2)
class SoftClip(ow.OperatorDefinition):
    """Squash to (-limit, limit).   .. math:: y = limit * tanh(x / limit)"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    limit = ow.Attr(float, default=1.0, check=ow.attr.greater_than(0.0), since=2)
    axes = ow.Attr([int], default=())
    scale = ow.Attr(float, default=None)

    def compute(op, x: "np.ndarray[Any, Any]") -> Any:
        assert_type(op.limit, float)
        assert_type(op.axes, tuple[int, ...])
        assert_type(op.scale, float | None)
        op.bound  # mypy attr-defined pyright reportAttributeAccessIssue
        return op.limit * np.tanh(x / op.limit)

    def gradient(op, dy: ow.Tensor) -> ow.Tensor:
        return dy * (1.0 - ow.square(op.y / op.limit))


def halved(x: kl.f32, n: kl.i64) -> kl.Value:
    x = x * 0.5
    assert_type(1 - x, kl.Value)
    assert_type(x < 2.0, kl.Value)
    x.to("f32")  # mypy arg-type pyright reportArgumentType
    return kl.maximum(x, n.to(kl.f32)) + kl.zeros(kl.f32, 4)


offset = ow.Variable(1.0)


@ow.function(input_signature=[ow.TensorSpec([5])])
def model(x: ow.Tensor) -> ow.Tensor:
    return Atan(x + offset)


@ow.function
def clipped(x: ow.Tensor, limit: float = 2.0) -> ow.Tensor:
    y = SoftClip(x, limit=limit, name="clip")
    return -y @ ow.transpose(y) + x[0] * 2.0


class Head(ow.Module):
    @ow.function
    def __call__(self, x: ow.Tensor) -> ow.Tensor:
        return ow.nn.relu(x)

    @ow.function
    def scaled(self, x: ow.Tensor, scale: float) -> ow.Tensor:
        return ow.nn.softmax(x * scale)


x = ow.constant([1.0, 2.0])
assert_type(x, ow.Tensor)
assert_type(SoftClip(x, limit=2.0), ow.Tensor)
assert_type(x + 1, ow.Tensor)
assert_type(1 - x, ow.Tensor)
assert_type(x / np.array([1.0, 2.0], np.float32), ow.Tensor)
assert_type(x > 0.0, ow.Tensor)
assert_type(x == x, ow.Tensor)
assert_type(offset * x, ow.Tensor)
assert_type(x[0], ow.Tensor)
assert_type(clipped(x), ow.Tensor)
assert_type(Head()(x), ow.Tensor)
assert_type(Head().scaled(x, 2.0), ow.Tensor)
assert_type(ow.add(x, 1.0), ow.Tensor)
assert_type(ow.sin(x), ow.Tensor)
assert_type(ow.matmul(x, x, transpose_b=True), ow.Tensor)
assert_type(ow.reduce_sum(x, axis=0), ow.Tensor)
assert_type(ow.math.log1p(x), ow.Tensor)
assert_type(ow.nn.relu(x), ow.Tensor)
assert_type(ow.reshape(x, [1, 2]), ow.Tensor)
assert_type(ow.concat([x, x], 0), ow.Tensor)
assert_type(ow.cast(x, ow.int32), ow.Tensor)
assert_type(ow.zeros([2]), ow.Tensor)
assert_type(x.shape.rank, int | None)
assert_type(x.dtype, ow.DType)

concrete = model.get_concrete_function()
converter = ow.lite.TFLiteConverter.from_concrete_functions([concrete], model)
converter.allow_custom_ops = True
interpreter = ow.lite.Interpreter(model_content=converter.convert(), custom_ops=[Atan])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([-8, 0.5, 2, 2.2, 201], np.float32))
interpreter.invoke()
print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
SoftClip.on({"x": "a"}, {"y": "b"}, limit=2.0)
print(SoftClip.version, SoftClip.attr_defs["limit"].default, kl.f32, kl.exp)
with ow.GradientTape() as tape:
    tape.watch(x)
    y = clipped(x)
print(tape.gradient(y, x), [float(element) for element in y], y.numpy())

clipped("a")  # mypy arg-type pyright reportArgumentType
clipped(x, 2.0, 3.0)  # mypy call-arg pyright reportCallIssue
clipped(x, bound=2.0)  # mypy call-arg pyright reportCallIssue
Head().scaled(x)  # mypy call-arg pyright reportCallIssue
ow.add(1, 2, bad=1)  # mypy call-arg pyright reportCallIssue
ow.add(1)  # mypy call-arg pyright reportCallIssue
ow.sin(x, None, 2)  # mypy call-arg pyright reportCallIssue
ow.reduce_sum(x, axes=0)  # mypy call-arg pyright reportCallIssue
ow.matmul(x, x, transpose_c=True)  # mypy call-arg pyright reportCallIssue
ow.nn.relu(x, bad=1)  # mypy call-arg pyright reportCallIssue
text: str = ow.add(1, 2)  # mypy assignment pyright reportAssignmentType
x + object()  # mypy operator pyright reportOperatorIssue
x.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
model.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
SoftClip.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
ow.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
ow.math.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
ow.nn.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
ow.lite.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
ow.ops.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
ow.debugging.nonsense  # mypy attr-defined pyright reportAttributeAccessIssue
