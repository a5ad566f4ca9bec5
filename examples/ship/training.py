"""A training step as a library: `python training.py FOLDER [TARGET]` writes FOLDER/atan.

The step fits the offset in y = atan(x + offset) to five points by gradient descent; train.c runs it on the device,
which keeps the offset in the structure of the state.
"""

import sys
from pathlib import Path

import numpy as np

import opwright as ow

X = [-8.0, 0.5, 2.0, 2.2, 201.0]
Y = [-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458]
"""atan(x + 1)."""


@ow.operator
class Atan(ow.OperatorDefinition):
    """Inverse tangent, which files have no builtin for."""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        """Return it in NumPy."""
        return np.arctan(x)

    def gradient(op, dy):
        """Return the gradient in operators."""
        return dy / (1.0 + op.x * op.x)

    @ow.kernel
    def kernel(x):
        """Return one element, in machine code."""
        return ow.atan(x)


class Fit(ow.Module):
    """The offset, and the function that improves it."""

    def __init__(self):
        self.offset, self.optimizer = ow.Variable(0.0), ow.optimizers.SGD(0.5)

    @ow.function(input_signature=[ow.TensorSpec([5], ow.float32, "x"), ow.TensorSpec([5], ow.float32, "y")])
    def train(self, x, y):
        """Return the loss before the step."""
        with ow.GradientTape() as tape:
            loss = ow.reduce_mean(ow.square(Atan(x + self.offset) - y))
        self.optimizer.apply_gradients([(tape.gradient(loss, self.offset), self.offset)])
        return {"loss": loss}

    @ow.function(input_signature=[ow.TensorSpec([5], ow.float32, "x")])
    def predict(self, x):
        """Return atan(x + offset)."""
        return {"y": Atan(x + self.offset)}


def main(folder: str, target: str = "host") -> None:
    """Build the library."""
    fit = Fit()
    functions = {"train": fit.train, "predict": fit.predict}
    library = ow.aot.build(functions, target, Path(folder) / "atan", name="atan", custom_ops=[Atan])
    print(f"atan: code {library.code} bytes, arena {library.arena}, state {library.state}")


if __name__ == "__main__":
    main(*sys.argv[1:])
