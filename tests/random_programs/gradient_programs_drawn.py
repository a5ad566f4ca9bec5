"""Differentiable programs drawn at random: what a program is, how it is drawn, and its text as Python.

Lives here: `Program`, `draw`, the names that statements use (`Build`).
Not here: the statements (gradient_statements.py), running and comparing them (compiled_gradients.py).

A program is a list of assignments of one expression each, over tensors of ranks 0 to 5 and variables. It is drawn by
running it eagerly in float64: a statement stays if its value is finite, small and no larger than `MOST_ELEMENTS`.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gradient_statements import DRAWN

import opwright as ow

MOST_ELEMENTS, MOST_MAGNITUDE = 30_000, 200.0
NAME = re.compile(r"\b([a-z])(\d+)\b")
SHAPES = (
    *((), (1,), (5,), (70,), (130,), (4, 7), (33, 17), (1, 6), (8, 1), (16, 128), (64, 70), (3, 5, 8), (2, 1, 9)),
    *((4, 16, 32), (1, 1, 1), (2, 6, 5, 3), (1, 9, 9, 4), (3, 8, 8, 16), (2, 12, 12, 1), (1, 4, 4, 130), (2, 3, 1, 5)),
)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A value of a program. kind: F float, BF16, F16, I whole numbers, B masks."""

    name: str
    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclasses.dataclass(frozen=True)
class Program:
    """inputs: values with their arrays; setup: definitions of variables and layers; statements: values and expressions;
    outputs: names; dtype: of F; last: an expression that is computed at the end, which raises."""

    inputs: tuple[tuple[Drawn, np.ndarray], ...]
    setup: tuple[tuple[str, str], ...]
    statements: tuple[tuple[Drawn, str], ...]
    outputs: tuple[str, ...]
    dtype: str = "float32"
    last: str | None = None

    @property
    def source(self) -> str:
        """The program's function, over the names of `Build`."""
        arguments = ", ".join([x.name for x, _ in self.inputs])
        lines = [f"def program({arguments}):"]
        lines += [f"    {v.name} = {text}  # {v.kind}{list(v.shape)}" for v, text in self.statements]
        outputs = [*self.outputs, f"raised({self.last})"] if self.last else self.outputs
        return "\n".join([*lines, f"    return [{', '.join(outputs)}]"])

    def __str__(self) -> str:
        """Return Python source that computes the outputs eagerly, from `Build`."""
        lines = ["from gradient_programs_drawn import *", f"build = Build({self.dtype!r})"]
        lines.append("globals().update(build.names)")
        lines += [f"{name} = {text}" for name, text in self.setup]
        arrays = ", ".join([f"np.array({a.tolist()!r}, {str(a.dtype)!r})" for _, a in self.inputs if a.size <= 24])
        lines.append(self.source)
        lines.append(f"# inputs of up to 24 elements: {arrays}")
        return "\n".join(lines)

    def pruned(self) -> Program:
        """Return the program without definitions that nothing uses."""
        text = self.source
        used = {m.group() for m in NAME.finditer(text)}
        setup = tuple((name, line) for name, line in self.setup if name in used)
        body = text.split("\n", 1)[1]
        names = {m.group() for m in NAME.finditer(body)}
        inputs = tuple((x, a) for x, a in self.inputs if x.name in names)
        return dataclasses.replace(self, setup=setup, inputs=inputs or self.inputs[:1])


# ---- names that statements use ---------------------------------------------------------------------------------------


@ow.custom_gradient
def softplus_by_hand(x: Any) -> Any:
    e = ow.exp(ow.minimum(x, 2.0))
    return ow.math.log1p(e), lambda dy: dy * e / (1.0 + e)


@ow.function(autograph=False)
def squashed(x: Any) -> Any:
    return ow.tanh(x) * ow.cos(x) + ow.reduce_mean(x)


def attention(x: Any, causal: bool) -> Any:
    """One head over [batch, time, depth], the scores masked by time if causal."""
    n = x.shape[1]
    scores = ow.matmul(x * 0.5, x, transpose_b=True)
    if causal:
        scores += ow.cast((1.0 - np.tril(np.ones((n, n)))) * -1e4, scores.dtype)
    return ow.matmul(ow.nn.softmax(scores), ow.tanh(x))


def raised(x: Any) -> Any:
    """Return the sum of what a failing statement would compute, or 0 for one without a result."""
    return ow.reduce_sum(x) if ow.is_tensor(x) else ow.constant(0.0)


def noisy(x: Any, rng: np.random.Generator) -> Any:
    """The value with relative errors of float32's roundings."""
    x = ow.convert_to_tensor(x)
    return x * ow.constant(1 + 1e-7 * rng.standard_normal(x.shape.as_list()), x.dtype) if x.dtype.is_floating else x


class Build:
    """The names of statements for one float type. dtype: float32, or float64, in which BF16 and F16 are it too."""

    def __init__(self, dtype: str) -> None:
        self.dtype: Any = ow.as_dtype(dtype)
        wide = dtype == "float64"
        self.names: dict[str, Any] = {
            "ow": ow,
            "np": np,
            "F": self.dtype,
            "BF16": self.dtype if wide else ow.bfloat16,
            "F16": self.dtype if wide else ow.float16,
            "normal": self.normal,
            "ints": self.ints,
            "built": self.built,
            "softplus_by_hand": softplus_by_hand,
            "squashed": squashed,
            "attention": attention,
            "raised": raised,
        }

    def normal(self, seed: int, shape: Sequence[int], scale: float = 1.0, dtype: Any = None) -> Any:
        """A constant of normal numbers, which have values in float32."""
        array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * np.float32(scale)
        return ow.cast(ow.constant(array, self.dtype), dtype or self.dtype)

    def ints(self, seed: int, shape: Sequence[int], limit: int) -> Any:
        return ow.constant(np.random.default_rng(seed).integers(0, max(limit, 1), shape), ow.int32)

    def built(self, layer: Any, seed: int, *shapes: Sequence[int]) -> Any:
        """Return the layer with weights for inputs of these shapes."""
        layer(*[ow.zeros(shape, self.dtype) for shape in shapes])
        rng = np.random.default_rng(seed)
        for weight in layer.weights:
            array = rng.standard_normal(weight.shape).astype(np.float32) * np.float32(0.4)
            weight.assign(np.abs(array) + np.float32(0.3) if "variance" in weight.name else array)
        return layer

    def run(self, program: Program, noise: int | None = None) -> Callable[..., Any]:
        """Define the program; return its function. Definitions are then in `names`.

        noise: a seed, for a program whose values are each off by float32's rounding.
        """
        for name, text in program.setup:
            self.names[name] = eval(text, self.names)
        source = program.source
        if noise is not None:
            rng = np.random.default_rng(noise)
            self.names["noisy"] = lambda x: noisy(x, rng)
            source = re.sub(r"^(    v\d+ = )(.*?)(  # .*)$", r"\1noisy(\2)\3", source, flags=re.M)
        exec(compile(source, f"<program {zlib.crc32(source.encode()):08x}>", "exec"), self.names)
        function: Callable[..., Any] = self.names["program"]
        return function


# ---- drawing -----------------------------------------------------------------------------------------------------


class Draft:
    """A program while it is drawn: `values` so far, and draws of what an expression needs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.build = Build("float64")
        self.values: list[Drawn] = []
        self.inputs: list[tuple[Drawn, np.ndarray]] = []
        self.setup: list[tuple[str, str]] = []
        self.statements: list[tuple[Drawn, str]] = []
        self.refused: list[str] = []

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def chance(self, n: int) -> bool:
        """True once in n times."""
        return self.integer(1, n) == 1

    def one(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def size(self) -> int:
        return int(self.one((1, 2, 3, 5, 8, 13, 16, 31, 64, 70, 130)))

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1) % rank

    def axes(self, rank: int) -> list[int]:
        count = self.integer(1, rank)
        return sorted(int(i) for i in self.rng.choice(rank, count, replace=False))

    def permutation(self, rank: int) -> list[int]:
        return [int(i) for i in self.rng.permutation(rank)]

    def factored(self, n: int) -> list[int]:
        """A shape of n elements."""
        sizes: list[int] = []
        for p in (2, 3, 5, 7, 2, 2, 3):
            if n and n % p == 0 and n > p:
                sizes.append(p)
                n //= p
            if len(sizes) == 3:
                break
        return [sizes[i] for i in self.permutation(len(sizes))] + [n]

    def seed(self) -> int:
        return self.integer(0, 99_999)

    def pick(self, *kinds: str, least: int = 0) -> Drawn:
        """One of the last values of a kind, of at least that rank; a new input if there is none."""
        kind = self.one(kinds)
        fits = [v for v in self.values if v.kind == kind and len(v.shape) >= least]
        if not fits and kind in ("BF16", "F16"):
            return self.pick("F", least=least)
        if not fits or (kind in "FIB" and len(self.inputs) < 4 and self.chance(12)):
            shapes = [s for s in SHAPES if len(s) >= least and (kind == "F" or np.prod(s) < 300)]
            return self.input(kind, self.one(shapes))
        if least == 3 and (images := [v for v in fits if len(v.shape) == 4]) and not self.chance(4):
            fits = images
        fits = fits[-5:] if not self.chance(3) else fits
        return fits[self.integer(0, len(fits) - 1)]

    def input(self, kind: str, shape: Sequence[int]) -> Drawn:
        value = Drawn(f"x{len(self.inputs)}", kind, tuple(shape))
        if kind == "F":
            array = self.rng.standard_normal(shape).astype(np.float32)
            if self.chance(6):
                array = np.round(array * 2) / np.float32(2)  # ties and zeros
        else:
            array = np.asarray(self.rng.integers(0, 8, shape) if kind == "I" else self.rng.integers(0, 2, shape) > 0)
            array = array.astype(np.int32 if kind == "I" else bool)
        self.inputs.append((value, np.asarray(array)))
        self.values.insert(0, value)
        self.build.names[value.name] = ow.constant(array, self.build.dtype if kind == "F" else None)
        return value

    def normal(self, shape: Sequence[int], scale: float = 1.0, kind: str = "F") -> str:
        rest = f", {scale}, {kind}" if kind != "F" else f", {scale}" if scale != 1.0 else ""
        return f"normal({self.seed()}, {list(shape)}{rest})"

    def define(self, prefix: str, text: str) -> str:
        name = f"{prefix}{len(self.setup)}"
        self.setup.append((name, text))
        return name

    def variable(self, shape: Sequence[int]) -> str:
        return self.define("w", f"ow.Variable({self.normal(shape, 0.6)})")

    def weight(self, shape: Sequence[int], kind: str = "F") -> str:
        """A variable, an input or a constant."""
        if kind == "F" and len(self.inputs) < 6 and self.chance(4):
            return self.input("F", shape).name
        return self.variable(shape) if kind == "F" and self.chance(2) else self.normal(shape, 0.6, kind)

    def whole(self, shape: Sequence[int], limit: int) -> str:
        """Indices below the limit: a constant or an input."""
        if len(self.inputs) < 6 and self.chance(3):
            return f"({self.input('I', shape).name} % {max(limit, 1)})"
        return f"ints({self.seed()}, {list(shape)}, {limit})"

    def layer(self, text: str, x: Drawn, twice: bool = False) -> str:
        text = f"ow.nn.layers.{text[:-1]}{'' if text.endswith('()') else ', '}dtype=F)"
        shapes = f"{list(x.shape)}, {list(x.shape)}" if twice else str(list(x.shape))
        return self.define("l", f"built({text}, {self.seed()}, {shapes})")

    def append(self, text: str) -> bool:
        """Compute the expression; keep it if its value is useful."""
        names = self.build.names
        try:
            for name, definition in self.setup:
                if name not in names and re.search(rf"\b{name}\b", text):
                    names[name] = eval(definition, names)
            value = eval(text, names)
            value = ow.convert_to_tensor(value[0] if isinstance(value, list | tuple) else value)
        except Exception as error:  # drawn statements fit; what does not is listed by the script
            self.refused.append(f"{text}: {type(error).__name__} {str(error)[:200]}")
            return False
        kinds = {"float64": "F", "int32": "I", "bool": "B"}
        array = value.numpy()
        kind = kinds.get(value.dtype.name, "")
        if not kind or array.size > MOST_ELEMENTS or array.ndim > 5:
            return False
        if kind == "F" and (not np.isfinite(array).all() or np.abs(array).max(initial=0.0) > MOST_MAGNITUDE):
            return False
        if kind == "F":
            kind = self.kind_of(text)
        drawn = Drawn(f"v{len(self.statements)}", kind, array.shape)
        if "crelu" in text:
            text = f"({text})"
        self.statements.append((drawn, text))
        self.values.append(drawn)
        names[drawn.name] = value
        return True

    def kind_of(self, text: str) -> str:
        """The float kind of an expression: that of its cast, or of the values in it."""
        if (m := re.match(r"ow\.cast\(.*, (F|BF16|F16)\)$", text)) is not None:
            return m.group(1)
        kinds = {v.name: v.kind for v in self.values}
        of_values = {kinds.get(m.group(), "F") for m in NAME.finditer(text)} - {"I", "B"}
        return of_values.pop() if len(of_values) == 1 else "F"


FAILING = (
    "ow.gather({x}, [{n}])",
    "ow.gather({x}, [0, -1 - {n}])",
    "ow.debugging.check_numerics({x} / 0.0, 'drawn')",
    "ow.debugging.assert_less({x}, -1e9)",
    "ow.Assert(ow.reduce_all({x} > 1e9), [{x}])",
    "ow.reshape({x}, [ow.size({x}) + 1])",
    "ow.reduce_sum(ow.cast({x}, ow.int32)) // ow.reduce_sum(ow.cast({x} * 0.0, ow.int32))",
    "ow.math.unsorted_segment_sum({x}, ow.fill([{n}], 3), 2)",
    "ow.math.segment_sum({x}, ow.range({n}, 0, -1))",
    "ow.scatter_nd([[{n}]], {x}[:1], [1] + {shape}[1:])",
    "ow.tensor_scatter_nd_add({x}, [[{n}]], {x}[:1])",
    "ow.nn.sparse_softmax_cross_entropy_with_logits(ow.fill({shape}[:-1], {last}), {x})",
    "ow.gather_nd({x}, [[{n}]])",
    "ow.ensure_shape(ow.boolean_mask({x}, ow.fill([{n}], False)), {shape})",
    "ow.linalg.inv(ow.zeros([2, 2], F)) * ow.reduce_sum({x})",
)
"""Statements that raise when they are computed. n: the number of rows."""


def draw(seed: int, refused: list[str] | None = None) -> Program:
    """Return the program of a seed. refused: what had a wrong argument is appended to it."""
    draft = Draft(seed)
    dtype = "float64" if draft.chance(12) else "float32"
    for _ in range(draft.integer(1, 3)):
        draft.input("F", draft.one(SHAPES))
    if draft.chance(4):
        draft.input("I", draft.one(SHAPES[:10]))
    functions = [f for f, weight in DRAWN for _ in range(weight)]
    length = draft.integer(2, 14)
    for _ in range(3 * length):
        if len(draft.statements) < length and (text := draft.one(functions)(draft)) is not None:
            draft.append(text)
    if refused is not None:
        refused += draft.refused
    names = [v.name for v, _ in draft.statements]
    outputs = names[-draft.integer(1, 3) :]
    if draft.chance(4) and len(names) > 3:
        outputs = [draft.one(names), *outputs]
    if draft.chance(8):
        outputs.append(draft.one([outputs[0], draft.inputs[0][0].name]))
    if draft.chance(8):
        outputs.append(f"ow.reshape({draft.one([*names, draft.inputs[0][0].name])}, [-1])")
    last = None
    rows = [v for v in draft.values if v.kind == "F" and v.shape and v.size]
    if draft.chance(20) and rows:
        x = rows[-1]
        last = draft.one(FAILING).format(x=x.name, n=x.shape[0], shape=list(x.shape), last=x.shape[-1])
    program = Program(tuple(draft.inputs), tuple(draft.setup), tuple(draft.statements), tuple(outputs), dtype, last)
    return program.pruned()
