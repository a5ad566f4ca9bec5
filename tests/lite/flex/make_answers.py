"""Writes answers.npz: what TensorFlow gives for the NodeDefs in our Flex operators, run as a graph of its own.

Run by hand, from the repository's root, in two steps: `python tests/lite/flex/make_answers.py nodes FILE`, then with a
Python that has TensorFlow `... answers FILE`. The file between them has the name, the
NodeDef's bytes and the operands of every Flex operator that the cases become where nothing else is allowed.
"""

import pathlib
import pickle
import sys

HERE = pathlib.Path(__file__).parent


def nodes():
    sys.path[:0] = [str(HERE), str(HERE.parent)]  # as pytest has them
    from flex_cases import CASES
    from flex_harness import ALONE, converted, flex_nodes

    result = {}
    for name, (function, *inputs) in CASES.items():
        for i, part in enumerate(flex_nodes(converted(function, inputs, ALONE), inputs)):
            result[f"{name}/{i}"] = part
    return result


def answers(actual):
    import numpy as np
    import tensorflow as tf
    from tensorflow.core.framework import node_def_pb2

    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # it takes single nodes apart
    kept = {}
    for name, (code, data, inputs) in actual.items():
        node = node_def_pb2.NodeDef.FromString(data)
        assert f"Flex{node.op}" == code, (name, node.op, code)
        with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph, config=config) as session:
            tensors = [tf.constant(x if x.dtype != object else x.tolist()) for x in inputs]
            definition = tf.compat.v1.GraphDef()
            node.name = "node"
            del node.input[:]
            for i, tensor in enumerate(tensors):
                placeholder = definition.node.add(name=f"in{i}", op="Placeholder")
                placeholder.attr["dtype"].type = tensor.dtype.as_datatype_enum
                node.input.append(f"in{i}")
            definition.node.append(node)
            (operation,) = tf.import_graph_def(
                definition, {f"in{i}": t for i, t in enumerate(tensors)}, return_elements=["node"], name=""
            )
            results = session.run(list(operation.outputs))
        kept[f"{name}/node"] = np.frombuffer(data, np.uint8)
        for i, result in enumerate(results):
            array = np.asarray(result)
            kept[f"{name}/result{i}"] = array if array.dtype != object else array.astype(bytes)
    np.savez_compressed(HERE / "answers.npz", **kept)
    print(len(actual), "operators")


if __name__ == "__main__":
    step, path = sys.argv[1:]
    if step == "nodes":
        pathlib.Path(path).write_bytes(pickle.dumps(nodes()))
    else:
        answers(pickle.loads(pathlib.Path(path).read_bytes()))
