"""The kernels that Opwright ships, and for each form of the loop graph what makes steps of it.

Lives here: the table of makers: `maker`, `MAKERS`, `MODULES`, `make`, `Unmade`.
Not here: families of kernels and their makers (one module each), what a maker is given (../loops/planning.py).

A maker is a function of a form and a `Builder`:

    @maker(Pool)
    def make_pool(form, build):
        if form.input.dtype is not float32:
            raise Unmade(f"pool of {form.input.dtype.name}")
        build.step(pool.code(...), [build.pointer(form.input), build.pointer(form.output), ...], items=rows)

Several may serve a form: they are asked in order, and the first that does not raise Unmade makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from ...core import flags
from ...core.importing import is_abandoned, load, note_origin
from ..loops import forms

if TYPE_CHECKING:
    from ..loops.planning import Builder

Maker = Callable[[Any, "Builder"], None]
M = TypeVar("M", bound=Maker)


class Unmade(Exception):
    """No kernel does this form; why: a few words. Who asked runs it another way. forms: by form, why it has
    no kernel, filled in by the planner."""

    forms: Mapping[forms.Form, str] = MappingProxyType({})


MODULES: dict[str, tuple[str, ...]] = {
    "Banded": ("row_band_fusion",),
    "Pool": ("pooling",),
    "Resize": ("resize",),
    "TransposedContract": ("transposed",),
    "Depthwise": ("depthwise",),
    "Contract": ("contractions_f32", "contractions_winograd", "contractions_int8", "int4"),
    "FixedProduct": ("fixed_point",),
    "Fourier": ("fourier",),
    "MatMul": ("matmul", "matmul_integer"),
    "BasicLstm": ("rnn",),
    "Gru": ("rnn",),
    "Lstm": ("lstm",),
    "LstmInt8": ("lstm_int8",),
    "Map": ("maps",),
    "AffineImage": ("warping",),
    "AffinePoints": ("warping",),
    "ArgReduce": ("argreduce",),
    "Advanced": ("random_numbers",),
    "Checked": ("value_checks",),
    "Classes": ("random_numbers",),
    "NormalPairs": ("random_numbers",),
    "PixelsAt": ("warping",),
    "Projection": ("lsh_projection",),
    "RandomWords": ("random_numbers",),
    "CropMatrix": ("warping",),
    "Attention": ("attention",),
    "Gather": ("gather",),
    "GatherNd": ("gather",),
    "GatherSlices": ("slices",),
    "UpdateSlice": ("gather",),
    "KeyPlaces": ("sorting",),
    "MaxPlaces": ("pooling",),
    "Move": ("moves",),
    "BroadcastSizes": ("sized",),
    "Counted": ("sized",),
    "Distinct": ("sized",),
    "Expected": ("sized",),
    "Numbers": ("sized",),
    "Places": ("sized",),
    "Ordered": ("sorting",),
    "PutEntries": ("scatter",),
    "PutInWindows": ("pooling",),
    "Reduce": ("reductions",),
    "Rnn": ("rnn",),
    "ReduceWindow": ("pooling",),
    "RowPass": ("rows",),
    "Scan": ("cumulative",),
    "ScatterNd": ("scatter",),
    "ScatterSlices": ("slices",),
    "ReverseStart": ("gather",),
    "Segments": ("scatter",),
    "SliceAt": ("gather",),
    "Svdf": ("svdf",),
    "TabledSoftmax": ("tabled_softmax",),
    "Detection": ("ssd_postprocess",),
    "Part": ("result_slots",),
    "Suppression": ("nms",),
    "Written": ("user_kernels",),
}
"""By name of a form, the modules of this package with its makers, in the order they are asked; loaded on demand."""

MAKERS: dict[type[forms.Form], dict[str, list[Maker]]] = {}
"""By form and name of the module, the makers of the modules loaded so far."""


def maker(form: type[forms.Form]) -> Callable[[M], M]:
    """Decorator: this function makes forms of that class. Its module stands in MODULES under the form's name."""

    def register(function: M) -> M:
        module = function.__module__.removeprefix(f"{__name__}.")
        note_origin(function)
        makers = MAKERS.setdefault(form, {})
        makers[module] = [*(one for one in makers.get(module, ()) if not is_abandoned(one)), function]
        return function

    return register


def makers_of(form: type[forms.Form]) -> list[Maker]:
    """The makers of a form, in order; loads their modules."""
    names = MODULES.get(form.__name__, ())
    for name in names:
        load(f"{__name__}.{name}")
    found = MAKERS.get(form, {})
    order = [*names, *(name for name in found if name not in names)]
    return [function for name in order for function in found.get(name, ())]


def make(form: forms.Form, build: Builder) -> None:
    """Let the first maker that can add the form's steps. Raises Unmade with what each had against it."""
    reasons = []
    for function in makers_of(type(form)):
        mark = build.mark()
        try:
            function(form, build)
            return
        except Unmade as why:
            build.rewind(mark)
            reasons.append(str(why))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a form it was not written for
            if flags.verify:
                raise
            build.rewind(mark)
            reasons.append(f"{type(error).__name__}: {error}")
    raise Unmade("; ".join(reasons) or f"there is no maker of {type(form).__name__}")
