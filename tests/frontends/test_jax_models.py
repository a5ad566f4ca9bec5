"""Models and programs of JAX, imported: values, gradients, training, files; and without JAX, its error."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import opwright as ow


def test_without_jax_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=r"pip install 'opwright\[jax\]'"):
        ow.from_jax(lambda x: x, ow.TensorSpec([2]))


def test_importing_the_package_and_its_rules_imports_no_jax():
    code = "import sys, opwright as ow; ow.from_jax; from opwright.frontends.jax import execution as e; e.load_rules()"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'jax' not in sys.modules"], check=True)


def x32(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def converted(function, *arguments):
    """Return the outputs of the function's file in the interpreter."""
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    interpreter = ow.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, argument in zip(interpreter.get_input_details(), arguments, strict=True):
        interpreter.set_tensor(detail["index"], argument)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def check_model(jax, apply, params, x):
    """Compare a model with JAX: values, gradients of all variables, a step of training, its file."""
    expected = np.asarray(apply(params, x))
    function = ow.from_jax(apply, x, variables=params)
    np.testing.assert_allclose(function(x).numpy(), expected, rtol=2e-4, atol=2e-5)
    leaves, tree = jax.tree_util.tree_flatten(params)
    arrays = [i for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype")]

    def loss(values):
        members = list(leaves)
        for i, value in zip(arrays, values):
            members[i] = value
        return (apply(jax.tree_util.tree_unflatten(tree, members), x) ** 2).mean()

    wanted_gradients = jax.grad(loss)([leaves[i] for i in arrays])
    with ow.GradientTape() as tape:
        value = ow.reduce_mean(function(x) ** 2)
    gradients = tape.gradient(value, function.trainable_variables)
    for variable, gradient, reference in zip(function.trainable_variables, gradients, wanted_gradients, strict=True):
        np.testing.assert_allclose(
            ow.convert_to_tensor(gradient).numpy(), reference, rtol=2e-3, atol=2e-5, err_msg=variable.name
        )
    ow.optimizers.SGD(0.01).apply_gradients(zip(gradients, function.trainable_variables))
    assert float(ow.reduce_mean(function(x) ** 2)) < float(value)
    constant = ow.from_jax(lambda v: apply(params, v), x)
    np.testing.assert_allclose(converted(constant, x)[0], expected, rtol=2e-4, atol=2e-5)
    return function


@pytest.mark.parametrize("model", ["MLP", "CNN", "Transformer"])
def test_flax_models_train_and_convert(model):
    jax, nn = pytest.importorskip("jax"), pytest.importorskip("flax.linen")

    class MLP(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(nn.relu(nn.Dense(16)(x)))

    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.avg_pool(nn.relu(nn.Conv(8, (3, 3))(x)), (2, 2), strides=(2, 2))
            x = nn.max_pool(nn.relu(nn.Conv(16, (3, 3), strides=(2, 2))(x)), (2, 2), strides=(2, 2))
            return nn.Dense(10)(x.reshape(x.shape[0], -1))

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, ids):
            x = nn.Embed(50, 16)(ids)
            for _ in range(2):
                y = nn.LayerNorm()(x)
                mask = nn.make_causal_mask(jax.numpy.ones(x.shape[:2]))
                x = x + nn.MultiHeadDotProductAttention(num_heads=2)(y, y, mask=mask)
                x = x + nn.Dense(16)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))
            return nn.Dense(50)(nn.LayerNorm()(x))

    ids = np.arange(20, dtype=np.int32).reshape(2, 10)
    x = {"MLP": x32(4, 8), "CNN": x32(2, 16, 16, 3), "Transformer": ids}[model]
    module = {"MLP": MLP, "CNN": CNN, "Transformer": Transformer}[model]()
    function = check_model(jax, module.apply, module.init(jax.random.key(0), x), x)
    names = {"MLP": "params/Dense_0/kernel", "CNN": "params/Conv_0/kernel", "Transformer": "params/Dense_0/kernel"}
    assert any(v.name.startswith(names[model]) for v in function.variables)


def test_equinox_models_train_and_convert():
    jax, equinox = pytest.importorskip("jax"), pytest.importorskip("equinox")
    model = equinox.nn.MLP(8, 3, 16, 2, key=jax.random.key(0))
    check_model(jax, lambda m, x: jax.vmap(m)(x), model, x32(4, 8))


def test_loops_and_branches_convert():
    jax = pytest.importorskip("jax")
    jnp, lax = jax.numpy, jax.lax
    weights = jnp.asarray(x32(4, 4) * 0.5)

    def recurrent(xs):
        return lax.scan(lambda h, v: ((h := jnp.tanh(h @ weights + v)), h * 2.0), jnp.zeros(4), xs)

    def newton(a):
        start = (jnp.ones_like(a), jnp.int32(0))
        return lax.while_loop(lambda s: s[1] < 20, lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1), start)[0]

    def either(x):
        return lax.cond(x.sum() > 0, jnp.sin, lambda v: v * 2.0, x)

    for program, x in ((recurrent, x32(6, 4)), (newton, abs(x32(5)) + 1), (either, x32(3)), (either, -abs(x32(3)))):
        function = ow.from_jax(program, x)
        expected = jax.tree_util.tree_leaves(program(x))
        for actual in (ow.nest.flatten(function(x)), converted(function, x)):
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_custom_rules_are_the_gradients():
    jax = pytest.importorskip("jax")
    jnp, lax = jax.numpy, jax.lax

    @jax.custom_vjp
    def scaled(x, n):  # the rule is not the derivative
        return jnp.sin(x) * n

    scaled.defvjp(lambda x, n: (jnp.sin(x) * n, (x, n)), lambda kept, dy: (dy * 3.0 * kept[0], None))

    @jax.custom_jvp
    def product(x, y):
        return x * y

    product.defjvp(lambda p, t: (product(*p), 7.0 * t[0] + t[1] * p[0]))

    def program(x, y):
        looped = lax.scan(lambda c, _: (product(c, y) + scaled(c, 2), None), x, None, length=3)[0]
        return product(scaled(x, 2), jax.nn.relu(y)) + jax.checkpoint(scaled)(y, 3) + looped

    x, y = x32(5), np.float32([0.0, -1.5, 0.5, 2.0, 1.0])
    function = ow.from_jax(program, x, y)
    np.testing.assert_allclose(function(x, y), program(x, y), rtol=1e-4)
    tensors = [ow.constant(x), ow.constant(y)]
    with ow.GradientTape() as tape:
        tape.watch(tensors)
        total = ow.reduce_sum(ow.sin(function(*tensors)))
    expected = jax.grad(lambda *a: jnp.sin(program(*a)).sum(), (0, 1))(x, y)
    for actual, reference in zip(tape.gradient(total, tensors), expected, strict=True):
        np.testing.assert_allclose(actual, reference, rtol=1e-4, atol=1e-4)


def _open_programs(jax):
    jnp, lax, export = jax.numpy, jax.lax, pytest.importorskip("jax.export")
    table, kernel = x32(7, 3), x32(3, 3, 2, 5)
    n, m = export.symbolic_shape("n, m")

    def layers(x):
        x = lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x - x.mean((1, 2), keepdims=True)).reshape(x.shape[0], -1)
        return jax.nn.softmax(x @ x32(x.shape[1], 4))

    def steps(x):
        rows = lax.scan(lambda c, v: ((c := jnp.tanh(c + v)), c), jnp.zeros((x.shape[0], 4)), jnp.swapaxes(x, 0, 1))[1]
        return jnp.take(table, jnp.argmax(jnp.swapaxes(rows, 0, 1), -1), axis=0)

    def places(x):
        chosen = x[jnp.arange(x.shape[0]), jnp.argmax(x, -1)]
        return chosen[:, None] + x[:, ::-1] * x.shape[0], x[1:, ::2], jnp.pad(x, ((1, 0), (0, 2)))

    def windows(x):
        x = x[:, None]  # five axes: no pool of images
        return lax.reduce_window(x, -np.inf, lax.max, (1, 1, 1, 3, 2), (1, 1, 1, 2, 1), [(0, 0)] * 3 + [(1, 1), (0, 0)])

    def attention(x, y):
        scores = jnp.einsum("bqd,bkd->bqk", x, y) + jnp.arange(y.shape[1])
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), y).reshape(-1, 4), lax.cumsum(y, 1)

    several = [jax.ShapeDtypeStruct((n, d, 4), np.float32) for d in (3, m)]
    return [
        (layers, [ow.TensorSpec([None, 8, 8, 2])], lambda b: [x32(b, 8, 8, 2)]),
        (steps, [ow.TensorSpec([None, 5, 4])], lambda b: [x32(b, 5, 4)]),
        (places, [ow.TensorSpec([None, 6])], lambda b: [x32(b, 6)]),
        (lambda x: windows(x[:, None])[:, 0], [ow.TensorSpec([None, 6, 5])], lambda b: [x32(b, 6, 5)]),
        (attention, several, lambda b: [x32(b, 3, 4), x32(b, b + 3, 4)]),
    ]


@pytest.mark.parametrize("row", range(5))
def test_open_sizes_follow_each_call_and_stay_open_in_files(row):
    jax = pytest.importorskip("jax")
    program, specs, draw = _open_programs(jax)[row]
    function = ow.from_jax(program, *specs)
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    interpreter = ow.lite.Interpreter(model_content=content)
    details = interpreter.get_input_details()
    assert all(d["shape_signature"][0] == -1 for d in details)
    for batch in (2, 5):
        arguments = draw(batch)
        expected = jax.tree_util.tree_leaves(program(*map(jax.numpy.asarray, arguments)))
        for detail, argument in zip(details, arguments, strict=True):
            interpreter.resize_tensor_input(detail["index"], argument.shape)
        interpreter.allocate_tensors()
        for detail, argument in zip(details, arguments, strict=True):
            interpreter.set_tensor(detail["index"], argument)
        interpreter.invoke()
        from_file = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
        for actual in (ow.nest.flatten(function(*arguments)), from_file):
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_nested_structures_names_and_lines_are_kept():
    jax = pytest.importorskip("jax")

    def program(batch, scale):
        with jax.named_scope("encoder"):
            y = jax.numpy.tanh(batch["x"]) * scale
        return {"y": y, "both": (y + 1, [batch["n"]])}

    specs = {"x": ow.TensorSpec([2, 3]), "n": ow.TensorSpec([], ow.int32)}
    function = ow.from_jax(program, specs, ow.TensorSpec([]))
    x = x32(2, 3)
    result = function({"x": x, "n": np.int32(5)}, scale=np.float32(2))
    np.testing.assert_allclose(result["y"], np.tanh(x) * 2, rtol=1e-5)
    np.testing.assert_allclose(result["both"][0], np.tanh(x) * 2 + 1, rtol=1e-5)
    assert int(result["both"][1][0]) == 5
    graph = str(function.concrete().graph)
    assert "encoder/Tanh" in graph
    assert "test_jax_models.py" in graph


def test_errors_name_primitives_and_lines():
    jax = pytest.importorskip("jax")

    def program(x):
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((2,), np.float32), x)

    with pytest.raises(ow.errors.UnimplementedError, match=r"(?s)pure_callback.*test_jax_models\.py.*@ow\.operator"):
        ow.from_jax(program, ow.TensorSpec([2]))
    with pytest.raises(ow.errors.InvalidArgumentError, match="ranks that are known"):
        ow.from_jax(lambda x: x, ow.TensorSpec(None))
    twice = jax.ShapeDtypeStruct(jax.export.symbolic_shape("2*n"), np.float32)
    with pytest.raises(ow.errors.InvalidArgumentError, match="n does not follow from the arguments"):
        ow.from_jax(lambda x: x, twice)
    if not jax.config.jax_enable_x64:
        with pytest.raises(ow.errors.InvalidArgumentError, match="jax_enable_x64"):
            ow.from_jax(lambda x: x, ow.TensorSpec([2], ow.float64))

    def replaced(x, **params):
        return ow.multiply(x, ow.constant(3.0))

    function = ow.from_jax(program, ow.TensorSpec([2]), custom={"pure_callback": replaced})
    np.testing.assert_array_equal(function(np.float32([1, 2])), [3, 6])
