"""The choices among kernels: what is chosen, by which sizes, and how a selector or a rule of fusion asks.

Lives here: `Choice`, the table CHOICES, `choose`, `Question`; `asking` and `answering`, for who measures.
Not here: the ways and the default of each choice (next to its selector, ../kernels), where answers come from
(tables.py, measurements.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..target import host
from . import measurements, tables
from .measurements import decided

if TYPE_CHECKING:
    from ..loops.ops import LoopOp


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
    row = measurements.find(choice.name, sizes)
    return decided(row, ways, default) if row is not None else tables.answer(choice, sizes, ways, default, host())


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
