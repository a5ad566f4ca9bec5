"""One result out of the memory that several share.

Lives here: the selector of Part, its family.  Not here: forms that have several results (user_kernels.py, nms.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.ops import Part
from . import NoKernel, selector

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

BLOCK = 1 << 16  # bytes of an item


@kl.family
def copy_bytes(work, out: ptr[u8], source: ptr[u8], n: i64, block: i64):
    """Items: blocks of so many bytes."""
    for item in work.items():
        start = item * block
        kl.copy(out + start, source + start, kl.minimum(n - start, block))


@selector(Part)
def select_part(form: Part, build: Builder) -> None:
    """One copy."""
    if form.output.parent is not None:
        raise NoKernel("a slice of another buffer")
    n = math.prod(form.output.shape) * form.output.dtype.size
    build.step(
        copy_bytes.code(),
        [build.pointer(form.output), build.pointer(form.input).moved(form.start), n, BLOCK],
        -(-n // BLOCK),
    )
