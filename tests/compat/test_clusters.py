"""Names of clusters, devices, strategies and threads: as TensorFlow 2.21 answers on one process of a CPU."""

import json
import threading

import pytest

import opwright as ow

RESOLVERS = ow.distribute.cluster_resolver


def test_addresses_of_tasks():
    spec = ow.train.ClusterSpec({"worker": ["a:1", "b:2"], "ps": {1: "c:3"}})
    assert spec.as_dict() == {"worker": ["a:1", "b:2"], "ps": {1: "c:3"}}
    assert (spec.jobs, spec.num_tasks("worker"), spec.task_indices("ps")) == (["worker", "ps"], 2, [1])
    assert (spec.task_address("worker", 1), spec.job_tasks("ps")) == ("b:2", [None, "c:3"])
    assert spec == ow.train.ClusterSpec(spec)
    assert not ow.train.ClusterSpec({})
    with pytest.raises(ValueError, match="No task"):
        spec.task_address("ps", 0)
    with pytest.raises(TypeError, match="dictionary"):
        ow.train.ClusterSpec(["a:1"])


def test_resolvers_of_clusters(monkeypatch):
    spec = ow.train.ClusterSpec({"worker": ["a:1", "b:2"]})
    simple = RESOLVERS.SimpleClusterResolver(spec, "m:1", "worker", 1, rpc_layer="grpc")
    assert (simple.master(), simple.master("worker", 0), simple.task_id) == ("grpc://m:1", "grpc://a:1", 1)
    cluster = {"cluster": {"worker": ["h:1", "i:2"]}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    config = RESOLVERS.TFConfigClusterResolver()
    assert (config.cluster_spec().as_dict(), config.task_type, config.task_id) == (cluster["cluster"], "worker", 1)
    assert config.master() == "i:2"
    union = RESOLVERS.UnionResolver(simple, config)
    assert union.cluster_spec().as_dict() == {"worker": ["a:1", "b:2", "h:1", "i:2"]}
    assert (union.task_type, union.master()) == ("worker", "grpc://m:1")
    with pytest.raises(ow.errors.UnimplementedError, match="MPICommunicator"):
        ow.distribute.MultiWorkerMirroredStrategy()
    monkeypatch.delenv("TF_CONFIG")
    assert ow.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync == 1


def test_the_strategy_that_code_is_in():
    strategy = ow.distribute.experimental.CentralStorageStrategy()
    asked = ow.distribute.in_cross_replica_context
    with strategy.scope():
        assert (asked(), ow.distribute.get_strategy() is strategy, ow.distribute.has_strategy()) == (True, True, True)
        assert strategy.run(asked) is False
        with pytest.raises(RuntimeError, match="scope"):
            ow.distribute.experimental_set_strategy(None)
    assert (asked(), ow.distribute.has_strategy()) == (False, False)
    ow.distribute.experimental_set_strategy(strategy)
    assert (asked(), ow.distribute.get_strategy() is strategy) == (True, True)
    ow.distribute.experimental_set_strategy(None)
    assert not ow.distribute.has_strategy()
    options = ow.distribute.experimental.CommunicationOptions(implementation="RING")
    assert options.implementation is ow.distribute.experimental.CommunicationImplementation.RING


def test_shards_of_variables():
    """By hand: 4,000 bytes in rows of 400 have 4 shards of 1,000, or 5 of at most 1,000."""
    names = ow.distribute.experimental.partitioners
    assert names.FixedShardsPartitioner(3)([10, 100], ow.float32) == [3, 1]
    assert names.FixedShardsPartitioner(3)([2, 100], ow.float32, axis=0) == [2, 1]
    assert names.MinSizePartitioner(1000, max_shards=9)([10, 100], ow.float32) == [4, 1]
    assert names.MaxSizePartitioner(1000)([10, 100], ow.float32) == [5, 1]
    assert names.MaxSizePartitioner(1000, max_shards=2)([10, 100], ow.string) == [2, 1]
    with pytest.raises(ValueError, match="known"):
        names.MaxSizePartitioner(1000)([None, 100], ow.float32)


def test_names_of_devices():
    spec = ow.DeviceSpec(job="w", replica=1, task=2, device_type="cpu", device_index=0)
    assert spec.to_string() == "/job:w/replica:1/task:2/device:CPU:0"
    other = ow.DeviceSpec.from_string("/job:ps/device:GPU:*")
    assert (other.to_string(), spec.make_merged_spec(other).to_string()) == (
        "/job:ps/device:GPU:*",
        "/job:ps/replica:1/task:2/device:GPU:0",
    )
    assert ow.DeviceSpec.from_string("/cpu:0").to_string() == "/device:CPU:0"
    assert spec == ow.DeviceSpec.from_string(spec.to_string())
    with pytest.raises(ValueError, match="Unknown attribute"):
        ow.DeviceSpec.from_string("/jobs:1")


def test_sections_and_threads():
    section, v = ow.CriticalSection(), ow.Variable(0, aggregation=ow.VariableAggregation.SUM)

    @ow.function
    def add():
        return section.execute(lambda: v.assign_add(2).read_value())

    assert [int(add()), int(add()), section.execute(lambda: 3)] == [2, 4, 3]
    coordinator = ow.train.Coordinator()

    def work():
        with coordinator.stop_on_exception():
            raise KeyError("lost")

    def wait():
        coordinator.wait_for_stop(60)

    threads = [threading.Thread(target=each) for each in (work, wait)]
    for thread in threads:
        thread.start()
    with pytest.raises(KeyError, match="lost"):
        coordinator.join(threads)
    assert coordinator.should_stop()
    assert coordinator.joined
    coordinator.clear_stop()
    coordinator.request_stop(ow.errors.OutOfRangeError(what="end"))
    coordinator.join()  # the end of the elements is no failure
    compiled = ow.xla.experimental.compile(lambda x, y: x * y + 1.0, [ow.constant([1.0, 2.0]), ow.constant([3.0, 4.0])])
    assert [c.numpy().tolist() for c in compiled] == [[4, 9]]
    with pytest.raises(RuntimeError, match="eager"), ow.xla.experimental.jit_scope():
        pass
