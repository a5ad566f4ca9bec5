"""A data-parallel program for each engine: `mpiexec -n 2 python -m tests.distribute.training_program FOLDER EPOCHS`."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import opwright as ow

X = np.random.default_rng(0).standard_normal((41, 6)).astype(np.float32)  # of the last batch one worker has nothing
Y = np.tanh(X @ np.random.default_rng(1).standard_normal((6, 2))).astype(np.float32)


class Killed(ow.keras.callbacks.Callback):
    """Kill the process of worker 1 in the first epoch whose backup exists; once, which a file remembers."""

    def __init__(self, rank, folder):
        super().__init__()
        self.is_victim, self.mark = rank == 1, Path(folder, "killed")

    def on_train_batch_end(self, batch, logs=None):
        if (
            self.is_victim
            and batch == 1
            and not self.mark.exists()
            and Path(self.mark.parent, "backup.safetensors").exists()
        ):
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def train(communicator, folder, epochs, kill=False, overlap=True):
    """Train a small model with batch normalization of all workers; return weights, losses of training and validation by
    epoch, and the number of workers."""
    callbacks = [Killed(communicator.rank, folder)] if kill else []
    callbacks.append(ow.keras.callbacks.BackupAndRestore(folder))
    with ow.distribute.MultiWorker(communicator, overlap=overlap, bucket_bytes=200):
        model = ow.keras.Sequential(
            [
                ow.keras.Input((6,)),
                ow.keras.layers.Dense(8, use_bias=False),  # which batch normalization takes out
                ow.keras.layers.BatchNormalization(synchronized=True),
                ow.keras.layers.Activation("tanh"),
                ow.keras.layers.Dense(2),
            ]
        )
        generator = np.random.default_rng(2)
        model.set_weights([w if w.ndim == 1 else generator.standard_normal(w.shape) for w in model.get_weights()])
        model.compile(ow.keras.optimizers.Adam(0.01), "mse")
        options = {"batch_size": 10, "shuffle": False, "verbose": 0, "callbacks": callbacks}
        history = model.fit(X, Y, epochs=epochs, validation_data=(X[:31], Y[:31]), **options).history
    return model.get_weights(), [*zip(history["loss"], history["val_loss"])], communicator.size


def failing(communicator, folder):
    """Fail on one worker while the other one waits for it."""
    if communicator.rank == 1:
        raise KeyError("of the program")
    communicator.barrier()


if __name__ == "__main__":
    mpi = ow.distribute.MPICommunicator(timeout=120)
    weights, losses, size = train(mpi, sys.argv[1], int(sys.argv[2]), kill="kill" in sys.argv)
    everywhere = mpi.all_gather(np.concatenate([w.ravel() for w in weights]))
    assert (everywhere == everywhere[0]).all(), "all workers have the same weights"
    if mpi.rank == 0:
        np.savez(Path(sys.argv[1], "result.npz"), *weights, losses=losses, size=size)
