"""Stateless random operators: functions of an explicit seed and a shape.

Lives here: StatelessRandomUniform, ...Normal, StatelessTruncatedNormal, ...UniformInt, ...UniformFullInt, ...Gamma,
...Poisson, ...Binomial, StatelessMultinomial, StatelessShuffle.
Not here: the functions over them (functions.py), stateful operators (stateful.py).

seed: two integers, the key of Philox; the numbers are not TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, any_dtype, float32, floating, index, int32, int64, of_numpy, real, uint32, uint64
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape, broadcast
from ..attributes import Attr
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from . import stateful
from .state import philox
from .stateful import check_bounds, check_order, check_samples, infer_shape

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..definition import Operator

INTEGERS = (int32, int64, uint32, uint64)
SEEDS = INTEGERS


def check_seed(op: Any) -> None:
    """Raise InvalidArgumentError unless the seed is two integers."""
    shape = op.seed.spec.shape
    if not shape.is_compatible_with([2]):
        raise InvalidArgumentError(what="seed must have shape [2]", found=op.seed.spec.short(), wanted="two integers")


def keyed(seed: np.ndarray) -> np.random.Generator:
    """Return the generator of a seed; compiled graphs append the number of a call (state.key_for)."""
    return philox(*seed.tolist())


def _define(
    name: str, sample: Callable[..., np.ndarray], allowed: tuple[DType, ...], summary: str, distribution: str
) -> Operator:
    """Define an operator that draws numbers from one distribution without parameters."""

    class StatelessSampler:
        shape = Input(index, rank=1)
        seed = Input(SEEDS, rank=1)
        output = Output()
        dtype = Attr(DType, default=float32 if float32 in allowed else int32)
        lod = "vanishes"
        gradient = None

        def infer(op) -> TensorSpec:
            check_seed(op)
            return infer_shape(op, op.dtype, allowed)

        def compute(op, shape: Any, seed: Any) -> np.ndarray:
            return sample(keyed(seed), tuple(shape.tolist()), op.dtype)

    StatelessSampler.__doc__ = f"""{summary}; a function of `seed`.

    .. math:: output_i \\sim {distribution}

    shape: the output's sizes; seed: two integers.
    """
    return operator(name=name)(StatelessSampler)


StatelessRandomUniform = _define(
    "StatelessRandomUniform", stateful.uniform, floating, "Draw floats uniformly from [0, 1)", "U[0, 1)"
)
StatelessRandomNormal = _define(
    "StatelessRandomNormal", stateful.normal, floating, "Draw floats from the standard normal distribution", "N(0, 1)"
)
StatelessTruncatedNormal = _define(
    "StatelessTruncatedNormal",
    stateful.truncated_normal,
    floating,
    "Draw floats from the standard normal distribution truncated at two standard deviations",
    "N(0, 1) \\;|\\; -2 < output_i < 2",
)
StatelessRandomUniformFullInt = _define(
    "StatelessRandomUniformFullInt",
    stateful.full_int,
    INTEGERS,
    "Draw integers uniformly from the full range of the dtype",
    "U\\{min, ..., max\\}",
)


@operator
class StatelessRandomUniformInt(OperatorDefinition):
    """Draw integers uniformly from [minval, maxval), as a function of `seed`.

    .. math:: output_i \\sim U\\{minval, ..., maxval - 1\\}

    raises InvalidArgumentError unless minval < maxval
    """

    shape = Input(index, rank=1)
    seed = Input(SEEDS, rank=1)
    minval = Input(INTEGERS, rank=0)
    maxval = Input(INTEGERS, rank=0, like="minval")
    output = Output(like="minval")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        check_bounds(op)
        return infer_shape(op, op.minval.spec.dtype, INTEGERS)

    def compute(op, shape: Any, seed: Any, minval: Any, maxval: Any) -> np.ndarray:
        check_order(minval, maxval)
        return stateful.uniform_int(keyed(seed), tuple(shape.tolist()), minval, maxval, of_numpy(minval.dtype))


@operator
class StatelessRandomGamma(OperatorDefinition):
    """Draw from gamma distributions of rate 1, `shape` numbers for each alpha, as a function of `seed`.

    .. math:: output \\sim \\frac{x^{alpha - 1} e^{-x}}{\\Gamma(alpha)}

    Output: [*shape, *alpha's shape].
    """

    shape = Input(index, rank=1)
    seed = Input(SEEDS, rank=1)
    alpha = Input(floating)
    output = Output(like="alpha")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        spec = infer_shape(op, op.alpha.spec.dtype, floating)
        return spec.with_shape(spec.shape + op.alpha.spec.shape)

    def compute(op, shape: Any, seed: Any, alpha: Any) -> np.ndarray:
        return stateful.gamma(keyed(seed), tuple(shape.tolist()), alpha)


@operator
class StatelessRandomPoisson(OperatorDefinition):
    """Draw from Poisson distributions, `shape` counts for each rate, as a function of `seed`.

    .. math:: P(output = k) = \\frac{lam^k e^{-lam}}{k!}

    Output: [*shape, *lam's shape], in dtype.
    """

    shape = Input(index, rank=1)
    seed = Input(SEEDS, rank=1)
    lam = Input((*floating, int32, int64))
    output = Output()
    dtype = Attr(DType, default=int32)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        spec = infer_shape(op, op.dtype, (*floating, int32, int64))
        return spec.with_shape(spec.shape + op.lam.spec.shape)

    def compute(op, shape: Any, seed: Any, lam: Any) -> np.ndarray:
        return stateful.poisson(keyed(seed), tuple(shape.tolist()), lam, op.dtype)


def _check_broadcasts(name: str, shape: TensorShape, target: TensorShape) -> None:
    """Raise InvalidArgumentError unless a parameter broadcasts to the shape of the numbers."""
    try:
        compatible = broadcast(shape, target).is_compatible_with(target)
    except InvalidArgumentError:
        compatible = False
    if not compatible:
        raise InvalidArgumentError(what=f"{name} does not broadcast to shape", found=str(shape), wanted=str(target))


@operator
class StatelessRandomBinomial(OperatorDefinition):
    """Draw from binomial distributions of `counts` trials of probability `probs`, as a function of `seed`.

    .. math:: P(output = k) = \\binom{counts}{k} probs^k (1 - probs)^{counts - k}

    counts and probs broadcast to `shape`, the output's.
    """

    shape = Input(index, rank=1)
    seed = Input(SEEDS, rank=1)
    counts = Input((*floating, int32, int64))
    probs = Input(floating)
    output = Output()
    output_dtype = Attr(DType, default=int32)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        spec = infer_shape(op, op.output_dtype, (*floating, int32, int64))
        for name in ("counts", "probs"):
            _check_broadcasts(name, getattr(op, name).spec.shape, spec.shape)
        return spec

    def compute(op, shape: Any, seed: Any, counts: Any, probs: Any) -> np.ndarray:
        return stateful.binomial(keyed(seed), tuple(shape.tolist()), counts, probs, op.output_dtype)


@operator
class StatelessMultinomial(OperatorDefinition):
    """Draw classes by unnormalized log-probabilities, with replacement, as a function of `seed`.

    .. math:: P(output_{b,k} = c) = \\frac{e^{logits_{b,c}}}{\\sum_j e^{logits_{b,j}}}
    """

    logits = Input(real, rank=2)
    num_samples = Input(index, rank=0, doc="the number of samples per row")
    seed = Input(SEEDS, rank=1)
    output = Output()
    output_dtype = Attr(DType, default=int64)
    lod = "as logits"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        return check_samples(op)

    def compute(op, logits: Any, num_samples: Any, seed: Any) -> np.ndarray:
        return stateful.categorical(keyed(seed), logits, int(num_samples), op.output_dtype)


@operator
class StatelessShuffle(OperatorDefinition):
    """Shuffle rows, as a function of `seed`.

    .. math:: output_i = value_{\\pi(i)}
    """

    value = Input(any_dtype)
    seed = Input(SEEDS, rank=1)
    output = Output(like="value")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        return op.value.spec

    def compute(op, value: Any, seed: Any) -> np.ndarray:
        return stateful.permuted(keyed(seed), value)
