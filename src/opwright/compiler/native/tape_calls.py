"""The tape of eager calls by machine code: the record of a call, and the signature of a tape.

Lives here: `tape_layout`, `TapeCalls` with `recorder` and `signature`, `tape_calls`.
Not here: the machine code (tape_calls.ll), what a record is (ops/autodiff.py), which calls take this path
(eager/short_calls.py), plans by signature (eager/reverse_plans.py).

In Python a record of three lists and an identity takes 2.7 us, and the signature of three records 5.7 us: more than the
calls and their gradients.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from .builtins import SEVERAL, Method, bound, entry_points, if_available, slot_words

TENSOR_SLOTS = ("_array", "_dtype", "_identity")
IDENTITY_SLOTS = ("dtype", "_shape", "source")
RECORD_SLOTS = ("bound", "flowing", "input_ids", "inputs", "op", "outputs", "results", "structure")
_LAYOUT = (
    *("TENSOR", "TENSOR_ARRAY", "TENSOR_DTYPE", "TENSOR_IDENTITY"),
    *("IDENTITY", "IDENTITY_DTYPE", "IDENTITY_SHAPE", "IDENTITY_SOURCE"),
    *("RECORD", "RECORD_BOUND", "RECORD_FLOWING", "RECORD_KEYS", "RECORD_INPUTS"),
    *("RECORD_OP", "RECORD_OUTPUTS", "RECORD_RESULTS", "RECORD_STRUCTURE"),
    *("TUPLE", "LIST", "ARRAY", "NONE", "TRUE", "FALSE"),
    *("READING", "MOST", "SCRATCH", "GRADIENTS", "INTEGERS", "DTYPES"),
)
"""Fields of the layout, a word each: classes, each with the words of its slots; builtin types and objects; the operator
that reads variables; the maximum number of elements of an input of integers in a signature; memory; the numbers of
dtypes with gradients and of dtypes of integers, then these."""
_PLACES, _WORDS = 4096, 16384
"""Size of the table of a signature, of which half is used, and of the signature."""
_SIGNATURE = {
    "SIGNATURE_PLACES": _PLACES,
    "SIGNATURE_LAST_WORD": _WORDS - 256,  # what is written between two checks is less
    "SIGNATURE_RANK": 64,  # of NumPy
}


class TapeLayout(NamedTuple):
    """The layout of tensors, identities and records, for `signature`. kept: the objects that it refers to."""

    words: bytes
    kept: Any


def tape_layout(
    tensor: Any,
    identity: Any,
    record: Any,
    reading: Any,
    most_elements: int,
    gradients: Sequence[DType],
    integers: Sequence[DType],
) -> TapeLayout | None:
    """Return the layout of these objects; None if it is another one than expected.

    tensor, identity, record: objects whose slots hold different objects. reading: the operator that reads variables;
    most_elements: of an input of integers that becomes a part of signatures; gradients, integers: dtypes
    """
    parts = ((tensor, TENSOR_SLOTS), (identity, IDENTITY_SLOTS), (record, RECORD_SLOTS))
    words: list[int] = []
    for thing, names in parts:
        slots = slot_words(thing, names)
        if slots is None:
            return None
        words += [id(type(thing)), *slots]
    scratch = np.empty(2 * _PLACES + _WORDS, np.int64)
    words += map(id, (tuple, list, np.ndarray, None, True, False, reading))
    words += [most_elements, scratch.ctypes.data, len(gradients), len(integers), *map(id, (*gradients, *integers))]
    kept = tuple([type(thing) for thing, _ in parts]), scratch, reading, gradients, integers
    return TapeLayout(struct.pack(f"{len(words)}q", *words), kept)


class TapeCalls(NamedTuple):
    """The functions of tape_calls.ll, bound to nothing yet."""

    record: Method
    signature: Method

    def recorder(
        self, layout: TapeLayout, call: Any, arity: int, reads: Sequence[bool] | None, reads_output: bool
    ) -> Callable[[set[int], list[Any], Any, Any], bool | None]:
        """Return the function record(live, records, inputs, outputs), which appends the record of a call.

        call: bound attributes, which have to outlive the function, with their operator; arity: the number of inputs,
        62 at most; reads: whether the gradient reads each, None for all; reads_output: whether it reads the output.
        live: ids of identities that a tape follows; inputs: tensors; outputs: a tuple of one.
        The function returns True where it has done what was to do, False with nothing done where an input has no
        identity, None where it declines the call.
        """
        mask = -1 if reads is None else sum(1 << i for i, one in enumerate(reads) if one)
        address = _address_of(layout.words)
        words = (address, id(call.operator), id(call), arity, mask, int(reads_output))
        return bound(self.record, struct.pack("6q", *words))

    def signature_of(self, layout: TapeLayout) -> Callable[[list[Any], list[int]], bytes | None]:
        """Return the function signature(records, keys): bytes by which tapes are equal; None for what it declines.

        They refer to bound attributes and dtypes by their addresses: they are valid as long as these are kept.
        """
        return bound(self.signature, layout.words)


def _address_of(content: bytes) -> int:
    address = ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value
    assert address is not None
    return address


@once
def make_tape_calls() -> TapeCalls | None:
    """Return the functions, as `entry_points`."""
    layout = {f"LAYOUT_{name}": i for i, name in enumerate(_LAYOUT)}
    table = entry_points("tape_calls", {**layout, **_SIGNATURE})
    if table is None:
        return None
    return TapeCalls(*(Method(name.encode(), table(i), SEVERAL, None) for i, name in enumerate(TapeCalls._fields)))


def tape_calls() -> TapeCalls | None:
    """Return the functions, as `if_available`."""
    return if_available(make_tape_calls)
