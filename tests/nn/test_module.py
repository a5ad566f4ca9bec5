"""Module finds the variables and modules it holds, each once, in the order of attribute names."""

from __future__ import annotations

from typing import Any

import opwright as ow


class Dense(ow.Module):
    def __init__(self, n: int, m: int, name: str | None = None) -> None:
        super().__init__(name)
        self.w = ow.Variable(ow.ones([n, m]), name="w")
        self.b = ow.Variable(ow.zeros([m]), name="b", trainable=False)

    def __call__(self, x: Any) -> Any:
        return ow.matmul(x, self.w) + self.b


class TwoLayers(ow.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [Dense(2, 3), {"last": Dense(3, 1, "last")}]
        self.again = self.layers[0]
        self.scale = ow.Variable(2.0)
        self.mixed = {1: "a", "b": 2}  # keys that do not sort: no nesting of ours


def test_variables_and_submodules() -> None:
    model = TwoLayers()
    assert model.name == "two_layers"
    assert [m.name for m in model.submodules] == ["dense", "last"]
    assert len(model.variables) == 5
    assert len({id(v) for v in model.variables}) == 5
    assert len(model.trainable_variables) == 3
    assert len(model.non_trainable_variables) == 2


def test_gradients_by_a_modules_variables() -> None:
    layer = Dense(2, 2)
    with ow.GradientTape() as tape:
        loss = ow.reduce_sum(layer(ow.ones([1, 2])))
    (grad,) = tape.gradient(loss, layer.trainable_variables)
    assert grad.numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
