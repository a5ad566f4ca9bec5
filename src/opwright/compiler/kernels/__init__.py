"""The kernels that Opwright ships, and for each form of the loop graph what makes steps of it.

Lives here: the table of makers: `maker`, `MAKERS`, `MODULES`, `make`, `Unmade`.
Not here: which module makes which form (makers.py, generated), families of kernels and their makers (a module each),
what a maker is given (../loops/planning.py).

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
from .makers import FAMILIES

if TYPE_CHECKING:
    from ..loops.planning import Builder

Maker = Callable[[Any, "Builder"], None]
M = TypeVar("M", bound=Maker)


class Unmade(Exception):
    """No kernel does this form; why: a few words. Who asked runs it another way. forms: by form, why it has
    no kernel, filled in by the planner."""

    forms: Mapping[forms.Form, str] = MappingProxyType({})


MODULES: dict[str, tuple[str, ...]] = {}
"""By name of a form, the modules of this package with its makers, in the order they are asked; loaded on demand."""

for _module, _forms in FAMILIES.items():
    for _form in _forms.split():
        MODULES[_form] = (*MODULES.get(_form, ()), _module)

BEFORE: dict[str, str] = {}
"""By a module of makers, the module before which it is asked; others are asked in the order of their names."""

MAKERS: dict[type[forms.Form], dict[str, list[Maker]]] = {}
"""By form and name of the module, the makers of the modules loaded so far."""


def maker(form: type[forms.Form], before: str | None = None) -> Callable[[M], M]:
    """Decorator: this function makes forms of that class. before: the module whose makers are asked after this one's.

    Its module stands in makers.py under the form's name: `make families` writes it.
    """

    def register(function: M) -> M:
        module = function.__module__.removeprefix(f"{__name__}.")
        note_origin(function)
        if before is not None:
            BEFORE[module] = before
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
