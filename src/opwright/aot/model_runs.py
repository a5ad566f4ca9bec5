"""A model on a run time, called with arrays: the interpreter, the reference kernels, the official run time, a library.

Lives here: `ModelOnRunTime`, `RUN_TIMES`, `prefix_of`: the first operators of a model, with inner tensors as outputs;
`random_input`. Not here: the comparison of two (differences.py), libraries as users call them (loaded_library.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..compiler.target import Target
from ..core import dtypes, flags
from ..core.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError, UnimplementedError
from ..lite.format import Model
from ..lite.interpreter import Interpreter
from .libraries import build
from .loaded_library import LoadedLibrary, load

RUN_TIMES = ("interpreter", "reference", "litert", "litert-builtin", "library")
"""interpreter: as users run it, compiled; reference: its kernels in NumPy; litert: the official interpreter with its
default delegate; litert-builtin: without; library: a built one, `library:FOLDER`."""
READABLE = ("reference", "litert-builtin")
"""Run times that keep every inner tensor."""

_OFFICIAL = """
import json, sys
import numpy as np
from ai_edge_litert import interpreter as official
asked = json.loads(sys.argv[1])
plain = {
    "experimental_op_resolver_type": official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "experimental_preserve_all_tensors": True,
}
one = official.Interpreter(model_path=asked["model"], num_threads=1, **(plain if asked["keep"] else {}))
values = [np.load(file, allow_pickle=asked["objects"]) for file in asked["inputs"]]
details = one.get_input_details()
for detail, value in zip(details, values):
    if list(detail["shape"]) != list(value.shape):
        one.resize_tensor_input(detail["index"], value.shape)
one.allocate_tensors()
for detail, value in zip(details, values):
    one.set_tensor(detail["index"], value)
one.invoke()
results = {}
for index in asked["tensors"]:
    try:
        results[str(index)] = one.get_tensor(index)
    except ValueError:
        if index in {d["index"] for d in one.get_output_details()}:
            raise
np.savez(asked["results"], **results)
"""


class TensorFacts(NamedTuple):
    """A tensor of a model. scale, zero_point: of elements quantized as a whole; 0.0 and 0 otherwise."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: float
    zero_point: int

    def real(self, array: np.ndarray) -> np.ndarray:
        """Return the real numbers that elements represent, in float64."""
        return (array.astype(np.float64) - self.zero_point) * self.scale if self.scale else array.astype(np.float64)

    def elements(self, real: np.ndarray) -> np.ndarray:
        """Return the elements that represent real numbers best."""
        if self.scale:
            real = np.rint(real / self.scale) + self.zero_point
        if self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            real = np.clip(np.rint(real), limits.min, limits.max)
        return real.astype(self.dtype)


def random_input(detail: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """Return normal numbers; bytes over their range; wider integers 0 or 1, valid as indices almost everywhere.

    detail: dtype and shape of an input, as of `Interpreter.get_input_details`
    """
    dtype: Any = np.dtype(detail["dtype"])
    shape = tuple(detail["shape"])
    if dtype.kind in "OS":
        return np.full(shape, b"text", object)
    if dtype.kind in "iu" and dtype.itemsize == 1:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype.kind in "biu":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


class ModelOnRunTime:
    """A model on a run time. Each run is the first: nothing is kept between them.

    path: a .tflite file, or the folder of a built library; run_time: of RUN_TIMES, "library:FOLDER"; custom_ops: as of
    `lite.Interpreter`. raises InvalidArgumentError for another run time, NotFoundError for missing files

    model: None for a library alone; inputs, outputs: `TensorFacts`, in order; indices: of the outputs in `model`
    """

    def __init__(self, path: str | os.PathLike[str], run_time: str = "interpreter", custom_ops: Iterable[Any] = ()):
        kind, _, folder = run_time.partition(":")
        if kind not in RUN_TIMES or (kind == "library") != bool(folder):
            raise InvalidArgumentError(
                op="aot.diff",
                what="no such run time",
                found=run_time,
                wanted=", ".join((*RUN_TIMES[:-1], "library:FOLDER")),
            )
        is_library = Path(path).is_dir() or Path(path).suffix == ".json"
        if is_library and run_time != "interpreter":
            raise InvalidArgumentError(
                op="aot.diff",
                what="a built library is a run time of its own",
                found=f"{path} on {run_time}",
                do=f"MODEL.tflite on library:{path}",
            )
        self.name, self.run_time, self.custom_ops = os.fspath(path), "library" if is_library else kind, [*custom_ops]
        self.library = load(path if is_library else folder) if self.run_time == "library" else None
        self.model = None if is_library else Model.read(path)
        if self.model is not None:
            self.inputs, self.outputs, self.indices = self._facts(self.model)
            if self.library is not None:
                self._check_library(self.library, Path(path))
        else:
            assert self.library is not None, "neither a model nor a library"
            note = next(n for n in self.library.notes["signatures"] if n["key"] == self._signature())
            self.inputs, self.outputs = _ports(note["inputs"]), _ports(note["outputs"])
            self.indices = [-1] * len(self.outputs)

    def __str__(self) -> str:
        return f"{self.name} on {self.run_time}" if self.model is not None else f"library {self.name}"

    @property
    def keeps_inner_tensors(self) -> bool:
        """Return whether a run can be asked for inner tensors."""
        return self.run_time in READABLE

    def run(
        self, feeds: Sequence[np.ndarray], inner: Sequence[int] = ()
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """Return the outputs, and the inner tensors of these indices, if it keeps them and has them."""
        assert not inner or self.keeps_inner_tensors
        if self.library is not None:
            self.library.reset()
            return [*self.library.signatures[self._signature()](*feeds).values()], {}
        assert self.model is not None
        arrays = _interpreted if self.run_time in ("interpreter", "reference") else _official
        results = arrays(self, self.model, feeds, [*self.indices, *inner])
        return [results[i] for i in self.indices], {i: results[i] for i in inner if i in results}

    def cut(self, operators: int, tensors: Sequence[int]) -> _Prefix:
        """Return the first operators of the model on the same run time, with these tensors as outputs.

        raises UnimplementedError where they cannot be built as a library
        """
        assert self.model is not None
        return _Prefix(self, prefix_of(self.model, operators, tensors), list(tensors))

    def _facts(self, model: Model) -> tuple[list[TensorFacts], list[TensorFacts], list[int]]:
        interpreter = Interpreter(model_content=model, custom_ops=self.custom_ops)
        try:
            inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
        finally:
            interpreter.close()
        names = {
            m.tensor_index: m.name
            for s in model.signature_defs or ()
            if not s.subgraph_index
            for m in (*s.inputs, *s.outputs)
        }
        facts = [[tensor_facts(d, names.get(d["index"], d["name"])) for d in rows] for rows in (inputs, outputs)]
        return facts[0], facts[1], [d["index"] for d in outputs]

    def _signature(self) -> str:
        """Return the key of the library's function that runs the first subgraph."""
        assert self.library is not None
        keys: list[str] = [*self.library.signatures]
        if self.model is not None:
            first = {s.signature_key for s in self.model.signature_defs or () if not s.subgraph_index}
            keys = [key for key in keys if key in first] or keys
        if len(keys) != 1:
            raise InvalidArgumentError(
                op="aot.diff",
                what=f"{self.name} has several signatures",
                found=keys,
                do="compare a model with its library",
            )
        return keys[0]

    def _check_library(self, library: LoadedLibrary, path: Path) -> None:
        import hashlib

        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if library.notes["model"]["sha256"] != digest:
            raise FailedPreconditionError(
                op="aot.diff",
                what=f"the library was not built from {path}",
                found=f"sha256 {library.notes['model']['sha256']}",
                wanted=digest,
                do="build it again, or compare the model with the library's folder as two models",
            )


def tensor_facts(detail: dict[str, Any], name: str | None = None) -> TensorFacts:
    """Return the facts of a tensor from its details, as of `Interpreter.get_tensor_details`."""
    scale, zero_point = detail["quantization"]
    shape = tuple(int(n) for n in detail["shape"])
    return TensorFacts(name or detail["name"], shape, np.dtype(detail["dtype"]), scale, zero_point)


def _ports(notes: list[dict[str, Any]]) -> list[TensorFacts]:
    return [
        TensorFacts(
            n["name"],
            tuple(n["shape"]),
            np.dtype(dtypes.as_dtype(n["dtype"]).np),
            n["scale"] or 0.0,
            n["zero_point"] or 0,
        )
        for n in notes
    ]


class _Prefix:
    """The first operators of a model on its run time."""

    def __init__(self, whole: ModelOnRunTime, model: Model, tensors: list[int]) -> None:
        self._whole, self._model, self._tensors = whole, model, tensors

    def run(self, feeds: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
        """Return the arrays of the outputs, by index."""
        whole = self._whole
        if whole.library is None:
            arrays = _interpreted if whole.run_time in ("interpreter", "reference") else _official
            return arrays(whole, self._model, feeds, self._tensors)
        with tempfile.TemporaryDirectory(prefix="opwright-diff-") as folder:
            build(
                self._model.to_bytes(),
                _target_of(whole.library),
                folder,
                name="prefix",
                format="object",
                custom_ops=whole.custom_ops,
            )
            return dict(zip(self._tensors, load(folder)(*feeds).values(), strict=True))


def _target_of(library: LoadedLibrary) -> Target:
    notes = library.notes["target"]
    return Target(notes["name"], notes["triple"], notes["cpu"], notes["features"], notes["vector_bytes"])


def prefix_of(model: Model, operators: int, tensors: Sequence[int]) -> Model:
    """Return a model of the first operators of the first subgraph, whose outputs are these tensors of it.

    Tensors and buffers keep their indices; signatures of the subgraph are dropped. Weights are shared, not copied.
    """
    return model_of(model, model.subgraphs[0].operators[:operators], tensors, model.subgraphs[0].inputs)


def model_of(model: Model, operators: Sequence[Any], outputs: Sequence[int], inputs: Sequence[int]) -> Model:
    """Return a model of operators of the first subgraph. outputs, inputs: indices of its tensors.

    Tensors and buffers keep their indices; signatures of the subgraph are dropped. Weights are shared, not copied.
    """
    first, *others = model.subgraphs
    fields = {name: getattr(first, name) for name in type(first).__slots__}
    fields |= {"operators": [*operators], "outputs": np.array(outputs, np.int32), "inputs": np.array(inputs, np.int32)}
    whole = {name: getattr(model, name) for name in type(model).__slots__}
    whole |= {
        "subgraphs": [type(first)(**fields), *others],
        "signature_defs": [s for s in model.signature_defs or () if s.subgraph_index],
    }
    return Model(**whole)


def _interpreted(
    of: ModelOnRunTime, model: Model, feeds: Sequence[np.ndarray], tensors: Sequence[int]
) -> dict[int, np.ndarray]:
    keeps = of.run_time in READABLE
    with contextlib.ExitStack() as stack:
        stack.enter_context(flags.override(compiled=False) if keeps else flags.override(background=False))
        interpreter = Interpreter(
            model_content=model, custom_ops=of.custom_ops, experimental_preserve_all_tensors=keeps
        )
        stack.callback(interpreter.close)
        details = interpreter.get_input_details()
        for detail, value in zip(details, feeds, strict=True):
            if tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for detail, value in zip(details, feeds, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        return {i: interpreter.get_tensor(i) for i in tensors}


def _official(
    of: ModelOnRunTime, model: Model, feeds: Sequence[np.ndarray], tensors: Sequence[int]
) -> dict[int, np.ndarray]:
    """Run in a process of its own: an official kernel that crashes does not take this one with it."""
    with tempfile.TemporaryDirectory(prefix="opwright-diff-") as folder:
        files = [os.path.join(folder, f"{i}.npy") for i in range(len(feeds))]
        for file, value in zip(files, feeds):
            np.save(file, value)
        path, results = os.path.join(folder, "model.tflite"), os.path.join(folder, "results.npz")
        model.write(path)
        request = {
            "model": path,
            "inputs": files,
            "objects": any(value.dtype.kind == "O" for value in feeds),
            "tensors": [int(i) for i in tensors],
            "keep": of.run_time in READABLE,
            "results": results,
        }
        command = [sys.executable, "-c", _OFFICIAL, json.dumps(request)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            message = (process.stderr.strip().splitlines() or [f"it ended with status {process.returncode}"])[-1]
            missing = "ModuleNotFoundError" in message
            raise (UnavailableError if missing else UnimplementedError)(
                op="aot.diff",
                what=f"the official interpreter does not run {of.name}",
                found=message,
                do="pip install ai-edge-litert" if missing else None,
            )
        with np.load(results, allow_pickle=True) as arrays:
            return {int(i): arrays[i] for i in arrays}
