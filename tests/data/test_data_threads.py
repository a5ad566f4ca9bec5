"""Working ahead, streaming, keeping: threads end, buffers are bounded, files appear whole."""

import gc
import struct
import threading
import time
import zlib

import numpy as np
import pytest


def vals(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


def counted(tf, n, made):
    def numbers():
        for i in range(n):
            made.append(i)
            yield i

    return tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64))


def settle(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


@pytest.mark.ours  # TensorFlow's buffers of py_function differ
def test_prefetch_works_ahead_within_its_bound(tf):
    made = []
    iterator = iter(counted(tf, 100, made).prefetch(3))
    assert made == []  # it begins with the first element asked for
    assert int(next(iterator)) == 0
    assert settle(lambda: len(made) == 4)
    time.sleep(0.03)
    assert made == [0, 1, 2, 3]
    assert [int(next(iterator)) for _ in range(3)] == [1, 2, 3]


@pytest.mark.ours
def test_threads_end_with_their_iterators(tf):
    def threads():
        ours = [t for t in threading.enumerate() if t.name.startswith("opwright-")]
        return [t for t in ours if t.name not in ("opwright-compiler", "opwright-llvm")]  # of other tests

    iterator = iter(tf.data.Dataset.counter().prefetch(2).prefetch(2))
    next(iterator)
    assert len(threads()) >= 2
    del iterator
    gc.collect()
    assert settle(lambda: not threads())
    assert sum(1 for _ in tf.data.Dataset.range(20).prefetch(4)) == 20
    assert settle(lambda: not threads())
    slow = tf.data.Dataset.range(8).map(lambda x: tf.py_function(lambda v: time.sleep(0.002) or v, [x], tf.int64), 4)
    assert vals(slow) == list(range(8))
    assert settle(lambda: not threads())


@pytest.mark.ours
def test_slow_functions_run_at_once(tf):
    def slow(v):
        time.sleep(0.01)
        return v

    ds = tf.data.Dataset.range(40).map(lambda x: tf.py_function(slow, [x], tf.int64), num_parallel_calls=8)
    start = time.monotonic()
    assert vals(ds) == list(range(40))
    assert time.monotonic() - start < 0.3  # 0.4 one after the other
    ds = tf.data.Dataset.range(40).map(lambda x: tf.py_function(slow, [x], tf.int64), 8, deterministic=False)
    assert sorted(vals(ds)) == list(range(40))


def test_a_generator_is_not_run_ahead_of_need(tf):
    made = []
    ds = counted(tf, 10**6, made).map(lambda x: x + 1).batch(2)
    assert next(iter(ds)).numpy().tolist() == [1, 2]
    assert len(made) < 100


def test_errors_come_through_prefetch(tf):
    ds = tf.data.Dataset.range(3).map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x - 1, tf.float32), "bad"))
    iterator = iter(ds.prefetch(2))
    assert float(next(iterator)) == -1.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iterator)
    assert float(next(iterator)) == 1.0
    with pytest.raises(StopIteration):
        next(iterator)


def test_rows_are_views(tf):
    big = tf.zeros([4, 1000])
    element = next(iter(tf.data.Dataset.from_tensor_slices(big)))
    assert element.shape == (1000,)
    if hasattr(element, "_array"):
        assert np.shares_memory(element._array, big._array)
        batch = next(iter(tf.data.Dataset.from_tensor_slices(big).batch(2)))
        assert np.shares_memory(batch._array, big._array)


def test_cache_in_memory(tf):
    made = []
    ds = counted(tf, 3, made).cache()
    for _ in ds.take(1):
        pass
    assert vals(ds) == [0, 1, 2]
    before = len(made)
    assert vals(ds) == vals(ds) == [0, 1, 2]
    assert len(made) == before


def test_cache_in_a_file(tf, tmp_path):
    made = []
    path = str(tmp_path / "elements")
    assert vals(counted(tf, 3, made).cache(path)) == [0, 1, 2]
    assert vals(counted(tf, 3, made).cache(path)) == [0, 1, 2]
    assert made == [0, 1, 2]


@pytest.mark.ours
def test_a_cache_file_is_whole_or_absent(tf, tmp_path):
    path = tmp_path / "elements"
    ds = tf.data.Dataset.from_tensor_slices((["a", "bcd"], [[1.0, 2.0], [3.0, 4.0]])).cache(str(path))
    iterator = iter(ds)
    next(iterator)
    del iterator
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    assert [(a.numpy(), b.numpy().tolist()) for a, b in ds] == [(b"a", [1.0, 2.0]), (b"bcd", [3.0, 4.0])]
    assert list(tmp_path.iterdir()) == [path]
    assert [(a.numpy(), b.numpy().tolist()) for a, b in ds] == [(b"a", [1.0, 2.0]), (b"bcd", [3.0, 4.0])]
    whole = path.read_bytes()
    for damaged in (whole[:-4], whole[:30], b"x" + whole[1:], b""):
        path.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match="not a complete cache file"):
            list(ds)


# ---- files -----------------------------------------------------------------------------------------------------------


def crc32c(data):
    """Bit by bit, as RFC 3720 defines it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(data):
    def mask(crc):
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    head = struct.pack("<Q", len(data))
    return head + mask(crc32c(head)) + data + mask(crc32c(data))


def test_crc_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C


def test_tfrecords(tf, tmp_path):
    records = [b"", b"a", b"abc" * 1000, bytes(range(256)) * 5]
    plain, packed = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
    plain.write_bytes(b"".join(map(record, records)))
    packed.write_bytes(zlib.compress(b"".join(map(record, records))))
    assert [x.numpy() for x in tf.data.TFRecordDataset(str(plain))] == records
    assert [x.numpy() for x in tf.data.TFRecordDataset([str(packed)], compression_type="ZLIB")] == records
    both = tf.data.TFRecordDataset([str(plain), str(plain)])
    assert len(list(both)) == 8
    assert int(both.cardinality()) == -2
    for at in (3, 12, 40):  # head, checksum, data
        bad = bytearray(plain.read_bytes())
        bad[at] ^= 1
        (tmp_path / "bad").write_bytes(bytes(bad))
        with pytest.raises(tf.errors.DataLossError, match="corrupted"):
            list(tf.data.TFRecordDataset(str(tmp_path / "bad")))
    (tmp_path / "bad").write_bytes(plain.read_bytes()[:-5])
    with pytest.raises(tf.errors.DataLossError, match="truncated"):
        list(tf.data.TFRecordDataset(str(tmp_path / "bad")))
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.data.TFRecordDataset(str(tmp_path / "none")))
    with (
        tf.io.TFRecordWriter(str(tmp_path / "w"))
        if hasattr(tf, "io")
        else tf.data.experimental.TFRecordWriter(str(tmp_path / "w")) as writer
    ):
        for r in records:
            writer.write(r)
    assert (tmp_path / "w").read_bytes() == plain.read_bytes()


def test_lines_and_names(tf, tmp_path):
    for name, text in (("b.txt", "one\ntwo\r\n\nfour"), ("a.txt", "x\n")):
        (tmp_path / name).write_bytes(text.encode())
    names = tf.data.Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    assert [n.numpy().decode()[-5:] for n in names] == ["a.txt", "b.txt"]
    assert [x.numpy() for x in tf.data.TextLineDataset(names)] == [b"x", b"one", b"two", b"", b"four"]
    assert sorted(len(x.numpy()) for x in names.interleave(tf.data.TextLineDataset, cycle_length=2)) == [0, 1, 3, 3, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched"):
        tf.data.Dataset.list_files(str(tmp_path / "*.none"))
    with pytest.raises(ValueError, match="unsupported type"):
        tf.data.Dataset.list_files(tf.data.Dataset.from_tensors("*.txt"))
    (tmp_path / "f").write_bytes(b"HHaabbccF")
    fixed = tf.data.FixedLengthRecordDataset(str(tmp_path / "f"), 2, header_bytes=2, footer_bytes=1)
    assert [x.numpy() for x in fixed] == [b"aa", b"bb", b"cc"]
