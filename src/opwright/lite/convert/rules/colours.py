"""Rules for colours: between RGB and HSV, contrast, saturation and hue.

Lives here: these, taken apart into arithmetic.  Not here: sizes of images (images.py).
"""

from __future__ import annotations

from ....core.dtypes import float32
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, RuleResult, rule_table
from .building import number, only, rank_of


def _channels(low: LiteRewriter, x: Value) -> tuple[Value, ...]:
    """The three channels, each with the last dimension kept."""
    return low.emit_many("SPLIT", low.constant(-1 + rank_of(x), low.int32([0]).dtype), x, num_splits=3)


def _joined(low: LiteRewriter, parts: tuple[Value, ...]) -> Value:
    return low.emit("CONCATENATION", parts, axis=rank_of(parts[0]) - 1)


def _clipped(low: LiteRewriter, x: Value) -> Value:
    """Within [0, 1]."""
    return low.emit("MINIMUM", low.emit("MAXIMUM", x, number(low, 0, x)), number(low, 1, x))


def _to_hsv(low: LiteRewriter, x: Value) -> tuple[Value, Value, Value]:
    only(x, float32)
    r, g, b = _channels(low, x)
    value = low.emit("MAXIMUM", low.emit("MAXIMUM", r, g), b)
    least = low.emit("MINIMUM", low.emit("MINIMUM", r, g), b)
    d = low.emit("SUB", value, least)
    zero = number(low, 0, x)

    def or_zero(condition: Value, quotient: Value) -> Value:
        return low.emit("SELECT_V2", condition, quotient, zero)

    saturation = or_zero(low.emit("GREATER", value, zero), low.emit("DIV", d, value))

    def sixth(p: Value, q: Value, turn: float) -> Value:
        quotient = low.emit("DIV", low.emit("SUB", p, q), d)
        return low.emit("ADD", quotient, number(low, turn, x)) if turn else quotient

    by_green = low.emit("SELECT_V2", low.emit("EQUAL", g, value), sixth(b, r, 2), sixth(r, g, 4))
    sixths = low.emit("SELECT_V2", low.emit("EQUAL", r, value), sixth(g, b, 0), by_green)
    hue = low.emit("MUL", or_zero(low.emit("GREATER", d, zero), sixths), number(low, 1 / 6, x))
    negative = low.emit("LESS", hue, zero)
    return low.emit("SELECT_V2", negative, low.emit("ADD", hue, number(low, 1, x)), hue), saturation, value


def _to_rgb(low: LiteRewriter, hue: Value, saturation: Value, value: Value) -> Value:
    six = low.emit("MUL", hue, number(low, 6, hue))

    def tent(at: float, sign: str) -> Value:
        """|6 H - 3| - 1 or 2 - |6 H - at|, within [0, 1]."""
        away = low.emit("ABS", low.emit("SUB", six, number(low, at, hue)))
        return _clipped(
            low,
            low.emit("SUB", away, number(low, 1, hue)) if sign == "+" else low.emit("SUB", number(low, 2, hue), away),
        )

    parts = []
    for f in (tent(3, "+"), tent(2, "-"), tent(4, "-")):
        mixed = low.emit("ADD", low.emit("SUB", number(low, 1, hue), saturation), low.emit("MUL", saturation, f))
        parts.append(low.emit("MUL", value, mixed))
    return _joined(low, tuple(parts))


def _rgb_to_hsv(node: Node, low: LiteRewriter) -> RuleResult:
    return _joined(low, _to_hsv(low, next(node.operands)))


def _hsv_to_rgb(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    only(x, float32)
    return _to_rgb(low, *_channels(low, x))


def _adjust_hue(node: Node, low: LiteRewriter) -> RuleResult:
    x, delta = node.operands
    hue, saturation, value = _to_hsv(low, x)
    turned = low.emit("FLOOR_MOD", low.emit("ADD", hue, delta), number(low, 1, x))
    return _to_rgb(low, turned, saturation, value)


def _adjust_saturation(node: Node, low: LiteRewriter) -> RuleResult:
    x, scale = node.operands
    hue, saturation, value = _to_hsv(low, x)
    return _to_rgb(low, hue, _clipped(low, low.emit("MUL", saturation, scale)), value)


def _adjust_contrast(node: Node, low: LiteRewriter) -> RuleResult:
    x, factor = node.operands
    only(x, float32)
    rank = rank_of(x)
    mean = low.emit("MEAN", x, low.int32([rank - 3, rank - 2]), keep_dims=True)
    return low.emit("ADD", low.emit("MUL", low.emit("SUB", x, mean), factor), mean)


COLOURS = rule_table(
    RewriteRule("rgb_to_hsv", "RGBToHSV", _rgb_to_hsv, "its definition"),
    RewriteRule("hsv_to_rgb", "HSVToRGB", _hsv_to_rgb, "its definition"),
    RewriteRule("adjust_hue", "AdjustHue", _adjust_hue, "its definition, by way of HSV"),
    RewriteRule("adjust_saturation", "AdjustSaturation", _adjust_saturation, "its definition, by way of HSV"),
    RewriteRule("adjust_contrast", "AdjustContrast", _adjust_contrast, "its definition"),
)
