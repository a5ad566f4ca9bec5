"""Rules for random numbers.

Lives here: distributions built on RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL.
Not here: the Stateless* operators, whose numbers are a function of their seed, and distributions drawn by rejection:
these have no lite form.

The numbers are the official run time's, not this library's: of the same distribution, with the same rules of seeds. Run
times keep 32 bits of each seed, so the others are folded into these.
"""

from __future__ import annotations

from typing import Any

from ....core.dtypes import float32, int32, int64
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, Rewrite, RuleResult, constant_of, only, rank_of, rule_table, size_along

EXACT = 1 << 23  # the number of distinct uniform values: integer ranges much smaller than this are uniform


def _folded(seed: int) -> int:
    folded = (seed ^ seed >> 32) & 0xFFFFFFFF
    return folded - (1 << 32) if folded >> 31 else folded


def _seeds(node: Node) -> dict[str, Any]:
    seed, seed2 = (int(node.attrs[name]) for name in ("seed", "seed2"))
    seeds = {"seed": _folded(seed), "seed2": _folded(seed2)}
    if (seed, seed2) != (0, 0) and not any(seeds.values()):
        seeds["seed2"] = 1
    return seeds


def _drawn(lite: str) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (shape,) = node.operands
        if node.attrs["dtype"] is not float32:
            return NoMatch(f"{lite} gives float32")
        return rewriter.emit(lite, rewriter.int32(shape), **_seeds(node), like=node.outputs[0].spec)

    return lower


def _uniform_int(node: Node, rewriter: LiteRewriter) -> RuleResult:
    shape, least, limit = node.operands
    only(least, int32, int64)
    width = int(constant_of(limit, "maxval")) - int(constant_of(least, "minval"))
    if not 0 < width <= EXACT >> 8:
        return NoMatch(f"a range of at most {EXACT >> 8} numbers can be drawn evenly, found {width}")
    u = rewriter.emit("RANDOM_UNIFORM", rewriter.int32(shape), **_seeds(node))
    steps = rewriter.emit("FLOOR", rewriter.emit("MUL", u, rewriter.constant(float(width), float32)))
    return rewriter.emit("ADD", rewriter.cast(steps, least.dtype), least, like=node.outputs[0].spec)


def _multinomial(node: Node, rewriter: LiteRewriter) -> RuleResult:
    logits, count = node.operands
    only(logits, float32)
    dtype = node.attrs["output_dtype"]
    if dtype not in (int32, int64):
        return NoMatch("MULTINOMIAL gives int32 or int64")
    return rewriter.emit(
        "MULTINOMIAL",
        logits,
        rewriter.int32(count),
        output_type=dtype.name.upper(),
        **_seeds(node),
        like=node.outputs[0].spec,
    )


def _shuffle(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if rank_of(x) == 0:
        return x
    n: Value = size_along(rewriter, x, 0)
    shape = (
        rewriter.int32([int(n.constant)])
        if n.constant is not None
        else rewriter.emit("RESHAPE", n, rewriter.int32([1]))
    )
    keys = rewriter.emit("RANDOM_UNIFORM", shape, **_seeds(node))
    _, order = rewriter.emit_many("TOPK_V2", keys, n)
    return rewriter.emit("GATHER", x, order, axis=0, like=node.outputs[0].spec)


RANDOM = rule_table(
    RewriteRule("random_uniform", "RandomUniform", _drawn("RANDOM_UNIFORM")),
    RewriteRule("random_standard_normal", "RandomStandardNormal", _drawn("RANDOM_STANDARD_NORMAL")),
    RewriteRule(
        "random_uniform_int", "RandomUniformInt", _uniform_int, "of a small range, each as likely to 2^-15 of itself"
    ),
    RewriteRule("multinomial", "Multinomial", _multinomial),
    RewriteRule(
        "shuffle_by_keys", "RandomShuffle", _shuffle, "the order of random keys is any order, but for equal keys"
    ),
)
