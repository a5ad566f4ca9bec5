"""Rules of products of tensors.

Lives here: dot_general with any dimension numbers, as MatMul. Not here: convolutions (convolution.py).
"""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from ....core.dtypes import as_dtype
from ....ops import linalg
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import cast, dims, reshape, sized, transpose


@RULES.rule("dot_general")
def dot_general(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the sums of products over contracting axes: [batch..., free of a..., free of b...]."""
    (a_contracting, b_contracting), (a_batch, b_batch) = params["dimension_numbers"]
    a, b = inputs
    target = context.dtype
    if target.is_bool:
        raise ValueError("products of bool have no operator; convert to int32")
    a, b = cast(a, target), cast(b, target)
    a, a_free, swap_a = _matrix(a, a_batch, a_contracting, contracting_last=True)
    b, b_free, swap_b = _matrix(b, b_batch, b_contracting, contracting_last=False)
    result = linalg.matmul(tensor_of(a), tensor_of(b), transpose_a=swap_a, transpose_b=swap_b)
    batch = [dims(inputs[0])[i] for i in a_batch]
    result = sized(result, [*batch, numbers.prod(a_free), numbers.prod(b_free)])
    return cast(reshape(result, [*batch, *a_free, *b_free]), as_dtype(target))


def _matrix(
    x: Any, batch: Sequence[int], contracting: Sequence[int], contracting_last: bool
) -> tuple[Any, list[int], bool]:
    """Return x as matrices [batch..., m, n], the sizes of its free axes, and whether they are to be transposed."""
    sizes = dims(x)
    free = [i for i in range(len(sizes)) if i not in batch and i not in contracting]
    wanted = [*batch, *free, *contracting] if contracting_last else [*batch, *contracting, *free]
    swapped = [*batch, *contracting, *free] if contracting_last else [*batch, *free, *contracting]
    order = list(range(len(sizes)))
    is_swapped = swapped == order and wanted != order
    x = x if is_swapped else transpose(x, wanted)
    rows = numbers.prod(sizes[i] for i in free)
    depth = numbers.prod(sizes[i] for i in contracting)
    matrix = [rows, depth] if contracting_last != is_swapped else [depth, rows]
    return reshape(x, [*(sizes[i] for i in batch), *matrix]), [sizes[i] for i in free], is_swapped
