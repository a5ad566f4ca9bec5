"""Fusion by row bands: convolution, depthwise convolution and projection of a few lines at a time, in cache.

Lives here: the selector of `Banded`.
Not here: the cost model (../loops/block_fusion.py), the kernels, which each part's selectors provide for each band.

The output lines of the first convolution are in a ring buffer, from which the depthwise convolution reads its window:
each band computes the lines of its window that are missing, in place of lines that are not read again.

An image is divided into strands, so that threads need no synchronization between bands; each has its own memory. Lines
that two strands read are computed by both.
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
"""Number of strands, and so of threads with work. Each additional strand computes a few lines twice."""


@selector(Banded)
def select_banded(form: Banded, build: Builder) -> None:
    """Select for a Depthwise with a Contract before it, after it or both."""
    (index,) = (i for i, part in enumerate(form.parts) if isinstance(part, Depthwise))
    middle = form.parts[index]
    before, after = form.parts[:index], form.parts[index + 1 :]
    if not all(same_in_bands(part) for part in form.parts if isinstance(part, Contract)):
        raise NoKernel("a convolution whose results in bands would differ")
    assert isinstance(middle, Depthwise)
    number, height = middle.output.shape[:2]
    total = number * height

    def make_strand(strand: int) -> None:
        bands = _StrandBuilder(form.lines, before, middle, after, build)
        first, last = total * strand // STRANDS, total * (strand + 1) // STRANDS
        while first < last:
            n = first // height
            end = min(last, (n + 1) * height)
            bands.add(n, first - n * height, end - n * height)
            first = end

    build.strands(STRANDS, make_strand)


class _StrandBuilder:
    """The steps of the bands of one strand, with its memory."""

    def __init__(
        self, lines: int, before: tuple[LoopOp, ...], middle: Depthwise, after: tuple[LoopOp, ...], build: Builder
    ) -> None:
        self.lines, self.before, self.middle, self.after, self.build = lines, before, middle, after, build
        _, _, width, channels = middle.input.shape
        self.ring = Buffer("ring", middle.input.dtype, (ring_lines(middle.window, lines) * width, channels))
        _, _, out_width, out_channels = middle.output.shape
        self.band = Buffer("band", middle.output.dtype, (1, lines, out_width, out_channels))

    def add(self, n: int, first: int, last: int) -> None:
        """Add the steps for lines [first, last) of image n of the output."""
        window, (_, height, width, channels) = self.middle.window, self.middle.input.shape
        size, stride, top = window.size[0], window.strides[0], window.padding[0]
        lines, capacity = self.lines, ring_lines(window, self.lines)
        computed = max(0, first * stride - top)
        shift = -((first + lines - 1) * stride + size - top) % capacity  # the first band's window ends with the ring
        ring = Ring("ring", self.ring.dtype, (1, height, width, channels), of=self.ring, lines=capacity, shift=shift)
        for start in range(first, last, lines):
            end = min(start + lines, last)
            needed = min(height, (end - 1) * stride + size - top)
            if self.before and computed < needed:
                shape = (1, needed - computed, width, channels)
                band = RowBand("ring", ring.dtype, shape, of=self.ring, first=(computed + shift) % capacity * width)
                self._contract(self.before[0], n, computed, needed, band)
                computed = needed
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
        """Add the steps for lines [start, end) of a convolution of image n, written to `out`."""
        assert isinstance(part, Contract)
        window, height = part.window, part.input.shape[1]
        top, _, left, right = window.padding
        low = start * window.strides[0] - top
        high = (end - 1) * window.strides[0] - top + (window.size[0] - 1) * window.dilations[0] + 1
        input_lines = max(0, low), min(height, high)
        if input_lines[0] >= input_lines[1]:
            raise NoKernel("lines with windows in the padding")
        if part.input is self.middle.output:
            source: Buffer = RowBand("band", part.input.dtype, (1, end - start, *part.input.shape[2:]), of=self.band)
        else:
            source = lines_of(part.input, n, *input_lines)
        window = dataclasses.replace(window, padding=(input_lines[0] - low, high - input_lines[1], left, right))
        operands = tuple(lines_of(b, n, start, end) if b.shape == part.output.shape else b for b in part.operands)
        self.build.part(dataclasses.replace(part, output=out, input=source, operands=operands, window=window))


def lines_of(image: Buffer, n: int, start: int, end: int) -> RowBand:
    """Return lines [start, end) of image n."""
    _, height, width, channels = image.shape
    first = (n * height + start) * width
    return RowBand(image.name, image.dtype, (1, end - start, width, channels), of=image, first=first)
