"""The kernels of the package, and the selectors that lower each form of the loop graph to kernel steps.

Lives here: the registry of selectors: `selector`, `SELECTORS`, `FAMILIES`, `MODULES`, `select`, `NoKernel`.
Not here: families of kernels and their selectors (one module per algorithm), the `Builder` that selectors add steps to
(../loops/plan_builder.py).

A selector is a function of a form and a `Builder`:

    @selector(Pool)
    def select_pool(form, build):
        if form.input.dtype is not float32:
            raise NoKernel(f"pool of {form.input.dtype.name}")
        build.step(pool.code(...), [build.pointer(form.input), build.pointer(form.output), ...], items=rows)

A form may have several selectors: they are tried in order until one does not raise NoKernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from ...core import flags
from ...core.lazy_imports import is_abandoned, load, note_origin
from ..loops.ops import LoopOp

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

Selector = Callable[[Any, "Builder"], None]
S = TypeVar("S", bound=Selector)


class NoKernel(Exception):
    """No kernel implements a form; the message is the reason. ops: reasons by operation, which the planner fills in."""

    ops: Mapping[LoopOp, str] = MappingProxyType({})


FAMILIES: dict[str, str] = {
    "attention": "FusedAttention",
    "contractions_f32": "Banded Contract",
    "contractions_winograd": "Contract",
    "contractions_int8": "Contract",
    "counts": "Counts",
    "ctc": "Alignment",
    "depthwise": "Depthwise",
    "dynamic_sizes": "BroadcastSizes Distinct Expected ExpectedCount ExpectedNumber Numbers Places",
    "fourier": "Fourier",
    "gather": "Gather GatherAt ReverseStart SliceAt UpdateSlice",
    "grouped_attention": "GroupedAttention",
    "gru_sequence": "GruSequence GruSequenceGrad",
    "hadamard": "Hadamard",
    "image_warp": "AffineImage AffinePoints CropMatrix PixelsAt",
    "lsh_projection": "Projection",
    "lstm": "Lstm",
    "lstm_int8": "LstmInt8",
    "lstm_int8_gates": "LstmInt8Gates",
    "lstm_sequence": "LstmSequence LstmSequenceGrad",
    "lu": "LuFactor LuSolution",
    "maps": "Map",
    "matmul": "MatMul",
    "matmul_unpacked": "MatMul",
    "moves": "Checked Move Part",
    "nms": "Suppression",
    "pooling": "MaxPlaces Pool PutInWindows ReduceWindow",
    "quantization": "FixedProduct",
    "radix_sort": "Ordered",
    "random_numbers": "AcceptedElements Advanced Classes NormalPairs RandomElements RandomWords",
    "recurrent_cells": "Svdf",
    "reductions": "Reduce",
    "resize": "Resize ResizeGradient",
    "rnn": "BasicLstm Gru Rnn",
    "row_steps": "RowsUpdate",
    "rows": "RowPass TabledSoftmax",
    "scans": "Scan",
    "scatter": "AppendEntries PutEntries ScatterAt Segments",
    "slices": "GatherSlices ScatterSlices",
    "sorting": "ArgReduce InsertionPlaces KeyPlaces Ordered",
    "special_functions": "SpecialFunction",
    "ssd_postprocess": "Detection",
    "substitution": "CholeskyFactor TriangularSystem",
    "transposed_convolution": "TransposedContract",
    "updates": "Update",
    "user_kernels": "UserKernelCall",
    "window_gradients": "ChannelFilterGradient WindowGradient",
}
"""Modules of selectors in the order of trial, with their forms. `make families` writes the table
(tests/lite/make_families.py)."""

MODULES: dict[str, tuple[str, ...]] = {}
"""Modules of this package with selectors of a form, by the form's name, in the order of trial; loaded on demand."""

for _module, _forms in FAMILIES.items():
    for _form in _forms.split():
        MODULES[_form] = (*MODULES.get(_form, ()), _module)

BEFORE: dict[str, str] = {}
"""Modules that are tried before another: the other one by module. The rest are tried in alphabetical order."""

SELECTORS: dict[type[LoopOp], dict[str, list[Selector]]] = {}
"""Selectors loaded so far, by form and module."""


def selector(form: type[LoopOp], before: str | None = None) -> Callable[[S], S]:
    """Register a function as selector of a class of forms. before: a module whose selectors are tried after it.

    FAMILIES lists the function's module with the form: `make families` writes it.
    """

    def register(function: S) -> S:
        module = function.__module__.removeprefix(f"{__name__}.")
        note_origin(function)
        if before is not None:
            BEFORE[module] = before
        by_module = SELECTORS.setdefault(form, {})
        by_module[module] = [*(one for one in by_module.get(module, ()) if not is_abandoned(one)), function]
        return function

    return register


def selectors_of(form: type[LoopOp]) -> list[Selector]:
    """Return the selectors of a form in order of trial; loads their modules."""
    names = MODULES.get(form.__name__, ())
    for name in names:
        load(f"{__name__}.{name}")
    by_module = SELECTORS.get(form, {})
    order = [*names, *(name for name in by_module if name not in names)]
    return [function for name in order for function in by_module.get(name, ())]


def select(form: LoopOp, build: Builder) -> None:
    """Add the steps of a form by the first selector that supports it. Raises NoKernel with each selector's reason."""
    reasons = []
    for function in selectors_of(type(form)):
        mark = build.mark()
        try:
            function(form, build)
            return
        except NoKernel as why:
            build.rewind(mark)
            reasons.append(str(why))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a form outside of its preconditions
            if flags.verify:
                raise
            build.rewind(mark)
            reasons.append(f"{type(error).__name__}: {error}")
    raise NoKernel("; ".join(reasons) or f"there is no selector of {type(form).__name__}")
