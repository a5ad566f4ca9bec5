"""`ow.print`: text and tensors written out each time the program runs.

Lives here: Print, and the function that makes a template of what it is given.
Not here: how a tensor is written (strings/summarizing.py), Python's `print` inside `function` (staging/).
"""

from __future__ import annotations

import logging
import pprint
import sys
from typing import Any

import numpy as np

from ..core import dtypes, nest
from . import dispatch
from .attributes import Attr
from .definition import Input, operator
from .indexed_slices import IndexedSlices
from .strings.formatting import StringFormat
from .tensor import TensorLike

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@operator
class Print:
    """Write a string out, each time it runs.

    .. math:: stream \\leftarrow input + end

    output_stream: stdout, stderr, log(info), log(warning), log(error), or file://path, which is added to.
    """

    input = Input(dtypes.string, rank=0)
    output_stream = Attr(str, default="stderr")
    end = Attr(str, default="\n")
    effect = "write"

    def infer(op) -> Any:
        return ()

    def compute(op, input) -> Any:
        write_out(bytes(np.asarray(input)[()]), op.output_stream, op.end)
        return ()


def write_out(text: bytes, stream: str, end: str) -> None:
    """Write one line where `stream` says, at once."""
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
    """What the operator calls a stream. Raises ValueError listing those there are."""
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
    """Where a tensor stands in a structure; as wide as a quoted `{}`, by which long structures are broken up."""

    mark = "\ue000\ue001\ue002\ue003"  # no repr() has these: they are for private use, which repr escapes

    def __repr__(self) -> str:
        return self.mark


def print(*inputs: Any, **kwargs: Any) -> None:
    """Write `inputs` out, each time the program runs: inside `function` in program order with other effects.

    inputs: tensors, Python values, and structures of them; what is no tensor is written as it is while tracing.
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

    def leaf(value: Any) -> Any:
        if isinstance(value, IndexedSlices) and value.dense_shape is not None:
            value = value.to_dense()
        if not isinstance(value, TensorLike):
            return value
        tensors.append(dispatch.to_tensor(value))
        return _Slot()

    for i, given in enumerate(inputs):
        shown = [given] if isinstance(given, str) \
            else pprint.pformat(nest.map_structure(leaf, given)).split(_Slot.mark)  # fmt: skip
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


__all__ = ["print"]
