"""Random operators with a state: each run gives new numbers.

Lives here: RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal, RandomGamma, RandomPoisson,
RandomShuffle, Multinomial.  Not here: the functions over them (functions.py), operators of an explicit seed
(stateless.py).

seed, seed2, stream: which sequence is drawn from, as state.seeds_for gives them; all 0 for one nobody can repeat.
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import DType, any_dtype, float32, floating, index, int32, int64, of_numpy, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ..attributes import Attr
from ..definition import Input, Output, operator
from ..inference import shape_from
from . import samplers
from .state import generator_for


def drawn(attrs: Any) -> str:
    """The effect of drawing: a Generator's sequence goes on for whoever draws next, so no draw may be left out."""
    return "write" if attrs["stream"] < 0 else "random"


def infer_shape(op: Any, dtype: DType, allowed: tuple[DType, ...]) -> TensorSpec:
    """The spec of numbers of the shape that input `shape` says. Raises InvalidArgumentError for a dtype not allowed."""
    if dtype not in allowed:
        raise InvalidArgumentError(what="random numbers do not come in this dtype", found=dtype.name,
                                   wanted=f"one of {', '.join(d.name for d in allowed)}")  # fmt: skip
    sizes = op.shape.constant
    if sizes is not None and (sizes < 0).any():
        raise InvalidArgumentError(what=f"Dimension {sizes.min()} must be >= 0", found=f"shape {sizes.tolist()}")
    return TensorSpec(shape_from(op.shape), dtype)


def _one_dtype(name: str, sample: Any, words: str, distribution: str) -> Any:
    """An operator that draws floats of one distribution without parameters."""

    class Drawn:
        shape = Input(index, rank=1)
        output = Output()
        dtype = Attr(DType, default=float32)
        seed = Attr(int, default=0)
        seed2 = Attr(int, default=0)
        stream = Attr(int, default=0)
        effect = "random"
        effect_rule = drawn
        lod = "vanishes"
        gradient = None

        def infer(op) -> Any:
            return infer_shape(op, op.dtype, floating)

        def compute(op, shape) -> Any:
            return sample(generator_for(op), tuple(shape.tolist()), op.dtype)

    Drawn.__doc__ = f"{words}\n\n    .. math:: output_i \\sim {distribution}\n\n    shape: the output's sizes.\n    "
    return operator(name=name)(Drawn)


RandomUniform = _one_dtype("RandomUniform", samplers.uniform, "Floats spread evenly over [0, 1).", "U[0, 1)")
RandomStandardNormal = _one_dtype(
    "RandomStandardNormal", samplers.normal, "Floats of the standard normal distribution.", "N(0, 1)"
)
TruncatedNormal = _one_dtype(
    "TruncatedNormal",
    samplers.truncated_normal,
    "Floats of the standard normal distribution, cut off at two deviations.",
    "N(0, 1) \\;|\\; -2 < output_i < 2",
)


def check_bounds(op: Any) -> None:
    """minval must be below maxval. Raises InvalidArgumentError."""
    low, high = op.minval.constant, op.maxval.constant
    if low is not None and high is not None:
        check_order(low, high)


def check_order(low: Any, high: Any) -> None:
    """Raises InvalidArgumentError unless low < high."""
    if not low < high:
        raise InvalidArgumentError(what=f"Need minval < maxval, got {low} >= {high}")


@operator
class RandomUniformInt:
    """Integers in [minval, maxval), each as likely as any other.

    .. math:: output_i \\sim U\\{minval, ..., maxval - 1\\}

    raises InvalidArgumentError unless minval < maxval
    """

    shape = Input(index, rank=1)
    minval = Input((int32, int64), rank=0)
    maxval = Input((int32, int64), rank=0, like="minval")
    output = Output(like="minval")
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None

    def infer(op) -> Any:
        check_bounds(op)
        return infer_shape(op, op.minval.spec.dtype, (int32, int64))

    def compute(op, shape, minval, maxval) -> Any:
        check_order(minval, maxval)
        return samplers.uniform_int(generator_for(op), tuple(shape.tolist()), minval, maxval, of_numpy(minval.dtype))


@operator
class RandomGamma:
    """Draws of the gamma distribution of rate 1: `shape` of them for each alpha.

    .. math:: output \\sim \\frac{x^{alpha - 1} e^{-x}}{\\Gamma(alpha)}

    Output: [*shape, *alpha's shape]. raises InvalidArgumentError for an alpha that is not positive
    """

    shape = Input(index, rank=1)
    alpha = Input(floating)
    output = Output(like="alpha")
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None

    def infer(op) -> Any:
        spec = infer_shape(op, op.alpha.spec.dtype, floating)
        return spec.with_shape(spec.shape + op.alpha.spec.shape)

    def compute(op, shape, alpha) -> Any:
        return samplers.gamma(generator_for(op), tuple(shape.tolist()), alpha)


@operator
class RandomPoisson:
    """Draws of the Poisson distribution: `shape` counts for each rate.

    .. math:: P(output = k) = \\frac{rate^k e^{-rate}}{k!}

    Output: [*shape, *rate's shape], in dtype. Rates that are negative or not finite give NaN.
    """

    shape = Input(index, rank=1)
    rate = Input((*floating, int32, int64))
    output = Output()
    dtype = Attr(DType, default=int64)
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None

    def infer(op) -> Any:
        spec = infer_shape(op, op.dtype, (*floating, int32, int64))
        return spec.with_shape(spec.shape + op.rate.spec.shape)

    def compute(op, shape, rate) -> Any:
        return samplers.poisson(generator_for(op), tuple(shape.tolist()), rate, op.dtype)


@operator
class RandomShuffle:
    """Rows in a random order, every order as likely as any other.

    .. math:: output_i = value_{\\pi(i)}
    """

    value = Input(any_dtype)
    output = Output(like="value")
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    effect = "random"
    effect_rule = drawn
    lod = "vanishes"
    gradient = None
    views = {"output": "value"}

    def compute(op, value) -> Any:
        return samplers.permuted(generator_for(op), value)


def check_samples(op: Any) -> TensorSpec:
    """The spec of draws from rows of logits. Raises InvalidArgumentError."""
    if op.output_dtype not in index:
        raise InvalidArgumentError(what="output_dtype is int32 or int64", found=op.output_dtype.name)
    n = op.num_samples.constant
    if n is not None and n < 0:
        raise InvalidArgumentError(what=f"num_samples should be nonnegative, got {n}")
    shape = op.logits.spec.shape
    return TensorSpec([shape[0] if shape.rank == 2 else None, None if n is None else int(n)], op.output_dtype)


@operator
class Multinomial:
    """Classes drawn by unnormalised log-probabilities, with replacement.

    .. math:: P(output_{b,k} = c) = \\frac{e^{logits_{b,c}}}{\\sum_j e^{logits_{b,j}}}

    logits: [batch, classes]; num_samples: a scalar. Output: [batch, num_samples] of output_dtype.
    """

    logits = Input(real, rank=2)
    num_samples = Input(index, rank=0)
    output = Output()
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    output_dtype = Attr(DType, default=int64)
    effect = "random"
    effect_rule = drawn
    lod = "as logits"
    gradient = None

    def infer(op) -> Any:
        return check_samples(op)

    def compute(op, logits, num_samples) -> Any:
        return samplers.categorical(generator_for(op), logits, int(num_samples), op.output_dtype)
