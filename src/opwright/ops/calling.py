"""Python functions called back from graphs: operators whose first input is a handle of the function.

Lives here: EagerPyFunc with its gradient EagerPyFuncGrad, PyFunc, PyFuncStateless, and the errors of what they call.
Not here: what stands behind the handles (eager/calling.py), which also has the public functions.

A handle of a function answers `call(arrays, dtypes)`; that of one run of it, from which gradients come, answers
`backward(arrays, dtypes)`. Both give arrays, and last the handle of what then ran.
"""

from __future__ import annotations

from typing import Any

from ..core import errors
from ..core.dtypes import DType, any_dtype, resource
from ..core.shapes import UNKNOWN
from ..core.specs import TensorSpec
from .attributes import Attr
from .definition import Input, Output, operator

_HANDLE = TensorSpec((), resource)

def translated(error: Exception, op: str) -> errors.OpError:
    """The error of the operator `op` for an exception of the function that it called."""
    if isinstance(error, errors.OpError):
        kind: Any = type(error)
        return kind(op=op, what=f"{type(error).__name__}: {error}")
    return errors.status_class(error)(op=op, what=f"{type(error).__name__}: {error}")


def _called(handle: Any, method: str, op: str, *args: Any) -> Any:
    try:
        return getattr(handle, method)(*args)
    except Exception as error:
        raise translated(error, op).with_traceback(error.__traceback__) from error


@operator
class EagerPyFunc:
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

    def infer(op) -> Any:
        return [TensorSpec(UNKNOWN, d) for d in op.out_dtypes], _HANDLE

    def compute(op, func, input) -> Any:
        return _called(func, "call", "EagerPyFunc", input, op.out_dtypes)

    def gradient(op, doutput, drun) -> Any:
        inputs = [x for x in op.input if x.dtype.is_floating or x.dtype.is_complex]
        flowing = [dy for dy in doutput if dy is not None]
        found: Any = EagerPyFuncGrad(op.run, inputs, flowing) if inputs and flowing else ()
        grads = iter(found)
        return None, [next(grads, None) if x.dtype.is_floating or x.dtype.is_complex else None for x in op.input]


@operator
class EagerPyFuncGrad:
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

    def infer(op) -> Any:
        return [x.spec for x in op.input], _HANDLE

    def compute(op, run, input, doutput) -> Any:
        return _called(run, "backward", "EagerPyFuncGrad", doutput)

    def gradient(op, ddinput, dthis_run) -> Any:
        flowing = [dy for dy in ddinput if dy is not None]
        grads = EagerPyFuncGrad(op.this_run, [*op.input, *op.doutput], flowing)
        n = len(op.input)
        return None, list(grads[:n]), list(grads[n:])


def _numpy_operator(name: str, effect_: str | None) -> Any:
    class PyFunc:
        func = Input(resource)
        input = Input(any_dtype, repeated=True, mixed=True)
        output = Output(repeated=True, kind="of out_dtypes")
        out_dtypes = Attr([DType])
        effect = effect_
        lod = "vanishes"
        gradient = None

        def infer(op) -> Any:
            return [TensorSpec(UNKNOWN, d) for d in op.out_dtypes]

        def compute(op, func, input) -> Any:
            return _called(func, "call", name, input, op.out_dtypes)

    state = "It may have side effects." if effect_ else "It has no side effects: equal calls may become one, or none."
    PyFunc.__doc__ = f"""A Python function of NumPy arrays, called when the program runs. {state}

    .. math:: output = func(input)

    func: the handle of the function. out_dtypes: the dtypes of what it gives. No gradient flows through it.
    """
    return operator(name=name)(PyFunc)


PyFunc = _numpy_operator("PyFunc", "write")
PyFuncStateless = _numpy_operator("PyFuncStateless", None)
