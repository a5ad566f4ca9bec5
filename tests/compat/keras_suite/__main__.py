"""Run Keras's own test files on opwright.keras: `KERAS_SOURCES=... python tests/compat/keras_suite OUT [AREA ...]`.

KERAS_SOURCES is the folder of Keras's unpacked source distribution. Each file runs in its own process, at most LIMIT
seconds; OUT gets a file of results a test file, and files that have results are not run again. With SECONDS in the
environment, none begins later. `--table` only prints counts, `--write` keeps them in results.json, from which
make_compatibility.py writes a table.
"""

from __future__ import annotations

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import peer_tests  # noqa: E402
from keras_counts import by_area, out_of_scope, reason, share  # noqa: E402

AREAS = (
    *("losses", "metrics", "layers", "optimizers", "trainers", "models", "callbacks", "saving", "ops", "random"),
    *("activations", "initializers", "constraints", "regularizers", "dtype_policies", "tree", "utils", "legacy"),
    *("applications", "wrappers", "export", "quantizers", "distillation"),
)


def main() -> None:
    """Run the areas and print the counts."""
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    out, areas = pathlib.Path(arguments[0]), arguments[1:] or AREAS
    sources = pathlib.Path(os.environ["KERAS_SOURCES"])
    root = sources / "keras" / "src"
    if "--table" not in sys.argv:
        for area in areas:
            files = sorted(root.glob(f"{area}/**/*_test.py" if "/" not in area else area))
            in_scope = [file for file in files if not out_of_scope(str(file.relative_to(root)))]
            peer_tests.run_files(HERE, in_scope, root, sources, out)
    rows = peer_tests.outcomes(out, lambda text: reason(text.partition("keras/src/")[2] or text))
    if "--write" in sys.argv:
        peer_tests.keep(HERE / "results.json", rows)
    for area, counts in by_area(rows).items():
        print(f"{area}: {counts}, {share(counts):.1%} of what is in scope")


if __name__ == "__main__":
    main()
