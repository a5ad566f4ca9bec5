"""Tables by rows on several workers: against one worker with the whole table, and checkpoints on another number."""

import json
import os

import numpy as np
import pytest
from tests.distribute.thread_workers import run_workers

import opwright as ow
from opwright.distribute import MultiWorker, ShardedCheckpoint, ShardedEmbedding
from opwright.distribute.tables import rows_of_shard, uniform_rows

layers = ow.keras.layers
ROWS, WIDTH = 31, 6
TABLE = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
IDS = np.random.default_rng(2).integers(0, ROWS, (24, 4)) // 2 * 2  # even rows alone: others must stay as they are
TARGETS = np.random.default_rng(3).standard_normal((24, 1)).astype(np.float32)
HEAD = np.random.default_rng(4).standard_normal((4 * WIDTH, 1)).astype(np.float32)


def model_of(embedding, optimizer):
    model = ow.keras.Sequential(
        [ow.keras.Input((4,), dtype="int32"), embedding, layers.Flatten(), layers.Dense(1, use_bias=False)]
    )
    model.layers[-1].set_weights([HEAD])
    model.compile(optimizer, "mse")
    return model


def whole(optimizer):
    embedding = layers.Embedding(ROWS, WIDTH)
    model = model_of(embedding, optimizer)
    embedding.set_weights([TABLE])
    return model


def sharded(optimizer):
    return model_of(ShardedEmbedding(ROWS, WIDTH, lambda rows: TABLE[rows]), optimizer)


OPTIMIZERS = {
    "sgd": lambda: ow.keras.optimizers.SGD(0.1),
    "lazy adam": lambda: ow.keras.optimizers.Adam(0.01, lazy_mode=True),
    "adagrad": lambda: ow.keras.optimizers.Adagrad(0.1),
}
FIT = {"batch_size": 12, "epochs": 2, "verbose": 0, "shuffle": False}


def joined(shards):
    """Return the whole table of the workers' rows."""
    table = np.empty((ROWS, WIDTH), np.float32)
    for rank, shard in enumerate(shards):
        table[rows_of_shard(ROWS, rank, len(shards))] = shard
    return table


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "lazy adam" else pytest.mark.slow) for n in OPTIMIZERS]
)
def test_a_table_by_rows_trains_as_a_whole_one(name):
    def work(communicator):
        with MultiWorker(communicator, overlap=False):
            model = sharded(OPTIMIZERS[name]())
            model.fit(IDS, TARGETS, **FIT)
            return model.layers[0].embeddings.numpy(), model.layers[-1].get_weights()[0]

    results = run_workers(3, work)
    alone = whole(OPTIMIZERS[name]())
    alone.fit(IDS, TARGETS, **FIT)
    table = joined([shard for shard, _ in results])
    np.testing.assert_allclose(table, alone.layers[0].get_weights()[0], rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(results[1][1], alone.layers[-1].get_weights()[0], rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(table[1::2], TABLE[1::2])


def test_checkpoints_are_read_on_another_number_of_workers(tmp_path):
    """Train on 3, go on with 2, then with 1: the same as 4 epochs of one worker."""

    def work(communicator):
        with MultiWorker(communicator, overlap=False):
            model = sharded(OPTIMIZERS["lazy adam"]())
            model.optimizer.build(model.trainable_weights)
            checkpoint = ShardedCheckpoint(tmp_path, model)
            epoch = checkpoint.restore()
            model.fit(IDS, TARGETS, **{**FIT, "epochs": epoch + 1, "initial_epoch": epoch})
            checkpoint.save(epoch + 1)
            if communicator.size > 1:
                refused = (ValueError, ow.errors.FailedPreconditionError)
                with pytest.raises(refused, match=r"ShardedCheckpoint|worker 0 failed"):
                    ow.train.Checkpoint(model=model).write(tmp_path / "other")
            return epoch, model.layers[0].embeddings.numpy()

    for epoch, size in enumerate((3, 2, 1)):
        results = run_workers(size, work)
        assert [e for e, _ in results] == [epoch] * size
        assert len([f for f in os.listdir(tmp_path) if "shard" in f]) == size
    alone = whole(OPTIMIZERS["lazy adam"]())
    alone.fit(IDS, TARGETS, **{**FIT, "epochs": 3})
    np.testing.assert_allclose(results[0][1], alone.layers[0].get_weights()[0], rtol=2e-6, atol=1e-6)


class FullDisk(MultiWorker):
    """A strategy whose first worker cannot write."""

    def written(self, write):
        raise OSError("the disk is full")


def test_a_checkpoint_that_was_not_finished_is_not_read(tmp_path):
    with MultiWorker():
        model = sharded(OPTIMIZERS["sgd"]())
        model.optimizer.build(model.trainable_weights)
        checkpoint = ShardedCheckpoint(tmp_path, model)
        assert checkpoint.restore() == 0
        checkpoint.save(5)
        model.layers[0].embeddings.assign(ow.zeros((ROWS, WIDTH)))
        broken = ShardedCheckpoint(tmp_path, model)
        broken._strategy = FullDisk()
        with pytest.raises(OSError, match="disk"):
            broken.save(6)
        assert checkpoint.restore() == 5
        np.testing.assert_array_equal(model.layers[0].embeddings.numpy(), TABLE)
        (tmp_path / "index.json").write_text(json.dumps({"format": "x"}))
        with pytest.raises(ow.errors.DataLossError, match="index"):
            checkpoint.restore()


def test_initial_values_do_not_depend_on_workers():
    rows = np.arange(1000)
    table = uniform_rows(rows, 64, seed=3)
    for size in (2, 3):
        for rank in range(size):
            own = rows_of_shard(1000, rank, size)
            np.testing.assert_array_equal(uniform_rows(own, 64, seed=3), table[own])
    assert abs(table).max() <= 0.05
    histogram = np.histogram(table, 16, (-0.05, 0.05))[0] / table.size
    np.testing.assert_allclose(histogram, 1 / 16, atol=4 * (1 / 16 / table.size) ** 0.5)  # four deviations
    assert abs(np.corrcoef(table[:, :8].T) - np.eye(8)).max() < 0.15
    assert (uniform_rows(rows, 64, seed=4) != table).mean() > 0.99


def test_wrong_ids_and_arguments():
    with pytest.raises(ow.errors.FailedPreconditionError, match="strategy"):
        ShardedEmbedding(4, 2)
    with MultiWorker():
        with pytest.raises(ValueError, match="rows and columns"):
            ShardedEmbedding(0, 2)
        with pytest.raises(ValueError, match="'uniform'"):
            ShardedEmbedding(4, 2, "ones")
        layer = ShardedEmbedding(4, 2)
        assert layer(ow.constant([[0, 3]])).shape == [1, 2, 2]
        with pytest.raises(ow.errors.InvalidArgumentError, match="out of range"):
            layer(ow.constant([4]))
        assert ShardedEmbedding.from_config(layer.get_config()).input_dim == 4
