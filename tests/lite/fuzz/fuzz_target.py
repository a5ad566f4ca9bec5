"""The target of the fuzzer, and the definition of a finding.

Lives here: `outcome` and its limits: errors of our own kinds, seconds, bytes.
Not here: the mutants (fuzz_mutants.py), running many (run_fuzz.py).

A case reads, verifies, prints and writes the model, imports it as graphs, which are printed, parsed and exported again,
opens an interpreter, allocates, asks for details, runs once, and calls `opwright check`. A finding is any exception but
an OpError (bad files are to be said to be bad), a case that takes longer than SECONDS, and one that needs more memory
than twice the file and ROOM. An endless loop is a model's right: a WHILE that does not end is stopped and no finding.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import resource
import signal
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import fuzz_mutants
import numpy as np

from opwright import lite
from opwright.core import errors, flags
from opwright.graph.builder import verify
from opwright.graph.ir import same
from opwright.lite.convert.export import export
from opwright.lite.format import Model, findings
from opwright.lite.importer import import_model
from opwright.lite.ops.module import parse_graph
from opwright.tools.compatibility import check_model
from opwright.tools.inspection import inspect_model
from opwright.tools.report import BadFile

SECONDS = 5.0  # of the processor, of which a busy machine may give little
LOOP_SECONDS = 0.25  # for a model with a WHILE, which may have no end
PATIENCE = 20.0  # times as many on the clock: something may wait for ever, and use none
ROOM = 64 << 20
ACTIVATIONS = 8 << 20  # the flag max_activation_bytes: what the model may ask for, within ROOM


class TookTooLong(BaseException):
    """The case ran into SECONDS. No Exception, so that nothing takes it for a node's failure."""


def _ring(*_: object) -> None:
    raise TookTooLong


CLOCKS = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}


class Limits:
    """Bounds on time and memory of the cases of one process: handlers are installed once, timers set per case."""

    def __enter__(self) -> Limits:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._handlers = {number: signal.signal(number, _ring) for number in CLOCKS}
        self._hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._statm)

    @contextlib.contextmanager
    def case(self, size: int) -> Iterator[None]:
        """Bound the time and memory of a case by its size; memory as the address space beyond the current one."""
        now = int(os.pread(self._statm, 64, 0).split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + 2 * size + ROOM, self._hard))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.setitimer(signal.ITIMER_REAL, SECONDS * PATIENCE)
        try:
            yield
        finally:
            for clock in CLOCKS.values():
                signal.setitimer(clock, 0)
            resource.setrlimit(resource.RLIMIT_AS, (self._hard, self._hard))


@contextlib.contextmanager
def limits(size: int) -> Iterator[None]:
    """Bound time and memory of one case."""
    with Limits() as one, one.case(size):
        yield


@contextlib.contextmanager
def session() -> Iterator[Callable[[bytes], str]]:
    """Yield a function like `outcome` for many cases of one process: settings are made once.

    A model with the canonical bytes of an earlier case is read and verified only.
    """
    seen: set[int] = set()
    with Limits() as bounds, _settings():

        def tried(data: bytes) -> str:
            with bounds.case(len(data)):
                return _outcome(data, False, seen)

        yield tried


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """The reference engine, a bound of what models may ask for, no warnings."""
    with warnings.catch_warnings(), flags.override(max_activation_bytes=ACTIVATIONS, compiled=False):
        warnings.simplefilter("ignore")
        yield


def outcome(data: bytes, thorough: bool = True) -> str:
    """How far the case came: "read: DataLossError", "ran" ...

    thorough: the command line's reports are made for every case, and not for one in 16
    raises whatever is a finding
    """
    with limits(len(data)), _settings():
        return _outcome(data, thorough)


def _outcome(data: bytes, thorough: bool, seen: set[int] | None = None) -> str:
    try:
        model = Model.read(data)
    except errors.OpError as error:
        return f"read: {type(error).__name__}"
    repr(model)
    result = findings(model)
    canonical = None
    try:
        canonical = hash(bytes(model.to_bytes()))
    except errors.OpError as error:
        said(error)
    try:
        model.verify()
        assert not result
    except errors.OpError as error:
        said(error)
        assert result
        return f"verify: {result[0][0].name}"
    if seen is not None and canonical is not None:
        if canonical in seen:
            return "seen"
        seen.add(canonical)
    _import_and_export(model)
    draw = zlib.crc32(data)
    if thorough or draw % 16 == 0:
        _tools(data, draw % 64 != 0)
    try:
        interpreter = lite.Interpreter(model_content=data, num_threads=1)
    except errors.OpError as error:
        return f"open: {said(error)}"
    with interpreter:
        return _run(interpreter, has_loop(model))


def _import_and_export(model: Model) -> None:
    """Read a valid model into graphs and write them again; what is written is valid, too."""
    try:
        module = import_model(model)
        for graph in module.graphs:
            verify(graph)
            assert same(parse_graph(str(graph)), graph)
        exported = export(module)
    except errors.OpError as error:
        said(error)
        return
    Model.read(exported.to_bytes()).verify()


def _tools(data: bytes, as_json: bool) -> None:
    """The command line's reports; as tables, which take long to draw, now and then."""
    path = os.path.join(_folder(), f"{os.getpid()}.tflite")  # workers are forks that share the folder
    with open(path, "wb") as file:
        file.write(data)
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8")  # as strict about text as a real one
    with contextlib.redirect_stdout(printed), contextlib.suppress(BadFile):
        check_model(path, "2.8", (), False, as_json)
        inspect_model(path, as_json)


@functools.cache
def _folder() -> str:
    return tempfile.mkdtemp(prefix="fuzz-")


def _run(interpreter: Any, loops: bool) -> str:
    interpreter.get_signature_list()
    interpreter.get_tensor_details()
    interpreter._get_ops_details()
    try:
        interpreter.get_input_details()
        interpreter.get_output_details()
    except errors.OpError as error:
        said(error)
    if loops and signal.getitimer(signal.ITIMER_PROF)[0]:  # 0: without limits, in `warm`
        signal.setitimer(signal.ITIMER_PROF, LOOP_SECONDS)
    try:
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            if detail["dtype"] is not np.bytes_:
                interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            interpreter.get_tensor(detail["index"])
    except errors.OpError as error:
        return f"run: {said(error)}"
    except TookTooLong:
        if loops:
            return "loops"
        raise
    return "ran"


@functools.cache
def warm(files: tuple[bytes, ...] | None = None) -> None:
    """Import what cases need, which takes memory of its own: outside the limits."""
    for data in files or fuzz_mutants.seeds():
        with flags.override(max_activation_bytes=ACTIVATIONS, compiled=False):
            _outcome(data, True)


def said(error: Exception) -> str:
    """The error's class, after a look at its text: a memory limit of the process is none that we set."""
    text = str(error)
    cause: BaseException | None = error
    while cause is not None:
        assert not isinstance(cause, MemoryError), text
        cause = cause.__cause__
    assert text.strip()
    assert "Unable to allocate" not in text, text
    return type(error).__name__


def has_loop(model: Any) -> bool:
    """Whether the model has a WHILE."""
    return any(119 in (code.builtin_code, code.deprecated_builtin_code) for code in model.operator_codes)
