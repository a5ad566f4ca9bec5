"""TensorSpec and the protocol of trace types."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.core import dtypes
from opwright.core.specs import TensorSpec, TraceType, spec_of_short

shapes = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=4))
specs = st.builds(TensorSpec, shapes, st.sampled_from(dtypes.any_dtype), st.one_of(st.none(), st.just("x")))


@given(specs)
def test_short_text_reads_back(spec):
    assert spec_of_short(spec.short()) == TensorSpec(spec.shape, spec.dtype)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert copy.deepcopy(spec) == spec
    assert hash(copy.copy(spec)) == hash(spec)


@given(specs, specs)
def test_subtyping_is_that_of_dtype_and_shape(a, b):
    assert a.is_subtype_of(b) == (a.dtype is b.dtype and a.shape.is_subtype_of(b.shape))
    above = a.most_specific_common_supertype([b])
    if a.dtype is not b.dtype:
        assert above is None
        with pytest.raises(ValueError, match="No TypeSpec"):
            a.most_specific_compatible_type(b)
    else:
        assert a.is_subtype_of(above)
        assert b.is_subtype_of(above)
        assert above.name == a.name


NO_TYPES = ["", "f32", "f32[", "f32]", "f33[2]", "f32[a]", "f32[-1]", "f32[2,,3]", "f32[2] x", "[2]"]


@pytest.mark.parametrize("text", NO_TYPES)
def test_what_is_no_type(text):
    with pytest.raises(ValueError, match=r"f32\[2|>= 0"):
        spec_of_short(text)


def test_names_count_in_equality_only():
    a, b = TensorSpec([2], "float32", "a"), TensorSpec([2], "float32", "b")
    assert a != b
    assert a.is_subtype_of(b)
    assert a == TensorSpec([2], np.float32, "a")
    assert a != "f32[2]"


def test_derived_specs():
    spec = TensorSpec([2, None], "int8", "x")
    assert spec.with_shape(None) == TensorSpec(None, "int8")
    assert spec.with_dtype("bool") == TensorSpec([2, None], "bool")
    assert TensorSpec.from_spec(spec) == spec
    assert TensorSpec.from_spec(spec, "y").name == "y"
    assert TensorSpec.from_tensor(np.zeros((2, 3), np.float16)) == TensorSpec([2, 3], "float16")
    assert (spec.rank, spec.constant, spec.spec, spec.flatten()) == (2, None, spec, [spec])
    assert repr(spec) == "TensorSpec(shape=(2, None), dtype=tf.int8, name='x')"


def test_compatibility_takes_anything_with_dtype_and_shape():
    spec = TensorSpec([None, 3], "float32")
    assert spec.is_compatible_with(np.zeros((5, 3), np.float32))
    assert spec.is_compatible_with(TensorSpec(None, "float32"))
    assert not spec.is_compatible_with(np.zeros((5, 3)))
    assert not spec.is_compatible_with(np.zeros(3, np.float32))
    assert not spec.is_compatible_with("text")


def test_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        TensorSpec([2]).shape = [3]


@pytest.mark.parametrize("shape", ["x", [-1], [1.5]])
def test_bad_shapes(shape):
    with pytest.raises((TypeError, ValueError)):
        TensorSpec(shape)


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.is_subtype_of(t),
        lambda t: t.most_specific_common_supertype([]),
        lambda t: t.placeholder_value(None),
        lambda t: t == t,
        hash,
    ],
)
def test_a_trace_type_must_define_its_parts(ask):
    class Incomplete(TraceType):
        pass

    with pytest.raises(TypeError, match=r"Incomplete (must define|does not define)"):
        ask(Incomplete())


def test_what_trace_types_inherit():
    class Some(TraceType):
        pass

    assert Some().cast(3, None) == 3
    assert Some().flatten() == []
