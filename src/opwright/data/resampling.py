"""Rejection resampling: classes made as frequent as wanted by dropping elements.

Lives here: the class.  Not here: sampling from several datasets (mixing.py).

An element of class c is kept with probability a_c = (t_c / p_c) / max_k (t_k / p_k), for the target distribution t and
the classes' frequencies p: rejection sampling (von Neumann 1951) with the elements themselves as proposals.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.random.state import seeds_for
from .context import IteratorContext
from .dataset import Dataset
from .functions import Failure, Traced
from .structure import operand


class _ResampleDataset(Dataset):
    def __init__(self, input_dataset: Any, class_func: Any, target_dist: Any, initial_dist: Any, seed: Any) -> None:
        traced = Traced(class_func, input_dataset.element_spec, "rejection_resample", "class_func")
        found = traced.form.spec
        if not isinstance(found, TensorSpec) or found.dtype.name not in ("int32", "int64"):
            raise TypeError(f"{traced.name} must give the class as an integer scalar, found {found!r}")
        operands = [operand(dispatch.to_tensor(d)) for d in (target_dist, initial_dist) if d is not None]
        super().__init__((found, input_dataset.element_spec), (input_dataset,), operands, (traced,))
        self._seeds = seeds_for(seed)

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        target = np.asarray(self._operands[0], np.float64)
        counts = np.ones_like(target)
        fixed = np.asarray(self._operands[1], np.float64) if len(self._operands) > 1 else None
        class_of = self._functions[0].caller(context)
        draw = random.Random(str(self._seeds) if any(self._seeds.values()) else None).random
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            try:
                (label,) = class_of(*item)
                c = int(label)
                if not 0 <= c < len(target):
                    raise InvalidArgumentError(op="Dataset.rejection_resample", what=f"class {c} is out of range",
                                               wanted=f"0 to {len(target) - 1}")  # fmt: skip
            except Exception as error:
                yield Failure(error)
                continue
            counts[c] += fixed is None
            frequency = counts / counts.sum() if fixed is None else fixed
            ratios = target / np.maximum(frequency, np.finfo(np.float64).tiny)
            if draw() * ratios.max() <= ratios[c] and ratios[c] > 0:
                yield (label, *item)
