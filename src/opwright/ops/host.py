"""Operators that reach the host: printing, the time of day, calls of Python functions.

Lives here: Print and the function that builds its template; Timestamp; EagerPyFunc with its gradient EagerPyFuncGrad,
PyFunc, PyFuncStateless, whose first input is a handle of the function, and the errors of what they call.
Not here: how a tensor is written (strings/conversion.py), Python's `print` inside `function` (autograph/), the objects
behind the handles and the public functions over them (eager/python_functions.py).

A handle of a function answers `call(arrays, dtypes)`; that of one run of it, from which gradients come, answers
`backward(arrays, dtypes)`. Both return arrays, and last the handle of the run.
"""

from __future__ import annotations

import logging
import pprint
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, errors, nest
from ..core.dtypes import DType, any_dtype, resource
from ..core.shapes import UNKNOWN
from ..core.specs import TensorSpec
from . import dispatch
from .attributes import Attr
from .definition import operator
from .indexed_slices import IndexedSlices
from .slots import Input, OperatorDefinition, Output
from .strings.conversion import StringFormat
from .tensor import Tensor, TensorLike

if TYPE_CHECKING:
    from . import signatures
    from .definition import Operator


@operator
class Timestamp(OperatorDefinition):
    """Seconds since 1970, each time it runs.

    .. math:: ts = now
    """

    ts = Output(dtype=dtypes.float64)
    effect = "random"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec((), dtypes.float64)

    def compute(op) -> np.generic:
        return np.float64(time.time())


timestamp: signatures.Timestamp = Timestamp.as_function("timestamp")


_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@operator
class Print(OperatorDefinition[None]):
    """Write a string out, each time it runs.

    .. math:: stream \\leftarrow input + end

    output_stream: stdout, stderr, log(info), log(warning), log(error), or file://path, which is added to.
    """

    input = Input(dtypes.string, rank=0)
    output_stream = Attr(str, default="stderr")
    end = Attr(str, default="\n")
    effect = "write"

    def infer(op) -> tuple[()]:
        return ()

    def compute(op, input: Any) -> tuple[()]:
        write_out(bytes(np.asarray(input)[()]), op.output_stream, op.end)
        return ()


def write_out(text: bytes, stream: str, end: str) -> None:
    """Write one line to the stream, flushed."""
    if stream.startswith("file://"):
        with open(stream.removeprefix("file://"), "ab") as file:
            file.write(text + end.encode())
    elif stream.startswith("log("):
        logging.getLogger("opwright").log(_LEVELS[stream[4:-1]], "%s", text.decode("utf-8", "replace"))
    else:
        target = sys.stdout if stream == "stdout" else sys.stderr
        target.write(text.decode("utf-8", "replace") + end)  # Python's own stream, so that notebooks show it
        target.flush()


def _stream_name(stream: Any) -> str:
    """Return the operator's name of a stream. Raises ValueError listing the supported ones."""
    if stream is sys.stderr or stream is sys.__stderr__:
        return "stderr"
    if stream is sys.stdout or stream is sys.__stdout__:
        return "stdout"
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    for name, level in _LEVELS.items():
        if stream is getattr(logging, name) or (isinstance(stream, int) and stream == level):
            return f"log({name})"
    raise ValueError(
        f"Unsupported output stream, logging level, or file.{stream}. Supported streams are sys.stdout, sys.stderr, "
        "tf.logging.info, tf.logging.warning, tf.logging.error. File needs to be in the form of 'file://<filepath>'."
    )


class _Slot:
    """Placeholder of a tensor in a structure; as wide as a quoted `{}`, so that line breaks agree."""

    mark = "\ue000\ue001\ue002\ue003"  # no repr() has these: they are for private use, which repr escapes

    def __repr__(self) -> str:
        return self.mark


def print(*inputs: Any, **kwargs: Any) -> None:
    """Write `inputs` out, each time the program runs: inside `function` in program order with other effects.

    inputs: tensors, Python values, and structures of them; what is not a tensor is written as it is while tracing.
    output_stream: sys.stderr (the default), sys.stdout, a level or function of `logging`, or "file://path", which is
    added to. summarize: elements shown at each end of each axis of a tensor, 3; -1 for all. sep: between inputs, " ".
    end: after the last, a new line.
    raises ValueError for other streams and other keywords
    """
    stream = _stream_name(kwargs.pop("output_stream", sys.stderr))
    name, summarize = kwargs.pop("name", None), kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", None)
    end = "\n" if end is None else end
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    summarize = -1 if summarize is None else summarize
    if len(inputs) == 1 and isinstance(inputs[0], TensorLike):
        tensor = dispatch.to_tensor(inputs[0])
        if tensor.dtype is dtypes.string and tensor.shape.rank == 0:  # a text alone is written bare
            Print(tensor, output_stream=stream, end=end, name=name)
            return
    tensors: list[Any] = []
    pieces: list[str] = [""]  # the text between tensors

    def leaf(value: Any) -> object:
        if isinstance(value, IndexedSlices) and value.dense_shape is not None:
            value = value.to_dense()
        if not isinstance(value, TensorLike):
            return value
        tensors.append(dispatch.to_tensor(value))
        return _Slot()

    for i, value in enumerate(inputs):
        shown = [value] if isinstance(value, str) else pprint.pformat(nest.map_structure(leaf, value)).split(_Slot.mark)
        pieces[-1] += (sep if i else "") + shown[0]
        pieces += shown[1:]
    if tensors:
        placeholder = "{}"
        while any(placeholder in piece for piece in pieces):
            placeholder = f"{{{placeholder}}}"
        text = StringFormat(tensors, template=placeholder.join(pieces), placeholder=placeholder, summarize=summarize)
    else:
        text = dispatch.to_tensor(pieces[0])
    Print(text, output_stream=stream, end=end, name=name)


_HANDLE = TensorSpec((), resource)


def translated(error: Exception, op: str) -> errors.OpError:
    """Return the error of the operator `op` for an exception of the function that it called."""
    if isinstance(error, errors.OpError):
        kind: Any = type(error)
        result: errors.OpError = kind(op=op, what=f"{type(error).__name__}: {error}")
        return result
    return errors.status_class(error)(op=op, what=f"{type(error).__name__}: {error}")


def _called(handle: Any, method: str, op: str, *args: Any) -> object:
    try:
        return getattr(handle, method)(*args)
    except Exception as error:
        raise translated(error, op).with_traceback(error.__traceback__) from error


@operator
class EagerPyFunc(OperatorDefinition[list[Tensor]]):
    """A Python function of eager tensors, called each time the program runs; gradients go through what it did.

    .. math:: output = func(input)

    func: the handle of the function. out_dtypes: the dtypes of what it gives. Output shapes are not known ahead.
    raises InvalidArgumentError, OutOfRangeError, UnimplementedError, ResourceExhaustedError or UnknownError, by what
    the function raises, naming that
    """

    func = Input(resource)
    input = Input(any_dtype, repeated=True, mixed=True)
    output = Output(repeated=True, kind="of out_dtypes")
    run = Output(dtype=resource, intermediate=True, doc="which run of the function this was, for its gradient")
    out_dtypes = Attr([DType])
    effect = "write"
    no_need_buffer = ("input",)
    lod = "vanishes"

    def infer(op) -> tuple[list[TensorSpec], TensorSpec]:
        return [TensorSpec(UNKNOWN, d) for d in op.out_dtypes], _HANDLE

    def compute(op, func: Any, input: Any) -> object:
        return _called(func, "call", "EagerPyFunc", input, op.out_dtypes)

    def gradient(op, doutput: Any, drun: Any) -> tuple[None, list[Any | None]]:
        inputs = [x for x in op.input if x.dtype.is_floating or x.dtype.is_complex]
        flowing = [dy for dy in doutput if dy is not None]
        input_gradients: Any = EagerPyFuncGrad(op.run, inputs, flowing) if inputs and flowing else ()
        grads = iter(input_gradients)
        return None, [next(grads, None) if x.dtype.is_floating or x.dtype.is_complex else None for x in op.input]


@operator
class EagerPyFuncGrad(OperatorDefinition[list[Tensor]]):
    """Gradients of one run of a Python function for its floating inputs.

    .. math:: dinput = \\left(\\frac{\\partial run(input)}{\\partial input}\\right)^T doutput

    run: the handle of what ran. input: what it ran on. doutput: the gradients of its floating results.
    """

    run = Input(resource)
    input = Input(any_dtype, repeated=True, mixed=True)
    doutput = Input(any_dtype, repeated=True, mixed=True)
    dinput = Output(repeated=True, kind="as input")
    this_run = Output(dtype=resource, intermediate=True, doc="keeps the order of runs")
    shape_only = ("input",)
    no_need_buffer = ("input",)
    lod = "vanishes"

    def infer(op) -> tuple[list[TensorSpec], TensorSpec]:
        return [x.spec for x in op.input], _HANDLE

    def compute(op, run: Any, input: Any, doutput: Any) -> object:
        return _called(run, "backward", "EagerPyFuncGrad", doutput)

    def gradient(op, ddinput: Any, dthis_run: Any) -> tuple[None, list[Tensor], list[Tensor]]:
        flowing = [dy for dy in ddinput if dy is not None]
        grads = EagerPyFuncGrad(op.this_run, [*op.input, *op.doutput], flowing)
        n = len(op.input)
        return None, list(grads[:n]), list(grads[n:])


def _numpy_operator(name: str, effect_: str | None) -> Operator:
    class PyFunc:
        func = Input(resource)
        input = Input(any_dtype, repeated=True, mixed=True)
        output = Output(repeated=True, kind="of out_dtypes")
        out_dtypes = Attr([DType])
        effect = effect_
        lod = "vanishes"
        gradient = None

        def infer(op) -> list[Any]:
            return [TensorSpec(UNKNOWN, d) for d in op.out_dtypes]

        def compute(op, func: Any, input: Any) -> object:
            return _called(func, "call", name, input, op.out_dtypes)

    state = "It may have side effects." if effect_ else "It has no side effects: equal calls may become one, or none."
    PyFunc.__doc__ = f"""A Python function of NumPy arrays, called when the program runs. {state}

    .. math:: output = func(input)

    func: the handle of the function. out_dtypes: the dtypes of what it gives. No gradient flows through it.
    """
    return operator(name=name)(PyFunc)


PyFunc = _numpy_operator("PyFunc", "write")
PyFuncStateless = _numpy_operator("PyFuncStateless", None)
