"""The loop graph: forms in the order they run, between buffers that come from outside and go there.

Lives here: `LoopGraph`, its text form, `verify`.
Not here: forms (forms.py), fusion (fusion.py), plans (planning.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...core.errors import InternalError
from .element_types import check_types
from .forms import Banded, Buffer, Form


@dataclasses.dataclass(frozen=True, eq=False)
class LoopGraph:
    """forms: each after those that write what it reads. inputs, outputs: whose memory is given from outside.
    Raises InternalError where a form reads a buffer as another dtype than it has.

    A buffer has one form that writes it; a parent is written by the forms of its slices.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    forms: tuple[Form, ...]

    def __post_init__(self) -> None:
        for form in self.forms:
            check_types(form)

    def __str__(self) -> str:
        lines = [f"loops {self.name}({', '.join(map(repr, self.inputs))}) {{"]
        lines += [f"  {text(form)}" for form in self.forms]
        return "\n".join([*lines, f"  return {', '.join(b.name for b in self.outputs)}", "}"])


def text(form: Form) -> str:
    """A form in a line: what it writes, its class, what it is made of, and the operators it came from. What is made of
    others has a line for each."""
    parts = []
    for f in dataclasses.fields(form):
        value = getattr(form, f.name)
        if f.name in ("output", "origin") or (f.default is not dataclasses.MISSING and value == f.default):
            continue
        parts.append(_part(f.name, value))
    line = f"{_place(form.output)} = {type(form).__name__}({', '.join(p for p in parts if p)})"
    if isinstance(form, Banded):
        return "\n    ".join([f"{line}:", *map(text, form.parts)])
    return f"{line}  # {' + '.join(form.origin)}" if form.origin else line


def _place(buffer: Buffer) -> str:
    within = f" in {buffer.parent.name} from {buffer.start}" if buffer.parent is not None else ""
    return f"{buffer!r}{within}"


def _part(name: str, value: object) -> str:
    if isinstance(value, Buffer):
        return _operand(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Buffer):
        return ", ".join(map(_operand, value))
    if isinstance(value, tuple) and value and isinstance(value[0], Form):
        return ""
    if name == "window":
        return repr(value).removeprefix("Window").strip("()")
    return f"{name}={value!r}" if value != () else ""


def _operand(buffer: Buffer) -> str:
    return f"const {buffer!r}" if buffer.constant is not None else buffer.name


def verify(graph: LoopGraph) -> None:
    """Raises InternalError where a form reads what nobody has written yet, or two write one buffer."""
    written = {id(b) for b in graph.inputs}
    for form in graph.forms:
        for b in form.inputs:
            if b.constant is None and not _covered(b, written):
                raise InternalError(op=graph.name, what=f"{text(form)} reads {b.name}, which is not written yet")
        if id(form.output) in written or form.output.constant is not None:
            raise InternalError(op=graph.name, what=f"{text(form)} writes {form.output.name}, which is written already")
        written |= {id(form.output)}
        written |= {id(b) for b in parents(form.output)}
    for b in graph.outputs:
        if id(b) not in written and b.constant is None:
            raise InternalError(op=graph.name, what=f"nobody writes the output {b.name}")


def _covered(buffer: Buffer, written: set[int]) -> bool:
    return id(buffer) in written or any(id(b) in written for b in parents(buffer))


def parents(buffer: Buffer) -> list[Buffer]:
    """The buffers that this one is a slice of, the nearest first."""
    found = []
    while buffer.parent is not None:
        buffer = buffer.parent
        found.append(buffer)
    return found


def readers(forms: Sequence[Form]) -> dict[int, list[Form]]:
    """By identity of a buffer, the forms that read it."""
    found: dict[int, list[Form]] = {}
    for form in forms:
        for b in dict.fromkeys(form.inputs):
            found.setdefault(id(b), []).append(form)
    return found
