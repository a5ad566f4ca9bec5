"""Tensors of several nodes, and of one node twice: what is written keeps the shape that others were prepared for."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import Build, run

import opwright.lite as lite


def test_a_tensor_of_an_earlier_node_keeps_its_shape():
    b = Build().tensor("x", (2, 3)).tensor("shape", type="INT32", data=np.int32([3, 2])).tensor("y", (2, 3))
    content = b.op("ABS", "x", "y").op("RESHAPE", "x shape", "y").done()
    with pytest.raises(RuntimeError, match=r"output 'y' is also a tensor of node 0(.|\n)*found   \[3, 2\]"):
        lite.Interpreter(model_content=content).allocate_tensors()


def test_two_nodes_may_write_a_tensor_of_one_shape():
    content = Build().tensor("x", (3,)).tensor("y", (3,)).op("ABS", "x", "y").op("NEG", "x", "y").done()
    np.testing.assert_array_equal(run(lite.Interpreter(model_content=content), [np.float32([-1, 0, 2])])[0], [1, 0, -2])


def test_a_custom_operator_may_write_its_input_but_not_resize_it():
    def double(context, node):
        node.outputs[0].data[...] *= 2

    def registered(size):
        prepare = lambda context, node: context.resize_tensor(node.outputs[0], (size,))  # noqa: E731
        own = lite.Registration(prepare=prepare, invoke=double)
        return lite.Interpreter(model_content=content, custom_ops={"Own": own})

    content = Build().tensor("x", (2,)).custom("Own", "x", "x").done("x", "x")
    np.testing.assert_array_equal(run(registered(2), [np.float32([1, 2])])[0], [2, 4])
    with pytest.raises(RuntimeError, match="output 'x' is also a tensor of this node"):
        registered(3).allocate_tensors()


def test_a_builtin_operator_does_not_write_its_input():
    content = Build().tensor("x", (2,)).op("ADD", "x x", "x").done("x", "x")
    with pytest.raises(RuntimeError, match="output 'x' is also an input of the node"):
        lite.Interpreter(model_content=content).allocate_tensors()
