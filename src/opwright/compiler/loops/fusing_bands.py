"""Rule of fusion for depthwise convolutions: with the convolutions before and after, a band of lines at a time.

Lives here: this rule, where it pays.  Not here: its place among the others (fusion.py), steps
(../kernels/row_band_fusion.py).

A depthwise convolution does a few operations with each number that it reads: it is as quick as what it reads from. What
a convolution before it wrote whole is far away where it is larger than a processor's own cache; a few lines of it are
not. The same is true of what a projection reads after it.
"""

from __future__ import annotations

from ..native.host import cache_bytes
from ..tuning.choices import BANDS, choose
from .forms import Banded, Buffer, Contract, Depthwise, Form, Window, ring_lines
from .rewriting import Rewriting

MUCH = 2
"""A tensor does not stay near from this share of the cache on: half of it, where the next one is as large."""
NEAR = 8
"""The share of the cache that lines between two parts may take: others need room, too, and fewer lines do as well."""
LINES = (16, 8, 4, 2)
"""Of the depthwise convolution's output in a band: even numbers, as its kernel makes two lines at a time."""


def into_bands(state: Rewriting, form: Depthwise) -> bool:
    """With a convolution whose result nobody else reads, and with the projection of its own result."""
    if not _can_be_cut(form):
        return False
    before, after = _before(state, form), _after(state, form)
    lines = _chosen(form, before, after)
    whole: Form = form
    if before is not None and lines:
        whole = Banded(form.output, (before, form), lines, origin=before.origin + form.origin)
        state.join(before, form, whole)
    if after is not None and lines:
        parts = whole.parts if isinstance(whole, Banded) else (form,)
        banded = Banded(after.output, (*parts, after), lines, origin=whole.origin + after.origin)
        state.join(whole, after, banded)
        whole = banded
    return whole is not form


def _chosen(form: Depthwise, before: Contract | None, after: Contract | None) -> int:
    """Lines in a band, or 0. By default there are bands where what a convolution before it writes is much, or what one
    after it reads."""
    parts = tuple(part for part in (before, form, after) if part is not None)
    much = (before is not None and _is_much(form.input)) or (after is not None and _is_much(form.output))
    default = _lines(form) if much else 0
    number, height, width, channels = form.output.shape
    fewer = before.input.shape[3] if before is not None else 0
    features = after.output.shape[3] if after is not None else 0
    ways = (0, *(n for n in LINES if n <= max(height, LINES[-1]))) if len(parts) > 1 else (0,)
    return choose(
        BANDS,
        ways,
        default,
        parts,
        number,
        height,
        width,
        channels,
        fewer,
        features,
        *form.window.size,
        form.window.strides[0],
        form.output.dtype.size,
    )


def _can_be_cut(form: Depthwise) -> bool:
    return (
        form.filter.constant is not None
        and form.multiplier == 1
        and not form.rounding
        and form.window.dilations == (1, 1)
        and len(form.output.shape) == 4
    )


def _before(state: Rewriting, form: Depthwise) -> Contract | None:
    x = form.input
    found = state.writer(x)
    alone = state.only_reader(x, form) and x.parent is None and x not in form.operands
    return found if isinstance(found, Contract) and alone and _is_plain(found) else None


def _after(state: Rewriting, form: Depthwise) -> Contract | None:
    y, pixel = form.output, Window((1, 1))
    found = next(iter(state.readers(y)), None)
    if not isinstance(found, Contract) or not state.only_reader(y, found) or y.parent is not None:
        return None
    reads = found.input is y and y not in found.operands
    return found if reads and found.window == pixel and _is_plain(found) else None


def _is_plain(form: Contract) -> bool:
    return form.filter.constant is not None and form.groups == 1 and not form.rounding and form.scales is None


def _is_much(b: Buffer) -> bool:
    return b.size * b.dtype.size > cache_bytes() // MUCH


def _lines(form: Depthwise) -> int:
    _, _, width, channels = form.input.shape
    line = width * channels * form.input.dtype.size
    return next((n for n in LINES if ring_lines(form.window, n) * line <= cache_bytes() // NEAR), LINES[-1])
