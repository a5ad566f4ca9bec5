"""Random graphs whose sizes a run decides, run with sizes that change, against the official interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import ai_edge_litert.interpreter as peer
import numpy as np
import pytest
from engine_kit import engine
from lite_kit import Build

from opwright import lite
from opwright.lite.runtime.steps import Chain

F = np.float32
SIZES = ([3, 4], [4, 3], [12, 1], [5, 5], [-1, 2])  # of 12 elements; the fourth is none of them
TURNS = 20


class Drawn:
    """A graph of inputs x [2, 6], s [2], n []: floats made so far, and what may be an output."""

    def __init__(self, seed: int) -> None:
        self.draw, self.count = random.Random(seed), 0
        b = self.build = Build().tensor("x", (2, 6)).tensor("s", (2,), "INT32").tensor("n", (), "INT32")
        for name, value in (
            ("zero", F(0)),
            ("none", np.int32(0)),
            ("one", np.int32(1)),
            ("flat", np.int32([-1])),
            ("first", np.int32([0])),
            ("single", np.int32([1])),
        ):
            b.tensor(name, type="FLOAT32" if value.dtype == F else "INT32", data=value)
        self.floats, self.others = ["x"], list[str]()
        for _ in range(self.draw.randint(2, 7)):
            self.draw.choice(MAKERS)(self, self.draw.choice(self.floats))
        outputs = [*self.others, *(t for t in self.floats[1:] if self.draw.random() < 0.5)]
        self.outputs = list(dict.fromkeys(outputs)) or [self.made("RELU", "x")]

    def made(self, op: str, inputs: str, type: str = "FLOAT32", shape: Any = (), **options: Any) -> str:
        self.count += 1
        name = f"t{self.count}"
        self.build.tensor(name, shape, type).op(op, inputs, name, **options)
        return name

    def content(self) -> bytes:
        result: bytes = self.build.done("x s n", " ".join(self.outputs))
        return result


def reshaped(g: Drawn, x: str) -> None:
    g.floats.append(g.made("RESHAPE", f"{x} s" if x == "x" else f"{x} flat"))


def placed(g: Drawn, x: str) -> None:
    at = g.made("WHERE", g.made("GREATER", f"{x} zero", "BOOL"), "INT64")
    g.floats.append(g.made("GATHER_ND", f"{x} {at}"))
    g.others.append(at)


def distinct(g: Drawn, x: str) -> None:
    flat = g.made("RESHAPE", f"{x} flat")
    g.count += 2
    y, i = f"t{g.count - 1}", f"t{g.count}"
    g.build.tensor(y, ()).tensor(i, (), "INT32").op("UNIQUE", flat, f"{y} {i}")
    g.floats.append(y)
    g.others.append(i)


def counted(g: Drawn, x: str) -> None:
    numbers = g.made("RANGE", "none n one", "INT32")
    g.floats.append(g.made("CAST", numbers, in_data_type="INT32", out_data_type="FLOAT32"))


def repeated(g: Drawn, x: str) -> None:
    g.floats.append(g.made("TILE", f"{g.made('RESHAPE', f'{x} flat')} {g.made('RESHAPE', 'n single', 'INT32', (1,))}"))


def summed(g: Drawn, x: str) -> None:
    g.others.append(g.made("SUM", f"{x} first", keep_dims=True))


def filled(g: Drawn, x: str) -> None:
    g.floats.append(g.made("FILL", "s zero"))


def mapped(g: Drawn, x: str) -> None:
    g.floats.append(g.made(g.draw.choice(["ABS", "NEG", "RELU"]), x))


MAKERS: list[Callable[[Drawn, str], None]] = [
    reshaped,
    reshaped,
    placed,
    distinct,
    counted,
    repeated,
    summed,
    filled,
    mapped,
]


def results(interpreter: Any, feeds: list[np.ndarray]) -> list[np.ndarray] | None:
    """The outputs of a run, None where it fails."""
    for detail, x in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], x)
    try:
        interpreter.invoke()
    except RuntimeError:
        return None
    shapes = {d["index"]: tuple(d["shape"]) for d in interpreter.get_output_details()}
    return [np.zeros(shape) if 0 in shape else interpreter.get_tensor(i).reshape(shape) for i, shape in shapes.items()]


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 13, 26])  # 13 has a count that nobody reads, 26 moves what is read next
def test_graphs(seed: int) -> None:
    content, draw = Drawn(seed).content(), random.Random(seed)
    xs = [np.random.default_rng(seed + k).integers(-2, 3, (2, 6)).astype(F) for k in range(3)]
    with engine(verify=True):
        mine, official = lite.Interpreter(model_content=content), peer.Interpreter(model_content=content)
        for one in (mine, official):
            one.allocate_tensors()
        for turn in range(TURNS):
            changes = turn > 3
            feeds = [
                draw.choice(xs),
                np.int32(draw.choice(SIZES) if changes else SIZES[0]),
                np.int32(draw.choice([3, 3, 5, 1]) if changes else 3),
            ]
            actual, expected = results(mine, feeds), results(official, feeds)
            assert (actual is None) == (expected is None), (turn, feeds)
            for a, b in zip(actual or (), expected or (), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"turn {turn}")
        assert len(mine._subgraphs[0].joined) == 1
        assert isinstance(mine._subgraphs[0].joined[0], Chain)
