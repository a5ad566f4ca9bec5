"""Sequences of different lengths, packed without padding. Public names as in `ow.sequence`."""

from .gru import dynamic_gru
from .lod_changes import lod_append, lod_reset, reshape, scatter
from .lstm import dynamic_lstm
from .nn import conv, softmax
from .padding import mask, pad, unpad
from .pooling import expand, expand_as, first_step, last_step, pool
from .rearrangement import concat, enumerate, erase, reverse, slice

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
