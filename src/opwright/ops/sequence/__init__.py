"""Sequences of different lengths, packed without padding. Public names as in `ow.sequence`."""

from .context import conv
from .expanding import expand, expand_as
from .gru import dynamic_gru
from .joining import concat, reverse, slice
from .lstm import dynamic_lstm
from .padding import mask, pad, unpad
from .pooling import first_step, last_step, pool
from .reshaping import lod_append, lod_reset, reshape, scatter
from .softmax import softmax
from .tokens import enumerate, erase

__all__ = [
    "concat",
    "conv",
    "dynamic_gru",
    "dynamic_lstm",
    "enumerate",
    "erase",
    "expand",
    "expand_as",
    "first_step",
    "last_step",
    "lod_append",
    "lod_reset",
    "mask",
    "pad",
    "pool",
    "reshape",
    "reverse",
    "scatter",
    "slice",
    "softmax",
    "unpad",
]
