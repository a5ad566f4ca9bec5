"""Records: immutable, compared by identity, with the signatures and errors of dataclasses."""

from __future__ import annotations

import dataclasses

import pytest

from opwright.core.records import record


@record
class _Point:
    x: int
    label: str = ""
    origin: tuple[int, ...] = dataclasses.field(default=(), kw_only=True)


@record
class _Weighted(_Point):
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise ValueError("a negative weight")


def _as_dataclass(base: type = object) -> type:
    """The same as a dataclass of the standard library."""
    names = {name: _Weighted.__dict__.get(name) for name in ("__post_init__",)}
    fields = [("x", int), ("label", str, ""), ("origin", tuple, dataclasses.field(default=(), kw_only=True))]
    fields += [("weight", float, 1.0)]
    return dataclasses.make_dataclass("_Weighted", fields, bases=(base,), namespace=names, frozen=True, eq=False)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((3,), {}),
        ((3, "a"), {"origin": (1,)}),
        ((3, "a", 2.0), {}),
        ((), {"x": 3, "weight": 0.5}),
        ((), {}),  # an error, as the following
        ((3, "a", 2.0, (1,)), {}),
        ((3,), {"x": 4}),
        ((3,), {"y": 4}),
        ((), {"label": "a", "y": 4}),
        ((3,), {"weight": -1.0}),
    ],
)
def test_records_are_made_as_dataclasses_are(values: tuple[object, ...], named: dict[str, object]) -> None:
    peer = _as_dataclass()
    try:
        expected = peer(*values, **named)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            _Weighted(*values, **named)  # type: ignore[arg-type]
        return
    weighted = _Weighted(*values, **named)  # type: ignore[arg-type]
    assert vars(weighted) == vars(expected)
    assert [f.name for f in dataclasses.fields(weighted)] == [f.name for f in dataclasses.fields(expected)]
    assert repr(weighted) == repr(expected).replace("make_dataclass.", "")
    assert vars(dataclasses.replace(weighted, x=7)) == vars(expected) | {"x": 7}


def test_records_are_immutable_and_compared_by_identity() -> None:
    point = _Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="x"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="label"):
        del point.label  # type: ignore[misc]
    assert point != _Point(1)
    assert len({point, _Point(1)}) == 2
    with pytest.raises(TypeError, match=r"missing \['x'\], repeated \[\], unknown \['y'\]"):
        _Point(y=2)  # type: ignore[call-arg]
