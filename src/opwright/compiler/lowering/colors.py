"""Colors of pixels: between red, green, blue and hue, saturation, value.

Lives here: the rules of RGBToHSV, HSVToRGB, AdjustHue and AdjustSaturation.
Not here: their formulas (ops/image/color_spaces.py), contrast (composed_functions.py).

Channels are arrays of their own: three moves read them, and one writes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.dtypes import float32
from ...ops.image.color_spaces import CENTRES, OFFSETS, SIGNS
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.ops import Map, Move
from .context import LoweringContext, NoLowering
from .operand_expressions import truth
from .registry import rule

CHANNELS = 3


def _number(value: float) -> Expr:
    return const(float(value), float32)


def _select(condition: Expr, x: Expr, y: Expr) -> Expr:
    return Expr("select", float32, (condition, x, y))


class _Pixels:
    """The pixels of a node's input, [n, 3] of float32, and of its output. raises NoLowering for other types"""

    def __init__(self, ctx: LoweringContext) -> None:
        x = ctx.operand(0)
        if x.dtype is not float32 or not x.size:
            raise NoLowering(f"pixels {x}")
        self.ctx, self.count = ctx, x.size // CHANNELS
        self.channels = [self._channel(x.buffer, i) for i in range(CHANNELS)]

    def _channel(self, x: Buffer, index: int) -> Buffer:
        channel = self.ctx.new(float32, (self.count,), f".channel{index}")
        self.ctx.add(Move, channel, (x,), (IndexMap((0,), (self.count,), index, (CHANNELS,)),))
        return channel

    def map(self, name: str, value: Expr, *operands: Buffer) -> Buffer:
        """Return an expression of each pixel."""
        result = self.ctx.new(float32, (self.count,), f".{name}")
        self.ctx.add(Map, result, operands, value)
        return result

    def write(self, channels: Sequence[Buffer]) -> None:
        """Write the channels of the output."""
        boxes = tuple(IndexMap((0, i), (self.count, 1), 0, (1, 1)) for i in range(CHANNELS))
        with self.ctx.reshaped(self.ctx.output(), (self.count, CHANNELS)) as out:
            self.ctx.add(Move, out, tuple(channels), boxes)

    def extremes(self) -> tuple[Buffer, Buffer]:
        """Return the largest channel and its distance from the smallest."""
        args = [arg(i, float32) for i in range(CHANNELS)]
        top, low = (apply(op, apply(op, args[0], args[1]), args[2]) for op in ("ieee_maximum", "ieee_minimum"))
        return self.map("top", top, *self.channels), self.map("span", apply("sub", top, low), *self.channels)

    def hue(self, top: Buffer, span: Buffer) -> Buffer:
        """Return the hue in [0, 1), 0 for gray."""
        red, green, blue, most, width = (arg(i, float32) for i in range(5))
        norm = apply("div", _number(1), apply("mul", _number(6), width))

        def part(a: Expr, b: Expr) -> Expr:
            return apply("mul", norm, apply("sub", a, b))

        other = _select(
            truth("equal", green, most),
            apply("add", part(blue, red), _number(2 / 6)),
            apply("add", part(red, green), _number(4 / 6)),
        )
        h = _select(truth("equal", red, most), part(green, blue), other)
        h = _select(truth("greater", width, _number(0)), h, _number(0))
        h = _select(truth("less", h, _number(0)), apply("add", h, _number(1)), h)
        return self.map("hue", h, *self.channels, top, span)

    def saturation(self, top: Buffer, span: Buffer) -> Buffer:
        """Return the share of the largest channel that is color, 0 for black."""
        most, width, zero = arg(0, float32), arg(1, float32), _number(0)
        is_lit = truth("greater", most, zero)
        share = apply("div", width, _select(is_lit, most, _number(1)))
        return self.map("saturation", _select(is_lit, share, zero), top, span)


def _pure(h: Expr, channel: int) -> Expr:
    """Return a channel of the color of a hue, with saturation and value 1."""
    centre, sign, offset = (_number(a[channel]) for a in (CENTRES, SIGNS, OFFSETS))
    ramp = apply("mul", apply("abs", apply("sub", apply("mul", h, _number(6)), centre)), sign)
    raw = apply("add", ramp, offset)
    return apply("ieee_minimum", apply("ieee_maximum", raw, _number(0)), _number(1))


def _write_colors(pixels: _Pixels, h: Buffer, s: Buffer, v: Buffer) -> None:
    """Write the colors of hue, saturation and value."""
    hue, saturation, value = (arg(i, float32) for i in range(3))
    gray = apply("sub", _number(1), saturation)

    def channel(i: int) -> Expr:
        return apply("mul", apply("add", gray, apply("mul", saturation, _pure(hue, i))), value)

    pixels.write([pixels.map(f"color{i}", channel(i), h, s, v) for i in range(CHANNELS)])


@rule("RGBToHSV")
def rgb_to_hsv(ctx: LoweringContext) -> None:
    pixels = _Pixels(ctx)
    top, span = pixels.extremes()
    pixels.write([pixels.hue(top, span), pixels.saturation(top, span), top])


@rule("HSVToRGB")
def hsv_to_rgb(ctx: LoweringContext) -> None:
    pixels = _Pixels(ctx)
    _write_colors(pixels, *pixels.channels)


@rule("AdjustHue")
def adjust_hue(ctx: LoweringContext) -> None:
    """Lower a rotation of hues: the smallest channel, and the rest as the pure color of the new hue."""
    pixels, delta = _Pixels(ctx), ctx.operand(1)
    top, span = pixels.extremes()
    moved = apply("add", arg(0, float32), convert(arg(1, delta.dtype), float32))
    rotated = pixels.map(
        "rotated", apply("floor_mod", moved, _number(1)), pixels.hue(top, span), ctx.viewed(delta.buffer, ())
    )
    hue, most, width = (arg(i, float32) for i in range(3))
    low = pixels.map("low", apply("sub", arg(0, float32), arg(1, float32)), top, span)
    colors = [apply("add", most, apply("mul", width, _pure(hue, i))) for i in range(CHANNELS)]
    pixels.write([pixels.map(f"color{i}", color, rotated, low, span) for i, color in enumerate(colors)])


@rule("AdjustSaturation")
def adjust_saturation(ctx: LoweringContext) -> None:
    pixels, scale = _Pixels(ctx), ctx.operand(1)
    top, span = pixels.extremes()
    scaled = apply("mul", arg(0, float32), convert(arg(1, scale.dtype), float32))
    bounded = apply("ieee_minimum", apply("ieee_maximum", scaled, _number(0)), _number(1))
    saturation = pixels.map("scaled", bounded, pixels.saturation(top, span), ctx.viewed(scale.buffer, ()))
    _write_colors(pixels, pixels.hue(top, span), saturation, top)
