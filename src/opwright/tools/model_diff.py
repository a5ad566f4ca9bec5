"""`opwright diff`: two models, two run times of one model, or a built library and its model on the same inputs.

Lives here: inputs from files, the tables. Not here: the comparison (aot/differences.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from .. import aot
from ..aot.model_runs import RUN_TIMES, ModelOnRunTime, random_input
from ..aot.tensor_differences import TensorDifference
from ..core.errors import NotFoundError
from ..lite.format import Model
from .array_files import checked_arrays, read_array
from .inspection import read_model
from .model_runner import custom_operators, operators_for
from .report import BadFile, notes, out, print_json, write_file

RANDOM_SAMPLES = 8
"""Samples of the page's figures of quantization, if no inputs are passed."""


def diff_models(
    a: str,
    b: str | None,
    *,
    a_runtime: str,
    b_runtime: str,
    inputs: Sequence[str],
    seed: int,
    atol: float | None,
    rtol: float | None,
    outputs_only: bool,
    customs: Sequence[str],
    as_json: bool,
    page: str | None = None,
) -> bool:
    """Print the differences, and write the page if requested; True if the outputs agree.

    raises click.UsageError, BadFile, and the errors of `aot.diff`
    """
    for option, run_time in (("--a-runtime", a_runtime), ("--b-runtime", b_runtime)):
        kind, _, folder = run_time.partition(":")
        if kind not in RUN_TIMES or (kind == "library") != bool(folder):
            wanted = ", ".join((*RUN_TIMES[:-1], "library:FOLDER"))
            raise click.UsageError(f"{option} {run_time}: no such run time; wanted {wanted}")
    if b is None and a_runtime == b_runtime:
        raise click.UsageError("one model on one run time: name B, or another run time with --b-runtime")
    files = [path for path in (a, b) if path is not None and not Path(path).is_dir()]
    models = {path: read_model(path) for path in files if Path(path).suffix != ".json"}
    custom_ops = list(
        dict.fromkeys(op for model in models.values() for op in operators_for(model, customs))
        if models
        else custom_operators(customs)
    )
    try:
        names = [t.name for t in ModelOnRunTime(a, a_runtime, custom_ops).inputs]
        result = aot.diff(
            a,
            b,
            a_runtime=a_runtime,
            b_runtime=b_runtime,
            inputs=_arrays(inputs, names),
            seed=seed,
            absolute=atol,
            relative=rtol,
            inner=not outputs_only,
            custom_ops=custom_ops,
            progress=lambda step: notes().print(f"running {step}"),
        )
    except NotFoundError as error:
        raise BadFile(str(error)) from error
    if page is not None:
        _write_page(page, result, models, (a, b), _arrays(inputs, names), seed, (atol, rtol), custom_ops)
    if as_json:
        print_json(
            {
                "a": result.a,
                "b": result.b,
                "agree": result.agree,
                "outputs": [row._asdict() for row in result.outputs],
                "inner": [row._asdict() for row in result.inner],
                "inner_complete": result.complete,
                "first": None if result.first is None else result.first._asdict(),
                "since": result.since,
            }
        )
        return result.agree
    out().print(f"a: {result.a}\nb: {result.b}")
    if result.inner:
        of = "Inner tensors" if result.complete else "Inner tensors that the bisection compared"
        out().print(_table(result.inner, of))
    out().print(_table(result.outputs, "Outputs"))
    out().print("the outputs agree" if result.agree else "the outputs differ")
    if result.first is not None:
        first = result.first
        after = "" if result.since is None else f"; operators after {result.since} could not be compared one by one"
        where = "no operator writes it" if first.node is None else f"operator {first.node}, {first.operator}"
        out().print(f"first difference: {where}, tensor {first.name!r}{after}")
    return result.agree


def _write_page(
    page: str,
    result: aot.ModelDifferences,
    models: Mapping[str, Model],
    paths: tuple[str, str | None],
    arrays: dict[str, np.ndarray],
    seed: int,
    tolerance: tuple[float | None, float | None],
    custom_ops: Sequence[Any],
) -> None:
    """Write the page: inner tensors by the reference kernels if the run times keep none; the errors of quantization if
    one file is a quantized form of the other."""
    from .difference_report import html_page

    errors = None
    a, b = paths
    if b is not None and a in models and b in models:
        counts = [sum(t.quantization is not None for t in models[path].subgraphs[0].tensors) for path in (a, b)]
        quantized, original = (a, b) if counts[0] >= counts[1] else (b, a)
        if not result.complete:  # compiled plans keep no inner tensors
            kept: dict[str, Any] = {"a_runtime": "reference", "b_runtime": "reference", "custom_ops": custom_ops}
            inner = aot.diff(a, b, inputs=arrays, seed=seed, absolute=tolerance[0], relative=tolerance[1], **kept)
            result = result._replace(inner=inner.inner, complete=True)
        if max(counts) and any(row.unit == "real" for row in result.inner):
            exact = ModelOnRunTime(original, "reference", custom_ops)
            rng = np.random.default_rng(seed)
            facts = [{"dtype": t.dtype, "shape": t.shape} for t in exact.inputs]
            samples: list[Any] = [[random_input(one, rng) for one in facts] for _ in range(RANDOM_SAMPLES)]
            if set(arrays) == {t.name for t in exact.inputs}:
                samples = [arrays]
            notes().print(f"running {len(samples)} samples of {original} and {quantized}")
            errors = aot.debug_quantization(quantized, original, samples, custom_ops=custom_ops)
    write_file(page, html_page(result, errors).encode())
    notes().print(f"page: {page}")


def _arrays(texts: Sequence[str], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the arrays of [NAME=]FILE.npy in order or by name, and those of .npz files by name."""
    arrays: dict[str, np.ndarray] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or Path(text).exists():
            name, file = "", text
        if not name and file.endswith(".npz"):
            arrays |= _archived(file)
            continue
        left = [n for n in names if n not in arrays]
        if not name and not left:
            raise click.UsageError(f"--input {text}: the model has {len(names)} inputs, {', '.join(names) or 'none'}")
        arrays[name or left[0]] = read_array(file)
    unknown = [name for name in arrays if name not in names]
    if unknown:
        raise click.UsageError(f"the model has no input {unknown[0]!r}; its inputs: {', '.join(names) or 'none'}")
    return arrays


def _archived(file: str) -> dict[str, np.ndarray]:
    content = checked_arrays(file)
    if isinstance(content, np.ndarray):
        raise BadFile(f"{file}: a single array; wanted an .npz file as np.savez writes it")
    return content


def _table(rows: Iterable[TensorDifference], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    columns = ("node", "operator", "tensor", "type", "largest error", "at", "relative", "mean", "differ", "")
    for column in columns:
        table.add_column(column, justify="left" if column in ("operator", "tensor", "type", "") else "right")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: TensorDifference) -> tuple[Any, ...]:
    return (
        "" if row.node is None else str(row.node),
        row.operator or "",
        row.name,
        f"{row.dtype}{list(row.shape)}",
        f"{row.largest:.4g}",
        "" if row.at is None else ",".join(map(str, row.at)),
        f"{row.relative:.3g}",
        f"{row.mean:.3g}",
        f"{row.differing} of {row.elements}",
        row.remark or ("agrees" if row.agrees else "differs"),
    )
