"""Convolution, depthwise convolution and projection a band of lines at a time, so that what lies between stays near.

Lives here: the selector of `Banded`.
Not here: where it pays (../loops/block_fusion.py), the kernels: each part's own selectors are asked for each band.

The lines that the first convolution makes lie in a ring, where the depthwise one finds those of its window: each band
asks for the lines it sees that are not made yet, and they take the places of lines that nobody will see again.

An image is cut into strands, so that threads do not wait for each other between the bands; each has memory of its own.
Lines that two strands see are computed by both.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..loops.buffers import Buffer, Ring, RowBand, ring_lines
from ..loops.ops import Banded, Contract, Depthwise, LoopOp
from . import NoKernel, selector
from .contractions_f32 import same_in_bands

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

STRANDS = 2
"""Threads that have something to do. Each strand more computes a few lines twice."""


@selector(Banded)
def select_banded(form: Banded, build: Builder) -> None:
    """Of a Depthwise with a Contract before it, after it or both."""
    (place,) = (i for i, part in enumerate(form.parts) if isinstance(part, Depthwise))
    middle = form.parts[place]
    before, after = form.parts[:place], form.parts[place + 1 :]
    if not all(same_in_bands(part) for part in form.parts if isinstance(part, Contract)):
        raise NoKernel("a convolution that is computed otherwise in bands than as a whole")
    assert isinstance(middle, Depthwise)
    number, height = middle.output.shape[:2]
    total = number * height

    def make_strand(strand: int) -> None:
        bands = _Bands(form.lines, before, middle, after, build)
        first, last = total * strand // STRANDS, total * (strand + 1) // STRANDS
        while first < last:
            n = first // height
            end = min(last, (n + 1) * height)
            bands.make(n, first - n * height, end - n * height)
            first = end

    build.strands(STRANDS, make_strand)


class _Bands:
    """The bands of one strand, with its memory."""

    def __init__(
        self, lines: int, before: tuple[LoopOp, ...], middle: Depthwise, after: tuple[LoopOp, ...], build: Builder
    ) -> None:
        self.lines, self.before, self.middle, self.after, self.build = lines, before, middle, after, build
        _, _, width, channels = middle.input.shape
        self.ring = Buffer("ring", middle.input.dtype, (ring_lines(middle.window, lines) * width, channels))
        _, _, out_width, out_channels = middle.output.shape
        self.band = Buffer("band", middle.output.dtype, (1, lines, out_width, out_channels))

    def make(self, n: int, first: int, last: int) -> None:
        """Lines [first, last) of image n of the output."""
        window, (_, height, width, channels) = self.middle.window, self.middle.input.shape
        size, stride, top = window.size[0], window.strides[0], window.padding[0]
        lines, kept = self.lines, ring_lines(window, self.lines)
        made = max(0, first * stride - top)
        shift = -((first + lines - 1) * stride + size - top) % kept  # what the first band sees ends where the ring does
        ring = Ring("ring", self.ring.dtype, (1, height, width, channels), of=self.ring, lines=kept, shift=shift)
        for start in range(first, last, lines):
            end = min(start + lines, last)
            seen = min(height, (end - 1) * stride + size - top)
            if self.before and made < seen:
                shape = (1, seen - made, width, channels)
                there = RowBand("ring", ring.dtype, shape, of=self.ring, first=(made + shift) % kept * width)
                self._contract(self.before[0], n, made, seen, there)
                made = seen
            self._depthwise(n, start, end, ring)
            for part in self.after:
                self._contract(part, n, start, end, lines_of(part.output, n, start, end))

    def _depthwise(self, n: int, start: int, end: int, ring: Ring) -> None:
        part, (top, bottom, left, right) = self.middle, self.middle.window.padding
        source = ring if self.before else lines_of(part.input, n, 0, part.input.shape[1])
        out = lines_of(part.output, n, start, end)
        operands = tuple(lines_of(b, n, start, end) if b.shape == part.output.shape else b for b in part.operands)
        if self.after:
            out = RowBand("band", out.dtype, out.shape, of=self.band)
        padding = top - start * part.window.strides[0], bottom, left, right
        window = dataclasses.replace(part.window, padding=padding)
        self.build.part(dataclasses.replace(part, output=out, input=source, operands=operands, window=window))

    def _contract(self, part: LoopOp, n: int, start: int, end: int, out: Buffer) -> None:
        """Lines [start, end) of a convolution of image n, written to `out`."""
        assert isinstance(part, Contract)
        window, height = part.window, part.input.shape[1]
        top, _, left, right = window.padding
        low = start * window.strides[0] - top
        high = (end - 1) * window.strides[0] - top + (window.size[0] - 1) * window.dilations[0] + 1
        there = max(0, low), min(height, high)
        if there[0] >= there[1]:
            raise NoKernel("lines that see nothing but padding")
        if part.input is self.middle.output:
            source: Buffer = RowBand("band", part.input.dtype, (1, end - start, *part.input.shape[2:]), of=self.band)
        else:
            source = lines_of(part.input, n, *there)
        window = dataclasses.replace(window, padding=(there[0] - low, high - there[1], left, right))
        operands = tuple(lines_of(b, n, start, end) if b.shape == part.output.shape else b for b in part.operands)
        self.build.part(dataclasses.replace(part, output=out, input=source, operands=operands, window=window))


def lines_of(image: Buffer, n: int, start: int, end: int) -> RowBand:
    """Lines [start, end) of image n."""
    _, height, width, channels = image.shape
    first = (n * height + start) * width
    return RowBand(image.name, image.dtype, (1, end - start, width, channels), of=image, first=first)
