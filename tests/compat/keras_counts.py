"""Counts of Keras's own tests: scope, reasons of failures, sums and shares.

Lives here: tables of reasons, sums and shares.  Not here: running (keras_suite), the page (make_compatibility.py).
"""

from __future__ import annotations

import collections
import re

OUT_OF_SCOPE = (
    (
        r"trainers/(data_adapters|epoch_iterator)",
        "private classes that read batches; trainer_test.py tests what they read",
    ),
    (r"ops/(node|operation|operation_utils|function|symbolic_arguments)_test", "private classes of recorded calls"),
    (r"quantizers/(gptq|awq)(_core)?_test", "private classes of GPTQ and AWQ"),
    (r"export/|jax_layer|flax_layer|tfsm_layer|torch_utils|torch_module|orbax", "other libraries' formats and layers"),
    (
        r"optimizer_distribute|distribution",
        "distribution by TensorFlow and JAX: replicas are processes of ow.distribute",
    ),
    (r"remote_monitor|file_editor|variable_mapping|tracking_test|legacy/saving/json_utils", "private or not here"),
)
"""Files that are not run, by path, and why."""


def out_of_scope(path: str) -> str | None:
    """Return why a test file is not run, or None if it is."""
    return next((why for pattern, why in OUT_OF_SCOPE if re.search(pattern, path)), None)


REASONS = (
    ("sparse", r"sparse(?!max|_plus|_sigmoid)|ragged"),
    (
        "private",
        r"no attribute '_|'tf_record'|dmtree|SummaryMetadata|attribute 'numpy' is read-only|overwrite_with"
        r"|not part of opwright|memory_config"
        r"|with_remat |test_remat|rematerialized_call|quantized_build|_compute_attention|mask_is_none"
        r"|'(lr_adjust|zeropower_via|call|sequence_length)|extraction_bomb|quantize_invalid_mode|file_utils_test\S*test_copy",
    ),
    ("libraries", r"No module named|test_save_h5_format|fixture missing|_grain |[a-z]_torch |\)_torch |_torch_\("),
    ("backend", r"test_istft[0-9]|extract_patches_3d_with_dilation|segmentation_different_axis"),
    (
        "unrunnable",
        r"ShapeTest::test_(psnr|polar|bitwise_\w+|ldexp|einsum|dot_product_attention|layer_normalization|rms_normalization|lu_factor)",
    ),
    ("wording", r"does not match|(bomb|_link)\w* .*DataLossError"),
    ("missing", r"public name that opwright lacks"),
)
"""Why tests fail, by name and message: the first that matches."""


def reason(text: str) -> str:
    """Return the reason of a failure, by the test's name and message."""
    return next((key for key, pattern in REASONS if re.search(pattern, text)), "other")


def by_area(rows: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return the sums of files' counts by area, and how many files ran."""
    areas: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for file, counts in rows.items():
        areas[file.partition("/")[0]].update({**counts, "files": 1})
    return {area: dict(sorted(counts.items())) for area, counts in areas.items()}


def share(counts: dict[str, int]) -> float:
    """Return the share of tests in scope that pass: without tests that Keras skips or that REASONS name."""
    failed = counts.get("other", 0) + counts.get("missing", 0)
    return counts.get("passed", 0) / max(counts.get("passed", 0) + failed, 1)
