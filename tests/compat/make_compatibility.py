"""Write docs/compatibility.md: each public name of TensorFlow and Keras, and whether this package has it.

`python tests/compat/make_compatibility.py` writes the page, `comparison()` returns its content. The names are data
(public_names/, by record_public_names.py); ways without a missing name are opwright.core.missing_names.WAYS, known
differences are DIFFERENCES.

"same": the name is there, and takes all parameters that the other has. That it computes the same is what the tests of
the package show, by recorded values.
"""

from __future__ import annotations

import inspect
import json
import pathlib
from typing import NamedTuple

import keras_counts
import tensorflow_counts

import opwright as ow
from opwright.core.missing_names import way_of

FOLDER = pathlib.Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "compatibility.md"

DIFFERENCES = {
    "keras.Variable": "`value()` is a method, `name` has TensorFlow's form; `path` is Keras's name",
    "keras.metrics.IoU": "fractional sample weights count; Keras truncates them",
    "keras.metrics.BinaryIoU": "fractional sample weights count; Keras truncates them",
    "keras.metrics.MeanIoU": "fractional sample weights count; Keras truncates them",
    "keras.metrics.OneHotIoU": "fractional sample weights count; Keras truncates them",
    "keras.metrics.OneHotMeanIoU": "fractional sample weights count; Keras truncates them",
    "keras.callbacks.BackupAndRestore": "restores models that are not built, too; Keras rejects them",
    "keras.callbacks.SwapEMAWeights": "weights return after `predict`; Keras 3.15 leaves the averages in the model",
    "keras.optimizers.Adam": "rows that a batch reads repeatedly are summed before they are squared",
    "keras.ops.image.gaussian_blur": "sizes are (width, height) as in Keras on JAX; its TensorFlow kernel mixes both",
    "keras.ops.image.sobel_edges": "edges reflect as in `tf.image.sobel_edges`; Keras on JAX pads zeros",
    "keras.optimizers.ScheduleFreeAdamW": "as Keras on JAX; its TensorFlow backend reads a moment after it changed",
    "keras.distillation.LogitsDistillation": "the loss by name, `kl_divergence`, is between softmaxes; Keras 3.15 "
    "compares logits, unless it is a `KLDivergence`",
    "keras.quantizers.GPTQConfig": "layers outside of blocks keep their weights, and files have zero points; "
    "Keras 3.15 observes `call`, which quantized layers do not run, so sees no data; it "
    "fails for groups that are no part of 128 inputs, and cannot read its own files",
    "keras.quantizers.AWQConfig": "as `GPTQConfig`",
    "keras.layers.RandomCrop": "boxes move with their images; Keras 3.15 subtracts rows from x and columns from y",
    "keras.layers.MixUp": "joins labels of an image's boxes; Keras 3.15 those of the batch",
    "keras.layers.CategoryEncoding": "`compute_output_shape` is the shape of the result; Keras's keeps another axis",
    "keras.Input": "models make SparseTensors of `sparse` inputs dense",
    "keras.KerasTensor": "`x == y` is an operator; Keras compares identities",
    "keras.layers.Layer": "`add_weight` takes Keras 2's order, too, and weights may be created in any call",
    "keras.utils.Progbar": "writes one line at the end where the output is not a terminal",
    "keras.config.backend": 'returns "opwright"',
    "keras.ops.sparsemax": "sums to one, which Keras 3.15's does not",
    "keras.ops.nn.sparsemax": "sums to one, which Keras 3.15's does not",
    "tf.cast": "an error for NumPy floats that are converted to integers implicitly; casts themselves are the same",
    "tf.constant": "numbers and arrays that the dtype cannot hold are errors",
    "tf.convert_to_tensor": "numbers and arrays that the dtype cannot hold are errors",
    "tf.linalg.cholesky": "an error for matrices that are not positive definite; TensorFlow returns NaN",
    "tf.linalg.LinearOperator": "`eigvals` of every operator; TensorFlow's raises unless it is self-adjoint",
    "tf.linalg.LinearOperatorComposition": "square products of matrices that are not have determinants and inverses",
    "tf.linalg.LinearOperatorDiag": "`add_to_tensor` broadcasts the operator's batch; TensorFlow's raises",
    "tf.linalg.LinearOperatorScaledIdentity": "`add_to_tensor` broadcasts the operator's batch; TensorFlow's raises",
    "tf.linalg.LinearOperatorHouseholder": "is known to be non-singular and not to be positive definite",
    "tf.linalg.LinearOperatorInversion": "is known to be non-singular",
    "tf.linalg.LinearOperatorPermutation": "has dense matrices and traces, where TensorFlow 2.21 raises",
    "tf.function": "one trace for each Variable passed as an argument, and more Python is converted",
    "tf.profiler.experimental.start": "writes traces of spans and Python's functions, no XPlane files",
    "tf.profiler.experimental.Profile": "writes traces of spans and Python's functions, no XPlane files",
    "tf.device": "the only device is the CPU",
    "tf.summary.trace_on": "records functions that are traced from then on, not earlier traces",
    "tf.saved_model.save": "a format of its own",
    "tf.saved_model.load": "a format of its own",
    "tf.random.set_seed": "seeds give other numbers than TensorFlow's",
    "keras.utils.get_file": "local files only",
    "keras.utils.PyDataset": "batches are computed on demand, in the caller's process",
}
"""Names that are there and do something else, with what."""
TITLES = ("tensorflow", "keras")


class Row(NamedTuple):
    """A public name. status: "same", "differs" or "missing"; text: how, or the nearest way."""

    name: str
    status: str
    text: str = ""


def resolve(name):
    """Return the thing of this package under a name of TensorFlow or Keras; raises AttributeError."""
    parts = name.split(".")
    thing = ow if parts[0] == "tf" else ow.keras
    for part in parts[1:]:
        thing = getattr(thing, part)
    return thing


def lacking(thing, expected):
    """Return the parameters that a function or class of this package lacks."""
    if not expected or not callable(thing):
        return []
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return []
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return []
    return [w for w in expected if not w.startswith("*") and w not in parameters]


def row_of(name, parameters):
    """Compare one name."""
    try:
        thing = resolve(name)
    except AttributeError:
        return Row(name, "missing", way_of(name) or "")
    if name in DIFFERENCES:
        return Row(name, "differs", DIFFERENCES[name])
    if absent := lacking(thing, parameters):
        return Row(name, "differs", "without " + ", ".join(f"`{p}`" for p in absent))
    return Row(name, "same")


def comparison(title):
    """Return the rows of "tensorflow" or "keras", and its version."""
    head, *lines = (FOLDER / "public_names" / f"{title}.txt").read_text().splitlines()
    names = [line.split() for line in lines]
    return [row_of(name.rstrip("/"), parameters) for name, *parameters in names], head.split()[-1]


def modules_of(rows):
    """Return the rows of each module."""
    modules = {}
    for row in rows:
        modules.setdefault(row.name.rpartition(".")[0], []).append(row)
    return modules


def page():
    """Return the text of the page."""
    out = [
        "# Compatibility",
        "",
        "This page lists each public name of TensorFlow and Keras, and whether it exists here, after",
        "`import opwright as tf` and `from opwright import keras`. *same*: the name exists and accepts all parameters",
        "of the original; *differs*: it exists, with the difference stated; *missing*: with the nearest alternative,",
        "which the AttributeError also names. `tf.compat.v1` and `tf.raw_ops` are not listed: `compat.v1` contains the",
        "names that programs for TensorFlow 2 still use. `tests/compat/make_compatibility.py` writes this page from",
        "recorded lists of names.",
        "",
    ]
    for title in TITLES:
        rows, version = comparison(title)
        out += [f"## {title} {version}", "", "| module | same | differs | missing | there |", "|---|---|---|---|---|"]
        for module, group in [("all", rows), *modules_of(rows).items()]:
            counts = [sum(r.status == s for r in group) for s in ("same", "differs", "missing")]
            share = (counts[0] + counts[1]) / len(group)
            out.append(f"| `{module}` | {counts[0]} | {counts[1]} | {counts[2]} | {share:.0%} |")
        out.append("")
        for module, group in modules_of(rows).items():
            out += [f"### `{module}`", ""]
            same = [r.name.rpartition(".")[2] for r in group if r.status == "same"]
            if same:
                out += ["same: " + ", ".join(f"`{n}`" for n in same), ""]
            for status in ("differs", "missing"):
                texts = {}
                for r in group:
                    if r.status == status:
                        texts.setdefault(r.text, []).append(r.name.rpartition(".")[2])
                for text, names in texts.items():
                    out.append(f"- {status}: {', '.join(f'`{n}`' for n in names)}: {text}")
            if out[-1]:
                out.append("")
    return "\n".join([*out, *own_tests(), *lessons()]).rstrip() + "\n"


def own_tests():
    """Return the section about Keras's own test files, from the counts that tests/compat/keras_suite kept."""
    files = json.loads((FOLDER / "keras_suite" / "results.json").read_text())
    kinds = [kind for kind, _ in keras_counts.REASONS if kind != "missing"]
    out = [
        "## Keras's own test files",
        "",
        "`tests/compat/keras_suite` runs Keras's test files unmodified, from a folder with Keras's sources. Names of",
        "`keras.src` are mapped to public names, `tensorflow` to this package. Out of scope are tests of sparse and",
        "ragged inputs of models, private names, libraries and fixtures that were not installed, the wording of",
        "errors, behaviour of Keras on TensorFlow that it does not have on JAX and NumPy (*backend*), and shapes with",
        "which no call can run (*unrunnable*). *in scope* is the share of passed tests among all others; *missing*",
        "counts tests of names that are missing above. A file that was stopped by the time limit counts as one failed",
        "test; only files that were run are counted.",
        "",
        f"| area | files | passed | skipped | {' | '.join(kinds)} | missing | other | in scope |",
        "|---" * (len(kinds) + 7) + "|",
    ]
    for area, counts in keras_counts.by_area(files).items():
        row = [counts.get(kind, 0) for kind in ("files", "passed", "skipped", *kinds, "missing", "other")]
        share = f"{keras_counts.share(counts):.1%}" if row[1] + row[-1] + row[-2] else ""
        out.append(f"| `{area}` | {' | '.join(map(str, row))} | {share} |")
    out += ["", "Files with tests that fail, and how many pass:", ""]
    for file, counts in files.items():
        failed = {k: n for k, n in counts.items() if k not in ("passed", "skipped")}
        if failed:
            reasons = ", ".join(f"{n} {kind}" for kind, n in failed.items())
            out.append(f"- `{file}`: {counts.get('passed', 0)} pass; {reasons}")
    out += ["", "Files that are not run:", ""]
    out += [f"- `{pattern}`: {why}" for pattern, why in keras_counts.OUT_OF_SCOPE]
    return [*out, *tensorflow_tests()]


def tensorflow_tests():
    """Return the section about TensorFlow's own test files, from the counts that tests/compat/tensorflow_suite kept."""
    files = json.loads((FOLDER / "tensorflow_suite" / "results.json").read_text())
    kinds = [kind for kind, _ in tensorflow_counts.REASONS if kind != "missing"]
    out = [
        "",
        "## TensorFlow's own test files",
        "",
        "`tests/compat/tensorflow_suite` runs a selection of files of `tensorflow/python` that test public behaviour,",
        "from a folder with them, without benchmarks, some test bodies for graphs or GPUs, and parts of some files",
        "(reverse_sequence, ragged_tile, padded_batch, sets, buckets, crosses, qr, scans, shuffle, interleave).",
        "Everything runs eagerly. Out of scope are graphs with placeholders and sessions, private names, and the",
        "wording of errors; tests for version 1 and for GPUs are skipped, as in TensorFlow. *in scope* is the share of",
        "passed tests among all others.",
        "",
        f"| file | passed | skipped | {' | '.join(kinds)} | missing | other | in scope |",
        "|---" * (len(kinds) + 6) + "|",
    ]
    for file, counts in [*files.items(), ("all", tensorflow_counts.total(files))]:
        row = [counts.get(kind, 0) for kind in ("passed", "skipped", *kinds, "missing", "other")]
        share = f"{keras_counts.share(counts):.1%}" if row[0] + row[-1] + row[-2] else ""
        out.append(f"| `{file}` | {' | '.join(map(str, row))} | {share} |")
    return out


def lessons():
    """Return the section about tutorials in small, from the figures that tests/tutorials/lessons.py kept."""
    rows = json.loads((FOLDER.parent / "tutorials" / "lessons.json").read_text())
    made_with = rows.pop("made_with")
    out = [
        "",
        "## Small tutorials",
        "",
        "`tests/tutorials/lessons.py` runs programs in the style of the tutorials of tensorflow.org and keras.io. The",
        "table compares a figure of merit (accuracy, loss, reward) and the fastest step of `fit` in ms: with 20 times",
        "the epochs, alone on two cores, in rows marked *, under load in all others.",
        f"Measured with {made_with}.",
        "",
        "| program | figure | TensorFlow's | step | TensorFlow's |",
        "|---|---|---|---|---|",
    ]
    for name, row in sorted(rows.items()):
        cells = [row.get(key) for key in ("opwright_figure", "figure", "opwright_step_ms", "step_ms")]
        mark = " *" if row.get("opwright_longer", 1) > 1 else ""
        out.append(f"| {name}{mark} | " + " | ".join("" if cell is None else f"{cell:.3g}" for cell in cells) + " |")
    return out


if __name__ == "__main__":
    PAGE.write_text(page())
    for title in TITLES:
        rows, _ = comparison(title)
        unexplained = [r.name for r in rows if r.status == "missing" and not r.text]
        print(title, len(rows), {s: sum(r.status == s for r in rows) for s in ("same", "differs", "missing")})
        if unexplained:
            print("without a way:", " ".join(unexplained))
