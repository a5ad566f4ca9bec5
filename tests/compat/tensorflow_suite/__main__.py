"""Run TensorFlow's own test files: `TENSORFLOW_SOURCES=... python tests/compat/tensorflow_suite OUT [FILE ...]`.

TENSORFLOW_SOURCES is a folder with files of `tensorflow/python`, as its repository has them. Each file runs in its own
process, at most LIMIT seconds; OUT gets a file of results a test file, and files that have results are not run again.
`--table` only prints counts, `--write` keeps them in results.json, from which make_compatibility.py writes a table.
EXTRA names a folder with absl, which many of the files import.
"""

from __future__ import annotations

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import peer_tests  # noqa: E402
from tensorflow_counts import reason, share, total  # noqa: E402


def main() -> None:
    """Run the files and print the counts."""
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    out = pathlib.Path(arguments[0])
    root = pathlib.Path(os.environ["TENSORFLOW_SOURCES"])
    if "--table" not in sys.argv:
        files = [root / a for a in arguments[1:]] or sorted(root.glob("tensorflow/python/**/*_test.py"))
        peer_tests.run_files(HERE, files, root, root, out)
    rows = {f.removeprefix("tensorflow/python/"): c for f, c in peer_tests.outcomes(out, reason).items()}
    if "--write" in sys.argv:
        peer_tests.keep(HERE / "results.json", rows)
    for file, counts in rows.items():
        print(file, counts)
    print(total(rows), f"{share(total(rows)):.1%} of what is in scope")


if __name__ == "__main__":
    main()
