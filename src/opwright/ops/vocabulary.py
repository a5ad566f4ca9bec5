"""What parts of operators that many have in common mean: said once, here.

Lives here: `COMMON` and `meaning`.  Not here: what a part means in one operator alone (`doc=`, or its docstring).
"""

from __future__ import annotations

import re
from typing import Any

COMMON = {
    # tensors
    "input": "the tensor it works on",
    "input_": "the tensor it works on",
    "output": "the result",
    "handle": "the variable",
    "iterator": "the iterator, by handle",
    "orig_input": "the input of the operator whose gradient this is",
    "orig_output": "the output of the operator whose gradient this is",
    # axes and shapes
    "axis": "the dimension it works along; negative ones count from the last",
    "batch_dims": "how many leading dimensions are batches",
    "keep_dims": "whether reduced dimensions stay, with size 1",
    "shape": "the sizes of the result",
    "element_shape": "the shape of each element, as far as it is known",
    "shapes": "the shape of each component",
    # types
    "dtype": "the type of the result",
    "dtypes": "the type of each component",
    "out_type": "the type of the result",
    "output_dtype": "the type of the result",
    "index_type": "the type of the indices it gives",
    "element_dtype": "the type of each element",
    # windows
    "data_format": "where the channels are: last (NHWC, NDHWC) or after the batch (NCHW, NCDHW)",
    "ksize": "the window's size in each dimension",
    "strides": "the step of the window, or of the slice, in each dimension",
    "padding": "SAME, VALID, or EXPLICIT with explicit_paddings",
    "explicit_paddings": "elements added before and after each dimension",
    "dilations": "the step between the filter's elements in each dimension",
    # slices: bit masks, bit i for index i
    "begin": "where the slice begins in each dimension",
    "end": "where the slice ends in each dimension, itself left out",
    "begin_mask": "bits of the indices whose begin is left out",
    "end_mask": "bits of the indices whose end is left out",
    "ellipsis_mask": "the bit of the index that is an ellipsis",
    "new_axis_mask": "bits of the indices that are new dimensions of size 1",
    "shrink_axis_mask": "bits of the indices that take one element and drop the dimension",
    # matrices
    "transpose_a": "whether the first matrix is transposed",
    "transpose_b": "whether the second matrix is transposed",
    "adjoint_a": "whether the first matrix is transposed and conjugated",
    "adjoint_b": "whether the second matrix is transposed and conjugated",
    # images
    "align_corners": "whether the centres of the corner pixels stay where they are",
    "half_pixel_centers": "whether pixels have their centres at halves",
    "antialias": "whether the kernel widens where the image becomes smaller",
    "kernel_type": "the sampling kernel, by name",
    "method": "how pixels are interpolated",
    "scale": "the factor in each dimension",
    "translation": "the shift in each dimension",
    # random numbers
    "seed": "with seed2 what the numbers follow from; both 0 for new ones each run",
    "seed2": "with seed what the numbers follow from; both 0 for new ones each run",
    "stream": "which generator they come from, so that equal calls differ",
    # text
    "separator": "what stands between the parts",
    "unit": "whether positions count bytes or characters",
    "input_encoding": "the encoding of what it reads",
    "output_encoding": "the encoding of what it gives",
    "replacement_char": "the code point in place of wrong ones",
    # sequences
    "offsets": "the offsets of the sequences' rows",
    "activation": "the function of the new state, by name",
    "gate_activation": "the function of the gates, by name",
    "cell_activation": "the function of the cell where it leaves, by name",
    "candidate_activation": "the function of what may enter the cell, by name",
    "is_reverse": "whether sequences are gone through from their end",
    "use_peepholes": "whether the gates see the cell",
    "pooltype": "how rows become one, by name",
    "context_length": "how many rows a window has",
    "context_start": "where the window begins, counted from its row",
    "h0": "the state before the first step of each sequence",
    "c0": "the cell before the first step of each sequence",
    "batch_gate": "the gates as the forward call kept them",
    "batch_hidden": "the states as the forward call kept them",
    "batch_reset_hidden_prev": "the reset states as the forward call kept them",
    "batch_cell_pre_act": "the cells as the forward call kept them",
    "cell": "the cells as the forward call gave them",
    # programs
    "recipe": "what makes the elements",
}


def meaning(op: Any, part: Any) -> str:
    """What a part of an operator means: its own `doc=`, else the words all operators share; empty without either."""
    if part.doc:
        return str(part.doc)
    of = getattr(part, "lod_of", None)
    return f"the offsets of the sequences of {of}" if of else COMMON.get(part.name, "")


def is_said(op: Any, part: Any) -> bool:
    """Whether anything says what a part means: `doc=`, the operator's docstring by the part's name, or COMMON."""
    return bool(meaning(op, part)) or is_named(part.name, op.doc)


def is_named(name: str, text: str) -> bool:
    """Whether a text has this name, by itself or within a formula; indices such as x_i and x[i] name x."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9])", text.replace("\\_", "_")) is not None
