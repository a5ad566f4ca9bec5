"""Coverage-guided fuzzing of .tflite files with atheris, where it is installed (`pip install atheris`; no dependency).

    python tests/lite/fuzz/fuzz_atheris.py -max_total_time=600 FOLDER       FOLDER keeps inputs that reach new code

Lives here: the harness.  Not here: what a case is tried on (fuzz_target.py).
"""

import pathlib
import sys

import atheris

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parents[1] / "data" / "tflite")]

with atheris.instrument_imports(include=["opwright.lite"]):
    import fuzz_mutants
    import fuzz_target


def one(data: bytes) -> None:
    """One input."""
    fuzz_target.outcome(data, thorough=False)


def main() -> None:
    """Start from the seeds, written into the folder given."""
    folders = [pathlib.Path(a) for a in sys.argv[1:] if not a.startswith("-")]
    if folders:
        folders[0].mkdir(parents=True, exist_ok=True)
        for i, data in enumerate(fuzz_mutants.seeds()):
            (folders[0] / f"seed{i}").write_bytes(data)
    fuzz_target.warm()
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
