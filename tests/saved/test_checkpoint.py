"""train.Checkpoint: what is saved, matched, restored now and later; the same in TensorFlow."""

import gc
import os

import numpy as np
import pytest


def values(*variables):
    return [v.numpy().tolist() for v in variables]


def test_save_and_restore(tf, tmp_path):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(3)
    checkpoint = tf.train.Checkpoint(v=v, w=w)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    assert path == str(tmp_path / "ckpt-1")
    v.assign([0.0, 0.0])
    w.assign(0)
    checkpoint.restore(path).assert_consumed()
    assert values(v, w) == [[1.0, 2.0], 3]


def test_save_counts_and_notes_the_latest(tf, tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    checkpoint.save(str(tmp_path / "c"))
    second = checkpoint.save(str(tmp_path / "c"))
    assert second.endswith("c-2")
    assert int(checkpoint.save_counter.numpy()) == 2
    assert checkpoint.save_counter.dtype == tf.int64
    assert tf.train.latest_checkpoint(str(tmp_path)) == second
    other = tf.train.Checkpoint(v=tf.Variable(0.0))
    other.restore(second).assert_consumed()
    assert int(other.save_counter.numpy()) == 2
    assert other.save(str(tmp_path / "c")).endswith("c-3")


def test_write_and_read_do_not_count(tf, tmp_path):
    v = tf.Variable(5.0)
    checkpoint = tf.train.Checkpoint(v=v)
    assert checkpoint.write(str(tmp_path / "plain")) == str(tmp_path / "plain")
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    v.assign(0.0)
    checkpoint.read(str(tmp_path / "plain")).assert_consumed()
    assert v.numpy() == 5.0


def test_names_are_paths_of_attributes(tf, tmp_path):
    module = tf.Module()
    module.layers = [tf.Variable([1.0]), {"a.b/c": tf.Variable([[2.0]])}]
    path = tf.train.Checkpoint(model=module, step=tf.Variable(1)).write(str(tmp_path / "x"))
    result = dict(tf.train.list_variables(path))
    result.pop("_CHECKPOINTABLE_OBJECT_GRAPH", None)
    assert result == {
        "model/layers/0/.ATTRIBUTES/VARIABLE_VALUE": [1],
        "model/layers/1/a..b.Sc/.ATTRIBUTES/VARIABLE_VALUE": [1, 1],
        "step/.ATTRIBUTES/VARIABLE_VALUE": [],
    }
    assert tf.train.load_variable(path, "step/.ATTRIBUTES/VARIABLE_VALUE") == 1
    reader = tf.train.load_checkpoint(path)
    assert reader.has_tensor("step/.ATTRIBUTES/VARIABLE_VALUE")
    assert not reader.has_tensor("step")
    assert reader.get_variable_to_dtype_map()["step/.ATTRIBUTES/VARIABLE_VALUE"] == tf.int32


def test_matching_goes_by_path_and_not_by_name(tf, tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0, name="x"), b=tf.Variable(2.0, name="y")).write(str(tmp_path / "p"))
    a, b = tf.Variable(0.0, name="y"), tf.Variable(0.0, name="x")
    tf.train.Checkpoint(a=a, b=b).read(path).assert_consumed()
    assert values(a, b) == [1.0, 2.0]


def test_shared_objects_are_saved_once(tf, tmp_path):
    v = tf.Variable(1.0)
    path = tf.train.Checkpoint(a=v, b=v).write(str(tmp_path / "p"))
    assert len([n for n, _ in tf.train.list_variables(path) if "VALUE" in n]) == 1
    one = tf.Variable(0.0)
    tf.train.Checkpoint(b=one).read(path).assert_consumed()
    assert one.numpy() == 1.0


def test_root_returns_its_attributes(tf, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(4.0)
    path = tf.train.Checkpoint(module).save(str(tmp_path / "r"))
    names = {n for n, _ in tf.train.list_variables(path)}
    assert {"v/.ATTRIBUTES/VARIABLE_VALUE", "save_counter/.ATTRIBUTES/VARIABLE_VALUE"} <= names
    other = tf.Module()
    other.v = tf.Variable(0.0)
    tf.train.Checkpoint(v=other.v).restore(path).assert_consumed()
    assert other.v.numpy() == 4.0
    with pytest.raises(ValueError, match="already exists"):
        tf.train.Checkpoint(module, v=tf.Variable(1.0))
    tf.train.Checkpoint(module, v=module.v)


def test_what_is_not_trackable(tf):
    with pytest.raises(ValueError, match="trackable"):
        tf.train.Checkpoint(a=3)


def test_variables_made_later_get_their_values(tf, tmp_path):
    module = tf.Module()
    module.v, module.inner = tf.Variable([1.0, 2.0]), [tf.Variable(3.0)]
    path = tf.train.Checkpoint(m=module).save(str(tmp_path / "d"))
    late = tf.Module()
    status = tf.train.Checkpoint(m=late).restore(path)
    with pytest.raises(AssertionError):
        status.assert_consumed()
    status.assert_existing_objects_matched()
    late.v = tf.Variable([0.0, 0.0])
    assert late.v.numpy().tolist() == [1.0, 2.0]
    late.inner = [tf.Variable(0.0)]
    assert late.inner[0].numpy() == 3.0
    status.assert_consumed()


def test_variables_made_before_and_attached_later(tf, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(7.0)
    path = tf.train.Checkpoint(m=module).save(str(tmp_path / "d"))
    late, v = tf.Module(), tf.Variable(0.0)
    checkpoint = tf.train.Checkpoint(m=late)
    checkpoint.restore(path)
    assert v.numpy() == 0.0
    late.v = v
    assert v.numpy() == 7.0


def test_an_assignment_after_creation_counts(tf, tmp_path):
    module = tf.Module()
    module.v, module.w = tf.Variable(7.0), tf.Variable(8.0)
    path = tf.train.Checkpoint(m=module).save(str(tmp_path / "d"))
    late = tf.Module()
    checkpoint = tf.train.Checkpoint(m=late)
    checkpoint.restore(path)
    late.v = tf.Variable(0.0)
    late.v.assign(1.0)
    late.w = tf.Variable(0.0)
    late.w.assign_add(1.0)
    assert values(late.v, late.w) == [1.0, 9.0]


def test_the_checkpoint_object_may_go(tf, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(7.0)
    path = tf.train.Checkpoint(m=module).save(str(tmp_path / "d"))
    late = tf.Module()
    tf.train.Checkpoint(m=late).restore(path).expect_partial()
    gc.collect()
    late.v = tf.Variable(0.0)
    assert late.v.numpy() == 7.0


def test_a_value_is_restored_once(tf, tmp_path):
    module = tf.Module()
    module.v = tf.Variable(7.0)
    path = tf.train.Checkpoint(m=module).save(str(tmp_path / "d"))
    checkpoint = tf.train.Checkpoint(m=module, extra=tf.Module())
    checkpoint.restore(path)
    module.v.assign(1.0)
    checkpoint.extra.v = tf.Variable(0.0)
    assert values(module.v, checkpoint.extra.v) == [1.0, 0.0]


def test_statuses(tf, tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(str(tmp_path / "s"))
    fewer = tf.train.Checkpoint(a=tf.Variable(0.0)).restore(path)
    fewer.assert_existing_objects_matched().assert_nontrivial_match()
    with pytest.raises(AssertionError, match="Unresolved object"):
        fewer.assert_consumed()
    fewer.expect_partial()
    more = tf.train.Checkpoint(a=tf.Variable(0.0), b=tf.Variable(0.0), c=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="not bound to checkpointed values"):
        more.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="not bound to checkpointed values"):
        more.assert_consumed()
    more.assert_nontrivial_match()
    other = tf.train.Checkpoint(z=tf.Variable(0.0)).read(path)
    with pytest.raises(AssertionError, match="Nothing except the root"):
        other.assert_nontrivial_match()
    other.expect_partial()


def test_restore_nothing(tf):
    status = tf.train.Checkpoint(v=tf.Variable(1.0)).restore(None)
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        status.assert_existing_objects_matched()
    status.expect_partial()


def test_a_missing_checkpoint(tf, tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(tf.errors.NotFoundError, match="missing the checkpoint suffix"):
        checkpoint.restore(str(tmp_path / "nothing"))


def test_other_shapes_and_dtypes(tf, tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(str(tmp_path / "s"))
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(2,\)"):
        tf.train.Checkpoint(v=tf.Variable([1.0, 2.0, 3.0])).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.train.Checkpoint(v=tf.Variable([1, 2])).restore(path)


def test_a_variable_of_unknown_shape(tf, tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(str(tmp_path / "s"))
    v = tf.Variable(1.0, shape=tf.TensorShape(None))
    tf.train.Checkpoint(v=v).restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]


def test_text_keys_only(tf, tmp_path):
    module = tf.Module()
    module.d = {1: tf.Variable(1.0)}
    with pytest.raises(ValueError, match="non-string key"):
        tf.train.Checkpoint(m=module).save(str(tmp_path / "s"))


@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "float64",
        "int8",
        "uint16",
        "int64",
        "uint64",
        "bool",
        "complex64",
        "complex128",
        "string",
    ],
)
def test_every_dtype(tf, tmp_path, dtype):
    value = [b"a", b"", b"\x00\xff"] if dtype == "string" else [1, 0, 1]
    v = tf.Variable(tf.cast(value, dtype) if dtype != "string" else value)
    before = v.numpy()
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(str(tmp_path / "t"))
    v.assign(v[::-1])
    checkpoint.restore(path).assert_consumed()
    assert (v.numpy() == before).all()
    assert v.dtype == getattr(tf, dtype)
    read = tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")
    assert read.tolist() == before.tolist()


def test_manager(tf, tmp_path):
    v = tf.Variable(0.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), str(tmp_path), max_to_keep=2)
    assert manager.latest_checkpoint is None
    assert manager.restore_or_initialize() is None
    for i in range(4):
        v.assign(float(i))
        path = manager.save()
    assert manager.latest_checkpoint == path == str(tmp_path / "ckpt-4")
    assert manager.checkpoints == [str(tmp_path / "ckpt-3"), str(tmp_path / "ckpt-4")]
    assert not os.path.exists(tmp_path / "ckpt-1.index")
    again = tf.Variable(-1.0)
    second = tf.train.CheckpointManager(tf.train.Checkpoint(v=again), str(tmp_path), max_to_keep=2)
    assert second.checkpoints == manager.checkpoints
    assert second.restore_or_initialize() == path
    assert again.numpy() == 3.0
    assert second.save(checkpoint_number=10) == str(tmp_path / "ckpt-10")
    assert second.checkpoints == [str(tmp_path / "ckpt-4"), str(tmp_path / "ckpt-10")]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == second.checkpoints
    assert state.model_checkpoint_path == second.latest_checkpoint


def test_manager_intervals_and_names(tf, tmp_path):
    step, calls = tf.Variable(0), []
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step),
        str(tmp_path),
        max_to_keep=None,
        checkpoint_name="model",
        step_counter=step,
        checkpoint_interval=2,
        init_fn=lambda: calls.append(1),
    )
    assert manager.restore_or_initialize() is None
    assert calls == [1]
    saved = []
    for _ in range(5):
        step.assign_add(1)
        saved.append(manager.save())
    assert [s and os.path.basename(s) for s in saved] == ["model-1", None, "model-2", None, "model-3"]
    with pytest.raises(ValueError, match="max_to_keep"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), str(tmp_path), max_to_keep=0)
    with pytest.raises(ValueError, match="step_counter"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), str(tmp_path), max_to_keep=1, checkpoint_interval=1)


def test_manager_keeps_one_every_n_hours(tf, tmp_path):
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(v=tf.Variable(1.0)), str(tmp_path), max_to_keep=1, keep_checkpoint_every_n_hours=1e-9
    )
    for _ in range(3):
        manager.save()
    assert [os.path.exists(tmp_path / f"ckpt-{i}.index") for i in (1, 2, 3)] == [True, True, True]
    assert len(manager.checkpoints) == 1


def test_iterator(tf, tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    first = checkpoint.save(str(tmp_path / "c"))
    assert list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0.05)) == [first]


def test_a_layer_of_ones_own_built_at_its_first_call(tf, tmp_path):
    class Dense(tf.Module):
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(tf.ones([int(x.shape[-1]), 2]))
            return x @ self.w

    first, x = Dense(), tf.constant([[1.0, 2.0, 3.0]])
    first(x)
    first.w.assign(tf.fill([3, 2], 5.0))
    path = tf.train.Checkpoint(dense=first).save(str(tmp_path / "l"))
    second = Dense()
    status = tf.train.Checkpoint(dense=second).restore(path)
    run = tf.function(second.__call__)
    assert run(x).numpy().tolist() == [[30.0, 30.0]]
    status.assert_consumed()


def test_optimizers_go_on_where_they_were(tf, tmp_path):
    def make():
        return tf.Variable([1.0, 2.0]), tf.optimizers.Adam(0.1)

    def step(v, optimizer):
        optimizer.apply_gradients([(2.0 * v, v)])

    v, optimizer = make()
    for _ in range(3):
        step(v, optimizer)
    path = tf.train.Checkpoint(v=v, optimizer=optimizer).save(str(tmp_path / "o"))
    step(v, optimizer)
    again, fresh = make()
    status = tf.train.Checkpoint(v=again, optimizer=fresh).restore(path)
    step(again, fresh)
    np.testing.assert_allclose(again.numpy(), v.numpy(), rtol=1e-6)
    status.assert_existing_objects_matched()
    assert int(fresh.iterations.numpy()) == 4


@pytest.mark.ours
def test_optimizers_match_completely(tf, tmp_path):
    v = tf.Variable([1.0])
    optimizer = tf.optimizers.Adam(0.1)
    optimizer.apply_gradients([(v * 1.0, v)])
    path = tf.train.Checkpoint(v=v, optimizer=optimizer).save(str(tmp_path / "o"))
    fresh, w = tf.optimizers.Adam(0.5), tf.Variable([0.0])
    status = tf.train.Checkpoint(v=w, optimizer=fresh).restore(path)
    assert float(fresh.learning_rate) == pytest.approx(0.1)
    fresh.build([w])
    status.assert_consumed()


@pytest.mark.ours
def test_files(tf, tmp_path):
    v = tf.Variable([1.0])
    checkpoint = tf.train.Checkpoint(v=v)
    checkpoint.write(tmp_path / "c")
    v.assign([2.0])
    checkpoint.write(tmp_path / "c")
    names = sorted(os.listdir(tmp_path))
    assert len(names) == 2
    assert names[0].startswith("c.data-")
    assert names[1] == "c.index"


@pytest.mark.ours
@pytest.mark.parametrize(
    "how", ["index cut", "data cut", "data flipped", "data gone", "version", "traversal", "format"]
)
def test_damaged_files(tf, tmp_path, how):
    import json

    checkpoint = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]))
    checkpoint.write(tmp_path / "c")
    index = tmp_path / "c.index"
    (data,) = tmp_path.glob("c.data-*")
    content = json.loads(index.read_text())
    expected = tf.errors.DataLossError
    if how == "index cut":
        index.write_bytes(index.read_bytes()[:-20])
    elif how == "data cut":
        data.write_bytes(data.read_bytes()[:-1])
    elif how == "data flipped":
        actual = bytearray(data.read_bytes())
        actual[-1] ^= 1
        data.write_bytes(actual)
    elif how == "data gone":
        data.unlink()
        expected = tf.errors.NotFoundError
    elif how == "version":
        index.write_text(json.dumps({**content, "version": 99}))
        expected = tf.errors.UnimplementedError
    elif how == "format":
        index.write_text(json.dumps({**content, "format": "other"}))
    else:
        index.write_text(json.dumps({**content, "data": "../c.data"}))
    with pytest.raises(expected):
        checkpoint.read(tmp_path / "c")


def test_an_iterator_goes_on_where_it_was(tf, tmp_path):
    data = tf.data.Dataset.range(20).shuffle(5, seed=3).batch(2)

    def taken(iterator, n):
        return [next(iterator).numpy().tolist() for _ in range(n)]

    iterator = iter(data)
    checkpoint = tf.train.Checkpoint(step=tf.Variable(1), iterator=iterator)
    taken(iterator, 3)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    rest = taken(iterator, 2)
    checkpoint.restore(path)
    assert taken(iterator, 2) == rest
    fresh = iter(data)
    tf.train.Checkpoint(step=tf.Variable(0), iterator=fresh).restore(path).assert_consumed()
    assert taken(fresh, 2) == rest


def test_an_iterator_in_a_function_is_restored_too(tf, tmp_path):
    iterator = iter(tf.data.Dataset.range(10))

    @tf.function
    def total(n):
        result = tf.constant(0, tf.int64)
        for _ in tf.range(n):
            result += next(iterator)
        return result

    checkpoint = tf.train.Checkpoint(iterator=iterator)
    total(tf.constant(3))
    path = checkpoint.write(str(tmp_path / "ckpt"))
    assert int(total(tf.constant(2))) == 7
    checkpoint.read(path).assert_consumed()
    assert int(total(tf.constant(2))) == 7
