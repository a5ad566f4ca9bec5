"""Random numbers: RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL, STABLEHLO_RNG_BIT_GENERATOR.

Lives here: the operators. The first three have each a sequence of their own that begins when tensors are allocated and
goes on from run to run; the last takes its state as an input. Shape rules that lite/customs/random.py shares.
Not here: the generators (scalar/counter_generators.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, int64, uint64
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.call import Call
from ...ops.slots import Input, Output
from ...scalar.counter_generators import (
    BIT_TYPES,
    BLOCK_WORDS,
    Philox,
    begun,
    blocks,
    doubles,
    normal,
    threefry_blocks,
    uniform,
)
from ..registration import OperatorRegistration, Registration
from . import types
from .definition import EnumAttr, LiteDefinition, LiteOperator, lite_operator
from .shapes import bounded, ints, refuse, spec, spec_of_sizes, text

SKIPPED = 2 * 256  # blocks that MULTINOMIAL passes over for each sample, however few it used


def generator_of(op: Any) -> Philox:
    """Return the call's sequence. Calls with an attribute of type object are not cached: each node has its own."""
    if op.generator is None:
        op.generator = Philox(begun(*seeds_of(op)))
    result: Philox = op.generator
    return result


def seeds_of(op: Any) -> tuple[int, int]:
    """Return the seeds as signed 32-bit integers, as the official run time stores them."""
    return _int32(op.seed), _int32(op.seed2)


def _int32(seed: int) -> int:
    return (seed + (1 << 31)) % (1 << 32) - (1 << 31)


def resume(op: Any, node: Any) -> None:
    """Continue the node's sequence of the interpreter when the node is prepared."""
    sequence = node.subgraph.resources.sequence(node.subgraph.index, node.number, seeds_of(op))
    op.generator = Philox(sequence.state)


def filled_spec(op: Any, dtype: Any) -> TensorSpec:
    """Infer a tensor of random numbers from the operand `shape`."""
    result, sizes = spec_of_sizes(op.shape, dtype)
    if sizes is not None:
        bounded((*sizes, 8), int64, "the random words")  # of which arithmetic keeps some eight at a time
    return result


def sampled_spec(op: Any, output_type: str) -> TensorSpec:
    """Infer samples of classes [batch, num_samples] from the operands `logits` and `num_samples`."""
    dtype = types.dtype_of(output_type)
    if dtype not in (int32, int64):
        raise refuse("the output is not an index type", found=output_type, wanted="INT32 or INT64")
    batch, classes = op.logits.spec.shape.dims or (None, None)
    if classes == 0:
        raise refuse(
            "there are no classes", found=text(op.logits.spec.shape), wanted="[batch, classes], with at least one class"
        )
    count = ints(op.num_samples)
    if count is not None and count[0] < 0:
        raise refuse("num_samples is negative", found=count[0], wanted="at least 0")
    if count is not None and batch is not None:
        bounded((batch, count[0], 8), int64, "the random words")
    return spec((batch, None if count is None else count[0]), dtype)


def drawn(name: str, numbers: Any, law: str) -> LiteOperator:
    """Define an operator that fills a shape. numbers: floats from an even number of words."""

    def compute(op: Any, shape: np.ndarray) -> np.ndarray:
        sizes = [int(d) for d in shape]
        count = int(np.prod(sizes, dtype=np.int64))
        result: np.ndarray = numbers(generator_of(op).words(count + count % 2))[:count].reshape(sizes)
        return result

    body = {
        "__doc__": f"{name}: a tensor of independent random numbers.\n\n.. math:: y_i \\sim {law}\n\n"
        "shape: int32 [rank]; seed and seed2 both 0: other numbers each time the model is loaded",
        "__module__": __name__,
        "shape": Input((int32,), rank=1),
        "y": Output(dtype=float32),
        "generator": Attr(object, default=None),
        "infer": lambda op: filled_spec(op, float32),
        "compute": compute,
        "resume": resume,
        "seeds": seeds_of,
    }
    return lite_operator(name)(type(name, (), body))


drawn("RANDOM_UNIFORM", uniform, "U[0, 1)")
drawn("RANDOM_STANDARD_NORMAL", normal, "N(0, 1)")


def classes_of(logits: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Sample classes by inverting the cumulative distribution of each row at numbers in [0, 1): int64 [batch, n]."""
    y = np.empty(numbers.shape, np.int64)
    for row, samples, out in zip(logits, numbers, y):
        finite = np.isfinite(row)
        maximum = np.float64(row[finite].max()) if finite.any() else 0.0
        with np.errstate(all="ignore"):
            sums = np.cumsum(np.where(finite, np.exp(row - maximum), 0.0))
        out[:] = np.searchsorted(sums, samples * sums[-1], side="right")
    return y


@lite_operator("MULTINOMIAL", typed_by="output_type")
class MultinomialOp(LiteDefinition):
    """Random classes, each by the weights that its row of logits gives.

    .. math:: P(y_{ij} = c) = e^{logits_{ic}} / \\sum_k e^{logits_{ik}}

    logits: [batch, classes]; num_samples: int32, one number; y: [batch, num_samples]. Logits that are not finite count
    as minus infinity.
    """

    logits = Input((float32,), rank=2)
    num_samples = Input((int32,), rank=0)
    y = Output(dtype=int64)
    output_type = EnumAttr("TensorType", 4)
    generator = Attr(object, default=None)
    resume, seeds = resume, seeds_of

    def blocks(op: Any, batch: int, n: int) -> int:
        """Return the blocks of words that n samples of each row take of a sequence: more than they read."""
        return batch * (-(-n // 4) * 4) * SKIPPED

    def infer(op: Any) -> TensorSpec:
        return sampled_spec(op, op.output_type)

    def compute(op: Any, logits: np.ndarray, num_samples: np.ndarray) -> np.ndarray:
        (batch, _), n = logits.shape, int(num_samples)
        generator, count = generator_of(op), 2 * batch * n
        numbers = doubles(generator.words(count)).reshape(batch, n)
        generator.skip(op.blocks(batch, n) - -(-count // 4))
        return classes_of(logits, numbers).astype(types.dtype_of(op.output_type).np)


_WRAP = (1 << 64) - 1


def _by_philox(state: list[int], count: int) -> np.ndarray:
    """Generate blocks of a counter whose lower half wraps around without carrying into the upper one."""
    key, first, upper = state[0], state[1], state[-1] if len(state) == 3 else state[0]
    before = min(count, _WRAP + 1 - first)
    return np.concatenate([blocks(key, first, upper, before), blocks(key, 0, upper, count - before)])


# algorithm -> sizes of the state, words a block, blocks(state, count)
ALGORITHMS: dict[str, tuple[tuple[int, ...], int, Callable[[list[int], int], np.ndarray]]] = {
    "DEFAULT": ((2, 3), BLOCK_WORDS["philox"], _by_philox),
    "PHILOX": ((2, 3), BLOCK_WORDS["philox"], _by_philox),
    "THREEFRY": ((2,), BLOCK_WORDS["threefry"], lambda state, count: threefry_blocks(state[0], state[1], count)),
}


@lite_operator("STABLEHLO_RNG_BIT_GENERATOR")
class RngBitGeneratorOp(LiteDefinition):
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

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
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
                "the output is not a type of random bits", found=op.dtype, wanted="INT32, UINT32, INT64 or UINT64"
            )
        bounded((*op.shape, 8), uint64, "the random words")  # of which arithmetic keeps some eight at a time
        return TensorSpec(op.state.spec.shape, uint64), spec(op.shape, dtype)

    def compute(op: Any, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dtype, (_, words, blocks) = types.dtype_of(op.dtype).np, ALGORITHMS[op.algorithm]
        count = math.prod(op.shape) * (dtype.itemsize // 4)
        used = -(-count // words)
        after = state.copy()
        after[1] += np.uint64(used)
        bits = blocks([int(v) for v in state], used).reshape(-1)[:count]
        return after, bits.view(dtype).reshape(op.shape)

    def registration(operator: Any) -> Registration:
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
        return node.user_data
