"""The choices among kernels: what is chosen, by which sizes, and how a selector or a rule of fusion asks.

Lives here: `Choice`, the table CHOICES, `choose`, `Question`; `asking` and `answering`, for who measures.
Not here: the ways and the default of each choice (beside its selector, ../kernels), where answers come from (tables.py,
kept.py).
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
    """A point where several ways compute the same.

    name: what rows of tables call it. doc: the ways, which are integers. sizes: the names of the numbers that an answer
    depends on. exact: those that a measured row must have as they are; of the others it may have near ones. of_bytes:
    whether its kernels multiply bytes, by instructions that not all processors have.
    """

    name: str
    doc: str
    sizes: tuple[str, ...]
    exact: frozenset[str] = frozenset()
    of_bytes: bool = False

    def exact_sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Those of the sizes that a row must have as they are."""
        return tuple(n for name, n in zip(self.sizes, sizes, strict=True) if name in self.exact)

    def other_sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Those of the sizes that a row may have nearly."""
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
"""Every choice by name."""


class Key(NamedTuple):
    """What an answer is known by."""

    choice: str
    sizes: tuple[int, ...]


class Question(NamedTuple):
    """An instance of a choice for given sizes. ways: the valid candidates; default: the one without a
    measurement; forms: the operations that the candidates implement."""

    choice: Choice
    sizes: tuple[int, ...]
    ways: tuple[int, ...]
    default: int
    ops: tuple[LoopOp, ...]

    @property
    def key(self) -> Key:
        """What its answer is known by."""
        return Key(self.choice.name, self.sizes)

    def __str__(self) -> str:
        sizes = " ".join(f"{name} {n}" for name, n in zip(self.choice.sizes, self.sizes))
        return f"{self.choice.name} of {sizes}"


class _Thread(threading.local):
    asked: dict[Key, Question] | None = None
    answers: Mapping[Key, int] = {}


_here = _Thread()


def choose(choice: Choice, ways: Sequence[int], default: int, ops: Sequence[LoopOp], *sizes: int) -> int:
    """Return the way to take: one of `ways`.

    Answers come from measurements kept by this machine, then from the nearest table; without any it is the default.
    """
    if len(ways) < 2:
        return default
    key = Key(choice.name, sizes)
    if _here.asked is not None and ops:
        _here.asked.setdefault(key, Question(choice, sizes, tuple(ways), default, tuple(ops)))
    answer = _here.answers.get(key)
    if answer is not None and answer in ways:
        return answer
    row = measurements.find(choice.name, sizes)
    return decided(row, ways, default) if row is not None else tables.answer(choice, sizes, ways, default, host())


@contextlib.contextmanager
def asking() -> Iterator[dict[Key, Question]]:
    """Within, on this thread: collect the questions that are put, each once."""
    before, _here.asked = _here.asked, {}
    try:
        yield _here.asked
    finally:
        _here.asked = before


@contextlib.contextmanager
def answering(answers: Mapping[Key, int]) -> Iterator[None]:
    """Within, on this thread: give these answers, where they are among the ways."""
    before, _here.answers = _here.answers, answers
    try:
        yield
    finally:
        _here.answers = before
