"""Statements of differentiable programs: tables of Python expressions, and how one is drawn for the values so far.

Lives here: `DRAWN`, functions (draft) -> Python expression, or None where nothing fits, with their weights.
Not here: drafts, inputs and programs (gradient_programs_drawn.py), running and comparing them (compiled_gradients.py).

An expression names earlier values, and what `namespace` of gradient_programs_drawn.py defines: F, the program's float
type, BF16 and F16 (float64 in the reference), `normal(seed, shape, scale, dtype)`, a constant. It keeps values small
and away from poles, so that float32 is well conditioned at most points; kinks stay, as two runs take the same side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradient_programs_drawn import Draft, Drawn

UNARY = (
    *("ow.tanh({x})", "ow.sigmoid({x})", "ow.exp(ow.minimum({x}, 2.0))", "ow.math.log(ow.abs({x}) + 0.5)"),
    *("ow.sqrt(ow.abs({x}) + 0.1)", "ow.math.rsqrt(ow.square({x}) + 0.3)", "ow.square({x})", "ow.nn.relu({x})"),
    *("ow.nn.relu6({x} * 4.0)", "ow.nn.leaky_relu({x}, 0.1)", "ow.nn.elu({x})", "ow.nn.selu({x})", "ow.nn.gelu({x})"),
    *("ow.nn.gelu({x}, True)", "ow.nn.silu({x})", "ow.math.softplus({x})", "ow.nn.softsign({x})", "ow.sin({x})"),
    *("ow.cos({x})", "ow.math.atan({x})", "ow.math.asinh({x})", "ow.math.erf({x})", "ow.math.erfc({x})", "-{x}"),
    *("ow.math.log1p(ow.abs({x}))", "ow.math.expm1(ow.minimum({x}, 2.0))", "ow.abs({x})", "1.0 / (1.0 + {x} * {x})"),
    *("ow.clip_by_value({x}, -0.7, 0.9)", "ow.nn.activations.mish({x})", "ow.nn.activations.hard_silu({x})"),
    *("ow.math.log_sigmoid({x})", "ow.cosh(ow.tanh({x}))", "ow.sinh(ow.tanh({x}))", "ow.atanh(ow.tanh({x}) * 0.8)"),
    *("ow.acos(ow.tanh({x}) * 0.9)", "ow.asin(ow.tanh({x}) * 0.9)", "ow.acosh(1.5 + ow.square({x}))", "{x} ** 2"),
    *(
        "{x} ** 3 * 0.1",
        "(ow.abs({x}) + 0.2) ** 1.7",
        "ow.stop_gradient({x}) * {x}",
        "ow.identity({x})",
        "{x} * 0.5 + 0.25",
    ),
    *("ow.where({x} > 0.1, {x}, 0.1 * {x})", "ow.tan({x} * 0.3)", "ow.floor({x} * 2.0) * {x}", "ow.sign({x}) * {x}"),
    *(
        "ow.cast(ow.cast({x}, BF16), {t})",
        "{x} + {x}",
        "ow.nn.activations.hard_sigmoid({x})",
        "ow.round({x} * 3.0) * {x}",
    ),
    *("ow.add_n([{x}, {x}, ow.tanh({x})])", "ow.nn.crelu({x}) if len({x}.shape) else {x}", "ow.maximum({x}, 0.2)"),
    *(
        "ow.reduce_sum(ow.zeros_like({x})) + {x}",
        "ow.ones_like({x}) * 0.7 - {x}",
        "ow.math.reciprocal({x} * {x} + 0.5)",
    ),
)
SPECIAL = (
    *("ow.math.lgamma(ow.abs({x}) + 1.0)", "ow.math.digamma(ow.abs({x}) + 1.0)", "ow.math.bessel_i0e({x})"),
    *("ow.math.erfinv(ow.tanh({x}) * 0.8)", "ow.math.ndtri(ow.sigmoid({x}) * 0.8 + 0.1)", "ow.math.bessel_i1e({x})"),
    *("ow.math.special.dawsn({x})", "ow.math.special.spence(ow.abs({x}) + 0.5)", "ow.nn.activations.celu({x})"),
    *("ow.nn.activations.squareplus({x})", "ow.nn.activations.tanh_shrink({x})", "ow.nn.activations.hard_tanh({x})"),
    *(
        "ow.grad_pass_through(ow.round)({x} * 4.0) * 0.25",
        "ow.recompute_grad(lambda a: ow.tanh(a) * ow.exp(-a * a))({x})",
    ),
    *("softplus_by_hand({x})", "squashed({x})"),
)
BINARY = (
    *(
        "{x} + {y}",
        "{x} - {y}",
        "{x} * {y}",
        "{x} / (1.0 + ow.abs({y}))",
        "ow.maximum({x}, {y})",
        "ow.minimum({x}, {y})",
    ),
    *(
        "ow.math.squared_difference({x}, {y})",
        "ow.atan2({x}, ow.abs({y}) + 0.2)",
        "ow.where({x} > {y}, {x}, {y} * 0.5)",
    ),
    *("ow.pow(ow.abs({x}) + 0.3, ow.tanh({y}))", "ow.math.multiply_no_nan({x}, {y})", "ow.tanh({x} * {y} + {x})"),
    *("ow.math.xlogy({x}, ow.abs({y}) + 0.5)", "ow.math.xdivy({x}, ow.square({y}) + 0.5)", "ow.nn.relu({x} + {y})"),
    *("ow.math.divide_no_nan({x}, ow.square({y}) + 0.4)", "ow.math.floormod({x}, 0.7) + {y}", "{x} * ow.sigmoid({y})"),
)
REDUCTIONS = ("sum", "mean", "max", "min", "logsumexp", "variance", "std", "prod", "euclidean_norm", "mean", "sum")


def unary(draft: Draft) -> str | None:
    x = draft.pick("F", "F", "F", "BF16", "F16")
    table = SPECIAL if x.kind == "F" and draft.chance(8) else UNARY
    return draft.one(table).format(x=x.name, t=x.kind)


def chain(draft: Draft) -> str:
    """Several element-wise operators of one value, which the compiler fuses."""
    x = draft.pick("F")
    text = x.name
    for _ in range(draft.integer(2, 5)):
        text = draft.one([t for t in UNARY if t.count("{x}") == 1 and "if" not in t]).format(x=f"({text})", t="F")
    return text


def operand(draft: Draft, x: Drawn) -> str:
    """A value that broadcasts with x: an earlier one, a mean of x, or a constant of some of its sizes."""
    fits = [v.name for v in draft.values if v.kind == x.kind and broadcasts(v.shape, x.shape)]
    if fits and not draft.chance(4):
        return draft.one(fits[-6:])
    if x.shape and draft.chance(3):
        return f"ow.reduce_mean({x.name}, {draft.axes(len(x.shape))}, keepdims=True)"
    shape = [1 if draft.chance(3) else d for d in x.shape][draft.integer(0, len(x.shape)) :]
    return draft.normal(shape, 1.0, x.kind)


def broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


def binary(draft: Draft) -> str:
    x = draft.pick("F", "F", "F", "BF16", "F16")
    a, b = x.name, operand(draft, x)
    if draft.chance(2):
        a, b = b, a
    return draft.one(BINARY).format(x=a, y=b)


def reduced(draft: Draft) -> str:
    x = draft.pick("F", "F", "F", "BF16")
    kind = draft.one(REDUCTIONS)
    axes = draft.axes(len(x.shape)) if x.shape and not draft.chance(5) else None
    rest = f", {axes}" if axes is not None else ""
    name = f"ow.tanh({x.name}) + 1.5" if kind == "prod" and x.size < 40 else x.name
    if kind == "prod" and x.size >= 40:
        kind = "sum"
    math = "" if kind in ("sum", "mean", "max", "min", "logsumexp", "prod") else "math."
    return f"ow.{math}reduce_{kind}({name}{rest}, keepdims={draft.chance(2)})"


def normalized(draft: Draft) -> str | None:
    x = draft.pick("F", least=1)
    n, name, axis = x.shape[-1], x.name, draft.axis(len(x.shape))
    scale, offset = draft.weight([n]), draft.weight([n])
    forms = [
        f"ow.nn.softmax({name}, {axis})",
        f"ow.nn.log_softmax({name}, {axis})",
        f"ow.math.l2_normalize({name}, {axis})",
        f"ow.nn.layer_normalization({name}, {scale}, {offset}, axis=-1, epsilon=1e-3)",
        f"ow.nn.layer_normalization({name}, axis={axis}, epsilon=1e-3)",
        f"ow.nn.softmax_cross_entropy_with_logits(ow.nn.softmax({draft.normal(x.shape)}), {name}, {axis})",
        f"ow.nn.sigmoid_cross_entropy_with_logits(ow.sigmoid({draft.normal(x.shape)}), {name})",
        f"ow.nn.sparse_softmax_cross_entropy_with_logits({draft.whole(x.shape[:-1], n)}, {name})",
        f"ow.nn.softmax({name} * 0.5 + {draft.normal([n])})",
        f"ow.reduce_mean(ow.nn.softmax_cross_entropy_with_logits(ow.one_hot({draft.whole(x.shape[:-1], n)}, {n}, "
        f"dtype=F), {name}))",
        f"ow.linalg.norm({name}, axis={axis}, keepdims=True) * {name}",
        f"ow.clip_by_norm({name}, 0.8)",
        f"ow.nn.batch_normalization({name}, *ow.nn.moments({name}, {list(range(len(x.shape) - 1))}), {offset}, "
        f"{scale}, 1e-2)",
    ]
    return draft.one(forms)


def product(draft: Draft) -> str | None:
    x = draft.pick("F", "F", "F", "BF16", least=1)
    if len(x.shape) == 1:
        w = draft.weight([x.shape[0], draft.size()], x.kind)
        return draft.one([f"ow.linalg.matvec({w}, {x.name}, transpose_a=True)", f"ow.tensordot({x.name}, {w}, 1)"])
    a, b, m = draft.chance(3), draft.chance(2), draft.size()
    k = x.shape[-2] if a else x.shape[-1]
    batch = list(x.shape[:-2]) if draft.chance(2) else []
    w = draft.weight([*batch, m, k] if b else [*batch, k, m], x.kind)
    fits = [v for v in draft.values if v.kind == x.kind and len(v.shape) > 1 and v.shape[-1 if b else -2] == k]
    if fits and draft.chance(2):
        other = draft.one(fits[-3:])
        if broadcasts(other.shape[:-2], x.shape[:-2]):
            w = other.name
    scale = round(min(1.0, (k or 1) ** -0.5), 3)
    text = f"ow.matmul({x.name}, {w}, transpose_a={a}, transpose_b={b})"
    kind = draft.integer(0, 6)
    if kind == 0:
        return (
            f"ow.nn.relu({text} * {scale} + {draft.normal([m], 1.0, x.kind)})"
            if w.startswith(("w", "normal"))
            else text
        )
    if kind == 1 and len(x.shape) == 3 and w.startswith(("w", "normal")) and not batch and not a and not b:
        return f"ow.einsum('bik,kj->bji', {x.name}, {w}) * {scale}"
    if kind == 2 and not a:
        letters = "abcd"[: len(x.shape)]
        other = draft.normal([*x.shape[:-1], m], 1.0, x.kind)
        return f"ow.einsum('{letters},{letters[:-1]}z->{letters[-1]}z', {x.name}, {other}) * 0.2"
    if kind == 3:
        return f"ow.matmul({x.name}, {x.name}, transpose_b=True) * {round((x.shape[-1] or 1) ** -0.5, 3)}"
    return f"ow.tanh({text} * {scale})" if kind == 4 else f"{text} * {scale}"


def image(draft: Draft) -> str | None:
    """Convolutions, pools and normalizations of [batch, height, width, channels]."""
    x = draft.pick("F", "F", "F", "F", least=3)
    n, name = x.shape[-1], x.name
    strides, padding, window = draft.integer(1, 2), draft.one(["SAME", "VALID"]), draft.integer(1, 3)
    if min(x.shape[1:-1], default=0) < window:
        return None
    if len(x.shape) == 3:
        w = draft.weight([window, n, draft.integer(1, 20)])
        return draft.one(
            [
                f"ow.nn.conv1d({name}, {w}, {strides}, '{padding}') * 0.4",
                f"ow.nn.max_pool1d({name}, {window}, {strides}, '{padding}')",
                f"ow.nn.avg_pool1d({name}, {window}, {strides}, '{padding}')",
            ]
        )
    out, scale, offset = draft.one([1, 3, 8, 17]), draft.weight([n]), draft.weight([n])
    w, depthwise = draft.weight([window, window, n, out]), draft.weight([window, window, n, draft.integer(1, 2)])
    d, batch, height, width = draft.integer(1, 2), *x.shape[:3]
    conv = f"ow.nn.conv2d({name}, {w}, {strides}, '{padding}')"
    forms = [
        f"{conv} * 0.3",
        f"ow.nn.relu(ow.nn.bias_add({conv} * 0.3, {draft.weight([out])}))",
        f"ow.nn.conv2d({name}, {w}, 1, 'SAME', dilations={d}) * 0.3",
        f"ow.nn.depthwise_conv2d({name}, {depthwise}, [1, {strides}, {strides}, 1], '{padding}') * 0.4",
        f"ow.nn.separable_conv2d({name}, {draft.weight([window, window, n, 1])}, {draft.weight([1, 1, n, out])}, "
        f"[1, 1, 1, 1], '{padding}') * 0.2",
        f"ow.nn.conv2d_transpose({name}, {draft.weight([window, window, out, n])}, "
        f"[{batch}, {height * strides}, {width * strides}, {out}], {strides}, 'SAME') * 0.3",
        f"ow.nn.max_pool2d({name}, {window}, {strides}, '{padding}')",
        f"ow.nn.avg_pool2d({name}, {window}, {strides}, '{padding}')",
        f"ow.nn.max_pool2d(ow.nn.relu({conv} * 0.3), 2, 2, 'SAME')",
        f"ow.nn.fused_batch_norm({name}, {scale}, {offset}, epsilon=0.01)[0]",
        f"ow.nn.fused_batch_norm({name}, {scale}, {offset}, {draft.normal([n])}, ow.square({draft.normal([n])}) + 0.3, "
        "is_training=False)[0]",
        f"ow.nn.lrn({name}, 2, 1.0, 0.5, 0.6)",
        f"ow.reduce_mean({name}, [1, 2])",
        f"ow.image.resize({name}, [{height + 1}, {width * 2}])",
        f"ow.nn.moments({name}, [0, 1, 2])[1]",
    ]
    return draft.one(forms)


def view(draft: Draft) -> str | None:
    """Operators that move elements."""
    x = draft.pick("F", "F", "F", "BF16", "I")
    rank, name, n = len(x.shape), x.name, x.size
    if not rank:
        return f"ow.reshape({name}, [1, 1])" if draft.chance(2) else f"ow.fill([{draft.size()}], {name})"
    axis = draft.axis(rank)
    size = x.shape[axis]
    low = draft.integer(0, max(size - 1, 0))
    high = draft.integer(low, size)
    half = size // 2
    whole = ", ".join([":"] * axis)
    before = whole + ", " if axis else ""
    starts, sizes = [0] * rank, list(x.shape)
    starts[axis], sizes[axis] = low, size - low
    pads = [[draft.integer(0, 2), draft.integer(0, 2)] if draft.chance(2) else [0, 0] for _ in range(rank)]
    mode = draft.one(["CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC"])
    if mode != "CONSTANT" and min(x.shape) < 3:
        mode = "CONSTANT"
    other = operand(draft, x)
    forms = [
        f"ow.transpose({name}, {draft.permutation(rank)})",
        f"ow.reshape({name}, {draft.factored(n)})",
        f"ow.reshape({name}, [-1])",
        f"ow.concat([{name}, {name}], {axis})",
        f"ow.concat([{name}[{before}:{low}], {name}[{before}{low}:]], {axis})",
        f"ow.concat(ow.split({name}, [{half}, {size - half}], {axis})[::-1], {axis})",
        f"ow.add_n(ow.split({name}, [{half}, {half}, {size - 2 * half}], {axis})[:2])",
        f"{name}[{before}{low}:{max(high, low + 1)}]",
        f"{name}[{before}::-1]",
        f"{name}[{before}{low}::2]",
        f"{name}[{before}{low}]",
        f"ow.slice({name}, {starts}, {sizes})",
        f"ow.pad({name}, {pads}, '{mode}')",
        f"ow.stack([{name}, {name} + {name}], {draft.integer(0, rank)})",
        f"ow.add_n(ow.unstack({name}, axis={axis})[:3])",
        f"ow.tile({name}, {[draft.integer(1, 2) for _ in x.shape]})",
        f"ow.repeat({name}, 2, axis={axis})",
        f"ow.roll({name}, {draft.integer(-3, 3)}, {axis})",
        f"ow.reverse({name}, [{axis}])",
        f"ow.expand_dims({name}, {draft.integer(0, rank)})",
        f"ow.squeeze(ow.expand_dims({name}, {axis}), {axis}) + {other}",
        f"ow.broadcast_to({name}, {[draft.integer(1, 3), *x.shape]})",
        f"ow.linalg.band_part({name}, 1, 0)" if rank > 1 else f"ow.linalg.diag({name})",
        f"ow.linalg.diag_part({name})" if rank > 1 else f"ow.meshgrid({name}, {name})[0]",
        f"ow.linalg.matrix_transpose({name})" if rank > 1 else f"{name}[..., None] + {name}",
    ]
    if x.kind == "I":
        forms = [t for t in forms if "diag" not in t and "band" not in t and "REFLECT" not in t]
    return draft.one(forms)


def gathered(draft: Draft) -> str | None:
    """Gathers, scatters and sums of segments; indices are inputs or constants."""
    x = draft.pick("F", least=1)
    rank, name = len(x.shape), x.name
    axis = draft.axis(rank)
    size, rows = x.shape[axis], x.shape[0]
    if not size or not rows:
        return None
    count = draft.integer(1, 9)
    segments = draft.whole([rows], count)
    tail = list(x.shape[1:])
    several = draft.whole([draft.integer(1, 6), 1], rows)
    forms = [
        f"ow.gather({name}, {draft.whole([count], size)}, axis={axis})",
        f"ow.gather({name}, {draft.whole([2, count], size)}, axis={axis})",
        f"ow.gather_nd({name}, {several})",
        f"ow.tensor_scatter_nd_add({name}, {draft.whole([count, 1], rows)}, {draft.normal([count, *tail])})",
        f"ow.tensor_scatter_nd_update({name}, [[{rows - 1}]], {draft.normal([1, *tail])})",
        f"ow.scatter_nd({draft.whole([rows, 1], count)}, {name}, {[count, *tail]})",
        f"ow.math.unsorted_segment_sum({name}, {segments}, {count})",
        f"ow.math.unsorted_segment_mean({name}, {segments}, {count})",
        f"ow.math.segment_sum({name}, ow.sort({segments}))",
        f"ow.math.segment_mean({name}, ow.sort({segments}))",
        f"ow.nn.embedding_lookup({draft.variable([rows, *tail])}, {draft.whole([draft.integer(1, 70)], rows)}) * 0.5",
        f"ow.boolean_mask({name}, {draft.whole([rows], 3)} > 0)",
        f"ow.sort({name}, {axis})",
        f"ow.math.top_k({name}, {min(3, x.shape[-1])})[0]",
        f"ow.dynamic_stitch([[0, 2], [1]], [ow.gather({name}, [0, 0]), {name}[:1]])",
        f"ow.concat(ow.dynamic_partition({name}, {draft.whole([rows], 2)}, 2), 0)",
        f"ow.gather({name}, ow.argsort(ow.stop_gradient({name}[{', '.join(['0'] * (rank - 1)) or ':'}])), axis=-1)",
        f"ow.one_hot({draft.whole([count], 5)}, 5, dtype=F) * ow.reduce_mean({name})",
    ]
    return draft.one(forms)


def scanned(draft: Draft) -> str | None:
    x = draft.pick("F", least=1)
    rest = f"{draft.axis(len(x.shape))}, {draft.chance(2)}, {draft.chance(2)}"
    kinds = [f"ow.cumsum({x.name}, {rest}) * 0.3", f"ow.math.cumprod(ow.tanh({x.name}) + 1.1, {rest}) * 0.1"]
    kinds.append(f"ow.math.cumulative_logsumexp({x.name}, {rest})" if "True, " not in rest else kinds[0])
    return draft.one(kinds)


def chosen(draft: Draft) -> str | None:
    """Selection by masks."""
    x, y = draft.pick("F"), draft.pick("F")
    masks = [v for v in draft.values if v.kind == "B" and broadcasts(v.shape, x.shape)]
    test = draft.one(masks).name if masks else f"{x.name} > 0.2"
    other = y.name if broadcasts(y.shape, x.shape) else "0.3"
    return draft.one([f"ow.where({test}, {x.name}, {other})", f"ow.where({test}, ow.zeros_like({x.name}), {x.name})"])


def compared(draft: Draft) -> str | None:
    x = draft.pick("I", "I", "F")
    limit = 2 if x.kind == "I" else 0.13
    test = draft.one([f"{x.name} > {limit}", f"{x.name} <= {limit}", f"ow.not_equal({x.name}, {limit})"])
    return f"ow.logical_and({test}, ow.logical_not({x.name} < -1))" if draft.chance(3) else test


def counted(draft: Draft) -> str | None:
    x = draft.pick("I", "B", "F")
    if x.kind == "B":
        return draft.one([f"ow.cast({x.name}, F) * 0.3", f"ow.reduce_any({x.name})", f"ow.cast({x.name}, ow.int32)"])
    if x.kind == "I":
        forms = ["ow.cast({x}, F) * 0.1", "{x} * 2 + 1", "ow.reduce_sum({x})", "{x} % 3", "{x} // 2", "ow.abs({x})"]
        return draft.one(forms).format(x=x.name)
    if not x.shape:
        return None
    return f"ow.argmax({x.name}, {draft.axis(len(x.shape))}, output_type=ow.int32)"


def half(draft: Draft) -> str:
    """To a 16-bit type, or back."""
    x = draft.pick("F", "BF16", "F16")
    return f"ow.cast({x.name}, {draft.one(['BF16', 'F16']) if x.kind == 'F' else 'F'})"


def controlled(draft: Draft) -> str | None:
    """Branches, loops and functional maps; conditions are whole numbers, so that a last bit decides nothing."""
    x = draft.pick("F")
    first, second = (draft.one([t for t in UNARY if "if" not in t and "crelu" not in t]) for _ in range(2))
    a, b = first.format(x=x.name, t="F"), second.format(x=x.name, t="F")
    inner = second.format(x="u", t="F")
    w = draft.normal(x.shape)
    test = f"ow.reduce_sum({draft.pick('I').name}) % 3"
    forms = [
        f"ow.cond({test} > 0, lambda: {a}, lambda: {b})",
        f"ow.cond({test} > 0, lambda: [{a}, {b}], lambda: [{b}, {x.name}])[{draft.integer(0, 1)}]",
        f"ow.switch_case({test}, [lambda: {a}, lambda: {b}, lambda: {x.name}])",
        f"ow.while_loop(lambda i, u: i < {test} + 1, lambda i, u: (i + 1, ow.tanh({inner}) + {x.name}), "
        f"(0, {x.name}))[1]",
        f"ow.while_loop(lambda i, u, s: i < 3, lambda i, u, s: (i + 1, ow.tanh({inner}) * {w}, s + ow.reduce_mean(u)), "
        f"(0, {x.name}, ow.reduce_sum({x.name}) * 0.1))[{draft.integer(1, 2)}]",
        f"ow.while_loop(lambda i, u: i < 0, lambda i, u: (i + 1, ow.tanh({inner})), (0, {x.name}))[1]",
    ]
    if x.shape and 0 < x.shape[0] < 12:
        forms += [
            f"ow.map_fn(lambda u: ow.tanh({inner}), {x.name})",
            f"ow.scan(lambda s, u: ow.tanh(s + {inner}), {x.name}, initializer=ow.zeros_like({x.name}[0]))",
        ]
    return draft.one(forms)


def stateful(draft: Draft) -> str | None:
    """Variables read and assigned; the value is what the statement read."""
    x = draft.pick("F")
    v = draft.variable(x.shape)
    y = f"ow.tanh({x.name})"
    forms = [
        f"{v} * {x.name}",
        f"{v}.assign_add({y} * 0.3) + 0.0",
        f"{v}.assign({y} + {v} * 0.5) * {x.name}",
        f"[{v} * 1.0, {v}.assign_sub(0.2 * {y})][0]",
        f"ow.identity({v}.read_value())",
    ]
    if x.shape and x.shape[0]:
        rows = f"[{x.shape[0] - 1}, 0]" if x.shape[0] > 1 else "[0]"
        forms.append(f"{v}.scatter_nd_add({[[i] for i in eval(rows)]}, ow.gather({y}, {rows})) * 1.0")
    return draft.one(forms)


def layer(draft: Draft) -> str | None:
    """Layers with weights, dropout with a seed."""
    x = draft.pick("F", least=1)
    rank, name, units = len(x.shape), x.name, draft.one([1, 4, 9, 33])
    seed = draft.integer(0, 999)
    forms = [
        f"ow.cast(ow.nn.stateless_dropout(ow.cast({name}, ow.float32), 0.4, seed=[{seed}, 2]), F)",
        f"ow.cast(ow.nn.dropout(ow.cast({name}, ow.float32), 0.3, seed={seed}), F)",
    ]
    if rank > 1:
        forms.append(f"{draft.layer(f'Dense({units}, activation={draft.one(ACTIVATIONS)!r})', x)}({name})")
        forms += [f"{draft.layer('LayerNormalization()', x)}({name})", f"{draft.layer('Dense(128)', x)}({name}) * 0.3"]
        forms.append(f"{draft.layer('BatchNormalization()', x)}({name}, training={draft.chance(2)})")
    if rank == 3 and 0 < x.shape[1] <= 24:
        options = f"({units}, return_sequences={draft.chance(2)}, go_backwards={draft.chance(4)})"
        for kind in ("LSTM", "GRU", "LSTM", "GRU", "SimpleRNN"):
            forms.append(f"{draft.layer(kind + options, x)}({name})")
        forms.append(f"{draft.layer('MultiHeadAttention(2, 3)', x, twice=True)}({name}, {name})")
        forms.append(f"attention({name}, {draft.one(['True', 'False'])})")
    return draft.one(forms)


ACTIVATIONS = ("relu", "tanh", "gelu", "softmax", None)

DRAWN: tuple[tuple[Callable[[Draft], str | None], int], ...] = (
    (unary, 8),
    (chain, 3),
    (binary, 9),
    (reduced, 5),
    (normalized, 4),
    (product, 5),
    (image, 6),
    (view, 8),
    (gathered, 4),
    (scanned, 1),
    (chosen, 2),
    (compared, 1),
    (counted, 2),
    (half, 2),
    (controlled, 2),
    (stateful, 3),
    (layer, 4),
)
"""Functions that draw a statement, and how often each is."""
