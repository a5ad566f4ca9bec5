"""Choices among kernels: the alternatives, the sizes that the answer depends on, measured rows, and their decisions.

Lives here: `Choice`, the table CHOICES, `choose`, `Question`; `asking` and `answering`, for measuring; `MeasuredRow`,
its form in JSON, `decided`; the rows of this machine (`find_measured`, `keep_measured`); the rows that ship with the
package (`TuningTable`, tables/*.json, `table_answer`).
Not here: the alternatives and the default of each choice (next to its selector, ../kernels), the clock (autotuner.py),
the cache's files (../cache.py), writing tables (benchmarks/tune.py).

Each row of this machine is a file of its own in the object cache, named by a digest of the choice, the sizes, the
processor and Opwright's sources: concurrent processes write different files, or equal ones whole. Damaged files and
files of another cache count as missing, as the files have keyed digests. With the switch `deterministic` none is read:
results are equal before and after a measurement.

There is a table for each micro-architecture that has been measured. A processor is served by the tables of its vector
length and registers; for kernels of bytes also its instructions that multiply them must be the same. The target's own
name comes first, then the one with the fewest differences in features, then the nearest second-level cache. Tables are
read at the first query, which a process that finds its plans in the cache never makes.

A row answers for its own sizes, and for near ones: each size that need not be exact within a factor of NEAR, the
nearest row first. A near row must save more than a row of equal sizes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import flags
from ..cache import objects
from ..native.host import cache_bytes
from ..native.store import program_digest
from ..target import IMPLIED, Target, host

if TYPE_CHECKING:
    from ..loops.ops import LoopOp

MARGIN = 0.03
"""Minimum relative saving over the default, unless the noise is larger."""


class MeasuredRow(NamedTuple):
    """Measured times. ns: nanoseconds of a run by alternative, the minimum. noise: relative difference of
    repetitions."""

    ns: Mapping[int, float]
    noise: float


def decided(row: MeasuredRow, ways: Sequence[int], default: int, margin: float = MARGIN) -> int:
    """Return the fastest measured alternative if it saves more than the noise; otherwise the default."""
    measured_ways = [way for way in ways if way in row.ns]
    if default not in measured_ways:
        return default
    best = min(measured_ways, key=lambda way: row.ns[way])
    return best if row.ns[best] < row.ns[default] * (1 - max(margin, row.noise)) else default


def to_json(row: MeasuredRow) -> dict[str, Any]:
    """Return a row as a JSON value."""
    return {"ns": {str(way): round(ns) for way, ns in sorted(row.ns.items())}, "noise": round(row.noise, 3)}


def from_json(content: Any) -> MeasuredRow:
    """Return a row from the JSON value of `to_json`. Raises ValueError for anything else."""
    try:
        ns = {int(way): float(t) for way, t in content["ns"].items()}
        noise = float(content["noise"])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no measured row: {content!r:.80}") from error
    if not ns or not all(math.isfinite(t) and t > 0 for t in ns.values()) or not 0 <= noise <= 1:
        raise ValueError(f"times that cannot be: {content!r:.80}")
    return MeasuredRow(ns, noise)


_measured: dict[tuple[str | None, str], MeasuredRow] = {}
"""Rows measured by this process, by cache folder, which may be None, and digest."""


def find_measured(choice: str, sizes: Sequence[int]) -> MeasuredRow | None:
    """Return the row that this machine has measured for these sizes, if any."""
    if flags.deterministic:
        return None
    digest = _digest(choice, sizes)
    if (flags.cache_dir, digest) in _measured:
        return _measured[flags.cache_dir, digest]
    content = objects(flags.cache_dir).find(digest)
    try:
        return None if content is None else from_json(json.loads(content))
    except ValueError:
        return None


def keep_measured(choice: str, sizes: Sequence[int], row: MeasuredRow) -> None:
    """Store a row."""
    digest = _digest(choice, sizes)
    _measured[flags.cache_dir, digest] = row
    objects(flags.cache_dir).keep(digest, json.dumps(to_json(row)).encode())


def _digest(choice: str, sizes: Sequence[int]) -> str:
    return program_digest("measured", choice, " ".join(map(str, sizes)))


FOLDER = Path(__file__).with_name("tables")
NEAR = 1.3
NEAR_MARGIN = 0.1
"""Minimum relative saving by a row of other sizes."""
FEATURES = frozenset(feature for implied in IMPLIED.values() for feature in implied)
"""Features that kernels ask about."""


class TuningTable(NamedTuple):
    """A table of measured rows. target: of the code, whose name is the table's; cpu: the processor that ran it, in
    LLVM's terms; cache: bytes of its second-level cache; machine: its vendor's name; rows: by choice and sizes."""

    target: Target
    cpu: str
    cache: int
    machine: str
    rows: dict[str, dict[tuple[int, ...], MeasuredRow]]


def table_answer(choice: Choice, sizes: tuple[int, ...], ways: Sequence[int], default: int, target: Target) -> int:
    """Return the fastest alternative by the nearest table; the default if it has no row for similar sizes."""
    table = nearest(target, choice.of_bytes)
    rows = {} if table is None else table.rows.get(choice.name, {})
    row = rows.get(sizes)
    if row is not None:
        return decided(row, ways, default)
    exact, others = choice.exact_sizes(sizes), choice.other_sizes(sizes)
    near = [
        (distance, row_sizes)
        for row_sizes in rows
        if choice.exact_sizes(row_sizes) == exact
        and (distance := _distance(others, choice.other_sizes(row_sizes))) is not None
    ]
    return decided(rows[min(near)[1]], ways, default, NEAR_MARGIN) if near else default


def _distance(a: Sequence[int], b: Sequence[int]) -> float | None:
    """Return the sum of the logarithms of size ratios; None if one exceeds NEAR, or only one of two sizes is zero."""
    ratios = [max(x, y) / min(x, y) if x and y else math.inf for x, y in zip(a, b, strict=True) if x != y]
    return sum(map(math.log, ratios)) if all(r <= NEAR for r in ratios) else None


@functools.cache
def nearest(target: Target, of_bytes: bool) -> TuningTable | None:
    """Return the table for a processor; None if there is none of its kind. of_bytes: for kernels that multiply
    bytes."""
    candidates = [t for t in tables() if _kind(t.target, of_bytes) == _kind(target, of_bytes)]
    own = {f for f in FEATURES if target.has(f)}

    def distance(table: TuningTable) -> tuple[bool, int, float]:
        differing = sum(table.target.has(f) != (f in own) for f in FEATURES)
        return table.target.cpu != target.cpu, differing, abs(math.log2(table.cache / cache_bytes()))

    return min(candidates, key=distance, default=None)


def _kind(target: Target, of_bytes: bool) -> tuple[Any, ...]:
    """Return the properties that processors must share for comparable times."""
    kind = (target.is_x86, target.is_aarch64, target.vector_bytes, target.registers)
    products = (target.vnni_lanes, *(target.has(f) for f in ("amx-int8", "dotprod", "i8mm")))
    return (*kind, *products) if of_bytes else kind


@functools.cache
def tables() -> tuple[TuningTable, ...]:
    """Return all tables that ship with Opwright, by name; none if it is in an archive."""
    return tuple(parsed(file.stem, json.loads(file.read_bytes())) for file in sorted(FOLDER.glob("*.json")))


def parsed(name: str, content: Any) -> TuningTable:
    """Return a table from its file's content."""
    target = Target(name, *(content["target"][key] for key in ("triple", "cpu", "features", "vector_bytes")))
    rows = {choice: {tuple(row["sizes"]): from_json(row) for row in rows} for choice, rows in content["rows"].items()}
    return TuningTable(target, content["cpu"], content["cache_bytes"], content["machine"], rows)


class Choice(NamedTuple):
    """A point where several alternatives compute the same.

    name: in rows of tables. doc: the alternatives, which are integers. sizes: names of the numbers that an answer
    depends on. exact: sizes that a measured row must match; others may be close. of_bytes: whether its kernels multiply
    bytes, by instructions that not all processors have.
    """

    name: str
    doc: str
    sizes: tuple[str, ...]
    exact: frozenset[str] = frozenset()
    of_bytes: bool = False

    def exact_sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the sizes that a row must match exactly."""
        return tuple(n for name, n in zip(self.sizes, sizes, strict=True) if name in self.exact)

    def other_sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the sizes that a row may match approximately."""
        return tuple(n for name, n in zip(self.sizes, sizes, strict=True) if name not in self.exact)


_IMAGE = ("batch", "height", "width", "channels")  # of the output, but for the channels
_WINDOW = ("kernel_height", "kernel_width", "stride")

WINOGRAD = Choice(
    "winograd", "m x m outputs of a patch of a 3x3 convolution of floats; 0: no transforms", (*_IMAGE, "features")
)
WINOGRAD_INT8 = Choice(
    "winograd_int8", "as winograd, of bytes, whose results are the same", (*_IMAGE, "features"), of_bytes=True
)
LINES = Choice(
    "lines_f32",
    "1: a tile of a convolution of floats reads lines of the image; 0: windows are copied, so that a tile "
    "goes on in the next line",
    (*_IMAGE, "features", *_WINDOW),
    frozenset({"width", *_WINDOW}),
)
FEW_ROWS = Choice(
    "few_rows_f32",
    "1: a product of few rows reads a filter of floats where it lies; 0: the filter is packed",
    ("rows", "depth", "features", "constant"),
    frozenset({"rows", "constant"}),
)
BLOCKS_F32 = Choice(
    "blocks_f32",
    "of a matrix product of floats, 1: a work item is all panels of the filter for a few tiles of rows; "
    "0: a panel for many tiles",
    ("rows", "depth", "features"),
)
BLOCKS_INT8 = Choice("blocks_int8", "as blocks_f32, of integers", ("rows", "depth", "features"), of_bytes=True)
COPIES = Choice(
    "copies_int8",
    "1: the windows of a convolution of integers are copied as the rows of a matrix product; 0: the "
    "image is read line by line",
    (*_IMAGE, "features", *_WINDOW),
    frozenset({"width", *_WINDOW}),
    of_bytes=True,
)
DEPTHWISE_ROWS = Choice(
    "depthwise_rows_f32",
    "lines of the output that a depthwise convolution of floats makes at a time",
    (*_IMAGE, *_WINDOW),
    frozenset(_WINDOW),
)
DEPTHWISE_TEAMS = Choice(
    "depthwise_teams_int8",
    "teams of lines of the output that a depthwise convolution of integers makes at a time",
    (*_IMAGE, *_WINDOW),
    frozenset(_WINDOW),
    of_bytes=True,
)
BANDS = Choice(
    "bands",
    "lines of a depthwise convolution's output that are made at a time with the convolutions around it; 0: "
    "each is computed whole",
    (*_IMAGE, "channels_before", "features_after", *_WINDOW, "element_bytes"),
    frozenset({*_WINDOW, "element_bytes"}),
)
TAPS = Choice(
    "taps",
    "of a transposed convolution, 1: the products of each tap lie by themselves; 0: those of a pixel",
    (*_IMAGE, "features", *_WINDOW, "element_bytes"),
    frozenset({*_WINDOW, "element_bytes"}),
)

CHOICES: dict[str, Choice] = {
    c.name: c
    for c in (
        WINOGRAD,
        WINOGRAD_INT8,
        LINES,
        FEW_ROWS,
        BLOCKS_F32,
        BLOCKS_INT8,
        COPIES,
        DEPTHWISE_ROWS,
        DEPTHWISE_TEAMS,
        BANDS,
        TAPS,
    )
}
"""All choices by name."""


class Key(NamedTuple):
    """Key of an answer."""

    choice: str
    sizes: tuple[int, ...]


class Question(NamedTuple):
    """An instance of a choice for given sizes. ways: the valid alternatives; default: without a measurement; ops: the
    operations that the alternatives implement."""

    choice: Choice
    sizes: tuple[int, ...]
    ways: tuple[int, ...]
    default: int
    ops: tuple[LoopOp, ...]

    @property
    def key(self) -> Key:
        """Key of its answer."""
        return Key(self.choice.name, self.sizes)

    def __str__(self) -> str:
        sizes = " ".join(f"{name} {n}" for name, n in zip(self.choice.sizes, self.sizes))
        return f"{self.choice.name} of {sizes}"


class _QueryState(threading.local):
    asked: dict[Key, Question] | None = None
    answers: Mapping[Key, int] = {}


_state = _QueryState()


def choose(choice: Choice, ways: Sequence[int], default: int, ops: Sequence[LoopOp], *sizes: int) -> int:
    """Return the alternative to use, one of `ways`.

    Answers come from measurements of this machine, then from the nearest table; otherwise it is the default.
    """
    if len(ways) < 2:
        return default
    key = Key(choice.name, sizes)
    if _state.asked is not None and ops:
        _state.asked.setdefault(key, Question(choice, sizes, tuple(ways), default, tuple(ops)))
    answer = _state.answers.get(key)
    if answer is not None and answer in ways:
        return answer
    row = find_measured(choice.name, sizes)
    return decided(row, ways, default) if row is not None else table_answer(choice, sizes, ways, default, host())


@contextlib.contextmanager
def asking() -> Iterator[dict[Key, Question]]:
    """Collect the distinct queries on this thread within the context."""
    outer, _state.asked = _state.asked, {}
    try:
        yield _state.asked
    finally:
        _state.asked = outer


@contextlib.contextmanager
def answering(answers: Mapping[Key, int]) -> Iterator[None]:
    """Answer queries on this thread within the context, if an answer is valid."""
    outer, _state.answers = _state.answers, answers
    try:
        yield
    finally:
        _state.answers = outer
