"""Operator instances: four things and no more; what is checked when one is made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.scopes.variable import EMPTY, TEMP


def op(name: str) -> Any:
    return ow.ops.get(name)


def test_an_instance_is_its_type_names_and_attributes() -> None:
    softmax = op("TopK").on({"input": "a", "k": "k"}, {"values": "v", "indices": "i"}, sorted=False)
    assert softmax.type is op("TopK")
    assert dict(softmax.inputs) == {"input": ("a",), "k": ("k",)}
    assert dict(softmax.outputs) == {"values": ("v",), "indices": ("i",)}
    assert dict(softmax.attrs) == {"sorted": False, "index_type": ow.int32}
    assert repr(softmax) == "{values: v, indices: i} = TopK({input: a, k: k}, sorted=False)"
    assert softmax.at.startswith(__file__)
    joined = op("Concat").on({"values": ["a", "b"]}, {"output": "y"}, axis=0)
    assert repr(joined) == "{output: y} = Concat({values: [a, b]}, axis=0)"
    assert list(joined.input_names()) == ["a", "b"]
    assert list(joined.output_names()) == ["y"]


def test_instances_are_immutable_and_compare_by_the_four() -> None:
    add = op("Add").on({"x": "a", "y": "b"}, {"z": "c"})
    assert add == ow.OpInstance("Add", {"x": "a", "y": ["b"]}, {"z": "c"})  # made on another line
    assert hash(add) == hash(ow.OpInstance("Add", {"y": "b", "x": "a"}, {"z": "c"}))
    for other in (
        op("Sub").on({"x": "a", "y": "b"}, {"z": "c"}),
        op("Add").on({"x": "b", "y": "a"}, {"z": "c"}),
        op("Add").on({"x": "a", "y": "b"}, {"z": "d"}),
    ):
        assert add != other
    ones = [op("Const").on({}, {"output": "c"}, value=np.ones(n)) for n in (2, 2, 3)]
    assert ones[0] == ones[1] != ones[2]
    with pytest.raises(AttributeError, match="immutable"):
        add.at = "elsewhere"
    with pytest.raises(TypeError):
        add.inputs["x"] = ("q",)  # type: ignore[index]
    assert copy.copy(add) is add
    deep = copy.deepcopy(add)
    assert deep is not add
    assert deep == add
    assert pickle.loads(pickle.dumps(add)) == add


def test_a_temporary_gets_a_name_that_no_other_has() -> None:
    names = [op("Neg").on({"x": "a"}, {"y": TEMP}).outputs["y"][0] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("Neg@") and name[4:].isdecimal() for name in names)


def test_absent_inputs_and_unwanted_outputs() -> None:
    padded = op("Pad").on({"input": "a", "paddings": "p", "constant_values": EMPTY}, {"output": "y"})
    assert list(padded.input_names()) == ["a", "p"]
    scope = ow.Scope()
    scope.var("a").set([3.0, 1.0, 2.0])
    scope.var("k").set(np.int32(2))
    op("TopK").on({"input": "a", "k": "k"}, {"values": "v", "indices": EMPTY}).run(scope)
    assert scope.local_var_names() == ["a", "k", "v"]
    assert scope.var("v").value.numpy().tolist() == [3.0, 2.0]


MISTAKES = [  # operator, inputs, outputs, attributes, what the error names
    ("Add", {"x": "a"}, {"z": "c"}, {}, ["Add", "input 'y'", "missing"]),
    ("Add", {"x": "a", "y": []}, {"z": "c"}, {}, ["Add", "input 'y'", "missing"]),
    ("Add", {"x": "a", "y": EMPTY}, {"z": "c"}, {}, ["Add", "input 'y'", "missing"]),
    ("Add", {"x": "a", "y": "b"}, {}, {}, ["Add", "output 'z'", "missing"]),
    ("FusedBatchNorm", {"x": "x", "scale": "s", "offset": "o"}, {"y": "y"}, {}, ["output 'batch_mean'", "missing"]),
    ("Add", {"x": ["a", "b"], "y": "b"}, {"z": "c"}, {}, ["Add", "input 'x'", "2: a, b", "one name"]),
    ("Add", {"x": "a", "y": "b"}, {"z": ["c", "d"]}, {}, ["Add", "output 'z'", "one variable"]),
    ("Add", {"x": "a", "y": "b", "X": "c"}, {"z": "c"}, {}, ["Add", "'X'", "x, y"]),
    ("Add", {"x": "a", "y": "b"}, {"z": "c", "out": "d"}, {}, ["Add", "'out'", "one of z"]),
    ("Add", {"x": "a", "y": 3}, {"z": "c"}, {}, ["Add", "input 'y'", "3", "texts"]),
    ("Add", ["a", "b"], {"z": "c"}, {}, ["Add", "mapping", "list"]),
    ("Concat", {"values": ["a"]}, {"output": "y"}, {}, ["Concat", "'axis'", "missing"]),
    ("Concat", {"values": ["a"]}, {"output": "y"}, {"axis": 1.5}, ["Concat", "'axis'", "type", "1.5", "int"]),
    ("Concat", {"values": ["a"]}, {"output": "y"}, {"axis": 0, "axes": 1}, ["Concat", "'axes'", "values, axis"]),
    ("MaxPool", {"x": "a"}, {"y": "y"}, {"padding": "SOME"}, ["MaxPool"]),
]


@pytest.mark.parametrize(("name", "inputs", "outputs", "attrs", "words"), MISTAKES, ids=str)
def test_each_mistake_is_an_error_that_names_it(name: str, inputs: Any, outputs: Any, attrs: Any, words: Any) -> None:
    with pytest.raises(ow.errors.InvalidArgumentError) as error:
        op(name).on(inputs, outputs, **attrs)
    for word in words:
        assert word in str(error.value)


def test_values_of_attributes_are_always_checked() -> None:
    @ow.operator
    class Leaky:
        """.. math:: y = alpha x"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")
        alpha = ow.Attr(float, default=0.1, check=ow.attr.between(0.0, 1.0))

        def compute(op, x: Any) -> Any:
            return x * op.alpha

    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Leaky.*'alpha' is out of its range"):
        ow.OpInstance(Leaky, {"x": "a"}, {"y": "b"}, {"alpha": 2.0})
    assert dict(ow.OpInstance(Leaky, {"x": "a"}, {"y": "b"}).attrs) == {"alpha": 0.1}


def test_an_unknown_type_is_an_error_with_names_alike() -> None:
    with pytest.raises(KeyError, match="MatMul"):
        ow.OpInstance("Matmull", {}, {})
