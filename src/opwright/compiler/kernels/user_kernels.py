"""User-defined kernels on arrays as steps of a plan.

Lives here: the loop operation `UserKernelCall`, its selector, `add_user_kernel`, which adds it for a node.
Not here: roles of parameters (../operator_kernels.py), operators with kernels on scalars, which are maps
(../lowering/functions.py).

A kernel with several outputs writes them into one buffer, each at an offset (`LoweringContext.with_results`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ...core.records import record
from ..language.compilation import FamilyCode
from ..language.parameters import number_word
from ..loops.buffers import Buffer, row_major
from ..loops.ops import LoopOp
from ..loops.plans import Address, word
from ..lowering.context import LoweringContext, NoLowering
from ..native import executor as native
from ..operator_kernels import ATTR, INPUT, OperatorKernel
from . import NoKernel, selector

if TYPE_CHECKING:
    from ..language.array_kernels import ArrayCode
    from ..loops.plan_builder import Builder


@record
class UserKernelCall(LoopOp):
    """A call of a user-defined kernel.

    operands: its inputs; results: dtypes and shapes of its outputs, and their byte offsets in `output`; numbers: its
    attributes that are words.
    """

    operands: tuple[Buffer, ...]
    code: ArrayCode
    kernel: OperatorKernel
    results: tuple[tuple[Buffer, int], ...]
    numbers: dict[str, Any]


def add_user_kernel(
    ctx: LoweringContext, kernel: OperatorKernel, call: Any, inputs: Sequence[Buffer], outputs: Sequence[Buffer]
) -> None:
    """Add the loop operation of a node. call: its attributes. Raises NoLowering if the kernel rejects these arrays."""
    mismatch = kernel.misfit(inputs, outputs)
    if mismatch is not None:
        raise NoLowering(mismatch)
    code = code_for(kernel, call)
    if code.counted and not code.fixed:
        raise NoLowering("the extent of its parallel loop depends on elements")
    numbers = {name: getattr(call, attribute) for name, (role, attribute) in kernel.roles.items() if role == ATTR}
    try:
        for name, number in numbers.items():
            number_word(number, kernel.kernel.parameters[name], kernel.operator.name, name)
    except InvalidArgumentError as error:  # the error of a call of the kernel
        raise NoLowering(str(error)) from None

    def add(output: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(UserKernelCall, output, tuple(inputs), code, kernel, results, numbers)

    ctx.with_results(add, *outputs)


def code_for(kernel: OperatorKernel, call: Any) -> ArrayCode:
    """Return the kernel for these attributes and dense arrays. Raises NoLowering if it cannot be staged."""
    try:
        return kernel.code(call)
    except Exception as error:  # the user's Python may raise anything; a call reports it
        raise NoLowering(f"its kernel cannot be staged: {error}".splitlines()[0]) from None


@selector(UserKernelCall)
def select_user_kernel(form: UserKernelCall, build: Builder) -> None:
    """Build one step, over the items of the kernel's parallel loop."""
    if form.output.parent is not None:
        raise NoKernel("a slice of another buffer")
    arrays: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {}
    for name, kind in form.kernel.arrays.items():
        role, index = form.kernel.roles[name]
        b, start = (form.operands[index], 0) if role == INPUT else form.results[index]
        address = build.pointer(b if role == INPUT else form.output).moved(start)
        shape = kind.folded(b.shape)
        assert shape is not None
        if len(shape) < len(b.shape) and len(shape) == 1 and b.pitch != b.shape[-1]:
            raise NoKernel("a slice of another buffer, seen as one axis")
        arrays[name] = address, shape, row_major(shape, b.pitch)
    words: list[Any] = []
    kinds = [word.kind for word in form.code.words]
    for name, what, _, axis in form.code.words:
        if what == "number":
            words.append(form.numbers[name])
        else:
            address, sizes, strides = arrays[name]
            words.append(address if what == "address" else sizes[axis] if what == "size" else strides[axis])
    entry, items = form.code.address(), 1
    if form.code.counted:
        counting = form.code.address(items=True)
        constants = np.array([0 if isinstance(w, Address) else word(w, k) for w, k in zip(words, kinds)], np.int64)
        if counting:
            items = native.call(counting, constants)
        else:
            entry = 0  # another thread compiles it: the plan is made again
    build.step(FamilyCode(entry, form.code.name, tuple(kinds)), words, items)
