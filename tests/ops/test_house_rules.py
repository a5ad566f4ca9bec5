"""The rules of the house at the end of the tables (14.4 of the operator model): what each operator's rows must have.

Lives here: enough elements in float64 for each gradient, reasons for tables that compare none, empty sequences and
batches of one for each operator on sequences, seeds.  Not here: that each operator has rows (test_catalogue.py).
"""

from __future__ import annotations

import collections
import functools
import itertools
import re
from pathlib import Path
from typing import Any

import checks
import harness
import numpy as np
import pytest
import test_sequence_empty as empties
from test_operators import TABLES

import opwright as ow
from each_row import each_row
from opwright.ops import registry
from opwright.testing import gradient_check
from opwright.testing.operator_call import NotApplicable, tensor
from thorough import examples

ELEMENTS = examples(100)  # of the inputs of each operator whose slopes are compared
MOST_ROUNDS = 60
JITTER = 0.02

CATALOGUE = registry.catalogue()
WITH_GRADIENT = [name for name, op in sorted(CATALOGUE.items()) if op.gradient_rule is not None]

# Operators of which no row can take differences in float64, and what compares their gradients.
ELSEWHERE = {
    **dict.fromkeys(
        ("ResizeBilinear", "ResizeBicubic", "ScaleAndTranslate"),
        "they give float32 whatever they take; they are linear, and rows of their gradient operators "
        "compare these with the transpose",
    ),
    **dict.fromkeys(("DynamicLstm", "DynamicLstmGrad", "DynamicGru", "DynamicGruGrad"), "test_sequence_empty.py"),
    **dict.fromkeys(
        ("LSTMSequenceGrad", "LSTMSequenceGradGrad", "GRUSequenceGrad", "GRUSequenceGradGrad"),
        "test_sequence_recurrent.py",
    ),
    **dict.fromkeys(("ReadVariable", "EagerPyFunc", "EagerPyFuncGrad"), "tests/eager, tests/effects"),
    "NextAfter": "the next number up is not a slope that differences could see",
    **dict.fromkeys(
        ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"),
        "steps: their gradient is by definition another; rows compare it with TensorFlow's",
    ),
}

# Tables with floating inputs and a gradient none of whose rows compares it: why.
NOT_COMPARED = {
    **{name: reason for name, reason in ELSEWHERE.items() if name.startswith("FakeQuant")},
    **dict.fromkeys(("zeros_like", "math.zero_fraction", "math.bincount"), "constant, or counts"),
    **dict.fromkeys(
        ("ResizeBilinear", "ResizeBicubic", "ScaleAndTranslate", "image.resize", "image.resize_with_pad"),
        ELSEWHERE["ResizeBilinear"],
    ),
    **dict.fromkeys(
        (
            "image.random_crop",
            "image.random_brightness",
            "image.random_hue",
            "image.random_contrast",
            "image.random_saturation",
            "random.normal",
        ),
        "another draw at each call",
    ),
    **dict.fromkeys(
        (
            "image.stateless_random_brightness",
            "image.stateless_random_hue",
            "image.stateless_random_contrast",
            "image.stateless_random_saturation",
        ),
        "of a table of what is adjusted, which compares",
    ),
    **dict.fromkeys(
        ("image.draw_bounding_boxes", "image.non_max_suppression_with_scores", "image.combined_non_max_suppression"),
        "boxes are chosen, with no slope",
    ),
    **dict.fromkeys(
        ("image.per_image_standardization", "image.psnr", "image.ssim", "image.ssim_multiscale"),
        "they compute in float32",
    ),
    "tensor_scatter_nd_max": "ties; TensorScatterMax compares",
    "linalg.eig": "vectors are fixed up to a factor; Eig compares what is",
    "NextAfter": ELSEWHERE["NextAfter"],
    "DynamicLstm": "test_sequence_empty.py",
    "DynamicGru": "test_sequence_empty.py",
    **dict.fromkeys(("LSTMSequenceGrad", "GRUSequenceGrad"), "test_sequence_recurrent.py"),
}


@functools.cache
def rows_by_operator() -> dict[str, list[harness.Case]]:
    """Of each operator the rows in which it runs whose gradients are compared with differences, its own first."""
    result: dict[str, list[tuple[bool, harness.Case]]] = collections.defaultdict(list)
    for rows in TABLES.values():
        for row in rows:
            if checks._differentiates(row):
                with checks.watched() as seen:
                    row.run([checks.wide(x) for x in row.inputs])
                ran = {op.name: op for op, *_ in seen}
                if not any(op.effect == "random" for op in ran.values()):
                    for name, op in ran.items():
                        result[name].append((harness.operator_of(row.key) is not op, row))
    return {name: [row for _, row in sorted(rows, key=lambda pair: pair[0])] for name, rows in result.items()}


def _moved(values: list[np.ndarray], rng: np.random.Generator) -> list[Any]:
    """Numbers nearby, so that signs, orders and domains stay."""
    return [tensor(v * (1 + JITTER * rng.uniform(-1, 1, v.shape))) for v in values]


@each_row("name", WITH_GRADIENT, by=lambda name: name[:1])
def test_a_gradient_is_compared_at_enough_elements(name: str) -> None:
    """In float64. Rows are compared at their own numbers (checks.py); where these are few, at numbers near those."""
    if name in ELSEWHERE:
        return
    rows = rows_by_operator().get(name, [])
    functions = [checks._Differentiable(row) for row in rows]
    count = sum(v.size for f in functions for v in f.values())
    rng = np.random.default_rng(17)
    for _ in range(MOST_ROUNDS):
        for row, function in zip(rows, functions):
            if count >= ELEMENTS:
                return
            limit = max(gradient_check.LIMIT, 2 * (row.rtol or 0.0), row.atol or 0.0)
            values = _moved(function.values(), rng)
            try:
                count += gradient_check.compare_slopes(function, values, limit=limit, max_elements=ELEMENTS // 2)
            except (NotApplicable, LookupError, ow.errors.InvalidArgumentError):
                continue  # nothing that flows, or a call that is refused at the numbers nearby
    raise AssertionError(f"{name}: {count} elements in {len(rows)} rows, wanted {ELEMENTS}")


def test_tables_without_slopes_have_a_reason() -> None:
    """`grad=False` of single rows is for numbers without a slope there; a table of such rows alone says why."""
    without = set()
    for key, rows in TABLES.items():
        op = harness.operator_of(key)
        excluded = any(checks.works(r) and r.grad is False and checks._has_floats(r) for r in rows)
        if excluded and (op is None or op.gradient_rule is not None) and not any(map(checks._differentiates, rows)):
            without.add(key)
    assert not without - NOT_COMPARED.keys(), "say in NOT_COMPARED why, or compare one row"
    assert not NOT_COMPARED.keys() - without, "these compare by now"


def test_exceptions_are_still_needed() -> None:
    assert set(ELSEWHERE) <= set(WITH_GRADIENT)


# ---- sequences ------------------------------------------------------------------------------------------------------


@functools.cache
def _patterns_run() -> dict[str, list[list[int]]]:
    """The lengths of sequences with which each operator runs in test_sequence_empty.py, forward or backward."""
    result: dict[str, list[list[int]]] = collections.defaultdict(list)
    for lengths in empties.PATTERNS:
        with checks.watched() as seen:
            for name in empties.OPERATORS:
                empties.check_pattern(lengths, name, False)
            empties.test_pattern_of_tokens(lengths)
            empties.test_pattern_of_maxima_twice(lengths)
        for name in {op.name for op, *_ in seen}:
            result[name].append(lengths)
    return result


ON_SEQUENCES = [name for name, op in CATALOGUE.items() if "sequence" in op.__module__.split(".")]
LAYOUTS: dict[str, Any] = {
    "a batch of one": lambda lengths: len(lengths) == 1,
    "empty first": lambda lengths: len(lengths) > 1 and lengths[0] == 0 and any(lengths),
    "empty in the middle": lambda lengths: len(lengths) > 2 and 0 in lengths[1:-1] and any(lengths),
    "empty twice": lambda lengths: any(a == b == 0 for a, b in itertools.pairwise(lengths)) and any(lengths),
    "empty last": lambda lengths: len(lengths) > 1 and lengths[-1] == 0 and any(lengths),
    "all empty": lambda lengths: not any(lengths),
}


@pytest.mark.parametrize("name", ON_SEQUENCES)
def test_operators_on_sequences_run_on_every_layout(name: str) -> None:
    patterns = _patterns_run().get(name, [])
    missing = [words for words, holds in LAYOUTS.items() if not any(map(holds, patterns))]
    assert not missing, f"{name} is not run with {', '.join(missing)} in test_sequence_empty.py"


# ---- seeds ----------------------------------------------------------------------------------------------------------


def test_random_inputs_are_seeded() -> None:
    """The same numbers in every run: no generator without a seed, none of NumPy's global ones."""
    unseeded = re.compile(r"default_rng\(\)|np\.random\.(?!default_rng|Generator)\w+\(|\brandom\.(random|randint)\(\)")
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path != Path(__file__):
            for n, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                assert not unseeded.search(line), f"{path.name}:{n}: {line.strip()}"
