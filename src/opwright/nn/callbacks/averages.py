"""`SwapEMAWeights`: evaluation and checkpoints with averaged weights.

Lives here: the callback.  Not here: the averages (optimizers/base.py, `use_ema`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Callback


class SwapEMAWeights(Callback):
    """Exchange the weights with the optimizer's averages while the model is evaluated and predicts.

    swap_on_epoch: also between the end of an epoch and the beginning of the next, so that checkpoints have them;
    then the model has averaged weights after training. Training goes on with the weights that it had.
    raises ValueError unless the optimizer has use_ema
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        super().__init__()
        self.swap_on_epoch = swap_on_epoch
        self._swapped = False

    def _pairs(self) -> list[tuple[Any, Any]]:
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        if not getattr(optimizer, "use_ema", False):
            raise ValueError(
                "SwapEMAWeights must be used when `use_ema=True` is set on the optimizer. Received: "
                f"use_ema={getattr(optimizer, 'use_ema', None)}"
            )
        return list(optimizer.averages)

    def _exchange(self, swapped: bool) -> None:
        if self._swapped is swapped:
            return
        for variable, average in self._pairs():
            value = np.array(variable.read_array())
            variable.assign(average.read_array())
            average.assign(value)
        self._swapped = swapped

    def on_train_begin(self, logs: Any = None) -> None:
        """Check the optimizer."""
        self._pairs()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Train with the weights themselves."""
        if self.swap_on_epoch:
            self._exchange(False)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Put the averages into the model; after the last epoch for good."""
        if not self.swap_on_epoch:
            return
        self._exchange(True)
        if self.params is not None and epoch == self.params["epochs"] - 1:
            for variable, average in self._pairs():
                average.assign(variable.read_array())
            self._swapped = False

    def on_test_begin(self, logs: Any = None) -> None:
        """Evaluate with the averages."""
        self._exchange(True)

    def on_test_end(self, logs: Any = None) -> None:
        """Return to the weights."""
        self._exchange(False)

    on_predict_begin, on_predict_end = on_test_begin, on_test_end
