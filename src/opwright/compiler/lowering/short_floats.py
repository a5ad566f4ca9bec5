"""Operators whose float16 operands are computed on as float32, as the reference kernels do.

Lives here: `in_float32`, a decorator of rules.
Not here: operators that are element by element, whose expressions round themselves (compiler/kernels/expression.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...core.dtypes import float16, float32
from ..loops.expressions import arg, convert
from ..loops.forms import Buffer, Map
from .context import LoweringContext, Operand
from .registry import CATALOGUE, Rule


class Widened(LoweringContext):
    """A node as its rule would see it if its float16 operands and outputs were float32. The maps between them are among
    the node's forms, and become part of the kernels that read or write them."""

    __slots__ = ("_inputs", "_outputs")

    def __init__(self, ctx: LoweringContext) -> None:
        super().__init__(ctx.node, ctx.buffers)
        self.forms = ctx.forms
        self._inputs: dict[int, Operand] = {}
        self._outputs: dict[int, tuple[Operand, Operand]] = {}

    def optional(self, place: int) -> Operand | None:
        given = super().optional(place)
        if given is None or given.dtype is not float16:
            return given
        found = self._inputs.get(place)
        if found is None:
            wide = Buffer(f"{self.node.prefix}.{given.buffer.name}.wide", float32, given.shape)
            self.form(Map, wide, (given.buffer,), convert(arg(0, float16), float32))
            found = self._inputs[place] = given.with_buffer(wide)
        return found

    def output(self, shape: Sequence[int] | None = None, place: int = 0) -> Operand:
        asked = super().output(shape, place)
        if asked.dtype is not float16:
            return asked
        if place not in self._outputs:
            wide = Buffer(f"{asked.buffer.name}.wide", float32, asked.shape)
            self._outputs[place] = asked, asked.with_buffer(wide)
        return self._outputs[place][1]

    def close(self) -> None:
        """Round what the rule's forms have written."""
        for asked, wide in self._outputs.values():
            self.form(Map, asked.buffer, (wide.buffer,), convert(arg(0, float32), float16))


def in_float32(rule: Rule) -> Rule:
    """Decorator: a rule of float32 serves float16, too."""

    @functools.wraps(rule)
    def widened(ctx: LoweringContext) -> None:
        values = (*ctx.node.inputs[:1], *ctx.node.outputs) if ctx.node.dialect != CATALOGUE else ()
        if all(value is None or ctx.buffers.of(value).dtype is not float16 for value in values):
            rule(ctx)
            return
        wide = Widened(ctx)
        rule(wide)
        wide.close()

    return widened
