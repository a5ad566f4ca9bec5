"""A loop graph while it is rewritten: who writes and who reads each buffer.

Lives here: `Rewriting`.  Not here: the rules (fusing_maps.py, fusing_moves.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from .element_types import check_types
from .forms import Buffer, Form
from .graph import LoopGraph
from .indexing_forms import GUARDS


class Rewriting:
    """The forms in order, to be replaced; forms and buffers themselves never change.

    parts: by form, those it was made of where a rule made it of several.
    """

    def __init__(self, graph: LoopGraph) -> None:
        self._graph = graph
        self._slots: list[tuple[Form, ...]] = [(form,) for form in graph.forms]
        self._slot: dict[Form, int] = {form: i for i, form in enumerate(graph.forms)}
        self._outputs = {id(b) for b in graph.outputs}
        self._writers: dict[int, Form] = {}
        self._readers: dict[int, dict[Form, None]] = {}
        self._replaced: dict[Form, Form | None] = {}
        self.parts: dict[Form, Sequence[Form]] = {}
        for form in graph.forms:
            self._add(form)

    def of(self, kind: type[Form]) -> list[Form]:
        """The forms of a class that there are now, in order."""
        return [form for form in self._order() if isinstance(form, kind)]

    def _order(self) -> list[Form]:
        """All forms, each after those that write what it reads: those that stand in for others are in their places."""
        return [form for slot in self._slots for form in slot]

    def latest(self, form: Form) -> Form | None:
        """What stands in the place of a form now; None where nothing does."""
        found: Form | None = form
        while found is not None and found in self._replaced:
            found = self._replaced[found]
        return found

    def writer(self, buffer: Buffer) -> Form | None:
        """The form that writes a buffer; None for inputs, constants, and parents."""
        return self._writers.get(id(buffer))

    def readers(self, buffer: Buffer) -> list[Form]:
        """The forms that read a buffer."""
        return list(self._readers.get(id(buffer), ()))

    def only_reader(self, buffer: Buffer, form: Form) -> bool:
        """Whether nobody else needs the buffer: neither another form nor who runs the graph."""
        found = self._readers.get(id(buffer), {})
        return len(found) == 1 and form in found and id(buffer) not in self._outputs

    def is_output(self, buffer: Buffer) -> bool:
        """Whether who runs the graph is given it."""
        return id(buffer) in self._outputs

    # ---- changes ----------------------------------------------------------------------------------------------------

    def replace(self, old: Form, *new: Form) -> None:
        """Put forms in the place of one. The last of them stands for it from here on."""
        self._drop(old)
        self._replaced[old] = new[-1] if new else None
        self._fill(old, new)
        for form in new:
            self._add(form)

    def join(self, producer: Form, reader: Form, whole: Form) -> None:
        """Put one form in the place of a reader and of the only form whose result nobody but it reads."""
        self._drop(producer)
        self._fill(producer, ())
        self._replaced[producer] = None
        self.parts[whole] = (producer, reader)
        self.replace(reader, whole)

    def _fill(self, old: Form, new: tuple[Form, ...]) -> None:
        slot = self._slot.pop(old)
        self._slot.update(dict.fromkeys(new, slot))
        self._slots[slot] = tuple(f for form in self._slots[slot] for f in (new if form is old else (form,)))

    def _add(self, form: Form) -> None:
        check_types(form)
        self._writers[id(form.output)] = form
        for b in form.inputs:
            if b.constant is None:
                self._readers.setdefault(id(b), {})[form] = None

    def _drop(self, form: Form) -> None:
        if self._writers.get(id(form.output)) is form:
            del self._writers[id(form.output)]
        for b in form.inputs:
            self._readers.get(id(b), {}).pop(form, None)

    def graph(self) -> LoopGraph:
        """The graph as it is now, without forms whose result nobody needs, but for guards."""
        g, kept, needed = self._graph, [], set(self._outputs)
        for form in reversed(self._order()):
            b: Buffer | None = form.output
            while b is not None and id(b) not in needed:
                b = b.parent
            if b is not None or isinstance(form, GUARDS):
                kept.append(form)
                needed.update(id(i) for i in form.inputs)
        return LoopGraph(g.name, g.inputs, g.outputs, tuple(reversed(kept)))
