"""Random operators of an explicit seed: the same seed and shape always give the same numbers.

Lives here: StatelessRandomUniform, ...Normal, StatelessTruncatedNormal, ...UniformInt, ...UniformFullInt, ...Gamma,
...Poisson, ...Binomial, StatelessMultinomial, StatelessShuffle.
Not here: the functions over them (functions.py), operators with a state (sampling.py).

seed: two integers, the key of Philox; the numbers are not TensorFlow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, any_dtype, float32, floating, index, int32, int64, of_numpy, real, uint32, uint64
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape, broadcast
from ..attributes import Attr
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from . import sampling
from .sampling import check_bounds, check_order, check_samples, infer_shape
from .state import philox

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..definition import Operator

FULL = (int32, int64, uint32, uint64)
SEEDS = (int32, int64, uint32, uint64)


def check_seed(op: Any) -> None:
    """The seed must be two integers. Raises InvalidArgumentError."""
    shape = op.seed.spec.shape
    if not shape.is_compatible_with([2]):
        raise InvalidArgumentError(what="seed must have shape [2]", found=op.seed.spec.short(), wanted="two integers")


def keyed(seed: np.ndarray) -> np.random.Generator:
    """The generator of a seed."""
    first, second = seed.tolist()
    return philox(first, second)


def _one_dtype(name: str, sample: Any, allowed: tuple[DType, ...], words: str, distribution: str) -> Operator:
    """An operator that draws numbers of one distribution without parameters."""

    class Drawn:
        shape = Input(index, rank=1)
        seed = Input(SEEDS, rank=1)
        output = Output()
        dtype = Attr(DType, default=float32 if float32 in allowed else int32)
        lod = "vanishes"
        gradient = None

        def infer(op) -> TensorSpec:
            check_seed(op)
            return infer_shape(op, op.dtype, allowed)

        def compute(op, shape: Any, seed: Any) -> Any:
            return sample(keyed(seed), tuple(shape.tolist()), op.dtype)

    Drawn.__doc__ = f"""{words}; a function of `seed`.

    .. math:: output_i \\sim {distribution}

    shape: the output's sizes; seed: two integers.
    """
    return operator(name=name)(Drawn)


StatelessRandomUniform = _one_dtype(
    "StatelessRandomUniform", sampling.uniform, floating, "Floats spread evenly over [0, 1)", "U[0, 1)"
)
StatelessRandomNormal = _one_dtype(
    "StatelessRandomNormal", sampling.normal, floating, "Floats of the standard normal distribution", "N(0, 1)"
)
StatelessTruncatedNormal = _one_dtype(
    "StatelessTruncatedNormal",
    sampling.truncated_normal,
    floating,
    "Floats of the standard normal distribution, cut off at two deviations",
    "N(0, 1) \\;|\\; -2 < output_i < 2",
)
StatelessRandomUniformFullInt = _one_dtype(
    "StatelessRandomUniformFullInt",
    sampling.full_int,
    FULL,
    "All integers of the dtype, each as likely as any other",
    "U\\{min, ..., max\\}",
)


@operator
class StatelessRandomUniformInt(OperatorDefinition):
    """Integers in [minval, maxval), each as likely as any other, a function of `seed`.

    .. math:: output_i \\sim U\\{minval, ..., maxval - 1\\}

    raises InvalidArgumentError unless minval < maxval
    """

    shape = Input(index, rank=1)
    seed = Input(SEEDS, rank=1)
    minval = Input(FULL, rank=0)
    maxval = Input(FULL, rank=0, like="minval")
    output = Output(like="minval")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        check_bounds(op)
        return infer_shape(op, op.minval.spec.dtype, FULL)

    def compute(op, shape: Any, seed: Any, minval: Any, maxval: Any) -> np.ndarray:
        check_order(minval, maxval)
        return sampling.uniform_int(keyed(seed), tuple(shape.tolist()), minval, maxval, of_numpy(minval.dtype))


@operator
class StatelessRandomGamma(OperatorDefinition):
    """Draws of the gamma distribution of rate 1, `shape` of them for each alpha, a function of `seed`.

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
        return sampling.gamma(keyed(seed), tuple(shape.tolist()), alpha)


@operator
class StatelessRandomPoisson(OperatorDefinition):
    """Draws of the Poisson distribution, `shape` counts for each rate, a function of `seed`.

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
        return sampling.poisson(keyed(seed), tuple(shape.tolist()), lam, op.dtype)


def _check_reaches(name: str, given: TensorShape, wanted: TensorShape) -> None:
    """A parameter must broadcast to the shape of the numbers. Raises InvalidArgumentError."""
    try:
        reaches = broadcast(given, wanted).is_compatible_with(wanted)
    except InvalidArgumentError:
        reaches = False
    if not reaches:
        raise InvalidArgumentError(what=f"{name} does not broadcast to shape", found=str(given), wanted=str(wanted))


@operator
class StatelessRandomBinomial(OperatorDefinition):
    """Successes among `counts` tries of chance `probs`, a function of `seed`.

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
            _check_reaches(name, getattr(op, name).spec.shape, spec.shape)
        return spec

    def compute(op, shape: Any, seed: Any, counts: Any, probs: Any) -> np.ndarray:
        return sampling.binomial(keyed(seed), tuple(shape.tolist()), counts, probs, op.output_dtype)


@operator
class StatelessMultinomial(OperatorDefinition):
    """Classes drawn by unnormalised log-probabilities, with replacement, a function of `seed`.

    .. math:: P(output_{b,k} = c) = \\frac{e^{logits_{b,c}}}{\\sum_j e^{logits_{b,j}}}
    """

    logits = Input(real, rank=2)
    num_samples = Input(index, rank=0, doc="how many to draw of each row")
    seed = Input(SEEDS, rank=1)
    output = Output()
    output_dtype = Attr(DType, default=int64)
    lod = "as logits"
    gradient = None

    def infer(op) -> TensorSpec:
        check_seed(op)
        return check_samples(op)

    def compute(op, logits: Any, num_samples: Any, seed: Any) -> np.ndarray:
        return sampling.categorical(keyed(seed), logits, int(num_samples), op.output_dtype)


@operator
class StatelessShuffle(OperatorDefinition):
    """Rows in a random order, a function of `seed`.

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
        return sampling.permuted(keyed(seed), value)
