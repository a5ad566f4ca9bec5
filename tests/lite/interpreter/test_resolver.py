"""Resolvers: names, numbers and ranges of versions."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import Build
from small_models import atan_model, sin_model

import opwright.lite as lite
from opwright.core.errors import InvalidArgumentError
from opwright.lite.format import schema

BUILTIN = schema.BuiltinOperator


def kernel(version=1):
    return lite.Registration(invoke=lambda context, node: None, version=version)


def test_builtins_are_found_by_member_number_and_name():
    resolver = lite.BuiltinOpResolver()
    result = resolver.find_op(BUILTIN.ADD, 1)
    assert result is not None
    assert resolver.find_op(int(BUILTIN.ADD)) is result
    assert resolver.find_op("ADD") is result
    assert resolver.find_op("ADD", 6) is result
    assert resolver.find_op("ADD", 7) is None
    assert resolver.find_op("ADD", 0) is None
    assert resolver.find_op("CONCAT_EMBEDDINGS") is None
    assert resolver.find_op("Atan") is None
    with pytest.raises(InvalidArgumentError):
        resolver.find_op(99999)


def test_ranges_of_versions():
    resolver = lite.MutableOpResolver()
    old, new = kernel(), kernel()
    resolver.add_custom("Mine", old, 1, 2)
    resolver.add_custom("Mine", new, 3, 5)
    assert [resolver.find_op("Mine", v) for v in range(7)] == [None, old, old, new, new, new, None]
    newest = kernel(9)
    resolver.add_custom("Mine", newest, 2, 9)
    assert [resolver.find_op("Mine", v) for v in (1, 2, 9, 10)] == [old, newest, newest, None]
    assert resolver.find_op("Mine") is old
    for low, high in ((0, 1), (2, 1)):
        with pytest.raises(InvalidArgumentError, match="range of versions"):
            resolver.add_custom("Mine", old, low, high)


def test_a_custom_operator_may_have_a_builtin_name():
    content = Build().custom("SIN", "x", "y").done()
    interpreter = lite.Interpreter(model_content=content)
    with pytest.raises(RuntimeError, match=r"Encountered unresolved custom op: SIN\."):
        interpreter.allocate_tensors()
    interpreter = lite.Interpreter(model_content=content, custom_ops={"SIN": kernel()})
    interpreter.allocate_tensors()


def test_a_builtin_can_be_overridden():
    seen = []

    def minus(context, node):
        seen.append(node.options)
        np.subtract(node.inputs[0].data, node.inputs[1].data, out=node.outputs[0].data)

    resolver = lite.BuiltinOpResolver()
    resolver.add_builtin(
        "ADD",
        lite.Registration(prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape), invoke=minus),
        1,
        6,
    )
    interpreter = lite.Interpreter(model_content=sin_model(), op_resolver=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(1, np.float32([1, 2, 3, 4, 5]))
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(3), np.sin(np.float32([0, 1, 2, 3, 4])), 1e-6)
    assert seen[0].table_name == "AddOptions"


def test_add_all():
    a, b = lite.MutableOpResolver(), lite.MutableOpResolver()
    first, second = kernel(), kernel()
    a.add_custom("Mine", first)
    a.add_builtin(BUILTIN.ADD, first)
    b.add_custom("Mine", second)
    b.add_custom("Other", second)
    a.add_all(b)
    assert a.find_op("Mine") is second
    assert a.find_op("Other") is second
    assert a.find_op("ADD") is first
    with pytest.raises(TypeError):
        a.add_all(3)


def test_a_resolver_without_an_operator_is_an_error_at_load():
    resolver = lite.MutableOpResolver()
    resolver.add_builtin("SIN", lite.BuiltinOpResolver().find_op("SIN"))
    with pytest.raises(ValueError, match="Didn't find op for builtin opcode 'ADD' version '1'"):
        lite.Interpreter(model_content=sin_model(), op_resolver=resolver)


def test_a_resolver_of_ones_own():
    asked = []

    class Mine(lite.OpResolver):
        def find_op(self, op, version=1):
            asked.append((op, version))
            return kernel()

    interpreter = lite.Interpreter(model_content=sin_model(), op_resolver=Mine())
    interpreter.allocate_tensors()
    lite.Interpreter(model_content=atan_model(), op_resolver=Mine())
    assert asked == [(BUILTIN.ADD, 1), (BUILTIN.SIN, 1), ("Atan", 1)]
    with pytest.raises(TypeError, match="find_op"):
        lite.Interpreter(model_content=sin_model(), op_resolver=lite.OpResolver())


def test_reprs_and_names():
    resolver = lite.BuiltinOpResolver()
    resolver.add_custom("B", kernel())
    resolver.add_custom("A", kernel())
    assert resolver.custom_names() == ["A", "B"]
    assert "2 custom" in repr(resolver)
    with pytest.raises(InvalidArgumentError):
        resolver.add_builtin("Nothing", kernel())


def test_numbers_of_numpy_are_numbers():
    resolver = lite.BuiltinOpResolver()
    assert resolver.find_op(np.int32(59)) is resolver.find_op("NEG")
