"""Shipped custom operators on plain values, attention, caches and tables against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from custom_models import Scaled, answers, custom_model
from lite_kit import run

from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, schema, versions
from opwright.lite.format.flexbuffers import encode_options

rng = np.random.default_rng(0)


def f32(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("heads", "groups", "mask"),
    [(3, 1, (1, 1, 4, 5)), (2, 3, (1, 6, 4, 5)), (1, 4, (1, 1, 1, 5)), (2, 2, (2, 1, 4, 5))],
)
@pytest.mark.parametrize("scale", [0.0, 0.3])
def test_attention_is_its_formula(heads, groups, mask, scale):
    """Several queries of several heads, which the official kernel mixes up."""
    batch, n = mask[0], heads * groups
    q, k, v, m = f32(batch, 4, n, 3), f32(batch, 5, heads, 3), f32(batch, 5, heads, 3), f32(*mask)
    y = answers("odml.scaled_dot_product_attention", [q, k, v, m], ["FLOAT32"], {"scale": scale})[0]
    assert y.shape == q.shape
    for b, i, h in np.ndindex(batch, 4, n):
        bias = np.broadcast_to(m, (batch, n, 4, 5))[b, h, i].astype(np.float64)
        logits = k[b, :, h // groups].astype(np.float64) @ q[b, i, h] * (scale or 3**-0.5) + bias
        weights = np.exp(logits - logits.max())
        np.testing.assert_allclose(y[b, i, h], weights / weights.sum() @ v[b, :, h // groups], 1e-5, 1e-6)


def test_a_gated_recurrent_unit():
    x, h, wg, bg, wc, bc = f32(3, 2, 4), f32(2, 5), f32(10, 9), f32(10), f32(5, 9), f32(5)
    y, last = answers("UNIDIRECTIONAL_SEQUENCE_GRU", [x, h, wg, bg, wc, bc], ["FLOAT32", "FLOAT32"])
    for b in range(2):
        state = h[b].astype(np.float64)
        for t in range(3):
            gates = 1 / (1 + np.exp(-(wg.astype(np.float64) @ [*x[t, b], *state] + bg)))
            reset, update = gates[:5], gates[5:]
            candidate = np.tanh(wc.astype(np.float64) @ [*x[t, b], *(reset * state)] + bc)
            state = (1 - update) * candidate + update * state
            np.testing.assert_allclose(y[t, b], state, 1e-5, 1e-6)
        np.testing.assert_allclose(last[b], state, 1e-5, 1e-6)


@pytest.mark.parametrize(("kind", "made"), [("INT8", "INT8"), ("INT8", "INT16"), ("INT16", "INT16"), ("INT16", "INT8")])
@pytest.mark.parametrize("scale", [None, 0.1])
def test_a_table_of_integers(kind, made, scale):
    dtype = np.dtype(kind.lower())
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 7), endpoint=True).astype(dtype)
    high = np.iinfo(made.lower()).max
    table = rng.integers(-high, high, 256 if kind == "INT8" else 513).astype(made.lower())
    inputs = [x if scale is None else Scaled(x, scale), table]
    y = answers("Table", inputs, [made if scale is None else (made, scale, 0)], constant=(1,))[0]
    if kind == "INT8":
        want = [table[int(v) + 128] for v in x.ravel()]
    else:
        want = []
        for v in map(int, x.ravel()):
            i, rest = (v + 32768) // 128, v % 128
            base, after = int(table[i]), int(table[i + 1])
            slope = int(np.array(after - base).astype(made.lower()))  # a leap wraps in the table's type
            want.append(int(np.array(base + (slope * rest + 64) // 128).astype(made.lower())))
    assert y.ravel().tolist() == want


ROLLS = [((3, 4), 1, 0), ((3, 4), [1, -6], [-1, 0]), ((2, 3, 4), [1, 2, 5], [1, 1, 2]), ((0, 3), 2, 1), ((5,), -7, -1)]


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.int8, np.bool_, object])
@pytest.mark.parametrize(("shape", "shift", "axis"), ROLLS, ids=str)
def test_roll(kind, shape, shift, axis):
    values = np.arange(np.prod(shape))
    x = np.array([str(v).encode() for v in values] + [b""], object)[:-1] if kind is object else values.astype(kind)
    x = x.reshape(shape)
    name = {
        np.float32: "FLOAT32",
        np.int32: "INT32",
        np.int64: "INT64",
        np.int8: "INT8",
        np.bool_: "BOOL",
        object: "STRING",
    }[kind]
    y = answers("Roll", [x, np.array(shift, np.int32), np.array(axis, np.int64)], [name], constant=(1, 2))[0]
    want = x
    for s, a in zip(np.atleast_1d(shift), np.atleast_1d(axis)):
        want = np.take(want, (np.arange(want.shape[a]) - s) % max(1, want.shape[a]), a) if want.size else want
    assert y.shape == x.shape
    assert y.tolist() == want.tolist()


def test_functions_element_by_element():
    x = np.array([-2.5, -0.0, 0.0, 3.0, np.inf, -np.inf], np.float32)
    assert answers("Sign", [x], ["FLOAT32"])[0].tolist() == [-1, 0, 0, 1, 1, -1]
    a, b = f32(3, 4), f32(3, 4)
    want = np.arctan2(a.astype(np.float64), b)
    np.testing.assert_allclose(answers("Atan2", [a, b], ["FLOAT32"])[0], want, 1e-6)


@pytest.mark.parametrize("shape", [(5, 6), (2, 8, 4), (3, 3)])
def test_fourier_transforms_of_any_length(shape):
    x, lengths = f32(*shape), np.array([6, 5], np.int32)
    padded = np.zeros((*shape[:-2], 6, 5))
    padded[..., : min(6, shape[-2]), : min(5, shape[-1])] = x[..., :6, :5]
    wave = [np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) for n in (6, 5)]
    want = wave[0] @ padded @ wave[1][:, :3]
    result = answers("RFFT2D", [x, lengths], ["COMPLEX64"], constant=(1,))[0]
    np.testing.assert_allclose(result, want, 1e-5, 1e-5)
    back = answers("IRFFT2D", [result, lengths], ["FLOAT32"], constant=(1,))[0]
    np.testing.assert_allclose(back, padded, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("name", "kind", "mean", "spread"),
    [
        ("RandomUniform", "FLOAT32", 0.5, 12**-0.5),
        ("RandomUniform", "FLOAT64", 0.5, 12**-0.5),
        ("RandomStandardNormal", "FLOAT32", 0.0, 1.0),
        ("RandomStandardNormal", "FLOAT64", 0.0, 1.0),
    ],
)
def test_the_law_of_random_numbers(name, kind, mean, spread):
    shape = np.array([100, 200], np.int32)
    options = {"seed": 3, "seed2": 5, "dtype": 0, "T": 2}
    y = answers(name, [shape], [kind], options, constant=(0,))[0]
    assert (y.shape, y.dtype) == ((100, 200), np.dtype(kind.lower()))
    assert abs(y.mean() - mean) < 5 * spread / y.size**0.5
    assert abs(y.std() / spread - 1) < 0.03
    again = answers(name, [shape], [kind], options, constant=(0,))[0]
    other = answers(name, [shape], [kind], {**options, "seed": 4}, constant=(0,))[0]
    assert np.array_equal(y, again)
    assert not np.array_equal(y, other)


@pytest.mark.parametrize("kind", ["INT8", "INT32", "INT64"])
def test_the_law_of_random_integers(kind):
    dtype = np.dtype(kind.lower())
    inputs = [np.array([20_000], np.int32), np.array(-3, dtype), np.array(4, dtype)]
    y = answers("RandomUniformInt", inputs, [kind], {"seed": 1, "seed2": 2}, constant=(0,))[0]
    assert y.dtype == dtype
    values, counts = np.unique(y, return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert np.all(np.abs(counts / y.size - 1 / 7) < 0.02)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_law_of_random_classes(kind):
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])).astype(kind)
    inputs = [logits, np.array(20_000, np.int32)]
    y = answers("Multinomial", inputs, ["INT32"], {"seed": 1, "seed2": 2, "output_dtype": 2}, constant=(1,))[0]
    assert (y.shape, y.dtype) == ((2, 20_000), np.int32)
    for row, want in zip(y, np.exp(logits)):
        assert np.all(np.abs(np.bincount(row, minlength=3) / row.size - want) < 0.02)


def test_a_cache_is_shared_by_subgraphs_and_kept():
    """Two runs fill one layer; what passes the end shifts it."""
    options = {"kv_cache_max": 4, "num_layers": 2, "layer_index": 1}
    values = f32(3, 1, 2, 2, 3)
    model = custom_model("odml.update_kv_cache", [np.array([0, 1]), values[0], values[0]], ["FLOAT32"] * 2, options)
    interpreter = Interpreter(model_content=model.to_bytes())
    for n, first in enumerate((0, 2, 4)):
        keys, kept = run(interpreter, [np.array([first, first + 1]), values[n], -values[n]])
        assert np.array_equal(keys, -kept)
        last = values[max(0, n - 1)] if n else np.zeros((1, 2, 2, 3))
        want = np.concatenate([last, values[n]] if n else [values[0], np.zeros((1, 2, 2, 3))], 1)
        assert np.array_equal(keys, want)
    with pytest.raises(RuntimeError, match="before the first entry of the cache"):
        run(interpreter, [np.array([0, 1]), values[0], values[0]])


def table_model(handle, key, value, keys, values, default):
    """A table that is filled, asked and counted in one run."""
    buffers, tensors, ops = [objects.Buffer()], [], []

    def tensor(kind, array=None, shape=(1,)):
        place = 0
        if array is not None:
            from opwright.lite.format import pack_strings

            raw = pack_strings(array.ravel().tolist()) if array.dtype == object else array.tobytes()
            buffers.append(objects.Buffer(data=np.frombuffer(raw, np.uint8)))
            place, shape = len(buffers) - 1, array.shape
        tensors.append(
            objects.Tensor(shape=list(shape), type=schema.TensorType[kind], name=f"t{len(tensors)}", buffer=place)
        )
        return len(tensors) - 1

    table, filled, operands = tensor(handle), tensor(key, keys), tensor(value, values)
    asked, other = tensor(key, shape=(3,)), tensor(value, default)
    result, size = tensor(value, shape=()), tensor("INT64", shape=())
    kinds = {"FLOAT32": 0, "INT32": 2, "INT64": 4, "STRING": 5}
    options = encode_options(
        {
            "shared_name": "words",
            "container": "",
            "key_dtype": kinds[key],
            "value_dtype": kinds[value],
            "use_node_name_sharing": True,
        }
    )
    names = (
        ("HashTableV2", [], [table], options),
        ("LookupTableImportV2", [table, filled, operands], [], b""),
        ("LookupTableFindV2", [table, asked, other], [result], b""),
        ("LookupTableSizeV2", [table], [size], b""),
    )
    for i, (_, inputs, outputs, raw) in enumerate(names):
        ops.append(
            objects.Operator(
                opcode_index=i, inputs=inputs, outputs=outputs, custom_options=np.frombuffer(raw, np.uint8)
            )
        )
    main = objects.SubGraph(tensors=tensors, inputs=[asked], outputs=[result, size], operators=ops, name="main")
    codes = [versions.operator_code("CUSTOM", custom_code=name) for name, *_ in names]
    return Model(operator_codes=codes, subgraphs=[main], buffers=buffers)


def array_of(kind, *values):
    if kind == "STRING":
        return np.array([str(v).encode() for v in values] + [None], object)[:-1]
    return np.array(values, kind.lower())


@pytest.mark.parametrize("handle", ["INT32", "RESOURCE"])
@pytest.mark.parametrize(
    ("key", "value"),
    [("STRING", "INT64"), ("INT64", "STRING"), ("INT32", "FLOAT32"), ("STRING", "FLOAT32"), ("STRING", "STRING")],
)
def test_a_hash_table(handle, key, value):
    model = table_model(handle, key, value, array_of(key, 5, 7, 5), array_of(value, 1, 2, 3), array_of(value, 9))
    interpreter = Interpreter(model_content=model.to_bytes())
    for _ in range(2):
        result, size = run(interpreter, [array_of(key, 7, 8, 5)])
        assert result.tolist() == array_of(value, 2, 9, 1).tolist()
        assert size.tolist() == [2]


@pytest.mark.parametrize(
    ("shape", "axes", "whole"),
    [((2, 3, 4, 5), None, (0, 1, 2)), ((2, 3, 4, 5), [1, 2], (1, 2)), ((3, 7), [-1], (1,)), ((6,), None, (0,))],
)
@pytest.mark.parametrize("scaled", [True, False])
def test_mean_and_variance_become_0_and_1(shape, axes, whole, scaled):
    x = f32(*shape) * 3 + 1
    options = {"normalize_variance": scaled} | ({} if axes is None else {"axes": axes})
    y = answers("MeanVarianceNormalization", [x], ["FLOAT32"], options)[0]
    expected = x.astype(np.float64) - x.mean(whole, keepdims=True, dtype=np.float64)
    if scaled:
        expected /= np.sqrt((expected**2).mean(whole, keepdims=True)) + 1e-9
    np.testing.assert_allclose(y, expected, 1e-6, 1e-6)
