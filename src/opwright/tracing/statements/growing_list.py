"""GrowingList: a Python list to which staged code appends.

Lives here: the list as a value of a graph, and its beginning as a Python list.  Not here: the operators on it
(ops/lists.py).

`l.append(x)` in a loop of the graph cannot change a Python list: the loop's body is recorded once. So a list that is
appended to in staged code becomes this: methods of a list, and inside one persistent list of tensors, which branches
and loops carry: a list for each tensor of an item, where items are nestings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core import dtypes, nest
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor, TypeSpec
from ...eager.tensor import EagerTensor
from ...ops import array, dispatch, lists
from ...ops import list_rows as rows
from ...ops.tensor import TensorLike
from .merge import refuse

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

state = dispatch.state


class Items:
    """What is known of the items, shared by all states of one list. form: their nesting, of TensorSpecs; None as long
    as there was none. read: whether items were read with these specs already."""

    __slots__ = ("begun_wrong", "form", "name", "read")

    def __init__(self, name: str, form: Any = None) -> None:
        self.name, self.form, self.read, self.begun_wrong = name, form, False, False

    @property
    def specs(self) -> list[TensorSpec]:
        """The specs of one item's tensors."""
        return nest.flatten(self.form, expand_composites=True)

    def learn(self, item: Any) -> list[Any]:
        """Check an item against those before it; gives its tensors. Raises TypeError or ValueError."""
        flat = [dispatch.to_tensor(leaf) for leaf in nest.flatten(item, expand_composites=True)]
        if self.form is None:
            made = iter([TensorSpec(t.shape, t.dtype) for t in flat])
            self.form = nest.map_structure(lambda _: next(made), item, expand_composites=True)
            return flat
        try:
            nest.assert_same_structure(self.form, item, check_types=False, expand_composites=True)
        except (ValueError, TypeError) as error:
            refuse(TypeError, f"the items of list {self.name!r} must have one nested structure:\n\n{error}")
        wider = []
        for i, (spec, tensor) in enumerate(zip(self.specs, flat)):
            if tensor.dtype is not spec.dtype:
                original = nest.flatten(item, expand_composites=True)[i]
                if isinstance(original, TensorLike):
                    what = f"list {self.name!r} holds {spec.dtype.name} and gets {tensor.dtype.name} appended"
                    refuse(TypeError, what, do="use tf.cast")
                flat[i] = tensor = dispatch.to_tensor(original, spec.dtype)
            shape = spec.shape if tensor.shape.is_subtype_of(spec.shape) else common_shape(spec.shape, tensor.shape)
            wider.append(TensorSpec(shape, spec.dtype))
        if self.read and any(a.shape != b.shape for a, b in zip(wider, self.specs)):
            refuse(
                ValueError,
                f"list {self.name!r} gets an item of another shape appended after items were read",
                found=[t.spec.short() for t in flat],
                wanted=[s.short() for s in self.specs],
            )
        self.form = nest.pack_sequence_as(self.form, wider, expand_composites=True)
        return flat


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """The narrowest shape that both are kinds of."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.as_list(), b.as_list())])


class GrowingListSpec(TypeSpec):
    """The type of a list that grew: that of its items. count: how many lists of tensors it is made of."""

    __slots__ = ("count", "items")

    def __init__(self, items: Any, count: int) -> None:
        self.items, self.count = items, count

    @property
    def value_type(self) -> Any:
        """GrowingList."""
        return GrowingList

    def _serialize(self) -> tuple[Any, ...]:
        return (self.items.form, self.count)

    @property
    def _component_specs(self) -> list[Any]:
        return [TensorSpec((), dtypes.variant)] * self.count

    def _to_components(self, value: GrowingList) -> list[Any]:
        return list(value.flows)

    def _from_components(self, components: Any) -> GrowingList:
        return GrowingList(self.items, list(components))


class GrowingList(CompositeTensor):
    """A list whose length is known when the graph runs. Has a list's methods; `tf.stack` makes a tensor of it.

    Given back by a function it is a sequence of tensors: len, indices, iteration.
    flows: a list of tensors for each tensor of an item; none as long as it is empty and its items are not known.
    """

    __slots__ = ("__weakref__", "flows", "items")

    def __init__(self, items: Items, flows: list[Any]) -> None:
        self.items, self.flows = items, flows

    def twin(self) -> GrowingList:
        """Another list of the same items, for a branch to change."""
        return GrowingList(self.items, list(self.flows))

    def begin(self) -> None:
        """Make the empty lists of the tensors, where they are still to be made and the items are known."""
        if self.items.form is not None and len(self.flows) < len(self.items.specs):
            if self.flows:  # a loop that knew nothing of the items provided for one tensor
                self.items.begun_wrong = True
            self.flows += [lists.ListReserve(0, element_dtype=s.dtype) for s in self.items.specs[len(self.flows) :]]

    @property
    def _type_spec(self) -> GrowingListSpec:
        return GrowingListSpec(self.items, len(self.flows))

    # ---- as a list ------------------------------------------------------------------------------------------------

    def append(self, item: Any) -> None:
        """Add an item. Raises TypeError for one of another dtype or nesting than those before."""
        flat = self.items.learn(item)
        self.begin()
        self.flows = [lists.ListPush(flow, tensor) for flow, tensor in zip(self.flows, flat)]

    def extend(self, values: Any) -> None:
        """Add all of a Python sequence's items."""
        for value in values:
            self.append(value)

    def __iadd__(self, values: Any) -> GrowingList:
        self.extend(values)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take the last item off. Raises IndexError for another index."""
        if not (isinstance(index, int) and index == -1):
            raise IndexError(f"list {self.items.name!r} grows in the graph: only its last item can be taken off")
        self._known("pop")
        taken = []
        for i, spec in enumerate(self.items.specs):
            self.flows[i], item = lists.ListPop(self.flows[i], element_dtype=spec.dtype, element_shape=spec.shape)
            taken.append(item)
        return nest.pack_sequence_as(self.items.form, taken, expand_composites=True)

    def _known(self, what: str) -> None:
        if self.items.form is None:
            refuse(ValueError, f"{what} on list {self.items.name!r}, to which nothing has been appended yet")
        self.begin()
        self.items.read = True

    def length(self) -> Tensor:
        """The number of items: an int32 scalar."""
        return lists.ListLength(self.flows[0]) if self.flows else dispatch.to_tensor(0, dtypes.int32)

    @property
    def _computed(self) -> bool:
        return all(type(flow) is EagerTensor for flow in self.flows)

    def __len__(self) -> int:
        found = self.length()
        if isinstance(found, EagerTensor):
            return int(found)
        raise TypeError(f"the length of list {self.items.name!r} is not known while tracing; use tf.shape(tf.stack(l))")

    def item(self, index: Any) -> Any:
        """The item of that number, not negative."""
        self._known("reading an item")
        taken = [
            lists.ListGet(flow, index, element_dtype=spec.dtype, element_shape=spec.shape)
            for flow, spec in zip(self.flows, self.items.specs)
        ]
        return nest.pack_sequence_as(self.items.form, taken, expand_composites=True)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.stack()[index]
        if isinstance(index, int):
            if self._computed:
                return self.item(range(len(self))[index])
            return self.item(index if index >= 0 else self.length() + index)
        return self.item(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, int) and index < 0:
            index = self.length() + index
        flat = self.items.learn(value)
        self.begin()
        self.flows = [lists.ListSet(flow, index, tensor) for flow, tensor in zip(self.flows, flat)]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return len(self) > 0

    def __eq__(self, other: object) -> Any:
        if self._computed and isinstance(other, (list, tuple, GrowingList)):
            mine, theirs = list(self), list(other)
            return len(mine) == len(theirs) and all(bool(a == b) for a, b in zip(mine, theirs))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    # ---- as a tensor ----------------------------------------------------------------------------------------------

    def stack(self) -> Tensor:
        """All items as one tensor [length, ...]. Raises TypeError for items that are nestings."""
        self._known("stacking")
        specs = self.items.specs
        if len(specs) != 1:
            raise TypeError(f"the items of list {self.items.name!r} are nestings of {len(specs)} tensors, not tensors")
        return rows.ListStack(self.flows[0], element_dtype=specs[0].dtype, element_shape=specs[0].shape, num=-1)

    def stacked(self, axis: int = 0) -> Any:
        """What `tf.stack` makes of the list. Raises ValueError for another axis where the items' rank is unknown."""
        made = self.stack()
        return made if axis == 0 else _moved(made, axis)

    def concatenated(self, axis: int = 0) -> Tensor:
        """What `tf.concat` makes of the list: items one after the other along a dimension they have."""
        self._known("concatenating")
        spec = self.items.specs[0]
        if axis in (0, -1 if spec.shape.rank == 1 else 0):
            return rows.ListConcat(self.flows[0], element_dtype=spec.dtype, element_shape=spec.shape)[0]
        made = self.stack()  # [n, ..., k, ...] -> [..., n, k, ...] -> [..., n * k, ...]
        rank = made.shape.rank
        if rank is None:
            refuse(ValueError, f"concatenating list {self.items.name!r} along axis {axis} needs items of known rank")
        axis = axis if axis >= 0 else axis + rank - 1
        moved = _moved(made, axis)
        sizes = array.shape(moved)
        return array.reshape(moved, array.concat([sizes[:axis], [-1], sizes[axis + 2 :]], 0))

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        made = self.stack()
        return made if dtype is None or dtype is made.dtype else array.cast(made, dtype)

    def __repr__(self) -> str:
        if self._computed:
            return repr(list(self))
        return f"<list {self.items.name!r} that grows in the graph>"


def _moved(tensor: Any, axis: int) -> Tensor:
    """The first dimension moved to another place."""
    rank = tensor.shape.rank
    if rank is None:
        raise ValueError(f"stacking a list along axis {axis} needs items of known rank")
    axis = axis if axis >= 0 else axis + rank
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return array.transpose(tensor, order)


def begin_growing(values: Any, name: str) -> GrowingList:
    """A Python list as one that staged code may append to. Raises TypeError for items of different kinds."""
    if isinstance(values, GrowingList):
        return values.twin()
    made = GrowingList(Items(name), [])
    made.extend(values)
    return made
