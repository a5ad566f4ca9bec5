"""STABLEHLO_RNG_BIT_GENERATOR: random bits of a state that comes in and goes out.

Lives here: the operator.
Not here: the generators (bit_generators.py), operators that keep their state (random.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import uint64
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.call import Call
from ...ops.definition import Input, Output
from ...scalar.counter_generators import BIT_TYPES, BLOCK_WORDS
from ..registration import OperatorRegistration
from . import types
from .bit_generators import blocks, threefry_blocks
from .definition import EnumAttr, lite_operator
from .shapes import bounded, refuse, spec, text

_WRAP = (1 << 64) - 1


def _by_philox(state: list[int], count: int) -> np.ndarray:
    """Blocks of a counter whose lower half wraps around without carrying into the upper one."""
    key, first, upper = state[0], state[1], state[-1] if len(state) == 3 else state[0]
    before = min(count, _WRAP + 1 - first)
    return np.concatenate([blocks(key, first, upper, before), blocks(key, 0, upper, count - before)])


def _by_threefry(state: list[int], count: int) -> np.ndarray:
    return threefry_blocks(state[0], state[1], count)


# algorithm -> sizes of the state, words a block, blocks(state, count)
ALGORITHMS: dict[str, tuple[tuple[int, ...], int, Callable[[list[int], int], np.ndarray]]] = {
    "DEFAULT": ((2, 3), BLOCK_WORDS["philox"], _by_philox),
    "PHILOX": ((2, 3), BLOCK_WORDS["philox"], _by_philox),
    "THREEFRY": ((2,), BLOCK_WORDS["threefry"], _by_threefry),
}


@lite_operator("STABLEHLO_RNG_BIT_GENERATOR")
class RngBitGenerator:
    """Random bits, and the state that comes after them.

    .. math:: y = blocks(key, counter), blocks(key, counter + 1), ...

    state: uint64 [2], key and counter; for PHILOX (which DEFAULT is) also [3], with the counter's upper half, which is
    else the key. output_state: the same with the counter raised by the number of blocks used, of 4 words (THREEFRY: 2).
    y: int32, uint32, int64 or uint64; 64 bits are two words, the lower first. Its shape and dtype, attributes here,
    stand in a file at the tensor.
    raises InvalidArgumentError for a state of another size
    """

    state = Input((uint64,), rank=1)
    output_state = Output(like="state")
    y = Output()
    shape = Attr([int], default=())
    dtype = EnumAttr("TensorType", 15)

    def state_sizes(op: Any) -> tuple[int, ...]:
        """Return the sizes that the algorithm's state may have."""
        return ALGORITHMS[op.algorithm][0]

    def infer(op: Any) -> Any:
        (size,), dtype = op.state.spec.shape.dims or (None,), types.dtype_of(op.dtype)
        sizes = op.state_sizes()
        if size not in (None, *sizes):
            raise refuse(
                f"the state does not fit the algorithm {op.algorithm}",
                found=text((size,)),
                wanted=" or ".join(f"[{n}]" for n in sizes),
            )
        if dtype not in BIT_TYPES:
            raise refuse(
                "the output is no type of random bits", found=op.dtype, wanted="INT32, UINT32, INT64 or UINT64"
            )
        bounded((*op.shape, 8), uint64, "the random words")  # of which arithmetic keeps some eight at a time
        return TensorSpec(op.state.spec.shape, uint64), spec(op.shape, dtype)

    def compute(op: Any, state: Any) -> Any:
        dtype, (_, words, blocks) = types.dtype_of(op.dtype).np, ALGORITHMS[op.algorithm]
        count = math.prod(op.shape) * (dtype.itemsize // 4)
        used = -(-count // words)
        after = state.copy()
        after[1] += np.uint64(used)
        bits = blocks([int(v) for v in state], used).reshape(-1)[:count]
        return after, bits.view(dtype).reshape(op.shape)

    def registration(operator: Any) -> Any:
        return _Shaped(operator)


class _Shaped(OperatorRegistration):
    """Takes shape and dtype of y from the node's tensor."""

    __slots__ = ()

    def _call(self, node: Any) -> Call:
        if not isinstance(node.user_data, Call):
            operator: Any = self.operator
            call = operator.from_options(node.user_data)
            if len(node.tensors_out) != 2:
                raise refuse("the node has the wrong number of outputs", found=len(node.tensors_out), wanted=2)
            y = node.tensors_out[1]
            named = {"algorithm": call.algorithm, "shape": y.shape, "dtype": types.name_of(y.dtype)}
            node.user_data = operator.bind(named)
        found: Call = node.user_data
        return found
