"""Measure the justification of each algorithm by shape: `python -m benchmarks.strategies`, `make bench-strategies`.

Lives here: for each row of ops/strategies.py shapes that models have, inside the region where it is taken and just
outside; both algorithms timed on them in turn; `benchmarks/results/strategies.json`.
Not here: the algorithms, which are in the modules of their operators; figures against targets and peers (rows.py).

Predicted: inside its region an algorithm takes at most 1/1.2 of the plain one's time on the median of the shapes below,
and on none more than the plain one, as it makes fewer passes over memory (one_hot, segment_sum_rising), sorts less
(top_k_*), calls BLAS once (matmul_flat, conv_point, segment_sum_few), or copies less (conv_taps). Measured: in the
results; what does not is said there as `"kept": false`. What was tried and lost, by this measure: writing slices in
place of np.concatenate (1.1 to 14 times slower), fancy indexing and mode="clip" in place of np.take (0.8 to 1.9 times
its time), broadcast copies in place of np.tile (1.1 to 7), scans along the axis in place of moving it (1.0 but for
arrays of 100 numbers), einsum for batches of matrices (1.5 to 20; for columns of 3 it won by 1.9 in one run and lost
by 2.2 in the next). The plain ways stay there.
Exit code 1 where a row loses inside its region.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks import measure

os.environ.update(measure.QUIET)

import numpy as np

import opwright as ow
from opwright.ops import registry
from opwright.ops.strategies import TABLE, Strategies, Strategy
from opwright.ops.windows import window

registry.load_all()  # every operator puts its strategies into TABLE
RESULTS = Path(__file__).resolve().parent / "results" / "strategies.json"
WANTED = 1.2
_rng = np.random.default_rng(20)


def _floats(*shape: int) -> Any:
    return _rng.standard_normal(shape).astype(np.float32)


def _segments(n: int, width: int, segments: int, rising: bool = False) -> Any:
    ids = _rng.integers(0, segments, n)
    data = _floats(n, width) if width else _floats(n)
    return data, np.sort(ids) if rising else ids, segments


def _conv(image: tuple[int, ...], kernel: tuple[int, ...], stride: int = 1) -> Any:
    return _floats(*image), _floats(*kernel), [window(image[1 + i], kernel[i], stride, 1, "SAME") for i in range(2)]


def _call(op: str) -> Any:
    attrs = {"Concat": {"axis": 1}, "Conv2D": {"strides": [1, 1, 1, 1], "padding": "SAME"}}
    return ow.ops.get(op).bind(attrs.get(op, {}))


def _one_hot(n: int, depth: int) -> Any:
    return _rng.integers(0, depth, n), np.int32(depth), np.float32(1), np.float32(0)


def _columns(n: int, count: int) -> Any:
    return ([_floats(n, 1) for _ in range(count)],)


CASES: dict[str, tuple[str, list[Any]]] = {  # row -> operator, arguments of its algorithms, those outside too
    "concat_columns": (
        "Concat",
        [_columns(*s) for s in ((10000, 32), (10000, 64), (20000, 24), (2000, 32), (10000, 8))],
    ),
    "one_hot": ("OneHot", [_one_hot(*s) for s in ((1024, 10), (512, 50), (128, 1000), (4096, 1000), (128, 10))]),
    "top_k_one": ("TopK", [(_floats(*s), 1) for s in ((1, 1000), (32, 1000), (8, 32000))]),
    "top_k_part": (
        "TopK",
        [
            (_floats(*s), k)
            for s, k in (((32, 1000), 5), ((8, 32000), 40), ((1024, 100), 5), ((4, 100), 5), ((1024, 16), 8))
        ],
    ),
    "segment_sum_scalars": (
        "UnsortedSegmentSum",
        [_segments(*s) for s in ((100, 0, 10), (10000, 0, 100), (10000, 0, 10000))],
    ),
    "segment_sum_few": (
        "UnsortedSegmentSum",
        [_segments(*s) for s in ((100, 8, 10), (1000, 64, 10), (32, 512, 8), (10000, 64, 32), (10000, 64, 128))],
    ),
    "segment_sum_many": (
        "UnsortedSegmentSum",
        [_segments(*s) for s in ((2048, 64, 2000), (10000, 64, 6000), (10000, 64, 1000), (100, 64, 90))],
    ),
    "segment_sum_rising": (
        "SegmentSum",
        [_segments(*s, True) for s in ((1000, 0, 900), (1000, 8, 100), (10000, 64, 5000), (10000, 0, 100))],
    ),
    "matmul_flat": (
        "MatMul",
        [
            (_floats(*a), _floats(*b))
            for a, b in (
                ((32, 1, 64), (64, 32)),
                ((256, 1, 64), (64, 64)),
                ((32, 1, 512), (512, 512)),
                ((64, 4, 64), (64, 64)),
            )
        ],
    ),
    "conv_point": (
        "Conv2D",
        [
            _conv((8, 28, 28, 64), (1, 1, 64, 64)),
            _conv((1, 14, 14, 256), (1, 1, 256, 64)),
            _conv((8, 28, 28, 64), (1, 1, 64, 64), 2),
        ],
    ),
    "conv_taps": (
        "Conv2D",
        [
            _conv((8, 28, 28, 32), (3, 3, 32, 32)),
            _conv((8, 28, 28, 64), (3, 3, 64, 64)),
            _conv((1, 56, 56, 64), (3, 3, 64, 64)),
            _conv((8, 28, 28, 3), (3, 3, 3, 32)),
            _conv((8, 7, 7, 512), (3, 3, 512, 512)),
        ],
    ),
}


def shapes(value: Any) -> str:
    """Arguments in words."""
    if isinstance(value, np.ndarray) and value.ndim:
        return str(list(value.shape))
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return f"{len(value)} of {shapes(value[0])}" if len(value) > 4 else " ".join(map(shapes, value))
    return str(value) if not hasattr(value, "stride") else f"stride {value.stride}"


def compare(table: Strategies, strategy: Strategy, call: Any, args: Any) -> dict[str, Any]:
    """Seconds of both ways on one set of arguments: the least of several batches each, in turn."""
    best = {"plain": float("inf"), "special": float("inf")}
    ways = {"plain": table.plain, "special": strategy.run}
    for _ in range(7):
        for name, run in ways.items():
            once = measure.time_batch(lambda run=run: run(call, *args), 1)
            size = max(1, min(500, int(2e-3 / max(once, 1e-7))))
            best[name] = min(best[name], measure.time_batch(lambda run=run: run(call, *args), size) / size)
    return {
        "shapes": shapes(args),
        "inside": bool(strategy.pays(call, *args) and strategy.fits(call, *args)),
        "plain_us": round(best["plain"] * 1e6, 1),
        "special_us": round(best["special"] * 1e6, 1),
        "ratio": round(best["plain"] / best["special"], 2),
    }


def main() -> int:
    measure.pin()
    result, lost = {}, 0
    only = set(sys.argv[1:])
    for row, (op, cases) in CASES.items():
        if only and row not in only:
            continue
        call, table = _call(op), TABLE[op]
        strategy = next(s for s in table.others if s.row == row)
        rows = [compare(table, strategy, call, args) for args in cases]
        inside = [r["ratio"] for r in rows if r["inside"]]
        kept = statistics.median(inside) >= WANTED and min(inside) >= 1.0
        lost += not kept
        result[row] = {"operator": op, "algorithm": strategy.name, "where": strategy.why, "kept": kept, "cases": rows}
        for r in rows:
            print(
                f"{row:20} {'in ' if r['inside'] else 'out'} {r['ratio']:7.2f}  {r['plain_us']:10.1f} us -> "
                f"{r['special_us']:10.1f} us  {r['shapes']}",
                flush=True,
            )
    if only:
        return 1 if lost else 0  # part of the rows must not pass for a whole run
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
