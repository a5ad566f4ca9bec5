"""Models of one operator, ours and the official interpreter as they come, in one process in turn.

Lives here: the rows `single_...`; `python -m benchmarks.single_operators [WORD ...]` prints every model whose name has
one of the words, or all.
Not here: the models, which are those of the operators' tests (tests/lite/ops), the table of rows (rows.py).

One model stands for each operator and type of its first input: the first of the table of fixed cases that the official
interpreter takes, or where that has none, a drawn one. Their tensors have some tens of elements, so that most of a run
is what any run costs. A figure is the geometric mean of official time over ours; its share is how
many models take no longer than officially. A model that the official interpreter refuses as it comes is left out.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import measure

TYPES = ("FLOAT32", "INT8", "INT32", "INT64", "BOOL")
WORST, SLOW = 10, 0.5
"""So many of the slowest models are named, and all whose official time is less than so much of ours."""
TURNS, TURN_S = 15, 0.0004
SEED = 5  # of the drawn models: that of the tests of bad models, which begin with good ones
TESTS = Path(__file__).resolve().parent.parent / "tests"


class Single(NamedTuple):
    """A model of an operator. name: the operator and the type of its first input; feeds: values of its inputs."""

    name: str
    content: bytes
    feeds: list[Any]


class Timed(NamedTuple):
    """Seconds of a call of ours and of the official interpreter's."""

    name: str
    ours: float
    litert: float

    @property
    def ratio(self) -> float:
        """How many times as long the official one takes."""
        return self.litert / self.ours


def singles(*words: str) -> Iterator[Single]:
    """The models whose name has one of the words; all where there are none."""
    result: dict[str, Single] = {}
    for single in _tabled(lambda name: name not in result and (not words or any(w in name for w in words))):
        result[single.name] = single
    yield from result.values()


def rows() -> Iterator[Single]:
    """The models of all rows, with their numbers after the names."""
    for number, single in enumerate(_tabled(lambda name: True)):
        yield single._replace(name=f"{single.name} {number}")


def _tabled(expected: Callable[[str], bool]) -> Iterator[Single]:
    """The models of both tables, fixed cases first. wanted: asked for each by its name."""
    sys.path += [str(TESTS / "lite" / "ops"), str(TESTS / "lite"), str(TESTS / "data" / "tflite")]
    import cases
    import drawn
    import one_operator
    from drawn_table import ROWS

    from opwright.core.dtypes import of_numpy
    from opwright.lite.ops import types

    for operator, tried in cases.CASES.items():
        for case in tried:
            if case.says or not case.oracle:
                continue
            first = next(one_operator.array_of(v) for v in case.inputs if v is not None)
            name = f"{operator} {types.name_of(of_numpy(first.dtype))}"
            if expected(name):
                model = one_operator.model_of(operator, case, one_operator.output_types(operator, case))
                yield Single(name, model.to_bytes(), one_operator.feeds(case))
    for row in ROWS:
        for kind in row.kinds:
            name = f"{row.name} {kind}"
            if kind in TYPES and expected(name):
                result = row.draw(drawn.Draw(SEED, kind))
                yield Single(name, drawn.model_of(row.name, result).to_bytes(), drawn.feeds(result))


def ready(interpreter: Any, values: list[Any]) -> Any:
    """The interpreter, allocated and run once on these values."""
    details = interpreter.get_input_details()
    for detail, x in zip(details, values, strict=True):
        if tuple(detail["shape"]) != x.shape:
            interpreter.resize_tensor_input(detail["index"], x.shape)
    interpreter.allocate_tensors()
    for detail, x in zip(details, values, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return interpreter


def both(single: Single) -> tuple[Any, Any] | None:
    """Our interpreter, compiled, and the official one; None where that refuses the model."""
    from ai_edge_litert.interpreter import Interpreter as Official

    import opwright as ow
    from opwright.lite import Interpreter

    try:
        official = ready(Official(model_content=single.content, num_threads=1), single.feeds)
    except (ValueError, RuntimeError):
        return None
    with ow.flags(background=False):
        ours = ready(Interpreter(model_content=single.content, num_threads=1), single.feeds)
        ours.invoke()
    return ours, official


def in_turn(ours: Callable[[], object], official: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call of each: the least of turns of many calls, the one's and the other's."""
    least = []
    sizes = []
    for call in (ours, official):
        measure.time_batch(call, 3)
        least.append(measure.time_batch(call, 3) / 3)
        sizes.append(max(3, min(1000, int(TURN_S / least[-1]))))
    for _ in range(TURNS):
        for i, call in enumerate((ours, official)):
            least[i] = min(least[i], measure.time_batch(call, sizes[i]) / sizes[i])
    return least[0], least[1]


def whole_run(interpreter: Any, values: list[Any]) -> Callable[[], object]:
    """A run with its values set before and its results read after."""
    inputs = [(d["index"], x) for d, x in zip(interpreter.get_input_details(), values)]
    outputs = [d["index"] for d in interpreter.get_output_details()]
    set_tensor, invoke, get_tensor = interpreter.set_tensor, interpreter.invoke, interpreter.get_tensor

    def call() -> None:
        for index, x in inputs:
            set_tensor(index, x)
        invoke()
        for index in outputs:
            get_tensor(index)

    return call


def timed(copies: bool, *words: str) -> list[Timed]:
    """Every model's times, the slowest beside the official one first. copies: with values set and results read."""
    result = []
    for single in singles(*words):
        pair = both(single)
        if pair is None:
            continue
        calls = [whole_run(one, single.feeds) if copies else one.invoke for one in pair]
        result.append(Timed(single.name, *in_turn(*calls)))
    return sorted(result, key=lambda t: t.ratio)


def summed(result: list[Timed]) -> dict[str, Any]:
    """The geometric mean, the share of models at the official time or below, the worst by name.

    found: the slowest beside the official one first
    """
    mean = math.exp(sum(math.log(t.ratio) for t in result) / len(result))
    share = sum(t.ratio >= 1 for t in result) / len(result)
    worst = [
        f"{t.name} {t.ratio:.2g}x ({t.ours * 1e6:.2g} µs, {t.litert * 1e6:.2g})"
        for i, t in enumerate(result)
        if i < WORST or t.ratio < SLOW
    ]
    return {"ours": mean, "share": share, "of": f"{len(result)} models", "worst": worst}


def access(what: str) -> dict[str, float]:
    """Seconds to set the input of such a model, or to get its output."""
    single = next(singles("RELU FLOAT32"))
    pair = both(single)
    assert pair is not None, "the official interpreter takes it"
    calls = []
    for one in pair:
        details = one.get_input_details() if what == "set" else one.get_output_details()
        values = single.feeds if what == "set" else ()
        calls.append(functools.partial(getattr(one, f"{what}_tensor"), details[0]["index"], *values))
    ours, litert = in_turn(*calls)
    return {"ours": ours, "litert": litert}


ROWS: dict[str, measure.Prepare] = {
    "single_invoke": lambda: summed(timed(False)),
    "single_least": lambda: {"ours": timed(False)[0].ratio},
    "single_whole": lambda: summed(timed(True)),
    "single_set": lambda: access("set"),
    "single_get": lambda: access("get"),
}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in ROWS:
        measure.main(ROWS)
    else:
        for copies in (False, True):
            listed = timed(copies, *sys.argv[1:])
            for t in listed:
                print(f"{t.name:40} {t.ours * 1e6:9.3f} {t.litert * 1e6:9.3f} {t.ratio:6.2f}")
            print("set, invoke, get" if copies else "invoke", json.dumps(summed(listed), ensure_ascii=False))
