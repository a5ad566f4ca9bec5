"""The words of steps as tables of bytes, and the function of a library that reads them.

Lives here: `PlacedWord`, `WordTables`, `decoder_text`. Not here: the functions that run the steps (plan_functions.py).

A step's words are numbers and addresses, most of them small or equal to those of the step before, which are still in
place: a table takes a quarter of the instructions that would store them. An entry is an integer in LEB128 (DWARF 5,
section 7.6), whose two low bits are its kind, and the rest v:

    NUMBER   the word is v, zigzag-coded as in Protocol Buffers: 0, -1, 1, -2 ... are 0, 1, 2, 3 ...
    ADDRESS  the low bits of v are the number of a base, the others the offset from it, zigzag-coded
    SKIP     the next v words stay as they are
    HIGH     v is 0: the end of the step's table; otherwise v - 1 are the upper 32 bits of the next number
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NUMBER, ADDRESS, SKIP, HIGH = range(4)
_KIND_BITS = 2
_LARGEST = 1 << 60
"""A number of this size and more is two entries."""


class PlacedWord(NamedTuple):
    """A word of a call. base: index of the base whose address is to be added, None for a number."""

    base: int | None
    value: int


class WordTables:
    """The tables of a library's steps, one after the other. bases: the most that a plan has."""

    def __init__(self, bases: int) -> None:
        self.base_bits = max(bases - 1, 0).bit_length()
        self.content = bytearray()
        self._places: dict[bytes, int] = {}

    def add(self, words: Sequence[PlacedWord], before: Sequence[PlacedWord | None]) -> int:
        """Return the offset of the table of a step. before: the words that are in place, None where unknown."""
        table = bytearray()
        same = 0
        for i, w in enumerate(words):
            if i < len(before) and before[i] == w:
                same += 1
                continue
            if same:
                table += _leb128(same << _KIND_BITS | SKIP)
                same = 0
            table += self._entry(w)
        table += _leb128(HIGH)
        key = bytes(table)
        if key not in self._places:
            self._places[key] = len(self.content)
            self.content += table
        return self._places[key]

    def _entry(self, w: PlacedWord) -> bytes:
        if w.base is not None:
            return _leb128((_zigzag(w.value) << self.base_bits | w.base) << _KIND_BITS | ADDRESS)
        if -_LARGEST <= w.value < _LARGEST:
            return _leb128(_zigzag(w.value) << _KIND_BITS | NUMBER)
        bits = w.value & (1 << 64) - 1
        high, low = bits >> 32, bits & (1 << 32) - 1
        return _leb128((high + 1) << _KIND_BITS | HIGH) + _leb128(_zigzag(low) << _KIND_BITS | NUMBER)


def _zigzag(n: int) -> int:
    return n << 1 if n >= 0 else (-n << 1) - 1


def _leb128(n: int) -> bytes:
    result = bytearray()
    while n > 127:
        result.append(n & 127 | 128)
        n >>= 7
    result.append(n)
    return bytes(result)


def decoder_text(symbol: str, base_bits: int) -> list[str]:
    """Return the function `void symbol(ptr table, ptr words, ptr bases)`, which stores the words of a step.

    bases: addresses as i64
    """
    return f"""define internal void @"{symbol}"(ptr %table, ptr %words, ptr %bases) noinline {{
entry:
  br label %entry.of
entry.of:
  %at = phi ptr [ %table, %entry ], [ %after, %high.on ], [ %after, %skip ], [ %after, %store ]
  %place = phi ptr [ %words, %entry ], [ %place, %high.on ], [ %skipped, %skip ], [ %following, %store ]
  %upper = phi i64 [ 0, %entry ], [ %upper.new, %high.on ], [ 0, %skip ], [ 0, %store ]
  br label %byte
byte:
  %cursor = phi ptr [ %at, %entry.of ], [ %after, %byte ]
  %shift = phi i64 [ 0, %entry.of ], [ %shift.next, %byte ]
  %sum = phi i64 [ 0, %entry.of ], [ %integer, %byte ]
  %octet = load i8, ptr %cursor
  %after = getelementptr i8, ptr %cursor, i32 1
  %low = and i8 %octet, 127
  %bits = zext i8 %low to i64
  %part = shl i64 %bits, %shift
  %integer = or i64 %sum, %part
  %shift.next = add i64 %shift, 7
  %more = icmp slt i8 %octet, 0
  br i1 %more, label %byte, label %whole
whole:
  %kind = and i64 %integer, {(1 << _KIND_BITS) - 1}
  %v = lshr i64 %integer, {_KIND_BITS}
  switch i64 %kind, label %high [ i64 {NUMBER}, label %number i64 {ADDRESS}, label %address i64 {SKIP}, label %skip ]
skip:
  %skipped = getelementptr i64, ptr %place, i64 %v
  br label %entry.of
high:
  %end = icmp eq i64 %v, 0
  br i1 %end, label %done, label %high.on
high.on:
  %above = sub i64 %v, 1
  %upper.new = shl i64 %above, 32
  br label %entry.of
address:
  %index = and i64 %v, {(1 << base_bits) - 1}
  %base.place = getelementptr i64, ptr %bases, i64 %index
  %base = load i64, ptr %base.place
  %offset = lshr i64 %v, {base_bits}
  br label %number
number:
  %coded = phi i64 [ %v, %whole ], [ %offset, %address ]
  %start = phi i64 [ %upper, %whole ], [ %base, %address ]
  %half = lshr i64 %coded, 1
  %odd = and i64 %coded, 1
  %sign = sub i64 0, %odd
  %n = xor i64 %half, %sign
  br label %store
store:
  %word = add i64 %start, %n
  store i64 %word, ptr %place
  %following = getelementptr i64, ptr %place, i32 1
  br label %entry.of
done:
  ret void
}}""".splitlines()
