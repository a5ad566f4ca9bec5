"""Layer normalisation as one operator: its kernel, the pattern that finds it in models, and what that is worth.

    python examples/layer_norm.py

The operator computes a row in one go, in the kernel language. The pattern says which operators it stands for, in two
ways that people write them; `ow.testing.check_pattern` holds it to these. The model below has three of them.
"""

import time

import numpy as np

import opwright as ow
from opwright import language as kl
from opwright import lite


@ow.operator
class RowNorm:
    """Layer normalisation over the last axis.

    .. math:: y = \\frac{x - mean(x)}{\\sqrt{var(x) + epsilon}} gamma + beta
    """

    x = ow.Input(ow.floating, doc="[..., n]")
    gamma = ow.Input(ow.floating, like="x", rank=1, doc="[n]")
    beta = ow.Input(ow.floating, like="x", rank=1, doc="[n]")
    y = ow.Output(like="x")
    epsilon = ow.Attr(float, default=1e-3, check=ow.attr.greater_than(0.0), doc="added to the variance")
    gradient = None

    def compute(op, x, gamma, beta):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + op.epsilon) * gamma + beta

    @ow.kernel
    def kernel(
        x: kl.Array(kl.f32, ..., "n"),
        gamma: kl.Array(kl.f32, "n"),
        beta: kl.Array(kl.f32, "n"),
        y: kl.Array(kl.f32, ..., "n"),
        epsilon: kl.f32,
        *,
        lanes=16,
    ):
        """Rows of float32, `lanes` elements at a time, on any thread. Other dtypes are computed by NumPy."""
        n = x.shape[1]
        count = n.to(kl.f32)
        for r in kl.parallel(x.shape[0]):
            total = kl.zeros(kl.f32, lanes)
            for i in range(0, n, lanes):
                total = total + x.load(r, i, count=lanes, only=kl.minimum(n - i, lanes))
            mean = kl.reduce_add(total) / count
            squares = kl.zeros(kl.f32, lanes)
            for i in range(0, n, lanes):
                left = kl.minimum(n - i, lanes)
                centred = kl.select(kl.first(left, lanes), x.load(r, i, count=lanes, only=left) - mean, 0.0)
                squares = kl.fma(centred, centred, squares)
            scale = 1.0 / kl.sqrt(kl.reduce_add(squares) / count + epsilon)
            for i in range(0, n, lanes):
                left = kl.minimum(n - i, lanes)
                v = (x.load(r, i, count=lanes, only=left) - mean) * scale
                v = kl.fma(v, gamma.load(i, count=lanes, only=left), beta.load(i, count=lanes, only=left))
                y.store(v, r, i, only=left)


@lite.pattern(RowNorm)
def row_norm(x, gamma, beta, *, epsilon):
    """As people write it by hand."""
    centred = x - ow.reduce_mean(x, -1, keepdims=True)
    variance = ow.reduce_mean(ow.square(centred), -1, keepdims=True)
    return centred * ow.math.rsqrt(variance + epsilon) * gamma + beta


@row_norm.also
def as_layers_do(x, gamma, beta, *, epsilon):
    """As `keras.layers.LayerNormalization` is traced."""
    mean, variance = ow.nn.moments(x, [-1], keepdims=True)
    return ow.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def model(width=256):
    """Three layers with a normalisation before each, [batch, width] to [batch, width]."""
    ow.random.set_seed(0)
    layers = ow.keras.layers
    return ow.keras.Sequential(
        [
            layers.Input((width,)),
            layers.LayerNormalization(epsilon=1e-5),
            layers.Dense(width, activation="relu"),
            layers.LayerNormalization(),
            layers.Dense(width, activation="relu"),
            layers.LayerNormalization(),
            layers.Dense(width),
        ]
    )


def convert(network, patterns):
    """The file of a model, with the account of the patterns."""
    converter = lite.TFLiteConverter.from_keras_model(network)
    converter.patterns = patterns
    return converter.convert(), converter.patterns_found


def seconds_a_run(content, x, runs=50, **settings):
    """The median time of a run, and what it gave."""
    interpreter = lite.Interpreter(model_content=content, **settings)
    runner = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(runner, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(runner, x)
    times = []
    for _ in range(runs + 5):
        start = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - start)
    return float(np.median(times[5:])), interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def main():
    rng = np.random.default_rng(0)
    x, gamma, beta = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 5, 37), 37, 37))
    for outcome in ow.testing.check_pattern(row_norm, [{"x": x, "gamma": gamma, "beta": beta, "epsilon": 1e-3}]):
        print(f"{outcome.check}: {outcome.state}, {outcome.detail}")

    alone = ow.keras.Sequential([ow.keras.layers.Input((512,)), ow.keras.layers.LayerNormalization()])
    for name, network, shape in (("one normalisation", alone, (512, 512)), ("three with layers", model(), (64, 256))):
        unfused, _ = convert(network, [])
        fused, actual = convert(network, [row_norm])
        print(f"\n{name}, {list(shape)}: {actual[0].count} fused")
        x = rng.normal(size=shape).astype(np.float32)
        for compiled in (False, True):
            with ow.flags(compiled=compiled, background=False, num_threads=1):
                slow, expected = seconds_a_run(unfused, x)
                fast, y = seconds_a_run(fused, x, custom_ops=[RowNorm])
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
            engine = "compiled into regions" if compiled else "an operator at a time"
            print(f"{engine}: unfused {slow * 1e6:.0f} us, fused {fast * 1e6:.0f} us")


if __name__ == "__main__":
    main()
