"""`ow.summary`: curves, histograms, images, texts and graphs in event files, which TensorBoard shows.

Lives here: the names of `tf.summary`. Not here: writers (summary_writers.py), event files (event_files.py), the
callback of training (nn/callbacks/tensorboard.py).

Eagerly, a summary is written at once. In a `function`, each run of it writes one: by the writer that was the default
when it was traced, or if that is closed by the default one, at the step of the time of tracing, which therefore is a
Variable where it changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core import dtypes, forks
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.node_protos import graph_bytes, node_bytes
from ..core.protobuf_wire import VARINT, key, sized, varint
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from ..eager.tensor import constant
from ..graph import Graph
from ..graph.ir import GraphDef
from ..ops import dispatch
from ..ops.tensor import Tensor
from ..tracing.concrete import ConcreteFunction, trace_listeners
from ..tracing.name_scopes import get_current_name_scope, name_scope
from . import profiler as profiles
from .event_files import metadata_bytes, summary_bytes
from .summary_writers import (
    FileWriter,
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    current_condition,
    defaults,
    flush,
    get_step,
    record_if,
    set_step,
    should_record_summaries,
)

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "graph",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
]

BUCKETS = 30
_WAV = key(2, VARINT) + varint(11)  # AudioPluginData: 2 encoding, WAV


@contextlib.contextmanager
def _summary_scope(name: str | None, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """Return a context for a summary: its tag, the name behind those of the enclosing scopes, and its own scope."""
    own = name or default_name
    outer = get_current_name_scope()
    with name_scope(own) as scope:
        yield (f"{outer}/{own}" if outer else own), scope


def _write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Any:
    """Write Summary messages. tensor: their bytes, a string of shape (); step as of `write`. Returns as `write`."""
    return _record(tensor, step, lambda array: bytes(array[()]), name)


experimental = SimpleNamespace(
    get_step=get_step, set_step=set_step, summary_scope=_summary_scope, write_raw_pb=_write_raw_pb
)


def _record(operand: Any, step: Any, message: Callable[[np.ndarray], bytes], name: str | None = None) -> Any:
    """Write a summary if there is a writer and the condition holds; return whether, a bool tensor.

    operand: a tensor, or a function of one that is called if a summary may be written. message: from its array to the
    bytes of a Summary
    raises ValueError without any step
    """
    writer = defaults.writer
    if not isinstance(writer, FileWriter):
        return constant(False)
    condition = dispatch.to_tensor(current_condition())
    is_traced = dispatch.state.trace is not None
    if not is_traced and not condition.numpy():
        return constant(False)
    step = defaults.step if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "ow.summary.experimental.set_step()"
        )

    def write_if(array: np.ndarray, recorded: np.ndarray, at: np.ndarray) -> np.ndarray:
        current = _successor(writer) if is_traced else writer
        if recorded and current is not None:
            current.events.add(int(at), sized(5, message(array)))
        return np.array(bool(recorded) and current is not None)

    value = dispatch.to_tensor(operand() if callable(operand) else operand)
    operands = [value, condition, dispatch.to_tensor(step)]
    return call_on_arrays(write_if, operands, TensorSpec((), dtypes.bool), name, stateful=True)


def _successor(writer: FileWriter) -> FileWriter | None:
    """Return the writer of a summary that was traced: that of then, and once it is closed the default one of now."""
    current = writer if not writer.events.closed else defaults.writer
    return current if isinstance(current, FileWriter) else None


def write(tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Any:
    """Write a tensor.

    tag: the name that TensorBoard shows. tensor: one, or a function of one that is called if a summary may be written.
    step: an integer, the default step without one. metadata: a SummaryMetadata or its bytes, which name a plugin of
    TensorBoard. Returns whether it was written, a bool tensor.
    raises ValueError if there is a writer and no step, InvalidArgumentError for dtypes that messages cannot hold
    """
    serialized = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else bytes(metadata or b"")
    dtype: list[DType] = []

    def operand() -> Tensor:
        value: Tensor = dispatch.to_tensor(tensor() if callable(tensor) else tensor)
        dtype.append(value.dtype)
        return value

    return _record(operand, step, lambda array: summary_bytes(tag, array, dtype[-1], serialized), name)


def _plugin(
    name: str,
    operand: Callable[[], Any],
    step: Any,
    contents: Callable[[np.ndarray], np.ndarray],
    dtype: DType,
    plugin: str,
    content: bytes = b"",
    description: str | None = None,
) -> Any:
    """Write what a plugin of TensorBoard shows. contents: from an operand's array to that of the summary."""
    metadata = metadata_bytes(plugin, content, description)
    with _summary_scope(name, f"{plugin}_summary") as (tag, _):
        return _record(operand, step, lambda array: summary_bytes(tag, contents(array), dtype, metadata))


def _checked(what: str, data: Any, rank: int, wanted: str) -> Tensor:
    tensor: Tensor = dispatch.to_tensor(data)
    if tensor.shape.rank not in (rank, None):
        raise InvalidArgumentError(
            op=f"summary.{what}", what="wrong rank", found=f"shape {tensor.shape}", wanted=wanted
        )
    return tensor


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """Write a number, a point of the curve of its name.

    name: behind the names of enclosing scopes. data: a number of any real dtype, stored as float32. step: an integer,
    the default step without one. description: Markdown. Returns whether it was written, a bool tensor.
    raises InvalidArgumentError for another rank, ValueError if there is a writer and no step
    """
    operand = _checked("scalar", data, 0, "a number")
    return _plugin(
        name, lambda: operand, step, lambda x: x.astype(np.float32), dtypes.float32, "scalars", b"", description
    )


def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None
) -> Any:
    """Write the histogram of a tensor's elements, in buckets of equal width, but infinities and NaN.

    data: of any shape and real dtype. buckets: their number, 30. Other arguments and result as of `scalar`
    """
    operand = dispatch.to_tensor(data)
    count = BUCKETS if buckets is None else int(buckets)
    return _plugin(
        name, lambda: operand, step, lambda x: histogram_of(x, count), dtypes.float64, "histograms", b"", description
    )


def histogram_of(array: np.ndarray, count: int) -> np.ndarray:
    """Return float64[count, 3]: the edges of each bucket and its elements; the last one includes its right edge.

    An array of equal elements has all of them in the last bucket, whose width is 0; without elements all is 0.
    """
    flat = array.reshape(-1).astype(np.float64)
    flat = flat[np.isfinite(flat)]
    count = max(count, 0)
    if not flat.size or not count:
        return np.zeros((count, 3))
    low, high = flat.min(), flat.max()
    if low == high:
        return np.stack([np.full(count, low), np.full(count, low), np.eye(1, count, count - 1)[0] * flat.size], 1)
    indices = np.minimum(np.floor((flat - low) / ((high - low) / count)).astype(np.int64), count - 1)
    edges = np.linspace(low, high, count + 1)
    return np.stack([edges[:-1], edges[1:], np.bincount(indices, minlength=count).astype(np.float64)], 1)


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None) -> Any:
    """Write images as PNG.

    data: [images, height, width, channels] of 1 to 4 channels: floats in [0, 1], which are clipped, or integers in the
    range of their dtype. max_outputs: images that are written at most. Other arguments and result as of `scalar`
    raises InvalidArgumentError for another rank, and eagerly for another number of channels
    """
    from ..ops.image import convert_image_dtype
    from . import png_samples

    tensor = _checked("image", data, 4, "[images, height, width, channels]")

    def contents(pixels: np.ndarray) -> np.ndarray:
        sizes = [str(n).encode() for n in (pixels.shape[2], pixels.shape[1])]
        return np.array([*sizes, *(png_samples.write(each, -1) for each in pixels)], object)

    def operand() -> Any:
        return convert_image_dtype(tensor[:max_outputs], dtypes.uint8, saturate=True)

    return _plugin(name, operand, step, contents, dtypes.string, "images", b"", description)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Any:
    """Write sounds as WAV files of 16 bits.

    data: float32[clips, samples, channels] in [-1, 1]. sample_rate: samples per second. max_outputs: clips that are
    written at most. encoding: "wav". Other arguments and result as of `scalar`
    raises InvalidArgumentError for another rank, ValueError for another encoding
    """
    from .audio import encode_wav

    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    tensor, rate = _checked("audio", data, 3, "[clips, samples, channels]"), int(sample_rate)

    def contents(clips: np.ndarray) -> np.ndarray:
        rows = np.empty((len(clips), 2), object)
        for row, clip in zip(rows, clips):
            row[:] = encode_wav(clip, rate).numpy(), b""
        return rows

    return _plugin(name, lambda: tensor[:max_outputs], step, contents, dtypes.string, "audio", _WAV, description)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """Write texts, which TensorBoard shows as Markdown. data: strings of any shape. Otherwise as `scalar`.

    raises InvalidArgumentError for another dtype
    """
    tensor = dispatch.to_tensor(data)
    if tensor.dtype is not dtypes.string:
        raise InvalidArgumentError(op="summary.text", what="texts are strings", found=tensor.dtype.name)
    return _plugin(name, lambda: tensor, step, lambda array: array, dtypes.string, "text", b"", description)


def graph(graph_data: Any) -> None:
    """Write a graph, which TensorBoard draws.

    graph_data: a Graph, such as `f.get_concrete_function().graph`, or a GraphDef of `as_graph_def`. Without effect
    without a default writer; no condition applies
    raises TypeError for other objects, ValueError inside of a function
    """
    if dispatch.state.trace is not None:
        raise ValueError("graph() cannot be invoked inside a function that is being traced")
    records = graph_data.as_graph_def() if isinstance(graph_data, Graph) else graph_data
    if not isinstance(records, GraphDef):
        raise TypeError(f"graph_data is a Graph or GraphDef, found {type(graph_data).__name__}")
    if isinstance(writer := defaults.writer, FileWriter):
        writer.events.add(0, sized(4, _graph_bytes(records)))


def _graph_bytes(records: GraphDef) -> bytes:
    return graph_bytes([node_bytes(n.name, n.op, n.input, _attributes(n.attr)) for n in records.node])


# ---- graphs of functions ---------------------------------------------------------------------------------------------


class _Recorded:
    """The functions that were traced since `trace_on`, and whether a profile is recorded."""

    def __init__(self, graph: bool, profiler_outdir: Any) -> None:
        self.functions: list[ConcreteFunction] = []
        self.is_profile = profiler_outdir is not None
        if graph:
            trace_listeners.append(self.functions.append)
        if self.is_profile:
            profiles.start(profiler_outdir)

    def end(self, save: bool) -> None:
        """Record no more. save: whether to write the profile."""
        trace_listeners[:] = [listen for listen in trace_listeners if listen != self.functions.append]
        if self.is_profile:
            profiles.stop(save)


_recorded: list[_Recorded] = []
_recording = forks.lock()


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Begin to record the graphs of functions that are traced from now on, and a profile.

    profiler: whether to record a profile, whose folder is profiler_outdir. Without effect while there is a recording.
    raises ValueError for a profile without a folder
    """
    if profiler and profiler_outdir is None:
        raise ValueError("summary.trace_on: profiler=True needs profiler_outdir, the folder of the profile")
    with _recording:
        if not _recorded and (graph or profiler):
            _recorded.append(_Recorded(graph, profiler_outdir if profiler else None))


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """End the recording, and write the graphs under a tag for TensorBoard, and the profile.

    step: see `scalar`. profiler_outdir: accepted; `trace_on` takes the folder.
    raises ValueError without a recording
    """
    with _recording:
        if not _recorded:
            raise ValueError("Must enable trace before export through tf.summary.trace_on.")
        recorded = _recorded.pop()
    recorded.end(save=True)
    # RunMetadata: 4 function_graphs (2 pre_optimization_graph)
    graphs = [_graph_bytes(function.graph.as_graph_def()) for function in recorded.functions]
    if graphs:
        contents = np.array(b"".join(sized(4, sized(2, each)) for each in graphs), object)
        write(name, contents, step, metadata_bytes("graph_run_metadata_graph", b"1"))


def trace_off() -> None:
    """End the recording without writing anything."""
    with _recording:
        if _recorded:
            _recorded.pop().end(save=False)


def _attributes(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return attributes as far as a NodeDef holds them: others, such as arrays and graphs, as their type's name."""
    return {name: _attribute(value) for name, value in attrs.items() if value is not None}


def _attribute(value: Any) -> Any:
    if isinstance(value, list | tuple):
        items = [_attribute(item) for item in value]
        return items if len({type(item) for item in items}) < 2 else repr(value)[:80]
    return value if isinstance(value, bool | int | float | bytes | str | DType | TensorShape) else repr(value)[:80]
