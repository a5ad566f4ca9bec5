"""Arrays of the simulated device under NumPy's functions: NumPy is the oracle, and nothing waits that need not."""

import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opwright as ow
from opwright.core.errors import InvalidArgumentError, UnknownError
from opwright.devices.simulated import SimulatedDeviceContext
from opwright.devices.simulated_array import SimulatedArray

DEVICE = SimulatedDeviceContext()
A = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
B = np.linspace(0.5, 4, 4, dtype=np.float32)
N = np.array([[2, 0, 1], [1, 1, 0]])

# Functions whose results are known in shape and dtype without waiting, as reference kernels use them.
QUEUED = {
    "add": lambda a, b, n: a + b,
    "reflected": lambda a, b, n: 2 - a * 3 / b,
    "power": lambda a, b, n: a**2 + 2**b,
    "matmul": lambda a, b, n: a @ a.T,
    "compare": lambda a, b, n: (a > b) & ~(a == 0) | (a <= -1),
    "divmod": lambda a, b, n: divmod(a, b),
    "ufuncs": lambda a, b, n: np.tanh(a) + np.exp(-np.abs(a)) * np.sign(b),
    "maximum": lambda a, b, n: np.maximum(a, 0.5),
    "where": lambda a, b, n: np.where(a > 0, a, b),
    "clip": lambda a, b, n: np.clip(a, -1, 1),
    "sum": lambda a, b, n: a.sum(axis=1, keepdims=True),
    "mean": lambda a, b, n: np.mean(a, axis=(0, 1)),
    "var": lambda a, b, n: a.var(axis=0, ddof=1),
    "reduce": lambda a, b, n: np.add.reduce(a, axis=0),
    "accumulate": lambda a, b, n: np.multiply.accumulate(a, axis=1),
    "outer": lambda a, b, n: np.subtract.outer(b, b),
    "argmax": lambda a, b, n: a.argmax(axis=1),
    "any": lambda a, b, n: (a > 2).any(axis=0),
    "softmax": lambda a, b, n: (
        np.exp(a - a.max(-1, keepdims=True)) / np.exp(a - a.max(-1, keepdims=True)).sum(-1, keepdims=True)
    ),
    "concatenate": lambda a, b, n: np.concatenate([a, a[:1], np.ones((1, 4), np.float32)], axis=0),
    "stack": lambda a, b, n: np.stack([a, a + 1], axis=-1),
    "einsum": lambda a, b, n: np.einsum("ij,j->i", a, b),
    "tensordot": lambda a, b, n: np.tensordot(a, b, axes=1),
    "dot": lambda a, b, n: a.dot(b),
    "pad": lambda a, b, n: np.pad(a, ((1, 0), (0, 2)), constant_values=7),
    "take": lambda a, b, n: np.take(a, n, axis=1),
    "take_along_axis": lambda a, b, n: np.take_along_axis(a, np.argsort(a, axis=1), axis=1),
    "index by arrays": lambda a, b, n: a[n, np.array([0, 1, 2])],
    "index by lists": lambda a, b, n: a[[2, 0]],
    "cumsum": lambda a, b, n: np.cumsum(a, axis=0),
    "sort": lambda a, b, n: np.sort(-a, axis=1),
    "astype": lambda a, b, n: a.astype(np.float64).astype(np.int32),
    "zeros_like": lambda a, b, n: np.zeros_like(a),
    "full_like": lambda a, b, n: np.full_like(a, 3, shape=(2, 2)),
    "copy": lambda a, b, n: a.copy(),
    "flatten": lambda a, b, n: a.flatten(),
    "diff": lambda a, b, n: np.diff(a, axis=1),
    "roll": lambda a, b, n: np.roll(a, 1, axis=0),
    "isfinite": lambda a, b, n: np.isfinite(a / (a - a)),
    "frexp": lambda a, b, n: np.frexp(a),
    "round": lambda a, b, n: a.round(1),
    "linspace of scalars": lambda a, b, n: a * np.float32(2) + np.arange(4, dtype=np.float32),
    "nested": lambda a, b, n: np.vstack([np.hstack([a, a]), np.hstack([a, a])]),
    "float16": lambda a, b, n: a.astype(np.float16) * 2,
    "bfloat16": lambda a, b, n: a.astype(ow.bfloat16.np) + a.astype(ow.bfloat16.np),
    "transpose and reshape": lambda a, b, n: a.transpose(1, 0).reshape(2, 6),
    "expand and broadcast": lambda a, b, n: np.broadcast_to(np.expand_dims(b, 0), (3, 4)) * a,
    "split": lambda a, b, n: np.split(a, 2, axis=1),
    "slices": lambda a, b, n: a[::-1, 1:3][..., None],
    "an element": lambda a, b, n: a[1, 2],
    "rows": lambda a, b, n: list(a),
    "moveaxis": lambda a, b, n: np.moveaxis(a[None], 0, -1),
    "flip": lambda a, b, n: np.flip(a, axis=1),
    "diagonal": lambda a, b, n: np.diagonal(a),
    "complex": lambda a, b, n: (a.astype(np.complex64) * 1j).imag,
}
# Functions that need values: they wait, and are right.
WAITING = {
    "nonzero": lambda a, b, n: np.nonzero(a > 0),
    "mask": lambda a, b, n: a[a > 0],
    "unique": lambda a, b, n: np.unique(n, return_inverse=True),
    "bincount": lambda a, b, n: np.bincount(n.ravel(), minlength=5),
    "repeat": lambda a, b, n: np.repeat(a[0], n[0].astype(int).sum()),
    "array_equal": lambda a, b, n: np.array_equal(a, a),
    "allclose": lambda a, b, n: np.allclose(a, a + 1),
    "inverse": lambda a, b, n: np.linalg.inv(a[:, :3] + 5 * np.eye(3, dtype=np.float32)),
    "float": lambda a, b, n: float(a[0, 0]) + int(n[0, 0]) + complex(b[0]),
    "bool": lambda a, b, n: bool(a[0, 0] < 0),
    "tolist": lambda a, b, n: a.tolist(),
    "item": lambda a, b, n: a.item(1, 1),
    "index": lambda a, b, n: [10, 11, 12, 13][n[0, 0]],
    "tobytes": lambda a, b, n: a.tobytes(),
    "if": lambda a, b, n: a if np.any(a > 100) else b,
}


def flat(result):
    return [f for r in result for f in flat(r)] if isinstance(result, list | tuple) else [result]


def same(result, expected):
    results, expecteds = flat(result), flat(expected)
    assert len(results) == len(expecteds)
    for actual, reference in zip(results, expecteds):
        if isinstance(actual, SimulatedArray):
            assert (actual.shape, actual.dtype) == (np.shape(reference), np.asarray(reference).dtype)
            np.testing.assert_array_equal(actual.get(), reference)
        else:
            assert type(actual) is type(reference)
            assert actual == reference


@pytest.mark.parametrize("name", QUEUED)
def test_functions_are_queued(name):
    a, b, n = (DEVICE.to_device(x) for x in (A, B, N))
    DEVICE.wait()
    with np.errstate(all="ignore"):
        expected = QUEUED[name](A, B, N)
    with DEVICE.held():  # whatever waits fails here
        result = QUEUED[name](a, b, n)
        assert all(isinstance(r, SimulatedArray) for r in flat(result))
    same(result, expected)


@pytest.mark.parametrize("name", WAITING)
def test_functions_that_need_values_wait(name):
    a, b, n = (DEVICE.to_device(x) for x in (A, B, N))
    b = b + 0  # something to wait for
    same(WAITING[name](a, b, n), WAITING[name](A, B, N))


def test_what_is_known_without_waiting():
    with DEVICE.held():
        x = DEVICE.to_device(A) + 1
        assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes, x.itemsize, len(x)) == ((3, 4), A.dtype, 2, 12, 48, 4, 3)
        assert x.strides == (16, 4)
        assert x.flags.c_contiguous
        assert (x.place, x.T.shape, x.flat.shape) == (ow.SimulatedPlace(0), (4, 3), (12,))
        assert repr(x) == "<SimulatedArray float32[3, 4] on sim:0>"
        assert np.shape(x) == (3, 4)
        assert np.ndim(x) == 2
        assert np.size(x, 1) == 4
        assert np.result_type(x, np.float64) == np.float64
        assert not np.iscomplexobj(x)


def test_asarray_waits_and_copies():
    x = DEVICE.to_device(A) * 2
    host = np.asarray(x)
    assert type(host) is np.ndarray
    np.testing.assert_array_equal(host, A * 2)
    host[...] = 0
    np.testing.assert_array_equal(x.get(), A * 2)
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="by a copy"):
        np.asarray(x, copy=False)


def test_rearranging_shares_memory_and_queues_nothing():
    x = DEVICE.to_device(A)
    DEVICE.wait()
    with DEVICE.held():
        for view in (
            x.T,
            x[1:],
            x.reshape(4, 3),
            np.expand_dims(x, 1),
            x[..., ::2],
            np.broadcast_to(x, (2, 3, 4)),
            np.split(x, 2, axis=1)[1],
            x.ravel(),
            x.view(np.int32),
            x[0, 0],
            np.moveaxis(x, 0, 1),
        ):
            assert view.storage is x.storage
        assert DEVICE.stream.done
        assert x.T.reshape(12).storage is not x.storage  # not without a copy
        assert not DEVICE.stream.done


def test_writing_through_a_view():
    x = DEVICE.to_device(A)
    with DEVICE.held():
        view = x.T[1:3]
        view[...] = 9
        x[0, 0] = 5
        x[2] += 1
        x[np.array([1, 1]), [0, 3]] = DEVICE.to_device(np.array([7, 8], np.float32))
        x[x[:, 0] > 100] = 0
    expected = A.copy()
    expected.T[1:3] = 9
    expected[0, 0] = 5
    expected[2] += 1
    expected[np.array([1, 1]), [0, 3]] = [7, 8]
    np.testing.assert_array_equal(x.get(), expected)


def test_in_place_operators_and_out():
    x, y, z = DEVICE.to_device(A), DEVICE.to_device(A), A.copy()
    with DEVICE.held():
        before = x
        x += 1
        x *= y
        assert x is before
        assert np.exp(y, out=y) is y
        assert np.add(x, y, out=x) is x
        np.copyto(y, 3)
        y.fill(4)
        assert np.sum(x, axis=0, out=y[0]).shape == (4,)
        np.add.at(x, (0, slice(None)), 1)
        x.sort(axis=1)
    z = (A + 1) * A + np.exp(A)
    sums = z.sum(axis=0)
    z[0] += 1
    z.sort(axis=1)
    np.testing.assert_array_equal(x.get(), z)
    np.testing.assert_array_equal(y.get(), np.vstack([sums, np.full((2, 4), 4, np.float32)]))


def test_host_arrays_are_taken_as_they_are_now():
    host = np.ones(4, np.float32)
    x = DEVICE.to_device(A)
    with DEVICE.held():
        y, z = x + host, host * x
        host[...] = 100
    np.testing.assert_array_equal(y.get(), A + 1)
    np.testing.assert_array_equal(z.get(), A)


def test_results_go_to_the_host_by_copy_alone():
    x = DEVICE.to_device(A)
    with pytest.raises(InvalidArgumentError, match="get"):
        np.add(x, x, out=np.zeros_like(A))
    host = np.zeros_like(A)
    np.copyto(host, x)
    np.testing.assert_array_equal(host, A)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x @ x, ValueError),
        (lambda x: x + DEVICE.to_device(np.zeros(3)), ValueError),
        (lambda x: x.reshape(5), ValueError),
        (lambda x: x[7], IndexError),
        (lambda x: x[np.array([7])], IndexError),
        (lambda x: np.concatenate([x, x[0]]), ValueError),
        (lambda x: x.sum(axis=4), np.exceptions.AxisError),
        (lambda x: float(x), (TypeError, ValueError)),
        (lambda x: hash(x), TypeError),
        (lambda x: x.ctypes, AttributeError),
        (lambda x: pickle.dumps(x), TypeError),
    ],
    ids=range(11),
)
def test_mistakes_are_found_at_the_call(call, error):
    with pytest.raises(error):
        call(DEVICE.to_device(A))


def test_indices_out_of_range_are_found_by_the_next_wait():
    """They are values, which are unknown at the call."""
    x, n = DEVICE.to_device(A), DEVICE.to_device(np.array([0, 99]))
    x[n]
    with pytest.raises(UnknownError, match=r"getitem(.|\n)*IndexError"):
        DEVICE.wait()


UNARY = [
    operator.neg,
    np.exp,
    np.sqrt,
    np.tanh,
    lambda x: x.sum(-1),
    lambda x: x.T,
    lambda x: x.astype(np.float32),
    lambda x: x[:1],
    lambda x: x.cumsum(),
    lambda x: x.reshape(-1),
]
BINARY = [operator.add, operator.mul, np.maximum, np.arctan2, lambda x, y: np.where(x > y, x, y)]


@given(st.data())
def test_programs_give_what_numpy_gives(data):
    """Programs of a few functions, with temporaries dropped along the way, on a device that is held until the end."""
    host = data.draw(st.integers(0, 5))
    values = np.arange(host * 2, dtype=np.float64).reshape(host, 2)
    x, expected = DEVICE.to_device(values), values
    with np.errstate(all="ignore"), DEVICE.held():
        for _ in range(data.draw(st.integers(1, 6))):
            if expected.ndim == 0:
                break
            if data.draw(st.booleans()):
                fn = data.draw(st.sampled_from(UNARY))
                x, expected = fn(x), fn(expected)
            else:
                fn = data.draw(st.sampled_from(BINARY))
                x, expected = fn(x, x * 0.5), fn(expected, expected * 0.5)
            assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(x.get(), expected)


# --- the catalogue's reference kernels ------------------------------------------------------------------------------

KERNELS = {  # operator: attributes, inputs, NumPy's formula in float64
    "Add": ({}, (A, B), lambda a, b: a + b),
    "MatMul": ({}, (A, A.T.copy()), lambda a, b: a @ b),
    "Softmax": ({}, (A,), lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True)),
    "Relu": ({}, (A,), lambda a: np.maximum(a, 0)),
    "Sigmoid": ({}, (A,), lambda a: 1 / (1 + np.exp(-a))),
    "Square": ({}, (A,), lambda a: a * a),
    "Greater": ({}, (A, B), lambda a, b: a > b),
    "Transpose": ({"perm": [1, 0]}, (A,), lambda a: a.T),
}


@pytest.mark.parametrize("name", KERNELS)
def test_reference_kernels_run_on_the_device(name):
    attrs, inputs, formula = KERNELS[name]
    op = ow.ops.get(name)
    compute = op.reference(op.bind(attrs))
    expected = formula(*(x.astype(np.float64) for x in inputs))
    arrays = [DEVICE.to_device(x) if x.dtype == np.float32 else x for x in inputs]
    result = compute(*arrays)
    result = result[0] if isinstance(result, tuple) else result
    assert isinstance(result, SimulatedArray)
    np.testing.assert_allclose(result.get(), expected, rtol=1e-6, atol=1e-7)
    spec = ow.TensorSpec(expected.shape, result.dtype)
    (again,) = DEVICE.compute(compute, [spec], *arrays, name=name)
    np.testing.assert_array_equal(again.get(), result.get())


def test_a_kernel_that_uses_a_freed_temporary_is_caught():
    """A kernel with a lifetime error returns correct values on the CPU, and wrong ones on the simulated device."""
    addresses = []

    def broken(x):  # keeps the address of its scratch memory from call to call, but not the memory
        if not addresses:
            addresses.append(DEVICE.empty((4,), np.float32).raw)
        out = DEVICE.empty((4,), np.float32)
        DEVICE.launch(lambda x, o: (np.copyto(addresses[0], x), np.copyto(o, addresses[0] * 2)), x, out)
        return out

    x = DEVICE.to_device(np.ones(4, np.float32))
    DEVICE.wait()
    DEVICE.memory.trim()
    with DEVICE.held():
        broken(x)
        mine = DEVICE.to_device(np.full(4, 5, np.float32))  # is given the block that `broken` takes for its own
        broken(x)
    assert mine.get().tolist() == [1] * 4
