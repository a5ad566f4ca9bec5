"""GrowingList: a Python list that grows in a graph.

Lives here: the list as a value of a graph, and its conversion from a Python list; `refuse`, by which the statements of
a graph raise errors.  Not here: the operators on it (ops/list_ops.py).

`l.append(x)` in a loop of the graph cannot modify a Python list, as the body is recorded once. A list that control flow
appends to is therefore converted to a GrowingList. It has a list's methods and is implemented by a persistent list of
tensors, which branches and loops carry: one per tensor of an item, if items are nestings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from ...core import dtypes, nest
from ...core.errors import compose
from ...core.introspection import users_line
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor, TypeSpec
from ...eager.tensor import EagerTensor
from ...ops import array, dispatch, list_ops, list_tensor_ops
from ...ops.tensor import TensorLike

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

state = dispatch.state


def refuse(kind: type[Exception], text: str, **parts: Any) -> NoReturn:
    """Raise an error about a variable, with the user's line."""
    raise kind(compose(text, at=users_line(), **parts))


class Items:
    """The type of the items, shared by all states of one list.

    element: their structure, of TensorSpecs; None while the list is empty. read: whether items were read with these
    specs.
    """

    __slots__ = ("begin_mismatch", "element", "name", "read")

    def __init__(self, name: str, element: Any = None) -> None:
        self.name, self.element, self.read, self.begin_mismatch = name, element, False, False

    @property
    def specs(self) -> list[TensorSpec]:
        """The specs of one item's tensors."""
        return nest.flatten(self.element, expand_composites=True)

    def add(self, item: Any) -> list[Any]:
        """Check an item against earlier ones; return its tensors. Raises TypeError or ValueError."""
        flat = [dispatch.to_tensor(leaf) for leaf in nest.flatten(item, expand_composites=True)]
        if self.element is None:
            specs = iter([TensorSpec(t.shape, t.dtype) for t in flat])
            self.element = nest.map_structure(lambda _: next(specs), item, expand_composites=True)
            return flat
        try:
            nest.assert_same_structure(self.element, item, check_types=False, expand_composites=True)
        except (ValueError, TypeError) as error:
            refuse(TypeError, f"the items of list {self.name!r} must have one nested structure:\n\n{error}")
        wider = []
        for i, (spec, tensor) in enumerate(zip(self.specs, flat)):
            if tensor.dtype is not spec.dtype:
                original = nest.flatten(item, expand_composites=True)[i]
                if isinstance(original, TensorLike):
                    what = f"list {self.name!r} has dtype {spec.dtype.name}, and {tensor.dtype.name} is appended"
                    refuse(TypeError, what, do="use tf.cast")
                flat[i] = tensor = dispatch.to_tensor(original, spec.dtype)
            shape = spec.shape if tensor.shape.is_subtype_of(spec.shape) else common_shape(spec.shape, tensor.shape)
            wider.append(TensorSpec(shape, spec.dtype))
        if self.read and any(a.shape != b.shape for a, b in zip(wider, self.specs)):
            refuse(
                ValueError,
                f"an item of another shape is appended to list {self.name!r} after items were read",
                found=[t.spec.short() for t in flat],
                wanted=[s.short() for s in self.specs],
            )
        self.element = nest.pack_sequence_as(self.element, wider, expand_composites=True)
        return flat


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """Return the most specific shape that both are subtypes of."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.as_list(), b.as_list())])


class GrowingListSpec(TypeSpec):
    """The type of a GrowingList: the type of its items. count: the number of lists of tensors."""

    __slots__ = ("count", "items")

    def __init__(self, items: Any, count: int) -> None:
        self.items, self.count = items, count

    @property
    def value_type(self) -> type[GrowingList]:
        """GrowingList."""
        return GrowingList

    def _serialize(self) -> tuple[Any, ...]:
        return (self.items.element, self.count)

    @property
    def _component_specs(self) -> list[Any]:
        return [TensorSpec((), dtypes.variant)] * self.count

    def _to_components(self, value: GrowingList) -> list[Any]:
        return list(value.flows)

    def _from_components(self, components: Any) -> GrowingList:
        return GrowingList(self.items, list(components))


class GrowingList(CompositeTensor):
    """A list whose length is known when the graph runs. It has a list's methods; `tf.stack` converts it to a tensor.

    As the result of a function it is a sequence of tensors: len, indices, iteration.
    flows: a list of tensors for each tensor of an item; none while it is empty and its items are unknown.
    """

    __slots__ = ("__weakref__", "flows", "items")

    def __init__(self, items: Items, flows: list[Any]) -> None:
        self.items, self.flows = items, flows

    def copy(self) -> GrowingList:
        """Return a copy with the same items, for a branch to modify."""
        return GrowingList(self.items, list(self.flows))

    def begin(self) -> None:
        """Create the empty lists of tensors as soon as the type of the items is known."""
        if self.items.element is not None and len(self.flows) < len(self.items.specs):
            if self.flows:  # a loop recorded before the items were known has one list
                self.items.begin_mismatch = True
            self.flows += [list_ops.ListReserve(0, element_dtype=s.dtype) for s in self.items.specs[len(self.flows) :]]

    @property
    def _type_spec(self) -> GrowingListSpec:
        return GrowingListSpec(self.items, len(self.flows))

    # ---- list interface -------------------------------------------------------------------------------------------

    def append(self, item: Any) -> None:
        """Append an item. Raises TypeError if its dtype or structure differs from earlier items'."""
        flat = self.items.add(item)
        self.begin()
        self.flows = [list_ops.ListPush(flow, tensor) for flow, tensor in zip(self.flows, flat)]

    def extend(self, values: Any) -> None:
        """Append all items of a Python sequence."""
        for value in values:
            self.append(value)

    def __iadd__(self, values: Any) -> GrowingList:
        self.extend(values)
        return self

    def pop(self, index: int = -1) -> object:
        """Remove and return the last item. Raises IndexError for another index."""
        if not (isinstance(index, int) and index == -1):
            raise IndexError(f"list {self.items.name!r} grows in the graph: only its last item can be removed")
        self._require_items("pop")
        tensors = []
        for i, spec in enumerate(self.items.specs):
            self.flows[i], item = list_ops.ListPop(self.flows[i], element_dtype=spec.dtype, element_shape=spec.shape)
            tensors.append(item)
        return nest.pack_sequence_as(self.items.element, tensors, expand_composites=True)

    def _require_items(self, what: str) -> None:
        if self.items.element is None:
            refuse(ValueError, f"{what} on list {self.items.name!r}, to which nothing has been appended yet")
        self.begin()
        self.items.read = True

    def length(self) -> Tensor:
        """Return the number of items: an int32 scalar."""
        return list_ops.ListLength(self.flows[0]) if self.flows else dispatch.to_tensor(0, dtypes.int32)

    @property
    def _computed(self) -> bool:
        return all(type(flow) is EagerTensor for flow in self.flows)

    def __len__(self) -> int:
        length = self.length()
        if isinstance(length, EagerTensor):
            return int(length)
        raise TypeError(f"the length of list {self.items.name!r} is not known while tracing; use tf.shape(tf.stack(l))")

    def item(self, index: Any) -> object:
        """Return the item at a nonnegative index."""
        self._require_items("reading an item")
        tensors = [
            list_ops.ListGet(flow, index, element_dtype=spec.dtype, element_shape=spec.shape)
            for flow, spec in zip(self.flows, self.items.specs)
        ]
        return nest.pack_sequence_as(self.items.element, tensors, expand_composites=True)

    def __getitem__(self, index: Any) -> object:
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
        flat = self.items.add(value)
        self.begin()
        self.flows = [list_ops.ListSet(flow, index, tensor) for flow, tensor in zip(self.flows, flat)]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return len(self) > 0

    def __eq__(self, other: object) -> bool:
        if self._computed and isinstance(other, (list, tuple, GrowingList)):
            mine, theirs = list(self), list(other)
            return len(mine) == len(theirs) and all(bool(a == b) for a, b in zip(mine, theirs))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    # ---- conversion to a tensor -----------------------------------------------------------------------------------

    def stack(self) -> Tensor:
        """Stack all items into one tensor [length, ...]. Raises TypeError for items that are nestings."""
        self._require_items("stacking")
        specs = self.items.specs
        if len(specs) != 1:
            raise TypeError(f"the items of list {self.items.name!r} are nestings of {len(specs)} tensors, not tensors")
        return list_tensor_ops.ListStack(
            self.flows[0], element_dtype=specs[0].dtype, element_shape=specs[0].shape, num=-1
        )

    def stacked(self, axis: int = 0) -> Tensor:
        """Implement `tf.stack`. Raises ValueError for a nonzero axis if the items' rank is unknown."""
        stack = self.stack()
        return stack if axis == 0 else _move_first_axis(stack, axis)

    def concatenated(self, axis: int = 0) -> Tensor:
        """Implement `tf.concat`: concatenate the items along a dimension."""
        self._require_items("concatenating")
        spec = self.items.specs[0]
        if axis in (0, -1 if spec.shape.rank == 1 else 0):
            return list_tensor_ops.ListConcat(self.flows[0], element_dtype=spec.dtype, element_shape=spec.shape)[0]
        stack = self.stack()  # [n, ..., k, ...] -> [..., n, k, ...] -> [..., n * k, ...]
        rank = stack.shape.rank
        if rank is None:
            refuse(ValueError, f"concatenating list {self.items.name!r} along axis {axis} needs items of known rank")
        axis = axis if axis >= 0 else axis + rank - 1
        transposed = _move_first_axis(stack, axis)
        sizes = array.shape(transposed)
        return array.reshape(transposed, array.concat([sizes[:axis], [-1], sizes[axis + 2 :]], 0))

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        stack = self.stack()
        return stack if dtype is None or dtype is stack.dtype else array.cast(stack, dtype)

    def __repr__(self) -> str:
        if self._computed:
            return repr(list(self))
        return f"<list {self.items.name!r} that grows in the graph>"


def _move_first_axis(tensor: Any, axis: int) -> Tensor:
    """Transpose the first dimension to `axis`."""
    rank = tensor.shape.rank
    if rank is None:
        raise ValueError(f"stacking a list along axis {axis} needs items of known rank")
    axis = axis if axis >= 0 else axis + rank
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return array.transpose(tensor, order)


def begin_growing(values: Any, name: str) -> GrowingList:
    """Convert a Python list to a GrowingList. Raises TypeError for items of different types."""
    if isinstance(values, GrowingList):
        return values.copy()
    result = GrowingList(Items(name), [])
    result.extend(values)
    return result
