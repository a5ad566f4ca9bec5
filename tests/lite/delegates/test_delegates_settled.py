"""Delegates in graphs with nodes that are computed when tensors are allocated."""

from __future__ import annotations

import numpy as np
import pytest
from delegate_kit import Nested
from lite_kit import any_batch, run

from opwright import lite
from thorough import crossed

DYNAMIC = lite.DelegateFlags.ALLOW_DYNAMIC_TENSORS
FLAGS = {
    "static": lite.DelegateFlags.NONE,
    "dynamic": DYNAMIC,
    "propagated": DYNAMIC | lite.DelegateFlags.REQUIRE_PROPAGATED_SHAPES,
}


class Claims(lite.Delegate):
    """Takes these operators."""

    def __init__(self, names: tuple[str, ...], content: bytes) -> None:
        self.names, self.content = names, content

    def prepare(self, context) -> None:
        nodes = [i for i in context.execution_plan if context.get_node_and_registration(i)[1].name in self.names]
        context.replace_node_subsets_with_delegate_kernels(lambda: Nested(self.content), nodes)


CLAIMED = [
    ("RELU",),
    ("SHAPE", "PACK"),
    ("RELU", "SHAPE", "FLOOR_DIV"),
    ("STRIDED_SLICE",),
    ("FLOOR_DIV",),
    ("RELU", "PACK"),
    ("RELU", "STRIDED_SLICE"),
]


@pytest.mark.parametrize(("names", "flags"), crossed(CLAIMED, FLAGS, every=3))
@pytest.mark.filterwarnings("error::opwright.lite.DelegateWarning")
def test_no_node_runs_before_what_it_reads(names, flags) -> None:
    delegate = Claims(names, any_batch())
    delegate.flags = FLAGS[flags]
    interpreter = lite.Interpreter(model_content=any_batch(), experimental_delegates=[delegate])
    for shape in [(2, 6), (4, 6), (1, 2), (4, 6)]:
        x = np.random.default_rng(shape[0]).normal(size=shape).astype(np.float32)
        for turn in range(2):
            (y,) = run(interpreter, [x + turn])
            np.testing.assert_array_equal(y, np.maximum(x + turn, 0).reshape(shape[0], shape[1] // 2, 2))
