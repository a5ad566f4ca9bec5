"""Run Keras's own test files on opwright.keras: `KERAS_SOURCES=... python tests/compat/keras_suite OUT [AREA ...]`.

KERAS_SOURCES is the folder of Keras's unpacked source distribution. Each file runs in its own process, at most LIMIT
seconds; OUT gets a file of results a test file, and files that have results are not run again. With SECONDS in the
environment, none begins later. `--table` only prints counts, `--write` keeps them in results.json.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
LIMIT = int(os.environ.get("LIMIT", "900"))
SECONDS = float(os.environ.get("SECONDS", "inf"))
AREAS = (
    *("losses", "metrics", "layers", "optimizers", "trainers", "models", "callbacks", "saving", "ops", "random"),
    *("activations", "initializers", "constraints", "regularizers", "dtype_policies", "tree", "utils", "legacy"),
    *("applications", "wrappers", "export", "quantizers", "distillation"),
)


OUT_OF_SCOPE = (
    (
        r"trainers/(data_adapters|epoch_iterator)",
        "private classes that read batches; trainer_test.py tests what they read",
    ),
    (r"ops/(node|operation|operation_utils|function|symbolic_arguments)_test", "private classes of recorded calls"),
    (r"quantizers|quantization|dtype_policy_map", "quantized layers: models are quantized by ow.lite.TFLiteConverter"),
    (r"distillation", "keras.distillation, which is not here"),
    (r"export/|jax_layer|flax_layer|tfsm_layer|torch_utils|torch_module|orbax", "other libraries' formats and layers"),
    (
        r"optimizer_distribute|distribution",
        "distribution by TensorFlow and JAX: replicas are processes of ow.distribute",
    ),
    (r"bounding_boxes", "boxes of images in dictionaries"),
    (r"remote_monitor|file_editor|variable_mapping|tracking_test|legacy/saving/json_utils", "private or not here"),
)
"""Files that are not run, by path, and why."""


def out_of_scope(path: str) -> str | None:
    """Return why a test file is not run, or None if it is."""
    return next((why for pattern, why in OUT_OF_SCOPE if re.search(pattern, path)), None)


def run(file: pathlib.Path, sources: pathlib.Path, results: pathlib.Path) -> None:
    """Run one test file and write its results."""
    part = results.with_suffix(".part")
    try:
        part.open("x").close()
    except FileExistsError:
        return  # another process runs it
    environment = {
        **os.environ,
        "KERAS_RESULTS": str(part),
        "PYTHONPATH": str(HERE) + ":" + os.environ.get("EXTRA", ""),
    }
    command = [sys.executable, "-m", "pytest", "-q", str(file), "--rootdir", str(sources), "-c", os.devnull]
    command += ["-p", "plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", "-W", "ignore"]
    with open(results.with_suffix(".log"), "w") as log:
        try:
            subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            with open(part, "a") as lines:
                lines.write(json.dumps({"test": str(file), "outcome": "error", "why": "out of time"}) + "\n")
    if not part.read_text():
        part.write_text(json.dumps({"test": str(file), "outcome": "error", "why": "no test ran"}) + "\n")
    part.rename(results)


REASONS = (
    ("quantization", r"quantiz|int4|int8_|Int[48]|float8|awq|gptq|_from_mixed|_from_float"),
    ("boxes", r"bounding_box|BoundingBox"),
    ("sparse", r"sparse|ragged"),
    ("private", r"no attribute '_|overwrite_with|not part of opwright|'(lr_adjust|zeropower_via|call|sequence_length)"),
    ("libraries", r"No module named"),
    ("wording", r"does not match"),
    ("missing", r"public name that opwright lacks"),
)
"""Why tests fail, by name and message: the first that matches."""


def reason(text: str) -> str:
    """Return the reason of a failure, by the test's name and message."""
    return next((key for key, pattern in REASONS if re.search(pattern, text)), "other")


def outcomes(out: pathlib.Path) -> dict[str, collections.Counter[str]]:
    """Return the counts of outcomes and of reasons of failures by area, and how many files ran."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for results in sorted(out.glob("*.jsonl")):
        area = results.stem.split("--")[0]
        counts[area]["files"] += 1
        last = {r["test"]: r for r in map(json.loads, results.read_text().splitlines())}
        for name, result in last.items():
            kind = result["outcome"]
            if kind in ("failed", "error"):
                kind = reason(f"{name.rpartition('keras/src/')[2]} {result['why']}")
            counts[area][kind] += 1
    return counts


def main() -> None:
    """Run the areas and print the counts."""
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    out, areas = pathlib.Path(arguments[0]), arguments[1:] or AREAS
    out.mkdir(parents=True, exist_ok=True)
    sources, begin = pathlib.Path(os.environ["KERAS_SOURCES"]), time.monotonic()
    if "--table" not in sys.argv:
        for area in areas:
            for file in sorted((sources / "keras" / "src").glob(f"{area}/**/*_test.py" if "/" not in area else area)):
                if out_of_scope(str(file.relative_to(sources / "keras" / "src"))):
                    continue
                stem = "--".join(file.relative_to(sources / "keras" / "src").with_suffix("").parts)
                results = out / f"{stem}.jsonl"
                if not results.exists() and time.monotonic() - begin < SECONDS:
                    run(file, sources, results)
    totals = {area: dict(sorted(counts.items())) for area, counts in outcomes(out).items()}
    if "--write" in sys.argv:
        (HERE / "results.json").write_text(json.dumps(totals, indent=1) + "\n")
    print(json.dumps(totals, indent=1))


if __name__ == "__main__":
    main()
