"""Programs of floats with control flow of every kind: text that a hypothesis strategy writes.

Lives here: the strategy, what the text may name, running one.  Not here: what must hold of them (test_generated_*.py).

A program takes vectors a and b of two, a scalar s, a number of turns n and a variable v: all float64 but n, which is
int32. What it computes stays small however often a loop turns, and nearly everywhere it has derivatives.
"""

import itertools
import linecache

from hypothesis import strategies as st

import opwright as ow

_number = itertools.count()


@ow.custom_gradient
def softplus(x):
    e = ow.exp(x)
    return ow.math.log(1.0 + e), lambda dy: dy * e / (1.0 + e)


@ow.function
def squashed(x):
    if ow.reduce_sum(x) > 0.0:
        return ow.tanh(x) * v
    return ow.tanh(x * 0.5)


v = ow.Variable([0.6, -0.7], dtype=ow.float64)
NAMES = {"tf": ow, "softplus": softplus, "squashed": squashed, "v": v}
ARGUMENTS = ("a", "b", "s", "v")

VECTORS = st.sampled_from(
    [
        "a * b",
        "tf.sin(a) + b * 0.5",
        "a * s",
        "tf.tanh(a + b)",
        "b - a * 0.3",
        "a * v",
        "tf.cos(b) * v",
        "a[::-1]",
        "tf.concat([a[:1], b[1:]], 0)",
        "tf.where(a > b, a, b * 0.9)",
        "tf.gather(b, [1, 0]) * a",
        "a",
        "b",
        "v + 0.1 * b",
        "tf.linalg.matvec(tf.stack([a, b]), v)",
        "squashed(a)",
        "softplus(b) * 0.5",
        "tf.stop_gradient(a) * b",
        "tf.stack([s, a[0]])",
        "tf.fill([2], s)",
        "tf.maximum(a, 0.1) * b",
        "tf.clip_by_value(b, -0.6, 0.6) + a * 0.1",
        "tf.cumsum(a) * 0.5",
        "tf.zeros_like(a) + s",
        "tf.constant([0.3, -0.2], tf.float64)",
    ]
)
SCALARS = st.sampled_from(
    [
        "tf.reduce_sum(a * b)",
        "s * 0.7 + a[0]",
        "tf.tanh(s) * b[1]",
        "tf.reduce_mean(a) - s",
        "a[0] * b[1]",
        "s * s",
        "tf.sin(s)",
        "tf.reduce_max(a) * s",
        "tf.reduce_sum(v) * s",
        "tf.norm(b) * 0.4",
        "s",
        "s + 0.2",
        "tf.reduce_prod(v + a * 0.1)",
        "tf.stop_gradient(s) * a[1]",
        "tf.square(a[1]) + 0.1",
    ]
)
CONDITIONS = st.sampled_from(
    [
        "s > 0.1",
        "tf.reduce_sum(a) < 0.4",
        "a[0] > b[0]",
        "s < 0.5 and b[1] > -0.3",
        "not s > 0.6",
        "n > 1",
        "n < 2",
        "-0.5 < s < 0.5",
        "tf.reduce_all(a > -0.2)",
        "tf.reduce_any(b > 0.8) or s < 0.0",
    ]
)


def indented(lines):
    return ["    " + line for line in lines]


@st.composite
def assignment(draw):
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return f"s = {draw(SCALARS)}"
    if kind == 1:
        return f"a, b = {draw(VECTORS)}, {draw(VECTORS)}"
    if kind == 2:
        return f"a = ({draw(VECTORS)}) if {draw(CONDITIONS)} else ({draw(VECTORS)})"
    if kind == 3:
        return f"s += 0.2 * ({draw(SCALARS)})"
    return f"{draw(st.sampled_from('ab'))} = tf.tanh({draw(VECTORS)})"


@st.composite
def called(draw, depth):
    """A statement that hands functions to the library."""
    k = next(_number)
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return [f"a, s = tf.cond({draw(CONDITIONS)}, lambda: ({draw(VECTORS)}, {draw(SCALARS)}), lambda: (b, s))"]
    if kind == 1:
        return [
            f"def body{k}(i, a, s, b=b):",
            *indented(draw(blocks(depth, False, False))),
            f"    return i + 1, tf.tanh({draw(VECTORS)}), tf.tanh({draw(SCALARS)})",
            f"_, a, s = tf.while_loop(lambda i, a, s: i < n, body{k}, (0, a, s))",
        ]
    if kind == 2:
        of_e = draw(st.sampled_from(["tf.sin(e) * s", "e * e - b[0]", "tf.cond(e > 0.0, lambda: e * v[0], lambda: s)"]))
        return [f"a = tf.map_fn(lambda e: {of_e}, {draw(VECTORS)})"]
    if kind == 3:
        return [f"b = tf.scan(lambda s, e: tf.tanh(s * e + {draw(SCALARS)}), {draw(VECTORS)}, initializer=s)"]
    if kind == 4:
        order = draw(st.sampled_from(["stack()", "gather([0])", "concat()"]))
        result = f"t{k}.write(i{k}, {draw(VECTORS)})"
        return [
            f"t{k} = tf.TensorArray(tf.float64, size=0, dynamic_size=True, element_shape=[2], clear_after_read=False)",
            f"t{k} = t{k}.write(0, {draw(VECTORS)})",
            f"for i{k} in tf.range(1, n + 1):",
            *indented(draw(blocks(depth, False, False))),
            f"    t{k} = {result}",
            *([f"    a = t{k}.read(i{k} - 1) * 0.5 + b"] if draw(st.booleans()) else []),
            f"b = tf.reduce_sum(tf.reshape(t{k}.{order}, [-1, 2]), 0) * 0.4",
        ]
    if kind == 5:
        lines = [f"def inner{k}(a, s, b):", *indented(draw(blocks(depth, False, True)))]
        lines.append(f"    return {draw(VECTORS)}, {draw(SCALARS)}")
        if draw(st.booleans()):
            lines.insert(0, "@tf.function")
        return [*lines, f"a, s = inner{k}(b, s, a)"]
    if kind == 6:
        return [
            f"l{k} = [a]",
            "for _ in tf.range(n):",
            *indented(draw(blocks(depth, False, False))),
            f"    l{k}.append({draw(VECTORS)})",
            f"a = tf.tanh(tf.reduce_mean(tf.stack(l{k}), 0))",
        ]
    return [f"v.assign{draw(st.sampled_from(['', '_add', '_sub']))}(0.3 * tf.stop_gradient({draw(VECTORS)}))"]


@st.composite
def blocks(draw, depth, loop, returns):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["assign", "assign"]
        if depth:
            kinds += ["if", "for", "while", "call", "call"]
        if loop:
            kinds += ["break", "continue"]
        if returns:
            kinds.append("return")
        kind = draw(st.sampled_from(kinds))
        if kind == "assign":
            lines.append(draw(assignment()))
        elif kind == "call":
            lines += draw(called(depth - 1))
        elif kind == "if":
            lines.append(f"if {draw(CONDITIONS)}:")
            lines += indented(draw(blocks(depth - 1, loop, returns)))
            if draw(st.booleans()):
                lines.append("else:")
                lines += indented(draw(blocks(depth - 1, loop, returns)))
        elif kind == "for":
            ways = ["tf.range(n)", "tf.range(n)", "range(2)", "tf.stack([a, b])", "tf.unstack(a)"]
            over = draw(st.sampled_from(ways))
            each = next(_number)
            lines.append(f"for e{each} in {over}:")
            if "stack" in over:
                lines.append(f"    a = tf.tanh(a * e{each})")
            elif draw(st.booleans()):
                lines.append(f"    s = tf.tanh(s + 0.1 * tf.cast(e{each}, tf.float64))")
            lines += indented(draw(blocks(depth - 1, True, returns)))
        elif kind == "while":
            k = next(_number)
            lines += [f"w{k} = n", f"while w{k} > 0 and ({draw(CONDITIONS)}):", f"    w{k} -= 1"]
            lines += indented(draw(blocks(depth - 1, True, returns)))
        elif kind == "return":
            lines.append(f"return {draw(VECTORS)}, {draw(SCALARS)}")
            break
        else:
            lines.append(kind)
            break
    return lines


@st.composite
def programs(draw, depth=2):
    body = [*draw(blocks(depth, False, True)), f"return {draw(VECTORS)}, {draw(SCALARS)}"]
    return "def program(a, b, s, n):\n" + "".join(f"    {line}\n" for line in body)


POINTS = st.sampled_from(
    [([0.31, -0.42], [0.53, 0.87], 0.23), ([-0.71, 0.12], [0.91, -0.35], -0.44), ([0.64, 0.77], [-0.15, 0.29], 0.71)]
)


class Made:
    """A program's text as a function. Used as a context: tracebacks find the text meanwhile."""

    def __init__(self, source):
        self.source, self.filename = source, f"<gradient program {next(_number)}>"

    def __enter__(self):
        linecache.cache[self.filename] = (len(self.source), None, self.source.splitlines(keepends=True), self.filename)
        namespace = dict(NAMES)
        exec(compile(self.source, self.filename, "exec"), namespace)
        return namespace["program"]

    def __exit__(self, *exc):
        del linecache.cache[self.filename]


def reset(value=(0.6, -0.7)):
    """The variable as it is when a program starts."""
    v.assign(value)


def tensors(point, n):
    return [*(ow.constant(x, ow.float64) for x in point), ow.constant(n)]


def total(outputs):
    """One number of a program's two results, to differentiate."""
    vector, scalar = outputs
    return ow.reduce_sum(vector * ow.constant([1.0, -0.4], ow.float64)) + 0.7 * scalar
