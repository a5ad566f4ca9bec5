"""Random numbers under TensorFlow's names: RandomUniform, RandomUniformInt, RandomStandardNormal, Multinomial.

Lives here: these operators.  Not here: the builtin ones (lite/ops/random.py).

The official kernels of these draw from the C++ library's generator, whatever the seeds, so only the law is the same.
Here they draw as the builtin operators do: from the seeds in the options, other numbers each time where both are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, float64, int8, int32, int64
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ...scalar.counter_generators import doubles
from ..ops import types
from ..ops.definition import EnumAttr, LiteDefinition
from ..ops.random import classes_of, filled_spec, generator_of, resume, sampled_spec, seeds_of
from ..ops.shapes import check_one, refuse
from .definition import CustomOperator, custom_operator

_INDEX = (int32, int64)


def _numbers(op: Any, sizes: Any) -> np.ndarray:
    """Draw independent float64 in [0, 1) of these sizes."""
    count = int(np.prod(sizes, dtype=np.int64))
    return doubles(generator_of(op).words(2 * count)).reshape(sizes)


def _normal(op: Any, sizes: Any) -> np.ndarray:
    """Draw independent standard normal float64 by the Box-Muller transform."""
    radii, turns = _numbers(op, (2, *sizes))
    result: np.ndarray = np.sqrt(-2.0 * np.log1p(-radii)) * np.cos(2.0 * np.pi * turns)
    return result


def _filled(name: str, draw: Any, law: str) -> CustomOperator:
    """Define an operator that fills a shape with floats."""

    def infer(op: Any) -> TensorSpec:
        dtype = types.dtype_of(op.dtype)
        if dtype not in (float32, float64):
            raise refuse("random numbers are not of this type", found=op.dtype, wanted="FLOAT32 or FLOAT64")
        return filled_spec(op, dtype)

    def compute(op: Any, shape: np.ndarray) -> np.ndarray:
        dtype = types.dtype_of(op.dtype).np.type
        numbers = draw(op, [int(d) for d in shape]).astype(dtype)
        # rounding to float32 may give 1, which is outside the law
        result: np.ndarray = np.minimum(numbers, np.nextafter(dtype(1), dtype(0))) if draw is _numbers else numbers
        return result

    body = {
        "__doc__": "A tensor of independent random numbers.\n\n"
        f".. math:: y_i \\sim {law}\n\nshape: int32 or int64 [rank]",
        "__module__": __name__,
        "shape": Input(_INDEX, rank=1),
        "y": Output(),
        "seed": Attr(int, default=0),
        "seed2": Attr(int, default=0),
        "dtype": EnumAttr("TensorType", 0),
        "generator": Attr(object, default=None),
        "infer": infer,
        "compute": compute,
        "resume": resume,
        "seeds": seeds_of,
    }
    return custom_operator(name, typed_by="dtype")(type(name, (), body))


_filled("RandomUniform", _numbers, "U[0, 1)")
_filled("RandomStandardNormal", _normal, "N(0, 1)")


@custom_operator("RandomUniformInt", typed_by="dtype")
class RandomUniformIntOp(LiteDefinition):
    """A tensor of independent random integers.

    .. math:: y_i \\sim U\\{minval, ..., maxval - 1\\}

    shape: int32 or int64 [rank]; minval, maxval: one number each, of the output's type
    """

    shape = Input(_INDEX, rank=1)
    minval = Input((int8, int32, int64))
    maxval = Input((int8, int32, int64), like="minval")
    y = Output()
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    dtype = EnumAttr("TensorType", 2)
    generator = Attr(object, default=None)
    resume, seeds = resume, seeds_of

    def infer(op: Any) -> TensorSpec:
        for operand in (op.minval, op.maxval):
            check_one(operand, "a limit")
        return filled_spec(op, op.minval.spec.dtype)

    def compute(op: Any, shape: np.ndarray, minval: np.ndarray, maxval: np.ndarray) -> np.ndarray:
        low, high = int(minval.reshape(-1)[0]), int(maxval.reshape(-1)[0])
        if low >= high:
            raise refuse("minval is not below maxval", found=[low, high], wanted="minval < maxval")
        span = high - low
        numbers = _numbers(op, [int(d) for d in shape])
        drawn = (numbers * span).astype(np.uint64) if span < 2**63 else (numbers * 2.0**63).astype(np.uint64) * 2
        return (np.minimum(drawn, np.uint64(span - 1)) + np.uint64(low % 2**64)).astype(np.int64).astype(minval.dtype)


@custom_operator("Multinomial", typed_by="output_dtype")
class CustomMultinomialOp(LiteDefinition):
    """Random classes, each by the weights that its row of logits gives.

    .. math:: P(y_{ij} = c) = e^{logits_{ic}} / \\sum_k e^{logits_{ik}}

    logits: [batch, classes]; num_samples: int32, one number; y: [batch, num_samples]. Logits that are not finite count
    as minus infinity.
    """

    logits = Input((float32, float64), rank=2)
    num_samples = Input((int32,), rank=0)
    y = Output()
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    output_dtype = EnumAttr("TensorType", 4)
    generator = Attr(object, default=None)
    resume, seeds = resume, seeds_of

    def infer(op: Any) -> TensorSpec:
        return sampled_spec(op, op.output_dtype)

    def compute(op: Any, logits: np.ndarray, num_samples: np.ndarray) -> np.ndarray:
        numbers = _numbers(op, (len(logits), int(num_samples)))
        classes = np.minimum(classes_of(logits, numbers), logits.shape[1] - 1)
        result: np.ndarray = classes.astype(types.dtype_of(op.output_dtype).np)
        return result
