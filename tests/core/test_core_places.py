"""Places: names that mean one, equality, immutability."""

import copy
import doctest
import pickle

import pytest

from opwright.core import places
from opwright.core.errors import InvalidArgumentError
from opwright.core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, SimulatedPlace, place_of

NAMES = [
    ("cpu", CPUPlace()),
    ("CPU", CPUPlace()),
    ("cpu:0", CPUPlace()),
    ("/cpu:0", CPUPlace()),
    ("/device:CPU:0", CPUPlace()),
    ("/job:localhost/replica:0/task:0/device:CPU:0", CPUPlace()),
    ("gpu", CUDAPlace(0)),
    ("gpu:1", CUDAPlace(1)),
    ("GPU:12", CUDAPlace(12)),
    ("cuda:1", CUDAPlace(1)),
    ("/device:GPU:1", CUDAPlace(1)),
    (CUDAPlace(3), CUDAPlace(3)),
    ("pinned", CUDAPinnedPlace()),
    ("sim", SimulatedPlace(0)),
    ("sim:2", SimulatedPlace(2)),
]


@pytest.mark.parametrize(("name", "place"), NAMES, ids=str)
def test_place_of(name, place):
    assert place_of(name) == place


@pytest.mark.parametrize(
    "name", ["", "tpu:0", "cpu:", "cpu:1", "pinned:1", "gpu:-1", "gpu:1:2", " cpu", "gpu:1\n", 0, None]
)
def test_bad_names(name):
    with pytest.raises(InvalidArgumentError) as caught:
        place_of(name)
    assert "place_of" in str(caught.value)
    assert "wanted" in str(caught.value)


@pytest.mark.parametrize("number", [-1, 1.0, "0", True, None])
def test_bad_device_numbers(number):
    with pytest.raises(InvalidArgumentError, match="device number"):
        CUDAPlace(number)


def test_equality_and_hash():
    assert CPUPlace() == CPUPlace() != CUDAPlace(0) != CUDAPlace(1)
    assert CPUPlace() != "cpu:0"
    assert len({CPUPlace(), CPUPlace(), CUDAPlace(), CUDAPlace(0), CUDAPlace(1)}) == 3
    assert len({CPUPlace(), CUDAPinnedPlace(), CUDAPinnedPlace(), SimulatedPlace(), SimulatedPlace(1)}) == 4


def test_text_forms():
    assert [repr(p) for p in (CPUPlace(), CUDAPlace(), CUDAPlace(2))] == ["CPUPlace()", "CUDAPlace(0)", "CUDAPlace(2)"]
    assert [place_of(str(p)) for p in (CPUPlace(), CUDAPlace(2))] == [CPUPlace(), CUDAPlace(2)]


@pytest.mark.parametrize("place", [CPUPlace(), CUDAPlace(2), CUDAPinnedPlace(), SimulatedPlace(1)], ids=repr)
def test_immutable_and_copied_whole(place):
    for name in ("device_id", "_device_id", "kind", "other"):
        with pytest.raises(AttributeError):
            setattr(place, name, 1)
    with pytest.raises(AttributeError):
        del place._device_id
    assert not hasattr(place, "__dict__")
    assert copy.deepcopy(place) == pickle.loads(pickle.dumps(place)) == place


def test_place_itself_is_no_place():
    with pytest.raises(TypeError, match="CPUPlace"):
        Place()


def test_examples_in_docstrings():
    assert doctest.testmod(places).failed == 0
