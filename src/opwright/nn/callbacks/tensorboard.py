"""The callback that writes what TensorBoard shows of training.

Lives here: `TensorBoard`, the steps at which summaries of a model's own code are written.
Not here: summaries and event files (io/summary.py), other files (files.py).
"""

from __future__ import annotations

import os
import time
import weakref
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes, replicas
from ...core.errors import UnimplementedError
from ...core.lazy_imports import later
from ...eager.variable import Variable
from ...ops import dispatch
from ..layers import Embedding
from .base import Callback
from .metric_monitors import current_learning_rate

if TYPE_CHECKING:
    from ...io import event_files, summary
else:
    event_files = later("opwright.io.event_files", __package__)
    summary = later("opwright.io.summary", __package__)

_PROJECTED = "layer_with_weights-0/embeddings/.ATTRIBUTES/VARIABLE_VALUE"  # the name that Keras gives the tensor


class _BatchCounter:
    """The step and condition of summaries inside of a model, as variables that its traced steps read."""

    def __init__(self) -> None:
        self.step = Variable(0, dtype=dtypes.int64, trainable=False, name="summary_step")
        self.every = Variable(1, dtype=dtypes.int64, trainable=False, name="summary_every")

    def is_due(self) -> Any:
        """Return whether summaries of the step are written."""
        return dispatch.to_tensor(self.step) % dispatch.to_tensor(self.every) == 0


_counters: weakref.WeakKeyDictionary[Any, dict[str, _BatchCounter]] = weakref.WeakKeyDictionary()


class TensorBoard(Callback):
    """Callback that writes event files for TensorBoard: `tensorboard --logdir logs`.

    log_dir: the folder; training is written to its folder train, evaluation to validation. histogram_freq: epochs
    between histograms of the weights, 0 for none. write_graph: whether the graph of the training step is written, and
    the layers of Sequential and functional models. write_images: whether weights are written as images, too, at the
    same epochs. write_steps_per_second: whether the steps per second are. update_freq: "epoch", "batch" or the number
    of batches between points of the metrics; summaries that the model's own code writes, by `ow.summary` in its
    `call`, have the same steps. embeddings_freq: epochs between files of the weights for the projector (extra
    `opwright[keras]`), 0 for none; embeddings_metadata: its file of labels, or one by name of a layer.

    raises ValueError for another update_freq and for unknown layers, UnimplementedError for profile_batch
    """

    def __init__(
        self,
        log_dir: Any = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: Any = "epoch",
        profile_batch: Any = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: Any = None,
    ) -> None:
        super().__init__()
        if profile_batch not in (0, None):
            raise UnimplementedError(
                op="TensorBoard", what="no profile is written for TensorBoard", do="profile_batch=0, and ow.profiler"
            )
        frequency = 1 if update_freq == "batch" else update_freq
        if frequency != "epoch" and (not isinstance(frequency, int) or isinstance(frequency, bool) or frequency < 1):
            raise ValueError(f"update_freq is 'epoch', 'batch' or a number of batches, found {update_freq!r}")
        self.log_dir, self.histogram_freq, self.write_graph = os.fspath(log_dir), histogram_freq, write_graph
        self.write_images, self.write_steps_per_second = write_images, write_steps_per_second
        self.update_freq: Any = frequency
        self.embeddings_freq, self.embeddings_metadata = embeddings_freq, embeddings_metadata
        self._writers: dict[str, Any] = {}
        self._contexts: dict[str, ExitStack] = {}
        self._batch = self._test_batch = 0
        self._graph_is_due = False
        self._epoch_start = self._batch_start = 0.0
        self._epoch_iterations = 0

    def set_model(self, model: Any) -> None:
        """Write the layers of the model, if `write_graph`."""
        self._model = model
        self._close()
        self._graph_is_due = self.write_graph
        if self.write_graph and type(model).__module__.startswith("opwright."):  # Sequential and functional models
            metadata = event_files.metadata_bytes("graph_keras_model", b"1")
            with self._writer("train").as_default():
                summary.write("keras", model.to_json(), step=0, metadata=metadata)
        if self.embeddings_freq:
            replicas.written(self._configure_projector)

    def _writer(self, run: str) -> Any:
        """Return the writer of "train" or "validation", opened at the first use; of several workers one writes."""
        if run not in self._writers:
            writer = replicas.written(lambda: summary.create_file_writer(os.path.join(self.log_dir, run)))
            self._writers[run] = summary.create_noop_writer() if writer is None else writer
        return self._writers[run]

    def _close(self) -> None:
        for context in self._contexts.values():
            context.close()
        for writer in self._writers.values():
            writer.close()
        self._contexts, self._writers = {}, {}

    def _enter(self, run: str, batch: int) -> None:
        """Let the summaries of the model's own code go to a run, at the number of a batch."""
        if self.update_freq == "epoch":
            return
        counter = _counters.setdefault(self._model, {}).setdefault(run, _BatchCounter())
        counter.step.assign(batch)
        counter.every.assign(self.update_freq)
        if run not in self._contexts:
            context = self._contexts[run] = ExitStack()
            context.enter_context(self._writer(run).as_default(counter.step))
            context.enter_context(summary.record_if(counter.is_due))

    def _leave(self, run: str) -> None:
        context = self._contexts.pop(run, None)
        if context is not None:
            context.close()

    def on_train_begin(self, logs: Any = None) -> None:
        """Start the count of batches."""
        self._batch = 0
        self._enter("train", 0)

    def on_train_end(self, logs: Any = None) -> None:
        """Close the files."""
        self._close()

    def on_test_begin(self, logs: Any = None) -> None:
        """Let summaries go to the run of validation."""
        self._enter("validation", self._test_batch)

    def on_test_end(self, logs: Any = None) -> None:
        """Write the metrics of an evaluation at the number of training steps."""
        optimizer = self._model.optimizer
        if optimizer is not None:
            with self._writer("validation").as_default(), summary.record_if(True):
                for name, number in (logs or {}).items():
                    summary.scalar(f"evaluation_{name}_vs_iterations", number, step=optimizer.iterations)
        self._leave("validation")

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Count the batch."""
        self._batch += 1
        self._enter("train", self._batch)
        self._batch_start = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Write the metrics so far, if they are due, and the graph once."""
        if self._graph_is_due:
            self._graph_is_due = False
            graph = self._model._trainer.steps.graph("train")
            if graph is not None:
                with self._writer("train").as_default():
                    summary.graph(graph)
        if self.update_freq == "epoch":
            return
        if self.write_steps_per_second:
            seconds = time.monotonic() - self._batch_start
            summary.scalar("batch_steps_per_second", 1.0 / max(seconds, 1e-9), step=self._batch)
        for name, number in (logs or {}).items():
            summary.scalar(f"batch_{name}", number, step=self._batch)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Count the batch."""
        self._test_batch += 1
        self._enter("validation", self._test_batch)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Take the time."""
        self._epoch_start = time.monotonic()
        self._epoch_iterations = self._batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the metrics of the epoch, and what is due of the weights."""
        training = {k: v for k, v in (logs or {}).items() if not k.startswith("val_")}
        validation = {k.removeprefix("val_"): v for k, v in (logs or {}).items() if k.startswith("val_")}
        if training:
            if hasattr(self._model.optimizer, "learning_rate"):
                training["learning_rate"] = current_learning_rate(self._model)
            if self.write_steps_per_second:
                seconds = time.monotonic() - self._epoch_start
                training["steps_per_second"] = (self._batch - self._epoch_iterations) / max(seconds, 1e-9)
        with summary.record_if(True):
            for run, metrics in (("train", training), ("validation", validation)):
                if metrics:
                    with self._writer(run).as_default():
                        for name, number in metrics.items():
                            summary.scalar(f"epoch_{name}", number, step=epoch)
            if self.histogram_freq and epoch % self.histogram_freq == 0:
                self._write_weights(epoch)
        if self.embeddings_freq and epoch % self.embeddings_freq == 0:
            path = os.path.join(self.log_dir, "train", f"keras_embedding.ckpt-{epoch}.weights.h5")
            replicas.written(lambda: self._model.save_weights(path))

    def _write_weights(self, epoch: int) -> None:
        with self._writer("train").as_default():
            for layer in self._model.layers:
                for weight in layer.weights:
                    tag = weight.path.replace(":", "_")
                    summary.histogram(f"{tag}/histogram", weight, step=epoch)
                    if self.write_images and (pixels := image_of_weight(weight.numpy())) is not None:
                        summary.image(f"{tag}/image", pixels, step=epoch)

    def _configure_projector(self) -> None:
        """Write the projector's list of embeddings, a message in text form."""
        by_layer = dict(self.embeddings_metadata) if isinstance(self.embeddings_metadata, dict) else None
        entries = []
        for layer in self._model.layers:
            if isinstance(layer, Embedding):
                path = self.embeddings_metadata if by_layer is None else by_layer.pop(layer.name, None)
                lines = [f'  tensor_name: "{_PROJECTED}"\n']
                if path is not None:
                    lines.append(f'  metadata_path: "{_quoted(os.fspath(path))}"\n')
                entries.append("".join(("embeddings {\n", *lines, "}\n")))
        if by_layer:
            raise ValueError(
                f"embeddings_metadata names layers that are not Embedding layers of the model: {sorted(by_layer)}"
            )
        os.makedirs(self.log_dir, exist_ok=True)
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.writelines(entries)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def image_of_weight(weight: np.ndarray) -> np.ndarray | None:
    """Return a weight as images [n, height, width, channels]: a bias as a row, a matrix with the longer axis across,
    the last axis of three as images; None for others."""
    pixels = weight.squeeze()
    if pixels.ndim == 1:
        pixels = pixels.reshape(1, -1, 1, 1)
    elif pixels.ndim == 2:
        pixels = (pixels.T if pixels.shape[0] > pixels.shape[1] else pixels)[None, ..., None]
    elif pixels.ndim == 3:
        pixels = pixels.transpose(2, 0, 1)[..., None]
    return pixels if pixels.ndim == 4 and pixels.shape[-1] in (1, 3, 4) and pixels.size else None
