"""Users' kernels on arrays as steps of a plan.

Lives here: the form `Written`, its selector, `add_written`, which adds it for a node.
Not here: which parameter is what (../operator_kernels.py), operators with kernels on scalars, which are maps
(../rules/written.py).

A kernel with several outputs writes them into one buffer, each at an offset (`LoweringContext.with_results`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ..language.families import FamilyCode
from ..language.parameters import number_word
from ..loops.buffers import Buffer
from ..loops.ops import LoopOp
from ..loops.plans import Address, word
from ..lowering.context import LoweringContext, NoLowering
from ..native import executor as native
from ..operator_kernels import ATTR, INPUT, OperatorKernel
from . import NoKernel, selector

if TYPE_CHECKING:
    from ..language.array_kernels import ArrayCode
    from ..loops.plan_builder import Builder


@dataclass(frozen=True, eq=False)
class Written(LoopOp):
    """What a user's kernel writes. operands: its inputs; results: its outputs' dtypes and shapes, and the byte in
    `output` where each begins; numbers: its attributes that are words."""

    operands: tuple[Buffer, ...]
    code: ArrayCode
    kernel: OperatorKernel
    results: tuple[tuple[Buffer, int], ...]
    numbers: dict[str, Any]


def add_written(
    ctx: LoweringContext, kernel: OperatorKernel, call: Any, inputs: Sequence[Buffer], outputs: Sequence[Buffer]
) -> None:
    """Add the forms of a node. call: its attributes. Raises NoLowering where the kernel is not for these arrays."""
    why = kernel.misfit(inputs, outputs)
    if why is not None:
        raise NoLowering(why)
    code = code_for(kernel, call)
    if code.counted and not code.fixed:
        raise NoLowering("how many items its parallel loop has is known only as it runs")
    numbers = {name: getattr(call, place) for name, (role, place) in kernel.roles.items() if role == ATTR}
    try:
        for name, number in numbers.items():
            number_word(number, kernel.kernel.parameters[name], kernel.operator.name, name)
    except InvalidArgumentError as error:  # which the kernel's own call raises
        raise NoLowering(str(error)) from None

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(Written, whole, tuple(inputs), code, kernel, results, numbers)

    ctx.with_results(make, *outputs)


def code_for(kernel: OperatorKernel, call: Any) -> ArrayCode:
    """The kernel for these attributes and dense arrays. Raises NoLowering where it cannot be staged."""
    try:
        return kernel.code(call)
    except Exception as error:  # the user's Python may raise anything; running it says what is wrong
        raise NoLowering(f"its kernel cannot be staged: {error}".splitlines()[0]) from None


@selector(Written)
def select_written(form: Written, build: Builder) -> None:
    """One step, over the items of the kernel's parallel loop."""
    if form.output.parent is not None:
        raise NoKernel("a slice of another buffer")
    places: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {}
    for name, kind in form.kernel.arrays.items():
        role, place = form.kernel.roles[name]
        b, start = (form.operands[place], 0) if role == INPUT else form.results[place]
        address = build.pointer(b if role == INPUT else form.output).moved(start)
        shape = kind.folded(b.shape)
        assert shape is not None
        if len(shape) < len(b.shape) and len(shape) == 1 and b.pitch != b.shape[-1]:
            raise NoKernel("a slice of another buffer, seen as one axis")
        places[name] = address, shape, _strides(shape, b.pitch)
    words: list[Any] = []
    kinds = [word.kind for word in form.code.words]
    for name, what, _, axis in form.code.words:
        if what == "number":
            words.append(form.numbers[name])
        else:
            address, sizes, strides = places[name]
            words.append(address if what == "address" else sizes[axis] if what == "size" else strides[axis])
    items = 1
    if form.code.counted:
        counting = form.code.address(items=True)
        known = np.array([0 if isinstance(w, Address) else word(w, k) for w, k in zip(words, kinds)], np.int64)
        items = native.call(counting, known) if counting else 1
    build.step(FamilyCode(form.code.address(), form.code.name, tuple(kinds)), words, items)


def _strides(shape: tuple[int, ...], pitch: int) -> tuple[int, ...]:
    """Elements from one to the next along each axis; pitch: from row to row."""
    found, step = [], 1
    for k, size in enumerate(reversed(shape)):
        found.append(step)
        step = pitch if k == 0 else step * size
    return tuple(reversed(found))
