"""Test Python's protocols on tensors and variables by one table: a variable behaves like its value.

What the two give is compared with each other, errors by their being one; against TensorFlow the same table runs there.
"""

import copy
import math
import operator
import pickle
import sys
import weakref

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values to real")  # NumPy's, for float(1 + 2j)
VALUES = {
    "float": 1.75,
    "int": np.int32(3),
    "bool": True,
    "complex": 1 + 2j,
    "half": np.float16(1.5),
    "vector": [1.5, 2.5],
    "integers": [3, 1],
    "matrix": [[1.0, 2.0], [3.0, 4.0]],
    "string": "ab",
    "one": [2.0],
}
PROTOCOLS = {
    "float": float,
    "int": int,
    "bool": bool,
    "complex": complex,
    "array of float64": lambda x: np.asarray(x, np.float64),
    "iter": list,
    "round": round,
    "trunc": math.trunc,
    "divmod": lambda x: divmod(x, 2),
    "matmul": lambda x: x @ x,
    "neg": operator.neg,
    "abs": abs,
    "invert": operator.invert,
    "add": lambda x: x + 1,
    "radd": lambda x: 1 + x,
    "pow": lambda x: x**2,
    "less": lambda x: x < 2,
    "equal": lambda x: x == 2,
    "and": lambda x: x & x,
    "mod": lambda x: x % 2,
    "floordiv": lambda x: x // 2,
    "rtruediv": lambda x: 2 / x,
    "getitem": lambda x: x[0],
    "isnan": math.isnan,
    "setitem": lambda x: operator.setitem(x, 0, 1.0),
    "contains": lambda x: 2.0 in x,
    "hash": hash,
    "call": lambda x: x(),
    "lshift": lambda x: x << 1,
    "reshape": lambda x: x.reshape,
    "shape": lambda x: tuple(x.shape),
    "dtype": lambda x: x.dtype.name,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "ref": lambda x: x.ref() == x.ref(),
    "weakref": lambda x: weakref.ref(x)() is x,
    "weakref of ref": lambda x: weakref.ref(x.ref())() is None,
}
OURS = {  # TensorFlow's variables have these otherwise, or not at all
    "index": operator.index,
    "len": len,
    "bytes": bytes,
    "format": lambda x: f"{x:.1f}",
    "format int": lambda x: f"{x:d}",
    "reversed": lambda x: list(reversed(x)),
    "range": lambda x: list(range(x)),
    "length hint": operator.length_hint,
    "array": np.asarray,
    "sum": np.sum,
    "dlpack": lambda x: np.from_dlpack(x),
    "ndim": lambda x: x.ndim,
}


def shown(result):
    """A result as something that compares: tensors and variables by dtype and value."""
    if isinstance(result, (list, tuple)):
        return [shown(r) for r in result]
    if hasattr(result, "numpy") and hasattr(result, "dtype"):
        return result.dtype.name, np.asarray(result.numpy()).tolist()
    return (result.dtype.name, result.tolist()) if isinstance(result, (np.ndarray, np.generic)) else result


def outcome(protocol, x):
    try:
        return shown(protocol(x))
    except Exception:  # which one is the tensor's own affair
        return "an error"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_variable_has_what_its_value_has(tf, protocol):
    for name, value in VALUES.items():
        result = [outcome(PROTOCOLS[protocol], kind(value)) for kind in (tf.Variable, tf.constant)]
        assert result[0] == result[1], name


@pytest.mark.ours
@pytest.mark.parametrize("protocol", OURS)
def test_a_variable_has_what_its_value_has_beyond_tensorflow(tf, protocol):
    for name, value in VALUES.items():
        result = [outcome(OURS[protocol], kind(value)) for kind in (tf.Variable, tf.constant)]
        assert result[0] == result[1], name


def test_complex_of_a_variable_keeps_its_imaginary_part(tf):
    assert complex(tf.Variable(1 + 2j)) == 1 + 2j


def test_bytes_of_a_tensor_are_its_elements(tf):
    assert bytes(tf.constant([3, 1])) == np.array([3, 1], np.int32).tobytes()
    assert bytes(tf.constant([1.5])) == np.array([1.5], np.float32).tobytes()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes in Python have no __buffer__ before 3.12")
def test_memoryview_of_a_tensor(tf):
    assert memoryview(tf.constant([3, 1])).tolist() == [3, 1]
    assert memoryview(tf.constant([3, 1])).readonly


def test_references_sort_and_key_nestings(tf):
    a, b = tf.constant(1.0), tf.Variable(2.0)
    assert sorted(float(x) for x in tf.nest.flatten({a.ref(): a, b.ref(): b})) == [1.0, 2.0]
    kept = weakref.WeakKeyDictionary()
    key = a.ref()
    kept[key] = "a"
    assert kept[a.ref()] == "a"


# ---- lists with tensors in them -------------------------------------------------------------------------------------

MIXED = {
    "float beside float64": (lambda tf: [0.0, tf.constant(1.0, tf.float64)], "float64", [0.0, 1.0]),
    "float64 first": (lambda tf: [tf.constant(1.0, tf.float64), 0.0], "float64", [1.0, 0.0]),
    "deeper": (lambda tf: [[1, 2.5], [tf.constant(1.0, tf.float64), 3]], "float64", [[1.0, 2.5], [1.0, 3.0]]),
    "int beside float32": (lambda tf: [1, tf.constant(1.5)], "float32", [1.0, 1.5]),
    "int beside int64": (lambda tf: [1, tf.constant(1, tf.int64)], "int64", [1, 1]),
    "int beside uint8": (lambda tf: [1, tf.constant(1, tf.uint8)], "uint8", [1, 1]),
    "float beside float16": (lambda tf: [0.0, tf.constant(1.0, tf.float16)], "float16", [0.0, 1.0]),
    "float beside a variable": (lambda tf: [0.5, tf.Variable(1.0, dtype=tf.float64)], "float64", [0.5, 1.0]),
    "strings": (lambda tf: ["a", tf.constant("bc")], "string", [b"a", b"bc"]),
}


@pytest.mark.parametrize("case", MIXED)
@pytest.mark.parametrize("mode", ["eager", "tape", "function"])
def test_the_first_tensor_of_a_list_determines_its_dtype(tf, case, mode):
    values, dtype, expected = MIXED[case]
    if mode == "eager":
        actual = tf.convert_to_tensor(values(tf))
    elif mode == "tape":
        with tf.GradientTape():
            actual = tf.convert_to_tensor(values(tf))
    else:
        inputs = values(tf)
        actual = tf.function(lambda: tf.convert_to_tensor(inputs))()
    assert actual.dtype.name == dtype
    assert actual.numpy().tolist() == expected


def test_a_float_next_to_an_integer_tensor_is_an_error(tf):
    with pytest.raises(TypeError, match="int32"):
        tf.convert_to_tensor([1.5, tf.constant(1)])


@pytest.mark.parametrize(("sizes", "dtype"), [([2, 3], "int32"), ([2**31 - 1], "int32"), ([2**31, 2], "int64")])
def test_a_shape_as_a_tensor_is_as_wide_as_it_must_be(tf, sizes, dtype):
    for make in (tf.convert_to_tensor, tf.function(tf.convert_to_tensor)):
        result = make(tf.TensorShape(sizes))
        assert result.dtype.name == dtype
        assert result.numpy().tolist() == sizes
